"""group_newton: gaps proved by hand, agreement with the Python path, awkward and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from atomlearn._kernels import NewtonStatus, group_newton


def case(rng, n, p, n_groups, largest, kind="plain"):
    """Return B, y, starts, members and weights of groups that overlap and cover the features."""
    B = rng.normal(size=(n, p))
    if kind == "repeated":
        B[:, p // 2 :] = B[:, : p - p // 2]
    if kind == "zero":
        B[:, ::3] = 0.0
    if kind == "scaled":
        B *= 10.0 ** rng.uniform(-3, 3, size=p)
    lists = [rng.choice(p, size=rng.integers(1, min(largest, p) + 1), replace=False)]
    lists += [rng.choice(p, size=rng.integers(1, min(largest, p) + 1), replace=False)
              for _ in range(n_groups - 1)]  # fmt: skip
    starts = np.concatenate([[0], np.cumsum([len(group) for group in lists])]).astype(np.int64)
    members = np.concatenate(lists).astype(np.int64)
    y = B @ (rng.normal(size=p) * (rng.random(p) < 0.3)) + rng.normal(size=n)
    return np.asfortranarray(B), y, starts, members, rng.uniform(0.5, 2.0, size=n_groups)


def over_groups(values, starts):
    return np.array([np.linalg.norm(values[a:b]) for a, b in pairwise(starts)])


def certificate(B, y, starts, members, limit, u):
    """Return objective and duality gap of the parts u, one entry a membership."""
    w = np.bincount(members, weights=u, minlength=B.shape[1])
    residual = y - B @ w
    objective = 0.5 * residual @ residual + limit @ over_groups(u, starts)
    shrink = 1.0 / max(1.0, (over_groups((B.T @ residual)[members], starts) / limit).max())
    dual = shrink * (residual @ y) - 0.5 * shrink**2 * (residual @ residual)
    return objective, objective - dual


def solve(B, y, starts, members, limit, gram, target, start=None, **options):
    return group_newton(
        B.T @ B if gram else B,
        B.T @ y if gram else y,
        starts,
        members,
        limit,
        np.zeros(members.size) if start is None else start,
        gram=gram,
        squared_target=y @ y,
        gap_target=target,
        **options,
    )


def polar(B, y, starts, members, weights):
    return (over_groups((B.T @ y)[members], starts) / weights).max()


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    p=st.integers(1, 40),
    n_groups=st.integers(1, 25),
    largest=st.integers(1, 8),
    kind=st.sampled_from(["plain", "repeated", "zero", "scaled"]),
    level=st.sampled_from([0.9, 0.3, 0.03, 1e-3]),
    gram=st.booleans(),
)
def test_gaps_are_reached_and_true(seed, n, p, n_groups, largest, kind, level, gram):
    rng = np.random.default_rng(seed)
    B, y, starts, members, weights = case(rng, n, p, n_groups, largest, kind)
    scale = polar(B, y, starts, members, weights)
    limit = weights * level * (scale or 1.0)
    target = 1e-8 * y @ y
    u, outcome = solve(B, y, starts, members, limit, gram, target)
    _, gap = certificate(B, y, starts, members, limit, u)
    assert outcome.status == NewtonStatus.REACHED
    assert gap <= target + 1e-12 * y @ y
    assert abs(outcome.gap - gap) <= 1e-11 * y @ y
    assert outcome.steps <= 60


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("level", [1.0 + 1e-9, 0.999, 1e-6])
def test_levels_from_all_to_nothing(level, gram):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        B, y, starts, members, weights = case(rng, 25, 40, 15, 6)
        limit = weights * level * polar(B, y, starts, members, weights)
        u, outcome = solve(B, y, starts, members, limit, gram, 1e-9 * y @ y)
        _, gap = certificate(B, y, starts, members, limit, u)
        assert gap <= 1.1e-9 * y @ y
        if level > 1:
            assert not u.any()
            assert outcome.steps == 0


@pytest.mark.parametrize("gram", [True, False])
def test_warm_starts_and_step_limits(gram):
    rng = np.random.default_rng(1)
    B, y, starts, members, weights = case(rng, 60, 40, 20, 5)
    limit = weights * 0.02 * polar(B, y, starts, members, weights)
    u, outcome = solve(B, y, starts, members, limit, gram, 1e-9 * y @ y)
    _, again = solve(B, y, starts, members, limit, gram, 2e-9 * y @ y, start=u)
    assert (again.status, again.steps) == (NewtonStatus.REACHED, 0)
    u, one = solve(B, y, starts, members, limit, gram, 0.0, max_steps=1)
    _, gap = certificate(B, y, starts, members, limit, u)
    assert one.status == NewtonStatus.STEP_LIMIT
    assert_allclose(one.gap, gap, rtol=1e-9)
    assert outcome.gap < one.gap
    # A target of zero ends where rounding does.
    u, last = solve(B, y, starts, members, limit, gram, 0.0)
    assert last.status in (NewtonStatus.NO_DESCENT, NewtonStatus.REACHED)
    assert certificate(B, y, starts, members, limit, u)[1] <= 1e-12 * y @ y


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_end_it(gram, bad):
    rng = np.random.default_rng(2)
    B, y, starts, members, weights = case(rng, 12, 8, 5, 3)
    limit = weights * 0.1 * polar(B, y, starts, members, weights)
    B[3, members[0]] = bad
    with np.errstate(invalid="ignore"):
        _, outcome = solve(B, y, starts, members, limit, gram, 1e-9)
    assert outcome.status == NewtonStatus.NOT_FINITE


def test_sweeps_end_what_is_easy_and_leave_the_rest_to_newton():
    rng = np.random.default_rng(5)
    B = np.asfortranarray(rng.normal(size=(200, 800)))
    y = B[:, :8].sum(axis=1) + rng.normal(size=200)
    starts, members = np.arange(0, 801, 4), np.arange(800)
    limit = np.full(200, 0.2 * polar(B, y, starts, members, np.ones(200)))
    u, easy = solve(B, y, starts, members, limit, False, 1e-3 * y @ y)
    assert (easy.status, easy.steps) == (NewtonStatus.REACHED, 0)
    assert u.any()
    # The scalings at the result are those of its parts, as after Newton steps.
    assert_allclose(easy.scalings, over_groups(u, starts) / limit, rtol=1e-12)
    # Columns that are nearly alike, and groups that share columns, take Newton steps.
    alike = np.asfortranarray(B[:, :1] + 0.01 * B)
    wide = np.full(200, 1e-3 * polar(alike, y, starts, members, np.ones(200)))
    u, hard = solve(alike, y, starts, members, wide, False, 1e-6 * y @ y)
    assert hard.status == NewtonStatus.REACHED
    assert hard.steps > 0
    assert certificate(alike, y, starts, members, wide, u)[1] <= 1.1e-6 * y @ y
    chains = np.concatenate([np.arange(k, k + 5) for k in range(0, 795, 4)])
    begin = np.arange(0, chains.size + 1, 5)
    share = np.full(begin.size - 1, 0.2 * polar(B, y, begin, chains, np.ones(begin.size - 1)))
    _, latent = solve(B, y, begin, chains, share, False, 1e-3 * y @ y)
    assert latent.steps > 0


def test_one_row_one_column_and_strides():
    for B in (np.array([[2.0]]), np.ones((5, 1)), np.arange(1.0, 5.0)[None, :]):
        y = np.ones(B.shape[0])
        p = B.shape[1]
        limit = np.full(1, 0.1 * np.linalg.norm(B.T @ y))
        for gram in (True, False):
            u, outcome = solve(B, y, np.array([0, p]), np.arange(p), limit, gram, 1e-10)
            assert outcome.status == NewtonStatus.REACHED
            assert certificate(B, y, [0, p], np.arange(p), limit, u)[1] <= 1.1e-10


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"matrix": np.zeros((3, 4))}, ValueError, "gram must have shape"),
        ({"matrix": np.eye(4, dtype=np.float32)}, TypeError, "incompatible"),
        ({"matrix": np.zeros((8, 8))[::2, ::2]}, ValueError, "contiguous"),
        ({"linear": np.zeros(3)}, ValueError, "linear must have 4 entries"),
        ({"limit": np.array([1.0, 0.0])}, ValueError, "limit must be positive"),
        ({"start": np.ones(3)}, ValueError, "start must have 4 entries"),
        ({"members": np.array([0, 1, 2, 4])}, ValueError, "members must be in"),
        ({"members": np.array([0, 1, -1, 3])}, ValueError, "members must be in"),
        ({"starts": np.array([0, 2])}, ValueError, "starts must hold 3"),
        ({"starts": np.array([0, 2, 3])}, ValueError, "starts must hold 3"),
        ({"starts": np.array([0, 5, 4])}, ValueError, "starts must be in"),
        ({"starts": np.array([0, 3, 2, 4]), "limit": np.ones(3)},
         ValueError, "must not decrease"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change, error, message):
    arguments = {
        "matrix": np.eye(4),
        "linear": np.ones(4),
        "starts": np.array([0, 2, 4]),
        "members": np.arange(4),
        "limit": np.ones(2),
        "start": np.zeros(4),
        "gram": True,
        "squared_target": 4.0,
        "gap_target": 1e-6,
    }
    with pytest.raises(error, match=message):
        group_newton(**(arguments | change))
