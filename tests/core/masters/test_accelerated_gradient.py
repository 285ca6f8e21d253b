"""AcceleratedGradient: a sample of weight 2 is two samples, also where it stops early."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn.designs import as_design
from atomlearn.interfaces import Refit
from atomlearn.losses import as_loss
from atomlearn.masters import AcceleratedGradient
from atomlearn.norms import L1
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.cases import each


def fitted(X: np.ndarray, y: np.ndarray, loss: str, weight: np.ndarray | None) -> Refit:
    block = as_design(X).gather(np.arange(X.shape[1]))
    problem = Problem.build(
        block,
        y,
        as_loss(loss),
        Regularizer(L1(), "squared", 1.0),
        fit_intercept=True,
        sample_weight=weight,
    )
    master = AcceleratedGradient(relative_decrease=1e-4)
    return master.solve(problem, np.zeros(X.shape[1]), 0.0, 1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("n_columns", [1, 4])
@each("seed", range(6))
def test_weights_are_repetitions(loss: str, n_columns: int, seed: int) -> None:
    """Every iterate is the same but for rounding: neither n nor a line search's tie decides."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(size=(20, n_columns))
    y = np.where(X.sum(axis=1) + 0.5 * rng.standard_normal(20) > 0.5 * n_columns, 1.0, -1.0)
    times = rng.integers(0, 4, 20)
    shuffled = rng.permutation(int(times.sum()))
    weighted = fitted(X, y, loss, times.astype(np.float64))
    rows = np.repeat(np.arange(20), times)[shuffled]
    repeated = fitted(X[rows], y[rows], loss, None)
    assert weighted.steps == repeated.steps
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-8, atol=1e-10)
    assert weighted.intercept == pytest.approx(repeated.intercept, rel=1e-8, abs=1e-10)
