"""Gap safe screening: nothing that an optimum may use is ever ruled out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from atomlearn import solve
from atomlearn.core.problem.pricing import priced
from atomlearn.core.solvers.screening import column_reach, dual_ball, possibly_active
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Counted, Standardized, as_design
from atomlearn.losses import as_loss
from atomlearn.norms import (
    L1,
    L2,
    Blocks,
    Chains,
    Groups,
    KSupport,
    LatentGroups,
    Nonnegative,
    Operators,
    Scaled,
    Trees,
    Union,
)
from atomlearn.paths import path
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import ColumnGeneration, run
from atomlearn.testing.problems import FORMS, LOSSES, Case, problem_on

P = 24
OVERLAPPING = [[0, 1, 2, 3], [3, 4, 5], [5, 6, 0], [7, 8, 9, 10], [11, 12, 13], [12, 15, 20]]
NORMS = {
    "l1": L1(),
    "groups": Groups([list(range(g, g + 3)) for g in range(0, 18, 3)], [1, 2, 1.5, 1, 1, 1]),
    "k-support": KSupport(3),
    "k-support of groups": KSupport(2, np.arange(P) // 3),
    "nonnegative": Nonnegative(L1()),
    "latent": LatentGroups(OVERLAPPING, "sqrt_size"),
    "chains": Chains(4),
    "trees": Trees([list(range(8)), [0, 1], [2, 3, 4]], weights=[2.0, 1.0, 1.2]),
    "union": Union([Scaled(L1(), 1.2), Groups(np.arange(P) // 3)]),
    "union of others": Union([KSupport(3), Scaled(L1(), 0.7)]),
    "blocks": Blocks([L1(), KSupport(2)], [np.arange(0, P, 2), np.arange(1, P, 2)]),
    "operators": Operators([np.eye(P)[:9], np.eye(P)[8:], np.tri(P)[[3, 7, 11]] / 3.0]),
}
#: Norms that are not lifted; norms that are re-fitted slowly in other than the penalized form.
PLAIN = ("l1", "groups", "k-support", "k-support of groups", "nonnegative", "blocks")
SLOW = ("blocks", "union of others")
#: Solved to this accuracy, scores are known to about its root.
EXACT = 1e-12


def awkward(case, seed):
    """Return a problem's data with duplicated, opposite, scaled and zero columns, and its scale."""
    X, y, weight = case.data()
    rng = np.random.default_rng(seed)
    X[:, 5], X[:, 9], X[:, 13] = X[:, 4], -X[:, 8], 0.0
    X[:, 17] *= 5.0
    return X * rng.choice([1.0, 0.1, 3.0]), y, weight


def problem_of(name, loss, form, intercept, weighted, tau, strength, seed):
    if name not in PLAIN:
        tau = 0.0
    if name in SLOW:  # their re-fits search for the step of the other forms
        form, loss = "penalized", "squared"
    if form == "constrained":
        strength *= 0.2  # where the radius binds; at times it does not
    case = Case(loss, form, intercept, weighted, tau, strength, 20, P, 0.5, seed)
    X, y, weight = awkward(case, seed)
    return problem_on(X, y, NORMS[name], case, weight)


def inner(problem):
    """Return the problem that solvers see: over lifted coordinates, where the norm is lifted."""
    lifted = problem.lifted()
    return problem if lifted is None else lifted[0]


def needed(problem, state):
    """Return which columns have weight at the optimum, and the scores there."""
    v = problem.negative_gradient(state.prediction)
    z = problem.shifted(problem.design.scores(v), state.columns, state.weights).full()
    used = np.zeros(z.size, dtype=bool)
    size = np.abs(state.weights)  # what is 1e-30 next to 1 is zero in another order of sums
    used[state.columns[size > 1e-8 * size.max(initial=0.0)]] = True
    return used, z


