"""Rays and l1 by sequential quadratic programs: the suites, and what is special about them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn.core import CachedBlock, DenseBlock
from atomlearn.designs import as_design
from atomlearn.interfaces import Block, Norm, Refit
from atomlearn.losses import Squared, as_loss
from atomlearn.masters import SemismoothNewton, SequentialQP
from atomlearn.norms import L1, Groups, KSupport, Nonnegative, Scaled
from atomlearn.problem import Problem, Regularizer, restrict
from atomlearn.testing.masters import MasterChecks
from atomlearn.testing.problems import FORMS, Case, as_block

Array = NDArray[np.float64]

RAYS = Nonnegative(L1())
GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]


class RaysChecks(MasterChecks):
    """The same for masters of rays: columns with coefficients >= 0 and a gauge that sums them."""

    norm: Norm = Nonnegative(L1())
    norms: ClassVar[tuple[Norm, ...]] = (
        Scaled(Nonnegative(L1()), 2.0),
        Nonnegative(Scaled(L1(), 0.3)),
        Nonnegative(Groups([[j] for j in range(16)], weights=np.linspace(0.5, 2.0, 16))),
    )
    correlated: Norm = Nonnegative(L1())
    awkward: Norm = Nonnegative(L1())

    def test_growing_and_shrinking_blocks(self) -> None:
        """Column generation in small: one or three new columns a call, idle ones dropped.

        What a master keeps from call to call must not show: every answer is that of a fresh block.
        """
        for loss in self.losses:
            for number, form in enumerate(FORMS):
                intercept = number != 1
                case = Case(loss, form, intercept, True, n_samples=50, n_features=36, seed=31)
                whole = self.block_problem(case, self.norm)
                columns, weights = np.arange(6), np.zeros(6)
                block = CachedBlock(as_block(whole).gather(columns))
                for turn, new in enumerate(np.split(np.arange(6, 36), [1, 2, 3, 6, 9, 10, 20])):
                    problem = restrict(whole, block, columns)
                    refit = self.solve(problem, weights)
                    fresh = as_block(whole).gather(columns)
                    again = self.solve(restrict(whole, fresh, columns))
                    slack = 2 * max(refit.gap, again.gap) + 1e-12 * refit.objective
                    assert abs(refit.objective - again.objective) <= slack
                    weights = refit.weights
                    if turn % 2:
                        kept = np.flatnonzero(weights)
                        block, columns, weights = block.gather(kept), columns[kept], weights[kept]
                    block = block.append(as_block(whole).gather(new))
                    columns = np.concatenate([columns, new])
                    weights = np.concatenate([weights, np.zeros(new.size)])

    @pytest.mark.parametrize("strength", [1e-6, 0.999, 1.001, 1e3])
    def test_weak_and_strong_levels(self, strength: float) -> None:
        """From nearly unregularized to zero weights, radii as small and as large."""
        for loss in self.losses:
            for form in FORMS:
                case = Case(loss, form, True, strength=strength, n_samples=60, seed=41)
                self.solve(self.block_problem(case, self.norm), gap=max(self.gap, 1e-7))

    def test_refuses_norms_without_prices(self) -> None:
        """The message names the norm and what to use."""
        problem = self.block_problem(Case(self.losses[0]), KSupport(2))
        with pytest.raises(TypeError, match="Nonnegative"):
            self.master.solve(problem, np.zeros(problem.design.shape[1]), 0.0, 1e-6)


class TestSequentialQP(RaysChecks):
    master = SequentialQP()


class TestSequentialQPOnL1(MasterChecks):
    master = SequentialQP()
    norm = L1()
    norms = (Scaled(L1(), 2.0), Groups(np.arange(16), weights=np.linspace(0.5, 2.0, 16)))
    correlated = L1()
    awkward = L1()


def problem_of(
    block: Block, y: Array, loss: str, form: str, amount: float, *, intercept: bool = False
) -> Problem:
    regularizer = Regularizer(RAYS, form, amount)  # type: ignore[arg-type]
    return Problem.build(block, y, as_loss(loss), regularizer, fit_intercept=intercept)


def assert_gap_is_a_bound(problem: Problem, refit: Refit) -> None:
    """Another master, of another kind, finds nothing lower than F - gap, wherever it ends."""
    start = np.zeros(problem.design.shape[1])
    other = SemismoothNewton(max_iter=300).solve(problem, start, 0.0, 1e-9 * refit.objective)
    assert refit.objective - refit.gap <= other.objective * (1 + 1e-13)


def test_columns_far_from_zero_with_an_intercept() -> None:
    """Means of 1e6 times the spread: H of centered columns keeps its digits."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 12))
    y = A @ np.arange(12.0) + rng.standard_normal(80)
    near = problem_of(DenseBlock(A), y, "squared", "penalized", 3.0, intercept=True)
    far = problem_of(DenseBlock(A + 1e6), y, "squared", "penalized", 3.0, intercept=True)
    weights = SequentialQP().solve(near, np.zeros(12), 0.0, 1e-9).weights
    assert_allclose(SequentialQP().solve(far, np.zeros(12), 0.0, 1e-9).weights, weights, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_repeated_and_dependent_columns_beyond_the_number_of_samples(form: str) -> None:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((8, 10))
    A = np.column_stack([A, A, A[:, :3] + A[:, 3:6], np.zeros((8, 2)), -A[:, :4]])
    y = rng.standard_normal(8)
    amount = {"penalized": 1e-3, "squared": 1e-3, "constrained": 0.6}[form]
    for intercept in (False, True):
        problem = problem_of(DenseBlock(A), y, "squared", form, amount, intercept=intercept)
        for start in (np.zeros(A.shape[1]), np.full(A.shape[1], 0.02)):
            refit = SequentialQP().solve(problem, start, 0.0, 1e-9)
            assert refit.gap <= 1e-9
            assert_gap_is_a_bound(problem, refit)


def test_what_is_kept_belongs_to_one_level_one_ridge_and_one_set_of_weights() -> None:
    """The same cached block in problems that differ gives each its own answer."""
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((40, 15)), rng.standard_normal(40)
    cached = CachedBlock(DenseBlock(A))
    other_weights = rng.integers(0, 3, 40).astype(np.float64)
    first = problem_of(cached, y, "squared", "squared", 0.5, intercept=True)
    variants = [
        first,
        replace(first, tau=2.0),
        replace(first, regularizer=Regularizer(RAYS, "squared", 0.01)),
        replace(first, regularizer=Regularizer(Scaled(RAYS, 3.0), "squared", 0.01)),
        replace(first, weight=other_weights),
        replace(first, fit_intercept=False),
        replace(first, regularizer=Regularizer(RAYS, "constrained", 0.3)),
        replace(first, y=y[::-1].copy()),
    ]
    for problem in [*variants, *variants[::-1]]:
        kept = SequentialQP().solve(problem, np.zeros(15), 0.0, 1e-11)
        fresh = replace(problem, design=DenseBlock(A))
        expected = SequentialQP().solve(fresh, np.zeros(15), 0.0, 1e-11)
        assert kept.gap <= 1e-11
        assert_allclose(kept.weights, expected.weights, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("form", FORMS)
def test_separable_classes_at_tiny_and_huge_amounts(loss: str, form: str) -> None:
    rng = np.random.default_rng(5)
    A = np.abs(rng.standard_normal((30, 20)))
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    A *= y[:, None]
    for amount in (1e-6, 1e-2, 1e2, 1e5):
        problem = problem_of(DenseBlock(A), y, loss, form, amount)
        refit = SequentialQP().solve(problem, np.zeros(20), 0.0, 1e-7)
        assert refit.gap <= 1e-7, (amount, refit.steps)
        assert_gap_is_a_bound(problem, refit)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("form", FORMS)
def test_starts_where_all_curvature_has_vanished(loss: str, form: str) -> None:
    """Margins of -1e4 and +1e4: the damped model leads back."""
    rng = np.random.default_rng(6)
    A = rng.standard_normal((40, 10))
    y = np.where(A.sum(axis=1) + rng.standard_normal(40) > 0, 1.0, -1.0)
    amount = 1e5 if form == "constrained" else 1.0
    problem = problem_of(DenseBlock(A), y, loss, form, amount, intercept=True)
    refit = SequentialQP().solve(problem, np.full(10, 5e3), 0.0, 1e-6)
    assert refit.gap <= 1e-6, (refit.gap, refit.steps)
    assert refit.steps < 200


def test_newton_steps_are_few() -> None:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((400, 60)) + 0.3
    y = np.where(A @ np.abs(rng.standard_normal(60)) + rng.standard_normal(400) > 15, 1.0, -1.0)
    for loss in ("logistic", "squared_hinge"):
        problem = problem_of(DenseBlock(A), y, loss, "penalized", 2.0, intercept=True)
        refit = SequentialQP().solve(problem, np.zeros(60), 0.0, 1e-9)
        assert refit.gap <= 1e-9
        assert refit.steps <= 20


# The Gram matrix that grows.


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_growing_gram_is_the_gram_matrix(kind: str, centered: bool) -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((2000, 90)) + 3.0
    if kind == "sparse":
        X = np.where(rng.random(X.shape) < 0.03, X, 0.0)
    if kind == "float32":
        X = X.astype(np.float32)
    from scipy import sparse

    design = as_design(sparse.csc_array(X) if kind == "sparse" else X)
    curvature = rng.integers(0, 4, 2000).astype(np.float64)
    wide = X.astype(np.float64)

    def expected(columns: NDArray[np.int64]) -> Array:
        A = wide[:, columns]
        if centered:
            A = A - curvature @ A / curvature.sum()
        return np.asarray(A.T @ (curvature[:, None] * A))

    columns = np.arange(70)
    block = CachedBlock(design.gather(columns))
    for new in ([70], [71, 72], list(range(73, 83)), []):
        matrix = block.growing_gram(curvature, centered).matrix
        assert_allclose(matrix, expected(columns), rtol=0, atol=1e-9)
        assert_array_equal(matrix, matrix.T)
        keep = np.flatnonzero(rng.random(columns.size) < 0.8)
        block, columns = block.gather(keep), columns[keep]
        taken = block.growing_gram(curvature, centered).matrix
        assert_allclose(taken, expected(columns), rtol=0, atol=1e-9)
        if new:
            block = block.append(design.gather(np.array(new)))
            columns = np.concatenate([columns, new])


class Doubled(Squared):  # type: ignore[misc]
    """(y - z)^2: quadratic, with a curvature that is not the sample weight."""

    name = "doubled"
    curvature_bounds = 2.0, 2.0

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return 2.0 * super().value(y, prediction, weight)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        return 2.0 * super().gradient(y, prediction, weight)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        return 2.0 * super().conjugate(y, 0.5 * dual, weight)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        return 2.0 * super().curvature(y, prediction, weight)


@pytest.mark.parametrize("intercept", [False, True])
def test_quadratic_losses_of_any_curvature(intercept: bool) -> None:
    """Twice the loss at twice the level has the same minimum as the loss itself."""
    rng = np.random.default_rng(9)
    A, y = rng.standard_normal((40, 15)) + 0.5, rng.standard_normal(40)
    plain = problem_of(DenseBlock(A), y, "squared", "penalized", 1.0, intercept=intercept)
    twice = replace(plain, loss=Doubled(), regularizer=Regularizer(RAYS, "penalized", 2.0))
    expected = SequentialQP().solve(plain, np.zeros(15), 0.0, 1e-10)
    found = SequentialQP().solve(twice, np.zeros(15), 0.0, 1e-10)
    assert found.gap <= 1e-10
    assert_allclose(found.weights, expected.weights, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", FORMS)
def test_a_ridge_of_atoms_is_that_of_their_sum(loss: str, form: str) -> None:
    """(tau/2) ||U c||^2 by the metric U'U, and by rows sqrt(tau) U of the squared loss."""
    rng = np.random.default_rng(10)
    U, X = rng.standard_normal((6, 9)), rng.standard_normal((30, 6))
    y, tau = np.sign(X[:, 0] + rng.standard_normal(30)), 0.7
    plain = problem_of(DenseBlock(X @ U), y, loss, form, 0.8)
    ridge = replace(plain, tau=tau, metric=U.T @ U)
    refit = SequentialQP().solve(ridge, np.zeros(9), 0.0, 1e-9)
    assert refit.gap <= 1e-9
    w = U @ refit.weights
    gauge = float(refit.weights.sum())
    value = plain.loss.value(y, X @ w, plain.weight) + 0.5 * tau * float(w @ w)
    assert_allclose(refit.objective, value + plain.regularizer.value(gauge), rtol=1e-12)
    if loss == "squared":
        stacked = problem_of(
            DenseBlock(np.vstack([X @ U, np.sqrt(tau) * U])),
            np.append(y, np.zeros(6)),
            loss,
            form,
            0.8,
        )
        other = SequentialQP().solve(stacked, np.zeros(9), 0.0, 1e-9)
        assert_allclose(refit.objective, other.objective, rtol=0, atol=2e-9)
