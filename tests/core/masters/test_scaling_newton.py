"""ScalingNewton: few steps, agreement with the semismooth master, no fallback needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import norms
from atomlearn.core import TUNING, CachedBlock, DenseBlock, RepeatedBlock, SparseBlock, objective_at
from atomlearn.core.masters import scaling_newton
from atomlearn.core.masters.choose import cheap_candidates
from atomlearn.interfaces import Deadline, Master, Refit
from atomlearn.losses import Huber, as_loss
from atomlearn.masters import ScalingNewton, SemismoothNewton
from atomlearn.norms import Groups
from atomlearn.problem import Problem, Regularizer, negative_gradient, optimal_intercept
from atomlearn.result import Status
from atomlearn.solvers import ColumnGeneration
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum

LOSSES = ("squared", "logistic", "squared_hinge")


class _Forbidden(Master):
    def solve(self, problem, weights, intercept, gap_target) -> Refit:
        raise AssertionError("the fallback was asked")


def group_problem(loss, n, groups, size, level, intercept, seed, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, groups * size))
    if sparse:
        X *= rng.random(X.shape) < 0.3
    signal = X[:, : 2 * size].sum(axis=1) + 0.5
    y = signal + rng.normal(size=n) if loss == "squared" else np.sign(signal + rng.normal(size=n))
    weight = rng.uniform(0.0, 2.0, size=n) * (rng.random(n) < 0.9)
    norm = Groups(np.arange(groups * size) // size, rng.uniform(0.5, 2.0, size=groups))
    block = SparseBlock.of(X) if sparse else DenseBlock(np.asfortranarray(X))
    problem = Problem.build(
        block,
        y,
        as_loss(loss),
        Regularizer(norm, "penalized", 1.0),
        fit_intercept=intercept,
        sample_weight=weight,
    )
    v = negative_gradient(problem, np.full(n, optimal_intercept(problem, np.zeros(n))))
    polar = norm.polar(block.scores(v))
    return replace(problem, regularizer=Regularizer(norm, "penalized", level * polar))


@pytest.mark.parametrize(
    ("loss", "sparse", "intercept"), in_turn(LOSSES, [False, True], [False, True])
)
def test_agrees_with_the_semismooth_master(loss, intercept, sparse):
    for seed, (n, groups, size) in enumerate([(60, 12, 4), (25, 20, 5), (40, 30, 1), (30, 1, 6)]):
        for level in (0.5, 0.05, 0.005):
            problem = group_problem(loss, n, groups, size, level, intercept, seed, sparse)
            start = np.zeros(groups * size)
            target = 1e-9 * objective_at(problem, start, np.zeros(n))
            refit = ScalingNewton(_Forbidden()).solve(problem, start, 0.0, target)
            other = SemismoothNewton().solve(problem, start, 0.0, target)
            assert refit.gap <= target
            assert abs(refit.objective - other.objective) <= 2 * target
            # For other losses the steps on about eight quadratic models, together.
            assert refit.steps <= (20 if loss == "squared" else 60)


def test_repeated_columns_and_empty_ones():
    """Groups that overlap: the same columns in several groups, and a group of zeros."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    members = np.array([0, 1, 1, 2, 0, 1, 3, 4, 3, 4])
    block = DenseBlock(np.asfortranarray(np.column_stack([X[:, members], np.zeros((30, 2))])))
    norm = Groups([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]])
    problem = Problem.build(
        block, X @ np.ones(5), as_loss("squared"), Regularizer(norm, "penalized", 3.0)
    )
    refit = ScalingNewton(_Forbidden()).solve(problem, np.zeros(12), 0.0, 1e-8)
    assert refit.gap <= 1e-8
    assert not refit.weights[10:].any()


