"""A stronger ridge from the diagonal of the Hessian: the same objectives, and tighter bounds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from atomlearn import solve_subset
from atomlearn.core import loss_value, objective_at, optimal_intercept
from atomlearn.subsets import partial
from atomlearn.subsets.diagonal import strengthened
from atomlearn.subsets.relaxation import Relaxation
from atomlearn.subsets.result import SubsetStatus
from atomlearn.subsets.solve import subset_problem

TOL = 1e-4


def table(seed: int, n: int = 60, p: int = 12) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)))
    weight = rng.integers(0, 3, n) + (np.arange(n) < 5.0)
    return X, X[:, :4] @ [1.0, -1.0, 0.5, 0.3] + rng.standard_normal(n) + 3.0, weight


@pytest.mark.parametrize("free", [None, [11]])
@pytest.mark.parametrize("intercept", [False, True])
def test_objectives_are_the_same(intercept: bool, free: Any) -> None:
    X, y, weight = table(0)
    problem = subset_problem(X, y, 3, 0.01, "squared", None, intercept, weight, None, free)
    columns = np.arange(11)
    other, factors = strengthened(Relaxation(problem), columns, 1e-7)
    assert np.mean(factors**2 - 1.0) > 0.5
    rng = np.random.default_rng(1)
    for _ in range(20):
        w = rng.standard_normal(11) * (rng.random(11) < 0.5)
        linear = X[:, :11] @ w
        prediction = linear + optimal_intercept(problem, linear)
        plain = loss_value(problem, prediction) + 0.005 * float(w @ w)
        v = factors * w
        found = objective_at(other, v, other.design.predict(v), float(np.linalg.norm(v)))
        assert found == pytest.approx(plain, rel=1e-9)
        assert found <= plain * (1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_subset_is_the_best_of_all(seed: int) -> None:
    X, y, weight = table(seed, n=int(14 + 4 * seed))
    if seed % 3 == 0:
        X[:, 5] = X[:, 1]
    A = X - (weight @ X) / weight.sum()
    r = y - (weight @ y) / weight.sum()
    values = {}
    for subset in itertools.combinations(range(12), 3):
        B = A[:, subset] * np.sqrt(weight / weight.sum())[:, None]
        t = r * np.sqrt(weight / weight.sum())
        w = np.linalg.solve(B.T @ B + 0.003 * np.eye(3), B.T @ t)
        values[subset] = 0.5 * float((t - B @ w) @ (t - B @ w)) + 0.0015 * float(w @ w)
    best = min(values.values())
    given: dict[str, Any] = {"n_features": 3, "l2": 0.003, "sample_weight": weight}
    result = solve_subset(X, y, **given)
    assert result.status is SubsetStatus.OPTIMAL
    assert result.objective == pytest.approx(best, rel=TOL)
    assert result.lower_bound <= best * (1.0 + 1e-10)
    for each in [each for each, value in values.items() if value <= best * (1.0 + 1e-10)]:
        assert set(result.proved_in) <= set(each)
        assert set(each) <= set(result.open_columns)
    near = solve_subset(X, y, within=0.05, **given)
    assert near.near_complete
    found = {tuple(each.columns.tolist()) for each in near.near}
    assert {each for each, value in values.items() if value <= 1.05 * best * (1.0 - 1e-8)} <= found
    assert found <= {each for each, value in values.items() if value <= 1.05 * best * (1.0 + 1e-8)}


def test_a_weak_ridge_is_proved_in_fewer_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 40))
    y = X[:, :5].sum(axis=1) + 3.0 * rng.standard_normal(120)
    result = solve_subset(X, y, n_features=5, l2=0.001)
    monkeypatch.setattr(partial, "strengthened_problem", lambda *given: None)
    plain = solve_subset(X, y, n_features=5, l2=0.001, max_nodes=20 * result.nodes)
    assert result.status is SubsetStatus.OPTIMAL
    assert plain.objective == pytest.approx(result.objective, rel=1e-6)
    assert plain.nodes > 1.5 * result.nodes


def test_what_has_no_such_diagonal_is_left_as_it_is() -> None:
    X, y, _ = table(0)
    given = (0.01, "squared", None, True, None, None, None)
    wide = subset_problem(X[:8], y[:8], 3, *given)
    assert strengthened(Relaxation(wide), np.arange(12), 1e-7) is None
    twice = subset_problem(np.hstack([X, X]), y, 3, *given)
    assert strengthened(Relaxation(twice), np.arange(24), 1e-7) is None
    labels = subset_problem(X, np.sign(y), 3, 0.01, "logistic", *given[2:])
    assert strengthened(Relaxation(labels), np.arange(12), 1e-7) is None
