"""Terms and refusals that drawn changes of a line got past, the fourth draw of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms, solve
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.losses.shift import optimal_shift
from atomlearn.core.masters.ksupport_newton import _columns
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import Measured
from atomlearn.interfaces import Loss
from atomlearn.storage.formats.understood import understood


class PseudoHuber(Loss):
    """sqrt(1 + (z - y)^2), of which Newton's steps from afar lead ever farther away."""

    name, task, smoothness = "pseudo-huber", "regression", 1.0

    def check_target(self, y):
        return np.asarray(y, dtype=float)

    def value(self, y, prediction, weight):
        return float(weight @ np.sqrt(1.0 + (prediction - y) ** 2))

    def gradient(self, y, prediction, weight):
        return weight * (prediction - y) / np.sqrt(1.0 + (prediction - y) ** 2)

    def curvature(self, y, prediction, weight):
        return weight * (1.0 + (prediction - y) ** 2) ** -1.5

    def conjugate(self, y, dual, weight):
        raise NotImplementedError


@pytest.mark.parametrize("far", [7.0, -7.0, 3e3])
def test_shifts_are_halved_between_where_newton_leaves_the_bracket(far):
    y = far + np.array([-1.0, 0.0, 1.0])
    assert_allclose(optimal_shift(PseudoHuber(), y, np.ones(3), np.zeros(3)), far, rtol=1e-12)


def test_files_that_are_not_there_are_told_as_the_system_does(tmp_path):
    with pytest.raises(FileNotFoundError), understood("x", "table"):
        (tmp_path / "none").read_bytes()
    said = pytest.raises(ValueError, match=r"^x is not a readable table: gone; try$")
    with said, understood("x", "table", "; try"):
        raise OSError("gone")


@pytest.mark.parametrize("intercept", [False, True])
def test_columns_of_the_k_support_kernel_are_less_their_weighted_means(intercept):
    rng = np.random.default_rng(0)
    X, weight = np.asfortranarray(rng.normal(size=(9, 3)) + 5.0), rng.uniform(0.5, 2.0, 9)
    level = Regularizer(norms.KSupport(2), "squared", 1.0)
    block = DenseBlock(X)
    task = Problem.build(
        block, rng.normal(size=9), losses.Squared(), level,
        fit_intercept=intercept, sample_weight=weight,
    )  # fmt: skip
    means = weight @ X / weight.sum() if intercept else np.zeros(3)
    assert_allclose(_columns(task, block), np.sqrt(weight)[:, None] * (X - means))


def test_gaps_of_losses_with_kinks_hold_with_a_ridge():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    y = X[:, 0] + rng.normal(size=40)
    w = cp.Variable(4)
    cost = 0.5 * cp.norm1(y - X @ w) + 0.5 * cp.norm1(w) + 2.5 * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL")
    result = solve(X, y, loss="quantile", level=0.5, tau=5.0, gap=1e-8)
    assert result.converged
    assert_allclose(result.objective, best, rtol=1e-6)
    for record in result.history:
        assert record.gap >= record.objective - best - 1e-6


def test_lengths_are_measured_once_and_anew_for_other_data():
    rng = np.random.default_rng(2)
    X, weight, level = (
        rng.normal(size=(6, 5)),
        np.ones(6),
        Regularizer(norms.L1(), "penalized", 1.0),
    )
    counted = Counted(designs.as_design(X))
    task = Problem.build(counted, np.ones(6), losses.Squared(), level, sample_weight=weight)
    measured, lengths = Measured(), np.linalg.norm(X, axis=0)
    assert_allclose(measured.of(task, np.array([3, 0])).summed, lengths[[3, 0]])
    assert_allclose(measured.of(task, np.array([0, 2, 3])).summed, lengths[[0, 2, 3]])
    assert counted.columns_gathered == 3
    other = replace(task, design=designs.as_design(2.0 * X))
    assert_allclose(measured.of(other, np.array([0, 4])).summed, 2.0 * lengths[[0, 4]])
    left = replace(other, weight=np.where(np.arange(6) == 1, 0.0, 1.0))
    kept = np.linalg.norm(2.0 * np.delete(X, 1, axis=0), axis=0)
    assert_allclose(measured.of(left, np.array([0, 4])).summed, kept[[0, 4]])


@pytest.mark.parametrize("inner", [losses.Logistic(), losses.Multinomial(3)])
def test_the_hessian_with_free_columns_is_the_derivative_of_the_gradient(inner):
    rng = np.random.default_rng(3)
    n = 12
    y = np.eye(3)[np.arange(4) % 3].ravel() if inner.levelled > 1 else np.sign(rng.normal(size=n))
    z, s = rng.normal(size=n), np.repeat(rng.uniform(0.5, 2.0, 4), 3)
    loss = losses.FreeColumns(inner, rng.normal(size=(n, 2)), inner.levelled == 1)
    c, K = loss.coupling(y, z, s)
    step = 1e-5
    ahead, behind = (
        np.array([loss.gradient(y, z + sign * step * e, s) for e in np.eye(n)]) for sign in (1, -1)
    )
    found = np.diag(c) - (K @ K.T).toarray()
    assert_allclose(found, (ahead - behind) / (2.0 * step), atol=1e-6)