def test_other_norms_go_to_the_fallback():
    problem = group_problem("squared", 20, 4, 2, 0.1, False, 0)
    for other in (
        replace(problem, regularizer=Regularizer(norms.KSupport(2), "penalized", 1.0)),
        replace(problem, tau=1.0),
    ):
        with pytest.raises(AssertionError, match="fallback"):
            ScalingNewton(_Forbidden()).solve(other, np.zeros(8), 0.0, 1e-8)
        assert ScalingNewton().solve(other, np.zeros(8), 0.0, 1e-6).gap <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["constrained", "squared"])
def test_other_forms_have_the_solution_of_the_penalized_one(form, loss):
    """At the radius or level that the penalized solution belongs to; the fallback solves them."""
    for seed, intercept in enumerate([False, True]):
        penalized = group_problem(loss, 60, 12, 4, 0.2, intercept, seed)
        norm, zero = penalized.regularizer.norm, np.zeros(48)
        target = 1e-9 * objective_at(penalized, zero, np.zeros(60))
        known = ScalingNewton(_Forbidden()).solve(penalized, zero, 0.0, target)
        gauge = norm.value(known.weights)
        own = gauge if form == "constrained" else penalized.regularizer.amount / gauge
        problem = replace(penalized, regularizer=Regularizer(norm, form, own))
        refit = ScalingNewton().solve(problem, zero, 0.0, target)
        assert refit.gap <= target
        assert_allclose(refit.weights, known.weights, atol=1e-4 * np.abs(known.weights).max())


class _Noted(SemismoothNewton):
    def solve(self, problem, weights, intercept, gap_target) -> Refit:
        asked.append(problem)
        return SemismoothNewton().solve(problem, weights, intercept, gap_target)


asked: list[Problem] = []


def test_losses_that_are_straight_somewhere_go_to_the_fallback():
    """Ridge regressions of a model without curvature ran to predictions of 1e8."""
    problem = group_problem("squared", 60, 12, 4, 0.005, True, 0)
    asked.clear()
    for delta, straight in ((1e3, False), (0.1, True)):
        task = replace(problem, loss=Huber(delta))
        zero = np.zeros(48)
        target = 1e-7 * objective_at(task, zero, np.zeros(60))
        refit = ScalingNewton(_Noted()).solve(task, zero, 0.0, target)
        assert refit.gap <= target
        assert bool(asked) == straight


