"""scikit-learn's own tests of the elastic net, run over our estimators.

The tests are those of the installed scikit-learn. Each runs in its module, with the names of
scikit-learn's classes replaced by subclasses that fit by our estimators.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from sklearn import linear_model
from sklearn.linear_model.tests import test_coordinate_descent as descent
from sklearn.linear_model.tests import test_logistic as logistic

from tests.peers.chosen import DESCENT, LOGISTIC
from tests.peers.stand_ins import stand_ins

STAND_INS = stand_ins(linear_model)


def cases(module: ModuleType, names: list[str]) -> Iterator[Any]:
    """Yield each test with each set of the values that its marks give to its parameters."""
    for name in names:
        test = getattr(module, name)
        axes = []
        for mark in getattr(test, "pytestmark", []):
            if mark.name == "parametrize":
                keys, values = mark.args[:2]
                keys = [key.strip() for key in keys.split(",")] if isinstance(keys, str) else keys
                single = len(keys) == 1
                axes.append([dict(zip(keys, [v] if single else v, strict=True)) for v in values])
        for number, parts in enumerate(itertools.product(*axes)):
            given = {key: value for part in parts for key, value in part.items()}
            # Searches over several targets are slow: test_several_targets.py has a short one.
            if any("MultiTask" in str(v) and "CV" in str(v) for v in given.values()):
                continue
            yield pytest.param(module, test, given, id=f"{name}-{number}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "test", "given"), [*cases(descent, DESCENT), *cases(logistic, LOGISTIC)]
)
def test_numbers_are_those_of_scikit_learn(
    module: ModuleType,
    test: Callable[..., None],
    given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, stand_in in STAND_INS.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, stand_in)
    replaced = {}
    for key, value in given.items():
        name = getattr(value, "__name__", type(value).__name__)
        replaced[key] = value
        if name in STAND_INS:
            kind = STAND_INS[name]
            replaced[key] = kind if isinstance(value, type) else kind(**value.get_params())
    if "global_random_seed" in test.__code__.co_varnames[: test.__code__.co_argcount]:
        replaced["global_random_seed"] = 42
    test(**replaced)
