"""The interior-point steps: gaps recomputed, agreement with Newton steps, ranks, scales."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn._kernels import group_newton
from atomlearn.core.masters.dual_interior import DualInterior, FeatureGroups, LeastSquaresModel


def group_case(seed, n, p, repeats=0):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, p))
    if repeats:
        B[:, -repeats:] = B[:, :repeats]
    y = B[:, : p // 2].sum(axis=1) + rng.normal(size=n)
    sizes = rng.integers(1, 5, size=2 * p)
    members = [rng.choice(p, size=size, replace=False) for size in sizes]
    members.append(np.arange(p))
    starts = np.concatenate([[0], np.cumsum([part.size for part in members])])
    limit = np.sqrt([part.size for part in members]) * rng.uniform(0.5, 2.0, size=len(members))
    groups = FeatureGroups(starts, np.concatenate(members), limit * 0.01 * n)
    return B, y, groups


def objective(B, y, groups, t, q):
    """The objective at u_g = t_g q_g, by loops over the groups."""
    w = np.zeros(B.shape[1])
    penalty = 0.0
    for g, own in enumerate(t):
        part = groups.members[groups.starts[g] : groups.starts[g + 1]]
        w[part] += own * q[part]
        penalty += groups.limit[g] * np.linalg.norm(own * q[part])
    return 0.5 * np.sum((y - B @ w) ** 2) + penalty


def solution(B, spread, y):
    """q = B'(y - B w) where w = diag(spread) q."""
    n = y.size
    return B.T @ np.linalg.solve(np.eye(n) + (B * spread) @ B.T, y)


CASES = [(60, 12, 0), (60, 12, 4), (20, 30, 0), (20, 30, 9), (8, 8, 0)]


@pytest.mark.parametrize(("n", "p", "repeats"), CASES)
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_gap_and_agreement_with_newton_steps(n, p, repeats, scale):
    for seed in range(3):
        B, y, groups = group_case(seed, n, p, repeats)
        B, groups = scale * B, FeatureGroups(groups.starts, groups.members, scale * groups.limit)
        models = [LeastSquaresModel.of_columns(B, y)]
        models.append(LeastSquaresModel.of_gram(B.T @ B, B.T @ y, float(y @ y)))
        zero = np.zeros(groups.limit.size)
        t, slopes, outcome = group_newton(
            np.asfortranarray(B), y, groups.starts, groups.members, groups.limit, zero,
            gram=False, squared_target=float(y @ y), gap_target=1e-10 * float(y @ y),
        )  # fmt: skip
        best = objective(B, y, groups, t, slopes)
        assert_allclose(best, outcome.objective, rtol=1e-9)
        for model in models:
            interior = DualInterior(model, groups)
            assert_allclose(model.factor @ model.free_z, model.linear, rtol=1e-6, atol=1e-8 * scale)
            assert interior.until(1e-9 * best, 60)
            assert interior.steps <= 40
            assert interior.gap <= 1e-9 * best
            assert (interior.scalings > 0).all()
            assert (interior.rest > 0).all()
            spread = np.bincount(
                groups.members, np.repeat(interior.scalings, np.diff(groups.starts)), minlength=p
            )
            reached = objective(B, y, groups, interior.scalings, solution(B, spread, y))
            assert_allclose(reached, best, rtol=1e-6)


def test_steps_go_on_from_where_they_ended():
    B, y, groups = group_case(0, 60, 12)
    model = LeastSquaresModel.of_columns(B, y)
    once, twice = DualInterior(model, groups), DualInterior(model, groups)
    assert once.until(1e-8, 60)
    assert twice.until(1.0, 60)
    before = twice.steps
    assert twice.until(1e-8, 60)
    assert 0 < before < twice.steps == once.steps
    assert_allclose(once.scalings, twice.scalings)


def test_the_gap_holds_at_every_step():
    """The gap is never below what the objective still has to fall, recomputed from scratch."""
    B, y, groups = group_case(1, 40, 10)
    model = LeastSquaresModel.of_columns(B, y)
    reference = DualInterior(model, groups)
    reference.until(1e-11 * float(y @ y), 80)
    best = objective(B, y, groups, reference.scalings, reference._q)
    interior = DualInterior(model, groups)
    for step in range(1, 15):
        interior.until(0.0, step)
        now = objective(B, y, groups, interior.scalings, interior._q)
        assert interior.gap >= now - best - 1e-8 * best


def test_what_cannot_be_solved_ends_honestly():
    B, y, groups = group_case(2, 20, 6)
    model = LeastSquaresModel.of_columns(B, y)
    interior = DualInterior(model, groups)
    assert not interior.until(-1.0, 200)  # no gap is that small
    assert interior.steps < 200
    assert not DualInterior(model, groups).until(1e-9, 2)
    B[0, 0] = np.nan
    broken = LeastSquaresModel(B.T, B.T @ y, 1.0, y, np.ones(6))
    assert not DualInterior(broken, groups).until(1e-9, 50)