def test_pieces_of_one_step_go_as_far_as_one_call(monkeypatch):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 20)) + rng.normal(size=(200, 1))
        pairs = np.array([(i, j) for i in range(20) for j in range(i)])
        base = DenseBlock(np.asfortranarray(X))
        block = CachedBlock(RepeatedBlock(base, np.arange(20), pairs.ravel()))
        norm = Groups(np.arange(pairs.size) // 2)
        y = X @ rng.normal(size=20) + rng.normal(size=200)
        problem = Problem.build(block, y, as_loss("squared"), Regularizer(norm, "penalized", 1.0))
        master, start = ScalingNewton(_Forbidden()), np.zeros(pairs.size)
        free = master.solve(problem, start, 0.0, 1e-6)
        with monkeypatch.context() as patch:
            patch.setattr(scaling_newton, "TUNING", replace(TUNING, few_steps=3))
            limited = replace(problem, deadline=Deadline.after(1e4))
            timed = master.solve(limited, start, 0.0, 1e-6)
        assert timed.gap <= 1e-6
        assert timed.steps <= 2 * free.steps + 5


def repeated_problem(loss, seed, intercept, level):
    """Overlapping groups on a block that holds each feature once."""
    rng = np.random.default_rng(seed)
    base = DenseBlock(np.asfortranarray(rng.normal(size=(40, 15)) + 1.0))
    members = np.concatenate([rng.choice(15, size=4, replace=False) for _ in range(12)])
    block = CachedBlock(RepeatedBlock(base, np.arange(15), members))
    norm = Groups(np.arange(48) // 4, rng.uniform(0.5, 2.0, size=12))
    weight = rng.uniform(0.0, 2.0, size=40) * (rng.random(40) < 0.9)
    y = base.dense()[:, :3].sum(axis=1) - 3.0 + 2.0 * rng.normal(size=40)
    problem = Problem.build(
        block,
        y if loss == "squared" else np.sign(y),
        as_loss(loss),
        Regularizer(norm, "penalized", 1.0),
        fit_intercept=intercept,
        sample_weight=weight,
    )
    v = negative_gradient(problem, np.full(40, optimal_intercept(problem, np.zeros(40))))
    polar = norm.polar(block.scores(v))
    return replace(problem, regularizer=Regularizer(norm, "penalized", level * polar))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_columns_and_gram_matrices_lead_to_the_same_point(loss, intercept, monkeypatch):
    """The kernel works on either, and needs no other master."""
    for seed in range(4):
        for level in (0.3, 0.01):
            problem = repeated_problem(loss, seed, intercept, level)
            start = np.zeros(48)
            target = 1e-9 * objective_at(problem, start, np.zeros(40))
            reference = SemismoothNewton().solve(problem, start, 0.0, target)
            for entries in (TUNING.column_entries, 0):
                with monkeypatch.context() as patch:
                    tuning = replace(TUNING, column_entries=entries)
                    patch.setattr(scaling_newton, "TUNING", tuning)
                    refit = ScalingNewton(_Forbidden()).solve(problem, start, 0.0, target)
                assert refit.gap <= target
                assert 0 < refit.steps <= 60
                assert abs(refit.objective - reference.objective) <= 2 * target
                assert_allclose(refit.intercept, reference.intercept, atol=1e-3)


def test_no_weights_are_the_answer_above_the_polar():
    problem = repeated_problem("squared", 0, True, 1.001)
    refit = ScalingNewton(_Forbidden()).solve(problem, np.zeros(48), 0.0, 1e-9)
    assert not refit.weights.any()
    assert refit.steps == 0
    assert refit.gap <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_a_small_block_is_taken_whole(loss):
    """One pass for a small problem: it proves the gap of the point that was found before."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 300))
    y = X[:, :10].sum(axis=1) + rng.normal(size=50)
    y = y if loss == "squared" else np.sign(y)
    norm = Groups(np.arange(300) // 5)
    level = 0.05 * norm.polar(DenseBlock(np.asfortranarray(X)).scores(y))
    result = solve_sum(X, y, loss=loss, norm=norm, level=level, tol=1e-8)
    assert result.status == Status.CONVERGED
    assert result.passes == 1
    solver = ColumnGeneration(batch=10)
    few = solve_sum(X, y, loss=loss, norm=norm, level=level, tol=1e-8, solver=solver)
    assert few.passes > 2
    assert abs(few.objective - result.objective) <= few.gap + result.gap


def test_columns_for_free_count_distinct_features():
    """Few distinct features are all free, more of them as many as fit; none for other norms."""
    problem = repeated_problem("squared", 0, False, 0.1)
    plain = replace(problem, design=DenseBlock(problem.design.dense()))
    assert cheap_candidates(plain) == TUNING.column_entries // 40
    assert cheap_candidates(problem) == 48  # of 15 features, fewer than samples
    other = replace(problem, regularizer=Regularizer(norms.KSupport(2), "penalized", 1.0))
    assert cheap_candidates(other) == 0
    tall = DenseBlock(np.zeros((10_000, 2), order="F"))
    pair = Regularizer(Groups([[0, 1]]), "penalized", 1.0)
    assert cheap_candidates(replace(plain, design=tall, regularizer=pair)) == 2


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_l2_is_one_group_where_columns_are_far_from_zero(form, loss):
    # Gradient steps are too short there: without an intercept the condition number is 1e8.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 5))
    y = 2 * X[:, 0] + rng.normal(size=20)
    y = np.sign(y) if loss == "logistic" else y
    amount = {"radius" if form == "constrained" else "level": 1.0}
    fit = solve_sum(
        X + 1e4, y, loss=loss, norm=norms.L2(), form=form, fit_intercept=False, **amount
    )
    assert fit.converged
    assert fit.passes <= 3
