"""All near-optimal models: which columns they share, and the ranges of their coefficients."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

from atomlearn import solve_subset
from atomlearn._support import Deadline, Work

cvxpy = pytest.importorskip("cvxpy")


def table(seed: int = 0, n: int = 40, p: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    return X, X[:, 0] - 0.6 * X[:, 3] + 0.7 * rng.standard_normal(n)


def extremes(X: Any, y: Any, subset: Any, limit: float, l2: float, loss: str, row: Any) -> Any:
    """Return the least and the largest prediction of a row, and of each coefficient, by CVXPY."""
    w, b = cvxpy.Variable(len(subset)), cvxpy.Variable()
    z = X[:, subset] @ w + b
    fit = cvxpy.sum_squares(y - z) / 2 if loss == "squared" else cvxpy.sum(
        cvxpy.logistic(-cvxpy.multiply(y, z))
    )  # fmt: skip
    reach = [fit + len(y) * l2 / 2 * cvxpy.sum_squares(w) <= len(y) * limit]
    found = []
    for function in (row[subset] @ w + b, *w):
        ends = []
        for objective in (cvxpy.Minimize(function), cvxpy.Maximize(function)):
            problem = cvxpy.Problem(objective, reach)
            ends.append(problem.solve(solver="CLARABEL"))
        found.append(ends)
    return np.array(found)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_ranges_are_those_of_another_solver(loss: str) -> None:
    X, y = table()
    y = y if loss == "squared" else np.sign(y)
    result = solve_subset(X, y, n_features=2, l2=0.1, loss=loss, within=0.2)
    models = result.near_models
    assert models.complete
    assert len(models.subsets) >= 2
    limit = 1.2 * result.objective
    assert models.limit == pytest.approx(limit)
    rows = np.vstack([X[:2], 3.0 * X[2]])
    ranges = models.predictions(rows)
    coefficients = models.coefficients
    ends = np.array([
        extremes(X, y, each.columns, limit, 0.1, loss, rows[2]) for each in models.subsets
    ])  # fmt: skip
    low, high = ends[:, 0, 0].min(), ends[:, 0, 1].max()
    width = high - low
    assert low - 0.01 * width - 1e-6 <= ranges.lower[2] <= low + 1e-6
    assert high - 1e-6 <= ranges.upper[2] <= high + 0.01 * width + 1e-6
    assert low - 1e-6 <= ranges.least[2] <= low + 0.01 * width + 1e-6
    assert high - 0.01 * width - 1e-6 <= ranges.most[2] <= high + 1e-6
    for at, column in enumerate(models.columns):
        bounds = [
            ends[number, 1 + int(np.flatnonzero(each.columns == column)[0])]
            if column in each.columns
            else np.zeros(2)
            for number, each in enumerate(models.subsets)
        ]
        low, high = np.min(bounds), np.max(bounds)
        width = high - low
        assert low - 0.01 * width - 1e-6 <= coefficients.lower[at] <= low + 1e-6
        assert high - 1e-6 <= coefficients.upper[at] <= high + 0.01 * width + 1e-6


def test_columns_in_all_in_some_and_in_none() -> None:
    X, y = table()
    result = solve_subset(X, y, n_features=2, l2=0.1, within=0.2)
    models = result.near_models
    listed = [set(each.columns.tolist()) for each in models.subsets]
    assert models.in_all.tolist() == sorted(set.intersection(*listed))
    assert set(models.in_some.tolist()) == set.union(*listed) - set(models.in_all)
    assert models.in_all.size
    assert models.in_some.size
    assert models.undecided.size == 0


@pytest.mark.parametrize("steps", [0, 5, 20, 60, 200])
def test_what_a_search_that_is_cut_short_proves_of_columns(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(1, p=12)
    values = {}
    for subset in itertools.combinations(range(12), 3):
        A = X[:, subset] - X[:, subset].mean(axis=0)
        r = y - y.mean()
        w = np.linalg.solve(A.T @ A / 40 + 0.02 * np.eye(3), A.T @ r / 40)
        values[subset] = 0.5 * np.mean((r - A @ w) ** 2) + 0.01 * w @ w
    near = [set(each) for each, value in values.items() if value <= 1.2 * min(values.values())]
    monkeypatch.setattr(Deadline, "limited", lambda limit: Deadline(math.inf, Work(steps)))
    models = solve_subset(X, y, n_features=3, l2=0.02, within=0.2, time_limit=1.0).near_models
    for each in near:
        assert set(models.in_all.tolist()) <= each
        assert each <= {*models.in_all, *models.in_some, *models.undecided}
    assert not models.complete or models.undecided.size == 0


def test_a_list_that_is_too_long_leaves_columns_undecided() -> None:
    X, y = table(1, p=12)
    few = solve_subset(X, y, n_features=3, l2=0.02, within=0.5, max_near=3).near_models
    every = solve_subset(X, y, n_features=3, l2=0.02, within=0.5).near_models
    assert not few.complete
    assert every.complete
    known = {*few.in_all, *few.in_some, *few.undecided}
    assert {*every.in_all, *every.in_some} <= known
    assert set(few.in_all) <= set(every.in_all)


def test_a_pickle_has_the_ranges_and_no_data() -> None:
    X, y = table()
    result = solve_subset(X, y, n_features=2, l2=0.1, within=0.2)
    again = pickle.loads(pickle.dumps(result)).near_models
    np.testing.assert_array_equal(again.coefficients.lower, result.near_models.coefficients.lower)
    with pytest.raises(ValueError, match="training data"):
        again.predictions(X)
    with pytest.raises(ValueError, match="3 columns"):
        result.near_models.predictions(X[:, :3])
