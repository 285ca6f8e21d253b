"""AtMost: the conformance suite, its optimum by CVXPY, and what its limits do."""

from __future__ import annotations

import importlib
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicRegressor, norms, solve
from atomlearn.designs import ArrayScores
from atomlearn.norms import AtMost, KSupport
from atomlearn.testing.gauges import gauge_model
from atomlearn.testing.norms import NormChecks

LISTS = [[0, 2, 7], [1, 6, 3, 9], [4, 5]]


class TestAtMost(NormChecks):
    norm = AtMost(4, LISTS, [1, 2, 2])
    n_features = 10
    changes = {"k": 2, "most": 2}


class TestLimitsOfGroupsAlone(NormChecks):
    norm = AtMost(10, LISTS)
    n_features = 10


def allowed(norm: AtMost, n: int) -> list[tuple[int, ...]]:
    """Return the largest sets of columns that the limits allow."""
    caps = norm.caps(n)
    labels = caps.partition.labels
    return [
        columns
        for columns in combinations(range(n), min(norm.k, n))
        if (np.bincount(labels[list(columns)], minlength=caps.most.size) <= caps.most).all()
    ]


@pytest.mark.parametrize("seed", range(8))
def test_the_polar_is_the_best_of_all_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    norm = AtMost(int(rng.integers(1, 5)), LISTS, rng.integers(1, 3, 3).tolist())
    z = np.round(2.0 * rng.standard_normal(10), seed % 2 + 1)
    best = max(np.linalg.norm(z[list(one)]) for one in allowed(norm, 10))
    assert norm.polar(ArrayScores(z)) == pytest.approx(best, rel=1e-12)
    atom = norm.best_columns(ArrayScores(z), 1)
    assert np.linalg.norm(z[atom]) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_gauge_is_that_of_cvxpy(seed: int) -> None:
    cp = importlib.import_module("cvxpy")
    rng = np.random.default_rng(seed)
    norm = AtMost(int(rng.integers(1, 6)), LISTS, rng.integers(1, 3, 3).tolist())
    w = rng.standard_normal(10)
    gauge, constraints = gauge_model(cp, norm, cp.Constant(w))
    value = cp.Problem(cp.Minimize(gauge), constraints).solve(solver="CLARABEL")
    assert norm.value(w) == pytest.approx(float(value), rel=1e-6)


def test_without_limits_it_is_the_k_support_norm() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        w, k = rng.standard_normal(12), 1 + seed % 5
        labels = rng.integers(0, 3, 12)
        assert_allclose(AtMost(k, labels, 12).value(w), KSupport(k).value(w), rtol=1e-12)
        for name in ("prox", "prox_squared", "project"):
            ours, theirs = (getattr(n, name)(w, 0.7) for n in (AtMost(k, labels, 12), KSupport(k)))
            assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("form", ["squared", "penalized", "constrained"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_fits_are_those_of_cvxpy(loss: Any, form: Any) -> None:
    cp = importlib.import_module("cvxpy")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 10))
    z = X[:, 0] + X[:, 2] - X[:, 1]
    y = {
        "squared": z + rng.standard_normal(40),
        "logistic": np.where(z + rng.standard_normal(40) > 0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(0.5 * z)).astype(float),
    }[loss]
    amount: Any = {"radius": 0.8} if form == "constrained" else {"level": 4.0}
    norm = AtMost(4, LISTS)
    fit = solve(X, y, loss=loss, norm=norm, form=form, gap=1e-9, **amount)
    w = cp.Variable(10)
    prediction = X @ w
    value = {
        "squared": lambda: 0.5 * cp.sum_squares(prediction - y),
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, prediction))),
        "poisson": lambda: cp.sum(cp.exp(prediction) - cp.multiply(y, prediction)),
    }[loss]()
    gauge, constraints = gauge_model(cp, norm, w)
    if form == "constrained":
        constraints.append(gauge <= 0.8)
    else:
        value += 4.0 * gauge if form == "penalized" else 2.0 * cp.square(gauge)
    best = float(cp.Problem(cp.Minimize(value), constraints).solve(solver="CLARABEL"))
    if loss == "poisson":
        some = y > 0
        best += float((y[some] * np.log(y[some])).sum() - y.sum())
    assert fit.converged
    assert fit.objective == pytest.approx(best, rel=1e-6, abs=1e-7)
    assert fit.objective - fit.gap <= best + 1e-6 * abs(best)


def test_copies_in_a_group_share_one_place() -> None:
    """Of ten columns that tell the same, the limit takes one where k-support takes five."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal((200, 4))
    X = np.repeat(shared, 10, axis=1) + 0.3 * rng.standard_normal((200, 40))
    y = shared @ [4.0, 1.0, 1.0, 1.0] + rng.standard_normal(200)
    labels = np.repeat(np.arange(4), 10)
    z = ArrayScores(X.T @ y)
    assert np.unique(labels[AtMost(4, labels).best_columns(z, 1)]).size == 4
    assert np.unique(labels[KSupport(4).best_columns(z, 1)]).size == 1


def test_many_columns_are_certified_and_estimators_take_it() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 2000))
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.standard_normal(100)
    fit = solve(X, y, norm=AtMost(10, np.arange(2000) // 20), form="squared", level=5.0)
    assert fit.converged
    assert fit.passes < 30
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :6], columns=["a1", "a2", "b1", "b2", "c", "d"])
    model = AtomicRegressor(AtMost(2, {"a": "a*", "b": "b*"}), alpha=0.1, form="squared")
    assert model.fit(frame, y).status_.is_converged


def test_bad_parameters() -> None:
    X, y = np.eye(3), np.ones(3)
    for norm, message in (
        (AtMost(0, [[0, 1]]), "k must be"),
        (AtMost(2, [[0, 1]], 0), "most must be a whole number >= 1"),
        (AtMost(2, [[0, 1]], [1, 2]), "one for each of the 1 groups"),
        (AtMost(2, [[0, 1], [1, 2]]), "groups must be disjoint"),
    ):
        with pytest.raises(ValueError, match=message):
            solve(X, y, norm=norm, level=1.0)
    with pytest.raises(ValueError, match="needs k"):
        norms.as_norm("at_most")
