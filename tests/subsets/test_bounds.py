"""Bounds of branches, of columns that join, and what is not looked at: against every subset."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

from atomlearn.core import ArrayScores
from atomlearn.subsets import search as search_module
from atomlearn.subsets.norm import IN, OUT, BranchNorm
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint
from atomlearn.subsets.search import Search
from atomlearn.subsets.solve import subset_problem
from tests.oracles.subset_sums import subset_sum

NO_COLUMNS = np.zeros(0, dtype=np.int64)


def relaxed(X: Any, y: Any, k: int, ridge: float, price: float = 0.0) -> Relaxation:
    """Return the relaxation of a problem with the sum of squares, without an intercept."""
    problem = subset_problem(X, y, k, ridge, "squared", None, False, None, None, None)
    return Relaxation(replace(problem, weight=np.ones(len(y))), price)


def ridge_value(X: Any, y: Any, columns: Any, ridge: float) -> float:
    """Return 1/2 ||y||^2 less what these columns explain."""
    A = X[:, list(columns)]
    K, pull = A.T @ A + ridge * np.eye(A.shape[1]), A.T @ y
    return 0.5 * float(y @ y) - 0.5 * float(pull @ np.linalg.solve(K, pull))


def values_of(X: Any, y: Any, k: int, ridge: float, price: float) -> dict[tuple[int, ...], float]:
    """Return the objective of every subset of at most k columns."""
    return {
        each: ridge_value(X, y, each, ridge) + price * size
        for size in range(k + 1)
        for each in itertools.combinations(range(X.shape[1]), size)
    }


def holds(branch: Any, columns: tuple[int, ...]) -> bool:
    """Whether a set is one of a branch."""
    held = np.zeros(branch.fixed.size, dtype=bool)
    held[list(columns)] = True
    more = np.count_nonzero(held & (branch.fixed != IN))
    return bool(
        held[branch.fixed == IN].all() and not held[branch.fixed == OUT].any() and more <= branch.k
    )


@pytest.mark.parametrize("seed", range(30))
def test_every_set_is_fitted_or_bounded_after_each_branch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "AT_ONCE", 1)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 7)) * rng.uniform(0.05, 3.0, 7)
    y = X @ rng.standard_normal(7) + rng.standard_normal(12)
    k, ridge = 1 + seed % 4, float(10.0 ** rng.uniform(-2, 3))
    if seed % 2:
        # Orthogonal columns that explain nearly as much under a strong ridge: bounds are tight.
        X, ridge = np.linalg.qr(X)[0], float(10.0 ** rng.uniform(1, 3))
        y = X @ rng.uniform(1.0, 1.3, 7)
    price = float(rng.choice([0.0, 0.3 if seed % 2 == 0 else 0.2 / ridge]))
    values = values_of(X, y, k, ridge, price)
    # Within a thousand times the best one nothing is cut, and each branch keeps its bound.
    within = (0.5, 1e3, None)[seed % 3]
    search = Search(relaxed(X, y, k, ridge, price), k, 1e-4, within)
    start = RelaxedPoint(NO_COLUMNS, np.zeros(0), 0.0)
    search.begin(start, np.zeros(7, dtype=np.int8))
    for _ in itertools.chain([None], search.run(1, lambda: False)):
        known = {tuple(each.units.tolist()) for each in search.known.values()}
        for each, value in values.items():
            slack = 1e-9 * value
            assert search.lower <= value + slack
            inside = [branch for branch in search._open if holds(branch, each)]
            for branch in inside:
                assert branch.bound <= value + slack
            assert inside or each in known or search._closed_bound <= value + slack
    assert search.upper == pytest.approx(min(values.values()), rel=1.01e-4)


@pytest.mark.parametrize("price", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(8))
def test_moves_of_one_column_change_the_objective_by_what_the_model_says(
    seed: int, price: float
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 8)) * rng.uniform(0.05, 0.3, 8)
    y, ridge = rng.standard_normal(15), 0.02
    search = Search(relaxed(X, y, 4, ridge, price), 4)
    held = np.sort(rng.choice(8, 3, replace=False))
    subset = search.offer(held)
    model, dual = search.model(subset)
    before = ridge_value(X, y, held, ridge)
    assert subset.objective == pytest.approx(before + 3 * price, rel=1e-12)
    others = np.setdiff1d(np.arange(8), held)
    added, most = model.added(), model.most_added(0.0, dual)
    for column in others:
        fall = before - ridge_value(X, y, [*held, column], ridge)
        assert added[column] == pytest.approx(fall, rel=1e-8)
        assert added[column] <= most[column] <= added[column] * (1 + 1e-6) + 1e-9
    for column, gains in zip(held, model.exchanged(), strict=True):
        rest = held[held != column]
        assert gains[column] == pytest.approx(before - ridge_value(X, y, rest, ridge), rel=1e-8)
        for other in others:
            fall = before - ridge_value(X, y, [*rest, other], ridge)
            assert gains[other] == pytest.approx(fall, rel=1e-8, abs=1e-10)
        assert np.all(gains[rest] == -math.inf)


@pytest.mark.parametrize("seed", range(20))
def test_no_column_that_joins_gains_more_than_its_bound(seed: int) -> None:
    # Nearly a copy of a column of the set: what is left of it is a difference of two large numbers.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 4))
    X[:, 2] = X[:, 0] + X[:, 1] + 10.0 ** rng.uniform(-9, -5) * rng.standard_normal(6)
    X[:, 3] = X[:, 0] + 10.0 ** rng.uniform(-9, -5) * rng.standard_normal(6)
    y, ridge = rng.standard_normal(6), float(10.0 ** rng.uniform(-16, -10))
    search = Search(relaxed(X, y, 3, ridge), 3)
    subset = search.offer(np.array([0, 1]))
    model, dual = search.model(subset)
    most = model.most_added(subset.objective - subset.lower, dual)
    with mpmath.workdps(60):
        target = mpmath.matrix(y.tolist())

        def value(columns: list[int]) -> Any:
            A = mpmath.matrix(X[:, columns].tolist())
            K = A * A.T / mpmath.mpf(ridge) + mpmath.eye(6)
            return (target.T * mpmath.lu_solve(K, target))[0] / 2

        for column in (2, 3):
            gain = value([0, 1]) - value([0, 1, column])
            assert float(gain) <= most[column]


@pytest.mark.parametrize("seed", range(40))
def test_short_columns_have_the_same_best_subset_as_by_enumeration(seed: int) -> None:
    # Numbers below 1, where a constant without a unit would show.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((14, 7)) * rng.uniform(0.05, 0.3, 7)
    y, k = rng.standard_normal(14), 1 + seed % 3
    ridge, scale = float(10.0 ** rng.uniform(-4, -1)), float(10.0 ** rng.uniform(-2, 0))
    centered = X - X.mean(axis=0)
    values = values_of(centered, scale * (y - y.mean()), k, ridge, 0.0)
    values = {each: value for each, value in values.items() if len(each) == k}
    best = min(values.values())
    result = subset_sum(X, scale * y, n_features=k, ridge=ridge, fit_intercept=True, within=0.2)
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert result.near_complete
    found = {tuple(each.columns.tolist()): each.objective for each in result.near}
    expected = {each: value for each, value in values.items() if value <= 1.2 * best}
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("k", [0, 1, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_the_best_columns_of_a_branch_are_those_in_and_the_largest_scores(
    k: int, count: int
) -> None:
    fixed = np.array([1, 0, 0, -1, 0, 1, 0, 0], dtype=np.int8)
    z = np.array([0.1, -3.0, 2.0, 9.0, 0.5, 0.0, -1.0, 4.0])
    best = BranchNorm(k, fixed).best_columns(ArrayScores(z), count)
    free = [7, 1, 2, 6, 4][: max(k, count)]
    assert sorted(best.tolist()) == sorted([0, 5, *free])
    none = BranchNorm(k, np.where(fixed == 0, -1, fixed)).best_columns(ArrayScores(z), count)
    assert none.tolist() == [0, 5]
