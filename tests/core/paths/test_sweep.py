"""All levels of small paths at once: against levels one by one, and their proofs."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

from atomlearn import losses, norms, paths
from atomlearn._support import Deadline
from atomlearn.core import Pool, Problem, Regularizer, Settings, path_of
from atomlearn.core.paths.sweep import Sweep, can_sweep
from atomlearn.core.problem.proof import as_reported
from atomlearn.designs import as_design
from atomlearn.problem import prove
from atomlearn.solvers import ColumnGeneration
from atomlearn.testing.cases import each


def drawn(seed: int, form: Any = "penalized", k: int | None = None) -> Problem:
    """Return a problem of l1, weighted or not, or of the k-support norm."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 90)), int(rng.integers(1, 40))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3) + rng.choice([0.0, 5.0, 300.0])
    if seed % 4 == 1:  # copies
        X[:, p // 2 :] = X[:, : p - p // 2]
    if seed % 5 == 2:
        X = X.astype(np.float32)
    y = X[:, : min(p, 4)].sum(axis=1) + X.std() * rng.standard_normal(n) + rng.choice([0.0, 1e4])
    weight = rng.uniform(0.5, 2, n) * (rng.uniform(size=n) < 0.8) + (np.arange(n) < 3)
    norm: Any = norms.L1(rng.uniform(0.5, 2, p) if seed % 3 == 0 else None)
    return Problem.build(
        as_design(np.asfortranarray(X) if seed % 2 else X),
        y,
        losses.as_loss("squared"),
        Regularizer(norm if k is None else norms.KSupport(k), form, 1.0),
        tau=0.3 * (seed % 2),
        fit_intercept=bool(seed % 3),
        sample_weight=weight if seed % 7 else None,
        offset=rng.standard_normal(n) if seed % 6 == 5 else None,
    )


def swept(problem: Problem, n_levels: int = 12) -> tuple[Sweep, list[Any]]:
    """Return the sweep over a grid, and the problem at each of its levels."""
    grid = paths.alpha_grid(paths.largest_useful_alpha(problem), n_levels, 1e-3)
    path: Any = Settings().task(problem, grid)
    assert path.advance() is None
    path.learn(None)
    assert path.advance() is not None
    assert path.sweep is not None
    return path.sweep, [level.inner for level in path.levels]


#: Form and k; None: the l1 norm.
KINDS = [("penalized", None), ("penalized", 1), ("penalized", 7), ("squared", 2), ("squared", 90)]


@each("seed", range(20))
def test_certificates_are_those_of_each_point_by_itself(seed: int) -> None:
    sweep, problems = swept(drawn(seed, *KINDS[seed % 5]))
    design = problems[0].design
    scores = np.array([z.full() for z in design.scores_many(np.array(sweep.vectors()).T)])
    for point, problem, ours in zip(
        sweep.points(), problems, sweep.certificates(scores), strict=True
    ):
        columns, lengths = sweep.pool.columns[point.positions], sweep.pool.lengths
        lengths = lengths.take(point.positions)
        slow = prove(problem, columns, point.weights, point.prediction, lengths=lengths).certificate
        intercept = point.shift - float(lengths.offsets @ point.weights)
        slow = as_reported(problem, slow, intercept, point.prediction)
        scale = slow.objective
        assert ours.objective == pytest.approx(slow.objective, rel=1e-12)
        assert ours.gap == pytest.approx(slow.gap, rel=0.05, abs=1e-11 * scale)  # rounding
        assert ours.polar == pytest.approx(
            slow.polar, rel=1e-9, abs=1e-9 * problem.regularizer.amount
        )


@each("seed", range(20, 40))
def test_paths_are_those_of_levels_one_by_one(seed: int) -> None:
    problem = drawn(seed, *KINDS[seed % 5])
    grid = paths.alpha_grid(paths.largest_useful_alpha(problem), 8, 1e-2)
    fast = path_of(problem, grid, Settings(1e-9))
    slow = path_of(problem, grid, Settings(1e-9, solver=ColumnGeneration(tol=1e-10)))
    for one, other in zip(fast.results, slow.results, strict=True):
        assert one.objective <= other.objective + other.gap + one.gap
        assert other.objective <= one.objective + other.gap + one.gap
    if all(result.converged for result in slow.results):
        assert fast.converged


def test_wrong_points_are_found_out() -> None:
    sweep, problems = swept(drawn(3))
    wrong = copy(sweep)
    wrong.weights = sweep.weights.copy()
    wrong.weights[5] *= 1.01
    pull = wrong.weights @ np.asarray(sweep.pool.block.dense(), dtype=float).T
    residual = problems[0].y - pull
    shifts = residual @ problems[0].weight / problems[0].weight.sum() * problems[0].fit_intercept
    wrong.shifts = shifts
    predictions = pull + shifts[:, None]
    wrong.predictions = predictions[:, sweep.rows]
    wrong.duals = ((problems[0].y - predictions) * problems[0].weight)[:, sweep.rows]
    scores = np.array(
        [z.full() for z in problems[0].design.scores_many(np.array(wrong.vectors()).T)]
    )
    gaps = [certificate.relative_gap for certificate in wrong.certificates(scores)]
    assert gaps[5] > 1e-8
    assert max(gaps[:5]) < 1e-9


def test_a_path_out_of_time_has_the_levels_it_solved() -> None:
    problem = drawn(7)
    late = Settings(1e-9, deadline=Deadline.after(0.0))
    found = path_of(problem, np.geomspace(1.0, 0.1, 5), late)
    assert len(found.results) == 5
    assert not found.converged


def of_loss(name: str, seed: int) -> Problem:
    """Return an l1 problem of a smooth loss: with an intercept or free columns, and weights."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(30, 90)), int(rng.integers(2, 25))
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.choice([0.0, 5.0])
    z = (X[:, :2] - X[:, :2].mean(axis=0)).sum(axis=1)
    y: Any = z + rng.standard_t(2, n)
    if name in ("logistic", "squared_hinge"):
        y = np.where(y > 0, 1.0, -1.0)
    if name in ("poisson", "gamma"):
        y = rng.poisson(np.exp(0.3 * z)) + 1.0 * (name == "gamma")
    # Prices of free columns are infinite, which only equal weights avoid.
    free = np.array([0]) if seed % 2 and seed % 3 else None
    return Problem.build(
        as_design(X),
        y,
        losses.as_loss(name),
        Regularizer(norms.L1(rng.uniform(0.5, 2, p) if seed % 3 == 0 else None), "penalized", 1.0),
        tau=0.1 * (seed % 4 == 3),
        fit_intercept=seed % 5 != 4,
        sample_weight=rng.uniform(0.5, 2, n) if seed % 3 else None,
        offset=rng.standard_normal(n) if seed % 4 == 2 else None,
        unpenalized=free,
    )


SMOOTH = ["logistic", "huber", "poisson", "gamma", "squared_hinge"]


@each("seed", range(20))
def test_smooth_losses_are_certified_as_each_point_by_itself(seed: int) -> None:
    sweep, problems = swept(of_loss(SMOOTH[seed % 5], seed))
    design = problems[0].design
    scores = np.array([z.full() for z in design.scores_many(np.array(sweep.vectors()).T)])
    ours = sweep.certificates(scores)
    assert len(ours) == len(problems)
    for point, problem, of_level in zip(sweep.points(), problems, ours, strict=True):
        columns, lengths = sweep.pool.columns[point.positions], sweep.pool.lengths
        at = columns, point.weights, point.prediction
        slow = prove(problem, *at, lengths=lengths.take(point.positions)).certificate
        scale = slow.objective
        assert of_level.objective == pytest.approx(slow.objective, rel=1e-12)
        assert abs(of_level.gap - slow.gap) <= 0.05 * slow.gap + slow.rounding + 1e-11 * scale
        assert of_level.gap <= 1e-3 * scale


@each("seed", range(20))
def test_smooth_paths_are_those_of_levels_one_by_one(seed: int) -> None:
    problem = of_loss(SMOOTH[seed % 5], seed)
    grid = paths.alpha_grid(paths.largest_useful_alpha(problem), 8, 1e-2)
    fast = path_of(problem, grid, Settings(1e-8))
    slow = path_of(problem, grid, Settings(1e-8, solver=ColumnGeneration(tol=1e-9)))
    assert fast.converged
    for one, other in zip(fast.results, slow.results, strict=True):
        assert one.objective <= other.objective + other.gap + one.gap
        assert other.objective <= one.objective + other.gap + one.gap


def test_observers_see_each_level_that_a_sweep_solved() -> None:
    problem = drawn(7)
    grid = np.geomspace(1.0, 0.1, 5)
    seen: list[float] = []
    watched = path_of(problem, grid, Settings(1e-6), [lambda at: seen.append(at.objective)])
    alone = path_of(problem, grid, Settings(1e-6))
    assert seen == watched.objectives.tolist() == alone.objectives.tolist()
    for one, other in zip(watched.results, alone.results, strict=True):
        assert one.gap == other.gap
        # Sums of the same terms, which some processors add in another order.
        np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-12)
        np.testing.assert_array_equal(one.columns, other.columns)
        assert len(one.history) == len(other.history) == 1
        assert one.passes == other.passes


def test_many_rows_are_not_predicted_at_all_levels_at_once() -> None:
    problem = drawn(4)
    pool = Pool(problem)
    pool.add(np.arange(problem.design.shape[1]))
    pool.settle()
    assert can_sweep(problem, pool, 10)
    assert not can_sweep(problem, pool, 2**24)


def test_grams_of_folds_are_the_whole_less_what_is_left_out() -> None:
    problem = drawn(4)
    pool = Pool(problem)
    pool.add(np.arange(problem.design.shape[1]))
    pool.settle()
    A = np.asarray(pool.block.dense(), dtype=float)
    for share, part in ((1.0, slice(0)), (1.25, slice(3, 12)), (2.0, slice(0, 40))):
        weight = share * problem.weight
        weight[part] = 0.0
        np.testing.assert_allclose(
            pool.gram(weight), A.T @ (weight[:, None] * A), rtol=1e-9, atol=1e-9 * np.abs(A).max()
        )
