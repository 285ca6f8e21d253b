"""The first answer, and the last: no exchange of a column makes it better, unless a limit came."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from atomlearn._support import Deadline, Work
from atomlearn.subsets.result import SubsetStatus
from tests.oracles.subset_sums import subset_sum


def correlated(seed: int, n: int = 60, p: int = 200) -> tuple[Any, Any]:
    """Return columns of which neighbors are alike, and a weak signal."""
    rng = np.random.default_rng(seed)
    Z, X = rng.standard_normal((n, p)), np.empty((n, p))
    X[:, 0] = Z[:, 0]
    for j in range(1, p):
        X[:, j] = 0.7 * X[:, j - 1] + math.sqrt(1 - 0.49) * Z[:, j]
    y = X[:, rng.choice(p // 3, 8, replace=False)] @ rng.standard_normal(8)
    return X, y + y.std() * rng.standard_normal(n)


def value(X: Any, y: Any, columns: Any, ridge: float, weight: Any = None) -> float:
    A, s = X[:, list(columns)], np.ones(len(y)) if weight is None else weight
    K, pull = (A.T * s) @ A + ridge * np.eye(A.shape[1]), A.T @ (s * y)
    return 0.5 * float(y @ (s * y)) - 0.5 * float(pull @ np.linalg.solve(K, pull))


def swapped(X: Any, y: Any, columns: Any, ridge: float) -> tuple[float, list[int]]:
    """Return the best of all subsets that differ in one column."""
    held, best = set(columns), (math.inf, list(columns))
    for gone, come in itertools.product(columns, set(range(X.shape[1])) - held):
        each = sorted({*held, come} - {gone})
        best = min(best, (value(X, y, each, ridge), each))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("nodes", [0, 30])
def test_no_exchange_of_one_column_is_better_and_neither_is_greedy(seed: int, nodes: int) -> None:
    X, y = correlated(seed)
    k, ridge = 5, 0.5
    result = subset_sum(X, y, n_features=k, ridge=ridge, max_nodes=nodes)
    assert result.status is SubsetStatus.NODE_LIMIT
    assert result.swap_optimal
    assert result.objective == pytest.approx(value(X, y, result.columns, ridge), rel=1e-10)
    assert swapped(X, y, result.columns.tolist(), ridge)[0] >= result.objective * (1 - 1e-10)
    greedy: list[int] = []
    for _ in range(k):
        rest = set(range(X.shape[1])) - set(greedy)
        greedy.append(min(rest, key=lambda j: value(X, y, [*greedy, j], ridge)))
    best = value(X, y, greedy, ridge)
    while (move := swapped(X, y, greedy, ridge))[0] < best * (1 - 1e-12):
        best, greedy = move
    assert result.objective <= best * (1 + 1e-10)


def test_an_exchange_takes_no_column_that_is_free() -> None:
    X, y = correlated(1, p=30)
    y = y + 5.0 * X[:, 3]
    result = subset_sum(X, y, n_features=4, ridge=0.5, unpenalized=[3, 7], max_nodes=5)
    assert not set(result.columns) & {3, 7}
    assert result.swap_optimal


def test_a_limit_that_came_first_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = correlated(2)
    monkeypatch.setattr(Deadline, "limited", lambda limit: Deadline(math.inf, Work(2)))
    result = subset_sum(X, y, n_features=5, ridge=0.5, time_limit=1.0)
    assert result.status is SubsetStatus.TIME_LIMIT
    assert not result.swap_optimal


def test_groups_are_not_exchanged_and_it_is_said() -> None:
    X, y = correlated(3, p=40)
    result = subset_sum(X, y, n_features=3, ridge=5.0, groups=np.arange(40) // 2, max_nodes=3)
    assert not result.swap_optimal


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_other_losses_are_settled_too(loss: str) -> None:
    X, y = correlated(4, p=40)
    y = np.sign(y) if loss == "logistic" else np.round(np.exp(np.clip(y / 4.0, -3.0, 3.0)))
    result = subset_sum(X, y, n_features=4, ridge=0.5, loss=loss, fit_intercept=True, max_nodes=10)
    assert result.swap_optimal
    start = [result.columns.tolist()]
    again = subset_sum(
        X, y, n_features=4, ridge=0.5, loss=loss, fit_intercept=True, max_nodes=0, start=start
    )
    assert again.objective >= result.objective * (1 - 1e-10)
