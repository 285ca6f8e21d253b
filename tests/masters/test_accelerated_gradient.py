"""AcceleratedGradient: a sample of weight 2 is two samples, also where it stops early."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.masters.accelerated_gradient import Acceleration, Iterate
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


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_arrays_that_are_written_to_change_no_iterate(loss: str, intercept: bool) -> None:
    """Iterate by iterate what an iteration that keeps all its arrays does; refused trials too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6)) * np.arange(1, 7)
    y = np.sign(X[:, 0] + rng.standard_normal(30))
    regularizer = Regularizer(L1(), "penalized", 0.5)
    plain = Problem.build(DenseBlock(X), y, as_loss(loss), regularizer, fit_intercept=intercept)
    problems = plain, plain
    kinds = Acceleration(), Acceleration(reuse=True)
    start, scores = np.ones(6), X.T @ plain.negative_gradient(X @ np.ones(6))
    runs = [Iterate.at(problem, start, X @ start, 0.0, scores) for problem in problems]
    for run in runs:
        run.lipschitz *= 1e-3  # too low: the search refuses several trials

    def proximal(point: np.ndarray, step: float) -> np.ndarray:
        return regularizer.prox_point(point, step).point

    for _ in range(60):
        runs = [
            kind.iterate(problem, proximal, at)
            for kind, problem, at in zip(kinds, problems, runs, strict=True)
        ]
        for run in runs:
            np.testing.assert_array_equal(run.weights, runs[0].weights)
            np.testing.assert_array_equal(run.linear, runs[0].linear)
            np.testing.assert_array_equal(run.ahead_linear, runs[0].ahead_linear)
            np.testing.assert_allclose(run.linear, X @ run.weights, atol=1e-9)
            assert run.intercept == runs[0].intercept
            assert run.spare is None or not np.may_share_memory(run.spare, run.linear)
