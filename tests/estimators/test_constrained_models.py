"""Linear constraints in estimators, cross-validation and paths; bounds and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifierCV, AtomicRegressor, AtomicRegressorCV
from atomlearn.norms import L1, Constrained, ZeroSum

NAMES = [f"f{number}" for number in range(8)]
#: The coefficients sum to one, and the first is at most .1 above the second.
ROWS = [dict.fromkeys(NAMES, 1), {"f0": 1, "f1": -1}]


@pytest.fixture(scope="module")
def frame() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8))
    y = X[:, :3] @ [0.5, 0.3, 0.2] + 0.3 * rng.standard_normal(80)
    return pd.DataFrame(X, columns=NAMES), y


def test_rows_name_columns_of_a_frame(frame: Any) -> None:
    norm = Constrained(ROWS, [1, 0.1], [1, -np.inf])
    model = AtomicRegressor(norm, alpha=0.05).fit(*frame)
    assert_allclose(model.coef_.sum(), 1.0)
    assert_allclose(model.coef_[0] - model.coef_[1], 0.1)
    with pytest.raises(ValueError, match="A names column 'g', which X does not have"):
        AtomicRegressor(Constrained([{"g": 1}]), alpha=0.05).fit(*frame)


def test_cross_validation_keeps_the_constraints(frame: Any) -> None:
    X, y = frame
    norm = Constrained(ROWS, [1, 0.1], [1, -np.inf])
    model = AtomicRegressorCV(norm, cv=3, n_alphas=5).fit(X, y)
    assert model.status_.is_converged
    assert_allclose(model.coef_.sum(), 1.0)
    classes = AtomicClassifierCV(Constrained(np.ones((1, 8)), 0.5), cv=3, n_alphas=5)
    assert classes.fit(X, y > 0).coef_.sum() <= 0.5 + 1e-9


@pytest.mark.parametrize("norm", [Constrained(np.ones((1, 8)), 1), ZeroSum(), L1(upper=0.5)])
def test_constraints_in_other_units_are_refused(frame: Any, norm: Any) -> None:
    with pytest.raises(ValueError, match="constrains coefficients in their units"):
        AtomicRegressor(norm, alpha=0.05, standardize=True).fit(*frame)
    signs = AtomicRegressor(L1(lower=0), alpha=0.05, standardize=True).fit(*frame)
    assert (signs.coef_ >= 0).all()
