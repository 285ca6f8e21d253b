"""Exclusive: the conformance suite, and minima that CVXPY finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import solve
from atomlearn.norms import L1, L2, Exclusive, KSupport
from atomlearn.testing.norms import NormChecks

SETS = [[0, 2, 5, 7], [1, 4, 9]]


class TestOneOfEach(NormChecks):
    norm, n_features = Exclusive(SETS), 11
    changes = {"groups": [[0, 1, 2, 3]], "k": 2}


class TestAFewOfEach(NormChecks):
    norm, n_features = Exclusive(SETS, [2, 3]), 11


def test_ends_are_known_norms() -> None:
    """One group is k-support, k = 1 of one group l1, and large k l2."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = rng.standard_normal(9)
        everything = [list(range(9))]
        for norm, other in [
            (Exclusive(everything, 3), KSupport(3)),
            (Exclusive(everything), L1()),
            (Exclusive(SETS[:1], 9), L2()),
        ]:
            assert_allclose(norm.value(v), other.value(v), rtol=1e-12)
            for form in ("penalized", "squared", "constrained"):
                here = norm.prox_point(v, 0.7, form).point
                assert_allclose(here, other.prox_point(v, 0.7, form).point, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.1, "form": "penalized"},
        {"alpha": 0.1, "form": "squared"},
        {"alpha": 0.1, "form": "squared", "l1_ratio": 0.5},
        {"form": "constrained", "radius": 1.0},
    ],
    ids=lambda options: "-".join(options),
)
@pytest.mark.parametrize("k", [1, 2])
def test_minimum_is_that_of_cvxpy(k: int, options: dict[str, Any]) -> None:
    """With w_g = sum of parts over sets of k columns, of the l2 norms of the parts."""
    cp = pytest.importorskip("cvxpy")
    from itertools import combinations

    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 8))
    y = X @ [1.0, 0, 0.5, 0, 0, -1.0, 0, 0.2] + 0.3 * rng.standard_normal(50)
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    found = solve(X, y, norm=Exclusive(groups, k), tol=1e-9, **options)
    w, b, sizes = cp.Variable(8), cp.Variable(), []
    limits = []
    for group in groups:
        parts = {chosen: cp.Variable(k) for chosen in combinations(group, k)}
        for j in group:
            limits.append(w[j] == sum(p[c.index(j)] for c, p in parts.items() if j in c))
        sizes.append(sum(cp.norm2(part) for part in parts.values()))
    form, alpha, ratio = options["form"], options.get("alpha", 0), options.get("l1_ratio", 1.0)
    gauge = cp.norm2(cp.hstack(sizes))
    objective = cp.sum_squares(y - X @ w - b) / 100 + alpha * (1 - ratio) / 2 * cp.sum_squares(w)
    if form == "constrained":
        limits.append(gauge <= options["radius"])
    else:
        objective += alpha * ratio * (gauge if form == "penalized" else cp.square(gauge) / 2)
    problem = cp.Problem(cp.Minimize(objective), limits)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert found.converged
    assert_allclose(found.objective, problem.value, rtol=1e-8)
    assert_allclose(found.coef, w.value, atol=1e-5)


def test_columns_of_each_group_are_found_among_many() -> None:
    """One column of each of 20 groups of 100 is found, and all other columns are left out."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 2000))
    groups = np.repeat(np.arange(20), 100)
    wanted = np.arange(20) * 100 + rng.integers(0, 100, 20)
    y = X[:, wanted].sum(axis=1) + 0.1 * rng.standard_normal(300)
    found = solve(X, y, norm=Exclusive(groups), alpha=0.3)
    assert found.converged
    assert set(wanted) <= set(found.columns.tolist())
    assert found.columns.size < 100


def test_a_k_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one for each of the 2 listed groups"):
        Exclusive(SETS, [1, 2, 3]).on(11)
    with pytest.raises(ValueError, match="one for each of the 2 listed groups"):
        Exclusive(SETS, [0, 2]).on(11)