def could_be_active(problem, z):
    """Return a mask from the scores of the optimum: each kind of norm by its definition."""
    norm, size = problem.regularizer.norm, np.abs(z)
    if isinstance(norm, Nonnegative):
        norm, size = norm.norm, np.maximum(z, 0.0)
    if isinstance(norm, L1):
        return size >= size.max() * (1 - 1e-9)
    if isinstance(norm, KSupport):
        if norm.groups is not None:
            size = by_group(size, norm.partition(size.size).labels)
            largest = np.sort(np.unique(size))[::-1]
            return size >= largest[min(norm.k, largest.size) - 1] * (1 - 1e-9)
        return size >= np.sort(size)[-norm.k] * (1 - 1e-9)
    if isinstance(norm, Groups):
        partition, weights = norm.parts(z.size)
        weights = np.ones(partition.n_groups) if weights is None else weights
        rating = by_group(size, partition.labels) / weights[partition.labels]
        return rating >= rating.max() * (1 - 1e-9)
    return np.zeros(z.size, dtype=bool)  # weights are the oracle


def by_group(size, labels):
    return np.sqrt(np.bincount(labels, weights=size**2))[labels]


CASES = st.tuples(
    st.sampled_from(sorted(NORMS)),
    st.sampled_from(LOSSES),
    st.sampled_from(FORMS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.05, 0.3, 0.7, 0.95]),
    st.integers(0, 10**6),
)


@settings(max_examples=30, deadline=None)
@given(case=CASES)
def test_nothing_that_may_be_active_is_ruled_out(case):
    """At every point of a slow run, and at points around the optimum, near and far."""
    # Centered, as a run does it: its states tell of the problem over y less its mean.
    problem = inner(problem_of(*case)).centered()
    rules = RelativeGap(EXACT) | Iterations(40)
    reference = run(problem, ColumnGeneration(tolerance=EXACT, screening=False), rules)
    if reference.relative_gap > 1e-9:
        return  # never where the oracle itself is in doubt
    used, z = needed(problem, reference.state)
    active = (used | could_be_active(problem, z)) if z.any() else used
    kept = []
    slow = ColumnGeneration(tolerance=1e-9, screening=True, batch=1)
    result = run(
        problem, slow, RelativeGap(1e-9) | Iterations(60), [lambda p: kept.append(p.state.scope)]
    )
    sizes = []
    for scope in kept:
        left = np.arange(z.size) if scope.kept is None else scope.kept
        assert np.isin(np.flatnonzero(active), left).all()
        sizes.append(left.size)
    assert sizes == sorted(sizes, reverse=True)
    bound = 1e-8 * abs(reference.objective) + 2 * result.gap + 1e-12
    assert abs(result.objective - reference.objective) <= bound
    check_points(problem, reference, active, case[-1])


