"""ZeroSum: the conformance suite, and minima of compositional models that CVXPY finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import solve
from atomlearn.core.norms.zero_sum import balanced
from atomlearn.norms import ZeroSum
from atomlearn.testing.norms import NormChecks

SETS = [[0, 2, 5, 7], [1, 4, 9]]


class ZeroSumChecks(NormChecks):
    """The suite, with vectors that sum to zero over each composition."""

    n_features = 10
    sets = [list(range(10))]

    def inside(self, w):
        w = np.array(w, dtype=np.float64)
        for members in self.sets:
            used = [j for j in members if w[j]]
            w[used] -= w[used].sum() / max(len(used), 1)
        return w


class TestOneComposition(ZeroSumChecks):
    norm = ZeroSum()
    changes = {"groups": SETS}


class TestTwoCompositions(ZeroSumChecks):
    norm = ZeroSum(SETS)
    sets = SETS


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = np.log(rng.dirichlet(np.ones(12), 60))
    weights = np.concatenate([[1.0, -1.0, 0.5, -0.5], np.zeros(8)])
    return X, X @ weights + 0.3 * rng.standard_normal(60)


@pytest.mark.parametrize("sets", [None, [[0, 1, 2, 3, 4], [5, 6, 7, 8]]])
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.02},
        {"alpha": 0.02, "l1_ratio": 0.5},
        {"alpha": 0.02, "form": "squared"},
        {"form": "constrained", "radius": 1.5},
    ],
    ids=lambda options: "-".join(options),
)
def test_minimum_is_that_of_cvxpy(parts: Any, sets: Any, options: dict[str, Any]) -> None:
    cp = pytest.importorskip("cvxpy")
    X, y = parts
    found = solve(X, y, norm=ZeroSum(sets), tol=1e-9, **options)
    w, b = cp.Variable(12), cp.Variable()
    alpha, ratio = options.get("alpha", 0.0), options.get("l1_ratio", 1.0)
    form = options.get("form", "penalized")
    limits = [cp.sum(w[members]) == 0 for members in sets or [list(range(12))]]
    size = cp.norm1(w)
    objective = cp.sum_squares(y - X @ w - b) / 120 + alpha * (1 - ratio) / 2 * cp.sum_squares(w)
    if form == "constrained":
        limits.append(size <= options["radius"])
    else:
        objective += alpha * ratio * (size if form == "penalized" else cp.square(size) / 2)
    problem = cp.Problem(cp.Minimize(objective), limits)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert found.converged
    assert_allclose(found.objective, problem.value, rtol=1e-8)
    assert_allclose(found.coef, w.value, atol=1e-7)
    for members in sets or [list(range(12))]:
        assert abs(found.coef[members].sum()) <= 1e-14
    checked = found.verify()
    assert checked.lower <= problem.value * (1 + 1e-9)


def test_best_pair_among_many_columns_is_found() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 2000))
    y = X[:, 7] - X[:, 1500] + 0.1 * rng.standard_normal(100)
    found = solve(X, y, norm="zerosum", alpha=0.1)
    assert found.converged
    assert found.columns.tolist() == [7, 1500]


@pytest.mark.parametrize("step", [0.0, 0.3, 10.0])
def test_shift_balances_the_sum(step: float) -> None:
    v = np.random.default_rng(3).standard_normal(50) + 2.0
    x = balanced(v, step)
    assert abs(x.sum()) <= 1e-14
    shift = np.unique(np.round((v - x - step * np.sign(x))[x != 0], 10))
    assert shift.size <= 1
    if not shift.size:
        assert np.ptp(v) <= 2 * step


def test_column_of_two_compositions_is_refused() -> None:
    with pytest.raises(ValueError, match="column 1 is in two of them"):
        ZeroSum([[0, 1], [1, 2]]).value(np.zeros(3))
