"""Groups of weight 0, which are free, and of infinite weight, which are left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import ArrayScores
from atomlearn.norms import L1, Blocks, Groups, Nonnegative
from tests.oracles.sums import solve_sum

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
    how = {"form": form, "loss": loss, "tau": tau, "fit_intercept": True, "tol": 1e-9, **amount}
    found = solve_sum(X, y, norm=Groups(GROUPS, WEIGHTS), **how)
    expected = solve_sum(X[:, KEPT], y, norm=reduced(), unpenalized=FREE, **how)
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


def test_weights_that_are_none():
    X, y = drawn()
    for weights in ([1.0, -1.0, 1.0, 1.0], [1.0, np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match=r"weights\[1\] is .*0: unpenalized, inf: left out"):
            solve_sum(X, y, norm=Groups(GROUPS, weights), level=1.0)
    with pytest.raises(ValueError, match="free, and of either sign"):
        solve_sum(X, y, norm=Nonnegative(Groups(GROUPS, WEIGHTS)), level=1.0)
    blocks = Blocks([L1([0.0, 1.0, 1.0]), L1()], [[0, 1, 2], [3, 4, 5, 6, 7]])
    with pytest.raises(ValueError, match="weight 0 is free; name it in unpenalized= instead"):
        solve_sum(X, y, norm=blocks, level=1.0)