def check_points(problem, reference, active, seed):
    reach, rng = column_reach(problem), np.random.default_rng(seed)
    best = np.zeros(active.size)
    best[reference.columns] = reference.weights
    for distance in (1.0, 0.1, 1e-2, 1e-3, 1e-5, 0.0):
        noise = rng.normal(size=best.size) * rng.choice([0.0, 1.0], size=best.size)
        w = best + distance * (np.abs(best).max() or 1.0) * noise
        if isinstance(problem.regularizer.norm, Nonnegative):
            w = np.maximum(w, 0.0)
        gauge = problem.regularizer.norm.value(w)
        if problem.regularizer.form == "constrained" and gauge > problem.regularizer.amount:
            w *= problem.regularizer.amount / gauge
        linear = problem.design.gather(np.arange(best.size)).dot(w)
        intercept = problem.optimal_intercept(linear)
        prediction = linear + intercept
        price = problem.price(None, w, prediction)
        marked = possibly_active(price, dual_ball(price), reach)
        assert marked is None or marked[active].all()


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("factor", [1.0, 1e-60, 1e60])
def test_the_ball_is_no_smaller_than_it_may_be(scale, factor):
    """One column, active by a hair, and a dual point straight away from the optimum: r is tight."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    y = factor * (x + 3.0 * rng.normal(size=30))
    level = abs(float(x @ y)) * (1 - 1e-7 * scale)
    problem = Problem.build(
        as_design(x[:, None]), y, as_loss("squared"), Regularizer(L1(), "penalized", level)
    )
    zero, nothing = np.zeros(1), np.zeros(30)
    v = y - scale * x * float(x @ y) / float(x @ x)
    scores = problem.design.scores(v)
    price = priced(problem, None, zero, nothing, v, scores)
    ball = dual_ball(price)
    assert possibly_active(price, ball, column_reach(problem))[0]
    optimum = y - x * (float(x @ y) - np.sign(x @ y) * level) / float(x @ x)
    distance = np.linalg.norm(ball.scale * v - optimum)
    assert distance <= ball.radius
    if scale == 0.3:
        assert ball.radius <= 1.01 * distance
        half = replace(ball, radius=0.5 * ball.radius)
        assert not possibly_active(price, half, column_reach(problem))[0]


@pytest.mark.parametrize("tau", [0.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_and_ridge_are_part_of_the_reach(weighted, tau):
    """One column, active by a hair, seen from a point that overshoots: kept, but no further."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=30)
    s = 100.0 * rng.exponential(size=30) if weighted else np.ones(30)
    y = x + 3.0 * rng.normal(size=30)
    square, polar = float(s @ x**2), abs(float((s * x) @ y))
    problem = Problem.build(
        as_design(x[:, None]),
        y,
        as_loss("squared"),
        Regularizer(L1(), "penalized", polar * (1 - 1e-9)),
        tau=tau * square,
        sample_weight=s,
    )
    w = np.array([0.1 * float((s * x) @ y) / ((1 + tau) * square)])
    price = problem.price(None, w, x * w)
    ball, reach = dual_ball(price), column_reach(problem)
    assert_allclose(reach, np.sqrt((1 + tau) * square))
    assert possibly_active(price, ball, reach)[0]
    assert not possibly_active(price, ball, 0.5 * reach)[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_ball_holds_the_dual_optimum(loss):
    """Sample weights and smoothness enter as they should: ||v - v*|| in the norm of the ball."""
    rng = np.random.default_rng(3)
    for form in FORMS:
        case = Case(loss, form, True, False, 0.0, 0.2, 40, P, 0.3, 5)
        X, y, _ = case.data()
        weight = rng.exponential(size=40) ** 3
        problem = problem_on(X, y, KSupport(2), case, weight)
        rules = RelativeGap(1e-13) | Iterations(300)
        best = run(problem, ColumnGeneration(tolerance=1e-13, screening=False), rules)
        optimum = problem.negative_gradient(best.state.prediction)
        seen = []
        solver = ColumnGeneration(batch=1, screening=False)
        run(problem, solver, rules, [lambda p, seen=seen: seen.append(p.state)])
        for state in seen:
            price = problem.price(state.columns, state.weights, state.prediction)
            v, ball = price.dual, dual_ball(price)
            metric = problem.loss.smoothness * weight
            distance = np.sqrt(np.sum((ball.scale * v - optimum) ** 2 / metric))
            assert distance <= ball.radius


@pytest.mark.parametrize("seed", range(20))
def test_gaps_that_vanish_by_rounding_rule_nothing_active_out(seed):
    """At the exact optimum of orthogonal columns scores are a rounding or two off the level."""
    rng = np.random.default_rng(seed)
    X = np.linalg.qr(rng.normal(size=(40, 12)))[0]
    X[:, 11] = X[:, 0]
    y = X[:, :11] @ rng.normal(size=11) + 0.1 * rng.normal(size=40)
    level = 0.5 * float(np.abs(X.T @ y).max())
    z = X.T @ y
    w = np.sign(z) * np.maximum(np.abs(z) - level, 0.0)
    w[11] = 0.0
    problem = Problem.build(
        as_design(X), y, as_loss("squared"), Regularizer(L1(), "penalized", level)
    )
    prediction = X @ w
    price = problem.price(None, w, prediction)
    marked = possibly_active(price, dual_ball(price), column_reach(problem))
    assert marked[np.abs(z) >= level].all()
    assert not marked[np.abs(z) < 0.99 * level].any()


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, form) for name in NORMS if name in PLAIN and name not in SLOW for form in FORMS]
    # Over lifted coordinates what is screened is one norm, that of groups.
    + list(zip([name for name in NORMS if name not in (*PLAIN, *SLOW)], 2 * FORMS, strict=False)),
)
def test_paths_agree_with_and_without(name, form):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, P))
    y = X[:, :5] @ np.ones(5) + rng.normal(size=30) + 2.0
    both = [
        path(
            X,
            y,
            norm=NORMS[name],
            form=form,
            n_levels=4,
            intercept=True,
            gap=1e-9,
            solver=ColumnGeneration(tolerance=1e-9, screening=screening),
        )
        for screening in (False, True)
    ]
    assert both[0].converged
    assert both[1].converged
    assert_allclose(both[1].objectives, both[0].objectives, rtol=3e-9)


