"""Parameters of the public estimators: one word for one idea, each with an entry of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import atomlearn

#: Words of the vocabulary, and the default that a parameter of this name has in every estimator.
SHARED = {
    "l1_ratio": 1.0,
    "fit_intercept": True,
    "standardize": False,
    "unpenalized": None,
    "n_jobs": None,
    "verbose": 0,
    "observers": None,
}
#: Words that other packages, or we, had for the same ideas.
REPLACED = {"rng", "ridge", "tau", "gap", "intercept", "k", "max_features", "coverage", "seed"}


def estimators() -> Iterator[type]:
    for name in atomlearn.__all__:
        found = getattr(atomlearn, name)
        if isinstance(found, type) and hasattr(found, "get_params"):
            yield found


@pytest.mark.parametrize("kind", [*estimators()], ids=lambda kind: kind.__name__)
def test_each_parameter_has_its_entry(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    section = text.split("Parameters\n----------\n")[1].split("Attributes\n")[0]
    entries = dict(re.findall(r"^(\w+(?:, \w+)*) : (.*(?:\n    .*)+)", section, re.MULTILINE))
    named = {name for entry in entries for name in entry.split(", ")}
    parameters = inspect.signature(kind).parameters
    assert named == set(parameters)
    assert "As in" not in section
    for name, parameter in parameters.items():
        assert name not in REPLACED
        if name in SHARED:
            assert parameter.default == SHARED[name], name
        if name == "cv":
            assert parameter.default in (5, "auto")
