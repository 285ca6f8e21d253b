"""SequentialQP on groups of columns: where the kernel ends is proved by the problem."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn.core import (
    CachedBlock,
    DenseBlock,
    Form,
    FreeColumns,
    Problem,
    Regularizer,
    RepeatedBlock,
    SequentialQP,
    SparseBlock,
    as_loss,
)
from atomlearn.interfaces import Loss
from atomlearn.masters import SemismoothNewton
from atomlearn.norms import Groups

LOSSES = ["squared", "logistic", "poisson", "huber", "squared_hinge"]


def columns(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0, size=p)
    X[:, 1::2] += X[:, ::2]
    return np.asfortranarray(X)


def target(loss: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    z = X[:, :6] @ rng.normal(size=6)
    if loss in ("logistic", "squared_hinge"):
        return np.sign(z + rng.normal(size=z.size))
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(z, -3.0, 3.0))).astype(float)
    return z + rng.normal(size=z.size)


def proved(problem: Problem) -> float:
    """Return the relative gap of the kernel's end, without another master behind it."""
    start = np.zeros(problem.design.shape[1])
    first = SequentialQP().solve(problem, start, 0.0, 1e-6)
    # A second call uses the Hessian that the first one kept.
    refit = SequentialQP().solve(problem, first.weights, first.intercept, 1e-10 * first.objective)
    assert np.count_nonzero(refit.weights)
    assert np.count_nonzero(refit.weights == 0.0)
    return refit.gap / refit.objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["penalized", "squared"])
@pytest.mark.parametrize(("n", "p", "tau"), [(90, 30, 0.0), (90, 30, 0.7), (40, 80, 0.0)])
def test_groups_end_at_the_optimum(loss: str, form: Form, n: int, p: int, tau: float) -> None:
    rng = np.random.default_rng(p + len(loss))
    X = columns(rng, n, p)
    labels = rng.permutation(np.repeat(np.arange(p), rng.integers(1, 9, size=p))[:p])
    norm = Groups(labels, weights=rng.uniform(0.5, 2.0, size=np.unique(labels).size))
    y = target(loss, X, rng)
    level = 60.0 if loss in ("squared", "poisson") else 8.0
    for block in (DenseBlock(X), SparseBlock.of(sp.csc_array(X))):
        problem = Problem.build(
            CachedBlock(block), y, as_loss(loss), Regularizer(norm, form, level),
            tau=tau, fit_intercept=True, sample_weight=rng.uniform(0.5, 2.0, size=n),
        )  # fmt: skip
        assert proved(problem) < 1e-9


@pytest.mark.parametrize("form", ["penalized", "squared"])
def test_groups_next_to_free_columns(form: Form) -> None:
    rng = np.random.default_rng(3)
    X = columns(rng, 90, 30)
    y = target("logistic", X, rng)
    loss: Loss = FreeColumns(as_loss("logistic"), rng.normal(size=(90, 2)), intercept=True)
    level = Regularizer(Groups(np.arange(30) // 4), form, 5.0)
    for block in (DenseBlock(X), SparseBlock.of(sp.csc_array(X))):
        assert proved(Problem.build(CachedBlock(block), y, loss, level)) < 1e-9


@pytest.mark.parametrize("level", [50.0, 1.0, 0.02])
def test_repeated_columns_under_a_squared_gauge(level: float) -> None:
    """Groups that share columns end where the other master does, which knows no kernel."""
    rng = np.random.default_rng(5)
    X = columns(rng, 60, 10)
    positions = rng.permutation(np.repeat(np.arange(10), 2))
    block = CachedBlock(RepeatedBlock(DenseBlock(X), np.arange(10), positions))
    norm = Regularizer(Groups(np.arange(20) // 4), "squared", level)
    problem = Problem.build(block, target("logistic", X, rng), as_loss("logistic"), norm)
    zero = np.zeros(20)
    refit = SequentialQP().solve(problem, zero, 0.0, 1e-9)
    other = SemismoothNewton().solve(problem, zero, 0.0, 1e-9)
    assert refit.gap <= 1e-9
    assert abs(refit.objective - other.objective) <= refit.gap + other.gap


def test_one_group_of_parallel_columns_has_no_curvature_in_some_directions() -> None:
    rng = np.random.default_rng(4)
    X = np.asfortranarray(np.repeat(columns(rng, 40, 6), 5, axis=1))
    y = X[:, 0] - X[:, 12] + rng.normal(size=40)
    level = Regularizer(Groups(np.arange(30) % 7), "penalized", 20.0)
    assert proved(Problem.build(CachedBlock(DenseBlock(X)), y, as_loss("squared"), level)) < 1e-9