def test_few_columns_are_left_and_passes_cost_their_share():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(100, 2000)))
    y = X[:, :10] @ np.ones(10) + rng.normal(size=100)
    level = 0.2 * float(np.abs(X.T @ y).max())
    seen = []
    r = solve(
        X,
        y,
        norm="l1",
        level=level,
        gap=1e-10,
        solver=ColumnGeneration(tolerance=1e-10, screening=True, batch=5),
        observers=[lambda p: seen.append((p.state.scope.problem.design.shape[1], p.passes))],
    )
    assert r.converged
    assert seen[-1][0] < 200
    # One for the norms of the columns, and one for each step over what was then left.
    steps = [2000] + [size for size, _ in seen[:-1]]
    assert_allclose(seen[-1][1], 1 + sum(steps) / 2000)


@pytest.mark.parametrize(
    "make",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        sparse.csc_array,
        sparse.csr_array,
        lambda X: Standardized(as_design(X)),
        lambda X: Counted(as_design(X.astype(np.float32))),
    ],
    ids=["rows", "columns", "csc", "csr", "standardized", "float32"],
)
@pytest.mark.parametrize("name", ["l1", "latent", "k-support of groups"])
def test_every_storage_gives_the_same_optimum(make, name):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, P)) * (rng.uniform(size=(50, P)) < 0.5)
    y = np.sign(X[:, :4] @ np.ones(4) + 0.3 * rng.normal(size=50))
    both = [
        solve(
            make(X),
            y,
            loss="logistic",
            norm=NORMS[name],
            level=3.0,
            intercept=True,
            gap=1e-9,
            solver=ColumnGeneration(tolerance=1e-9, screening=screening, batch=1),
        )
        for screening in (False, True)
    ]
    assert both[0].converged
    assert both[1].converged
    assert_allclose(both[1].objective, both[0].objective, rtol=2e-9)
    assert_allclose(both[1].coef, both[0].coef, atol=1e-3)


def test_what_cannot_be_screened_is_solved_all_the_same():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 10))
    y = X[:, 0] + rng.normal(size=30)
    r = solve(X, y, norm=L2(), level=1.0, gap=1e-9, solver=ColumnGeneration(screening=True))
    assert r.converged
    # Nothing is active at the optimum: there is nothing to rule out, and nothing left.
    high = solve(X, y, norm="l1", level=1e3, solver=ColumnGeneration(screening=True))
    assert high.converged
    assert_array_equal(high.coef, np.zeros(10))


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="screening must be True, False or 'auto'"):
        ColumnGeneration(screening="always")
