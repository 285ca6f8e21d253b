"""partial_fit: the optimum of all rows from sums, whatever the pieces in which they came."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, norms
from atomlearn.core import LIMITS
from atomlearn.designs import from_moments
from tests.core.data.test_moments import data
from tests.oracles.sums import solve_sum


def rows(n: int = 90, p: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + 3.0
    return X, X[:, 0] - X[:, 1] + 5.0 + rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize(
    "given",
    [
        {"alpha": 0.1},
        {"alpha": 0.1, "fit_intercept": False},
        {"norm": norms.KSupport(k=3), "alpha": 0.1, "form": "squared"},
        {"norm": norms.Groups([[0, 1, 2], [3, 4, 5]]), "alpha": 0.3},
        {"form": "constrained", "radius": 1.0},
    ],
)
def test_pieces_give_the_fit_of_all_rows(given: dict) -> None:
    X, y, weight = rows()
    whole = AtomicRegressor(tol=1e-9, **given).fit(X, y, sample_weight=weight)
    parts = AtomicRegressor(tol=1e-9, **given)
    for some in np.split(np.arange(90), [7, 30, 70]):  # the first piece has fewer rows than columns
        piece = sp.csr_array(X[some]) if some.size == 23 else X[some]
        parts.partial_fit(piece, y[some], weight[some])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-5)
    assert parts.intercept_ == pytest.approx(whole.intercept_, abs=1e-4)
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-8)
    assert parts.gap_ <= 1e-9 * parts.objective_ * (1 + 1e-6)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-4)


def test_a_few_rows_more_begin_at_the_last_fit() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 80))
    y = X[:, :20].sum(axis=1) + rng.standard_normal(400)
    model = AtomicRegressor(alpha=0.05).partial_fit(X[:390], y[:390])
    first = model.n_iter_
    assert model.partial_fit(X[390:], y[390:]).n_iter_ <= first


def test_what_sums_do_not_tell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = rows()
    parts = AtomicRegressor(alpha=0.1).partial_fit(X[:50], y[:50])
    with pytest.warns(UserWarning, match="fits to the new rows only"):
        again = clone(parts).fit(X, y).partial_fit(X[:50], y[:50])
    np.testing.assert_allclose(again.coef_, parts.coef_)
    for model in (AtomicRegressor(loss="huber"), AtomicRegressor(relax=0.5)):
        with pytest.raises(AttributeError, match="it needs loss='squared' and features='linear'"):
            model.partial_fit(X, y)
    for other in (AtomicRegressorCV(), AtomicClassifier()):
        assert not hasattr(other, "partial_fit")
    with pytest.raises(ValueError, match="12 features"):
        clone(parts).partial_fit(X, y).partial_fit(X[:, :5], y)
    few = replace(LIMITS, most_dense=100)
    monkeypatch.setattr("atomlearn.estimators.moments.LIMITS", few)
    with pytest.raises(ValueError, match="for 12 columns"):
        AtomicRegressor().partial_fit(X, y)


@pytest.mark.parametrize("intercept", [True, False])
def test_what_the_sums_lose_belongs_to_the_gap(intercept):
    """A fit that is perfect but for rounding: the constant is a difference of large sums."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = 1e6 * X @ [1.0, -2.0, 0.5] + (3e6 if intercept else 0.0)
    with warnings.catch_warnings(action="ignore"):
        model = AtomicRegressor(alpha=1e-9, fit_intercept=intercept).partial_fit(X, y)
    w, b = [Fraction(float(one)) for one in model.coef_], Fraction(model.intercept_)
    total = Fraction(0)
    for row, target in zip(X, y, strict=True):
        linear = b + sum(Fraction(float(x)) * c for x, c in zip(row, w, strict=True))
        total += (Fraction(float(target)) - linear) ** 2
    exact = total / 60 + Fraction(1e-9) * sum(map(abs, w))
    assert abs(exact - Fraction(model.objective_)) <= Fraction(model.gap_)
    assert model.status_.is_converged == (model.gap_ <= 1e-6 * model.objective_)


def test_estimators_take_it() -> None:
    X, y = data(3)
    R, t = from_moments(X.T @ X, X.T @ y)
    fitted = AtomicRegressor(alpha=2.0, fit_intercept=False, tol=1e-9).fit(R, t)
    assert_allclose(fitted.coef_, solve_sum(X, y, level=2.0, tol=1e-9).coef, atol=1e-5)
