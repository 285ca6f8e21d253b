"""Settings of the whole suite.

Hypothesis tries the same examples in each run; ``HYPOTHESIS_PROFILE=drawn`` draws others, and many
more. Selections of the command line make no fits to halves of the rows, and verdicts on few rows do
not repeat the cross-validation, unless a test wants them. ``tests/core/conftest.py`` takes both
settings away, since the core is tested without the packages above it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("same", max_examples=40, derandomize=True, deadline=None, database=None)
settings.register_profile("drawn", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# The half million objects of the collection live as long as the run, and each full pass of Python's
# collector of garbage would walk through them for half a second.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def no_halves() -> Iterator[None]:
    """Make no ten fits to halves in a selection: ``test_cli_halves.py`` tests them."""
    from atomlearn.reports import halves

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halves, "MOST_WORK", 0)
        yield


@pytest.fixture(autouse=True)
def one_split(request: pytest.FixtureRequest) -> Iterator[None]:
    """Repeat cross-validations only in tests marked so: they take minutes."""
    from atomlearn.findings import trials

    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("repeats") is None:
            patch.setattr(trials, "FEW_ROWS", 0)
        else:
            patch.setattr(trials, "MOST_WORK", 10**15)
        yield


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close the figures of each test: Matplotlib warns if many are open in a process."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    """X of 40 x 5, and a target that two of its columns and an intercept make."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) + 2.0
