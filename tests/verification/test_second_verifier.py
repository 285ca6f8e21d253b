"""The verifier to paste, in docs/verify.md, finds the same gaps in 60 digits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from atomlearn import AtomicClassifier, AtomicRegressor, norms, solve
from atomlearn.verification import check, fit_of_result, fits_of_estimator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"
RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 12)) + RNG.uniform(-20.0, 20.0, 12)
X[:, 11] = 3.0
SCORE = X[:, 0] - X[:, 0].mean() + RNG.standard_normal(30)


@pytest.fixture(scope="module")
def second_verifier() -> Any:
    """Return the function of the page."""
    blocks = re.findall(r"^```python\n(.*?)^```\n", PAGE.read_text("utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "def second_verifier" in block), names)
    return names["second_verifier"]


@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(alpha=0.1, standardize=True),
        AtomicRegressor(alpha=0.1, l1_ratio=0.6, fit_intercept=False),
        AtomicRegressor(norms.Groups(np.arange(12) // 3, "sqrt_size"), 0.05, standardize=True),
        AtomicRegressor(norms.L1(weights=np.linspace(0.5, 2.0, 12)), 0.3, tol=0.1),
        AtomicClassifier(alpha=0.05, standardize=True),
        AtomicClassifier("l1", 0.05, l1_ratio=0.5, tol=1e-3),
    ],
)
def test_both_verifiers_agree(model: Any, second_verifier: Any) -> None:
    y = np.where(SCORE > 0, 1.0, -1.0) if isinstance(model, AtomicClassifier) else SCORE
    [fit], _ = fits_of_estimator(model.fit(X, y), X, y)
    claim, _ = fit.claim()
    found = check(claim, X, y)
    objective, gap = map(float, second_verifier(claim, X, y))
    assert found["objective"] == pytest.approx(objective, rel=1e-12)
    # The gap of the fast verifier has all roundings, and is hardly larger for that.
    assert 0.0 <= gap <= found["gap"] <= gap + 1e-10 * objective


def test_a_gap_that_is_wrong_is_wrong_for_both(second_verifier: Any) -> None:
    model = AtomicRegressor(alpha=0.1, standardize=True).fit(X, SCORE)
    [fit], _ = fits_of_estimator(model, X, SCORE)
    claim, _ = fit.claim()
    claim["coefficients"][0] *= 1.2
    assert float(second_verifier(claim, X, SCORE)[1]) > 1e3 * claim["gap"]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_the_gap_of_scikit_learns_point_is_the_one_it_reports(
    l1_ratio: float, fit_intercept: bool
) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((50, 200))
    y = data[:, :3].sum(axis=1) + rng.standard_normal(50)
    settings: dict[str, Any] = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept}
    other = ElasticNet(alpha=0.1, tol=1e-2, **settings).fit(data, y)
    fit = fit_of_result(solve(data, y, alpha=0.1, **settings), data, y)
    columns = np.flatnonzero(other.coef_)
    point = {"weights": other.coef_[columns], "intercept": float(other.intercept_)}
    claim, _ = replace(fit, result=replace(fit.result, columns=columns, **point)).claim()
    assert check(claim, data, y)["gap"] == pytest.approx(other.dual_gap_, rel=1e-8)
