"""A norm that is one function, in the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV
from atomlearn.norms import UserNorm
from tests.core.norms.test_user_norm import largest, signs
from tests.core.paths.test_user_norm_fits import drawn


def test_estimators() -> None:
    X, y = drawn()
    mine = AtomicRegressor(norm=UserNorm(largest), alpha=0.1).fit(X, y)
    known = AtomicRegressor(norm="l1", alpha=0.1).fit(X, y)
    assert_allclose(mine.coef_, known.coef_, atol=1e-3)
    again = AtomicRegressor(norm=UserNorm(largest), alpha=0.1, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 2
    labels = np.digitize(y, [0.5, 1.5])
    classes = AtomicClassifier(norm=UserNorm(signs), alpha=0.05).fit(X, labels)
    assert classes.coef_.shape == (3, 12)
    for result in classes.results_:
        assert result.converged
    cv = AtomicRegressorCV(norms=[UserNorm(signs), "l1"], cv=3).fit(X, y)
    # The coefficients have one magnitude, which is what the ball of l_infinity is for.
    assert cv.norm_ == UserNorm(signs)
    assert_allclose(np.abs(cv.coef_), np.abs(cv.coef_).max(), rtol=0.5)


@pytest.mark.parametrize("solver", ["atom_generation", "frank_wolfe", "column_generation"])
def test_solvers_by_name(solver: str) -> None:
    X, y = drawn()
    tol = 1e-3 if solver == "frank_wolfe" else 1e-6
    model = AtomicRegressor(norm="l1", alpha=0.1, solver=solver, tol=tol, max_iter=5000).fit(X, y)
    assert model.status_.is_converged
    assert_allclose(model.objective_, AtomicRegressor(alpha=0.1).fit(X, y).objective_, rtol=2 * tol)
