"""Offsets and free columns around the loss of Cox: the suites of the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn.core import Array, FreeColumns
from atomlearn.losses import Cox, survival_target
from tests.core.losses.test_around import (  # noqa: F401
    Case,
    test_an_offset_goes_with_its_samples,
    test_an_offset_is_a_linear_term_of_the_conjugate,
    test_an_offset_is_taken_off_what_is_told_of_predictions,
    test_an_offset_moves_the_predictions,
    test_scores_are_of_whole_predictions,
)
from tests.core.losses.test_free_columns import (  # noqa: F401
    Made,
    test_dual_points_are_balanced_and_prove_the_value,
    test_nothing_that_was_asked_before_changes_an_answer,
    test_the_value_is_the_least_and_the_coefficients_reach_it,
    test_what_rounding_leaves_of_the_balance_is_told,
)

N = 24


@pytest.fixture
def case() -> Case:
    rng = np.random.default_rng(0)
    z, o = rng.normal(size=(2, N))
    weight = np.repeat(rng.uniform(0.5, 2.0, size=8) * (np.arange(8) != 1), 3)
    time = rng.integers(1, 9, N).astype(float)
    y = survival_target(rng.random(N) < 0.7, time, time - rng.integers(1, 6, N))
    return Cox(), y, z, weight, o


def with_free_columns(seed: int = 0) -> tuple[FreeColumns, Any, Array, Array]:
    rng = np.random.default_rng(seed)
    Z, z = rng.normal(size=(N, 2)), rng.normal(size=N)
    weight = np.repeat(rng.uniform(0.5, 2.0, size=8), 3)
    y = survival_target(rng.random(N) < 0.7, rng.integers(1, 9, N).astype(float))
    return FreeColumns(Cox(), Z, False), y, z, weight


@pytest.fixture
def made() -> Made:
    return with_free_columns
