"""Groups of weight 0, which are free, and of infinite weight, which are left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, solve
from atomlearn.designs import ArrayScores
from atomlearn.norms import L1, Blocks, Groups, LatentGroups, Nonnegative, Scaled, Union

GROUPS = [[0, 3], [1, 2], [4, 6], [5, 7]]
WEIGHTS = np.array([0.0, 1.0, np.inf, 2.0])
#: Columns that are not left out, the priced groups of these, and the free ones.
KEPT, PRICED, FREE = [0, 1, 2, 3, 5, 7], [[1, 2], [4, 5]], [0, 3]
FORMS = ("penalized", "squared", "constrained")


def drawn():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 8))
    return X, X @ rng.standard_normal(8) + rng.standard_normal(40)


def reduced(factor=1.0):
    return Groups(PRICED, weights=[factor, 2.0 * factor])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_fits_are_those_of_the_other_columns_with_free_ones(form, loss, tau):
    X, y = drawn()
    y = np.sign(y) if loss == "logistic" else y
    amount = {"radius": 0.7} if form == "constrained" else {"level": 3.0}
    how = {"form": form, "loss": loss, "tau": tau, "intercept": True, "gap": 1e-9, **amount}
    found = solve(X, y, norm=Groups(GROUPS, WEIGHTS), **how)
    expected = solve(X[:, KEPT], y, norm=reduced(), unpenalized=FREE, **how)
    assert found.status.is_converged
    assert_allclose(found.objective, expected.objective, rtol=1e-7)
    assert (found.coef[[4, 6]] == 0).all()
    assert_allclose(found.coef[KEPT], expected.coef, atol=1e-3)


def test_values_polars_and_best_columns():
    norm = Groups(GROUPS, WEIGHTS)
    w = np.array([5.0, 3.0, 4.0, 5.0, 0.0, 1.0, 0.0, 0.0])
    assert norm.value(w) == 5.0 + 2.0
    assert norm.value(np.eye(8)[4]) == np.inf
    assert norm.value(np.zeros(8)) == 0.0
    scores = ArrayScores(np.array([0.0, 3.0, 4.0, 0.0, 9.0, 20.0, 9.0, 0.0]))
    assert norm.polar(scores) == 10.0  # those of free columns are 0 at every optimum over them
    assert norm.polar(ArrayScores(np.ones(8))) == np.inf
    free, held = norm.without(np.array([5]), 8)
    assert free.tolist() == [0, 3, 5]
    assert held.polar(ArrayScores(np.ones(8))) == np.sqrt(2.0)
    assert sorted(held.best_columns(ArrayScores(np.ones(8)), 8)) == [1, 2, 5, 7]
    assert Groups(GROUPS, [1.0, 2.0, 1.0, 0.5]).as_groups(8) is not None
    assert norm.as_groups(8) is None


def test_estimators_and_norms_made_of_groups():
    X, y = drawn()
    for inside, outside in (
        (Groups(GROUPS, WEIGHTS), reduced()),
        (Scaled(Groups(GROUPS, WEIGHTS), 2.0), reduced(2.0)),
    ):
        for make in (AtomicRegressor, AtomicClassifier):
            target = y if make is AtomicRegressor else y > 0
            found = make(inside, alpha=0.1, tol=1e-9).fit(X, target)
            one = make(outside, alpha=0.1, tol=1e-9, unpenalized=FREE).fit(X[:, KEPT], target)
            assert_allclose(np.ravel(found.coef_)[KEPT], np.ravel(one.coef_), atol=1e-4)
    search = AtomicRegressorCV(Groups(GROUPS, WEIGHTS), n_alphas=4, cv=3, tol=1e-8).fit(X, y)
    other = AtomicRegressorCV(reduced(), n_alphas=4, cv=3, tol=1e-8, unpenalized=FREE)
    other.fit(X[:, KEPT], y)
    assert_allclose(search.alphas_, other.alphas_, rtol=1e-9)
    assert_allclose(search.coef_[KEPT], other.coef_, atol=1e-4)


def test_a_union_with_groups_left_out():
    X, y = drawn()
    most = [1.0, 1.0, np.inf, 2.0]
    found = solve(X, y, norm=Union([Groups(GROUPS, most), L1(3.0)]), level=2.0, gap=1e-9)
    cp = pytest.importorskip("cvxpy")
    a, b = cp.Variable(8), cp.Variable(8)
    price = cp.norm(a[[0, 3]]) + cp.norm(a[[1, 2]]) + 2.0 * cp.norm(a[[5, 7]]) + 3.0 * cp.norm1(b)
    program = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(X @ (a + b) - y) + 2.0 * price), [a[[4, 6]] == 0]
    )
    program.solve(solver="CLARABEL")
    assert_allclose(found.objective, program.value, rtol=1e-6)


def test_weights_that_are_none():
    X, y = drawn()
    for weights in ([1.0, -1.0, 1.0, 1.0], [1.0, np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match=r"weights\[1\] is .*0: unpenalized, inf: left out"):
            solve(X, y, norm=Groups(GROUPS, weights), level=1.0)
    for weight in (0.0, np.inf):
        with pytest.raises(ValueError, match=r"weights\[0\] is .*drop a set.*unpenalized="):
            solve(X, y, norm=LatentGroups([[0, 1], [1, 2]], [weight, 1.0]), level=1.0)
    with pytest.raises(ValueError, match="free, and of either sign"):
        solve(X, y, norm=Nonnegative(Groups(GROUPS, WEIGHTS)), level=1.0)
    for norm in (
        Union([Groups(GROUPS, WEIGHTS), L1()]),
        Blocks([L1([0.0, 1.0, 1.0]), L1()], [[0, 1, 2], [3, 4, 5, 6, 7]]),
    ):
        with pytest.raises(ValueError, match="weight 0 is free; name it in unpenalized= instead"):
            solve(X, y, norm=norm, level=1.0)
