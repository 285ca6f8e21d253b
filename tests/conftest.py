"""Settings of the whole suite.

Hypothesis tries the same examples in each run; ``HYPOTHESIS_PROFILE=drawn`` draws others, and many
more. Selections of the command line make no fits to halves of the rows, and verdicts on few rows do
not repeat the cross-validation, unless a test wants them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

from atomlearn.findings import trials
from atomlearn.reports import halves

settings.register_profile("same", max_examples=40, derandomize=True, deadline=None, database=None)
settings.register_profile("drawn", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# What collection makes lives as long as the run: half a million objects, which every full pass of
# Python's collector of garbage would walk through, half a second each.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def no_halves() -> Iterator[None]:
    """Ten more fits a selection would be half of their time: ``test_cli_halves.py`` has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halves, "MOST_WORK", 0)
        yield


@pytest.fixture(autouse=True)
def one_split(request: pytest.FixtureRequest) -> Iterator[None]:
    """Repeated cross-validations would take minutes: tests marked so have them, without a limit."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("repeats") is None:
            patch.setattr(trials, "FEW_ROWS", 0)
        else:
            patch.setattr(trials, "MOST_WORK", 10**15)
        yield


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Matplotlib warns of many open figures, and which tests share a process is not said."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    """X of 40 x 5, and a target that two of its columns and an intercept make."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) + 2.0
