"""monitor: its bound against optima of others, its test against rows like the old ones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, norms
from atomlearn.findings import keep, monitor


def rows(seed: int, n: int = 260, p: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :4] @ np.array([1.0, -1.0, 0.5, 0.3]) + 2.0 + rng.standard_normal(n)


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("n_new", [1, 20, 130])
def test_the_gap_is_a_bound_and_not_far_from_the_truth(shift: float, n_new: int) -> None:
    """The optimum of all rows by scikit-learn's lasso."""
    X, y = rows(0)
    y[-n_new:] += shift
    model = AtomicRegressor(alpha=0.1, tol=1e-10).fit(X[:-n_new], y[:-n_new])
    kept = pickle.loads(pickle.dumps(keep(model, X[:-n_new], y[:-n_new])))
    found = monitor(model, X[-n_new:], y[-n_new:], kept)

    def objective(w: np.ndarray, b: float) -> float:
        return 0.5 * float(np.mean((y - X @ w - b) ** 2)) + 0.1 * float(np.abs(w).sum())

    best = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(X, y)
    mine = objective(model.coef_, model.intercept_)
    true = (mine - objective(best.coef_, best.intercept_)) / mine
    assert true <= found.gap <= 6 * true + 2e-4
    assert monitor(model, X[-n_new:], y[-n_new:], old=(X[:-n_new], y[:-n_new])).gap == found.gap


@pytest.mark.filterwarnings("ignore:.*no further progress")
def test_what_rounding_may_hide_grows_with_the_mean_of_the_target() -> None:
    X, y = rows(4)
    lost, gaps = [], []
    for shift in (0.0, 1e8):
        model = AtomicRegressor(alpha=0.1, tol=1e-10).fit(X[:200], y[:200] + shift)
        kept = keep(model, X[:200], y[:200] + shift)
        lost.append(kept.rounding)
        gaps.append(monitor(model, X[200:], y[200:] + shift, kept).gap)
    assert lost[0] < 1e-12
    # Targets of 1e8 are known to 1e-8, beside residuals of 1; the model is the same up to that.
    assert 1e-8 < lost[1] < 1e-4
    assert gaps[0] - 1e-8 < gaps[1] < gaps[0] + 3 * lost[1]


@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(norms.KSupport(k=3), alpha=0.2, form="squared", tol=1e-9),
        AtomicRegressor(form="constrained", radius=1.5, tol=1e-9),
        AtomicRegressor(norms.Groups([[0, 1], [2, 3, 4]]), alpha=0.3, fit_intercept=False),
        AtomicRegressor(loss="poisson", alpha=0.1, tol=1e-9),
        AtomicClassifier(alpha=0.02, tol=1e-9),
    ],
    ids=["squared", "constrained", "no intercept", "counts", "classes"],
)
def test_every_form_and_loss_has_its_bound(model: Any) -> None:
    """Against a fit to all rows; for l1 and classes scikit-learn's beside it."""
    X, y = rows(1)
    if model.loss == "poisson":
        y = np.random.default_rng(3).poisson(np.exp(0.5 * y - 1)).astype(float)
    elif model.loss == "logistic":
        y = np.where(y > 2, "yes", "no")
    model.fit(X[:200], y[:200])
    found = monitor(model, X[200:], y[200:], keep(model, X[:200], y[:200]))
    whole = clone(model).fit(X, y)
    if model.loss == "logistic":
        sign, C = np.where(y == "yes", 1.0, -1.0), 1 / (0.02 * 260)
        rival = LogisticRegression(l1_ratio=1, solver="saga", C=C, tol=1e-8, max_iter=20_000)
        margins = sign * rival.fit(X, y).decision_function(X)
        of_rival = np.mean(np.log1p(np.exp(-margins))) + 0.02 * np.abs(rival.coef_).sum()
        assert whole.objective_ <= of_rival * (1 + 1e-6)
    inner = clone(model).set_params(warm_start=True, max_iter=1, tol=1e6)
    inner.results_ = model.results_
    if hasattr(model, "classes_"):
        inner.classes_ = model.classes_
    inner.fit(X, y)
    # At least as much as is known to be wrong: the value at the old model, its intercept best.
    assert (inner.objective_ - whole.objective_) / inner.objective_ <= found.gap + 1e-12
    assert found.gap < (0.02 if model.loss == "squared" else 0.26)


def test_rows_like_the_old_ones_are_told_so_and_others_are_not() -> None:
    p_values = []
    for seed in range(12):
        X, y = rows(seed + 10, n=150, p=8)
        model = AtomicRegressor(alpha=0.1, tol=1e-4).fit(X[:110], y[:110])
        p_values.append(monitor(model, X[110:], y[110:], keep(model, X[:110], y[:110])).p_value)
    assert np.mean(np.array(p_values) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 12)
    assert np.mean(p_values) > 0.3
    X, y = rows(5)
    search = AtomicRegressorCV(n_alphas=8, tol=1e-4).fit(X[:200], y[:200])
    kept = keep(search, X[:200], y[:200])
    for change, name in (
        (lambda y: y + 1, "residuals"),
        (lambda y: 2 + 3 * (y - 2), "sizes"),
        (lambda y: 0.2 * (y - 2) + 2, "along"),
    ):
        told = monitor(search, X[200:], change(y[200:]), kept)
        assert told.p_value <= 0.002
        assert name in told.differs


def test_a_refit_begins_at_the_old_model_and_only_where_it_pays() -> None:
    X, y = rows(7)
    X = pd.DataFrame(X).add_prefix("g")
    model = AtomicRegressor(alpha=0.05).fit(X[:200], y[:200])
    old = X[:200], y[:200]
    found = monitor(model, X[200:], y[200:] + 1, old=old, refit=True)
    whole = AtomicRegressor(alpha=0.05).fit(X, np.append(y[:200], y[200:] + 1))
    assert "a re-fit pays" in str(found)
    np.testing.assert_allclose(found.model.coef_, whole.coef_, atol=1e-3)
    assert list(found.model.feature_names_in_) == list(X.columns)
    assert monitor(model, X[200:203], y[200:203], old=old, refit=True).model is None


def test_what_cannot_be_said_is_refused() -> None:
    X, y = rows(8)
    model = AtomicRegressor(alpha=0.1).fit(X, y)
    kept = keep(model, X, y)
    with pytest.raises(ValueError, match="something of the old rows"):
        monitor(model, X[:5], y[:5])
    with pytest.raises(ValueError, match="another fit"):
        monitor(AtomicRegressor(alpha=0.2).fit(X, y), X[:5], y[:5], kept)
    with pytest.raises(ValueError, match="needs the old rows"):
        monitor(model, X[:5], y[:5], kept, refit=True)
    with pytest.raises(ValueError, match="30 features"):
        monitor(model, X[:5, :4], y[:5], kept)
    with pytest.raises(ValueError, match="smooth loss"):
        keep(AtomicRegressor(loss="quantile", alpha=0.1, tol=1e-2).fit(X, y), X, y)
    with pytest.raises(TypeError, match="fitted models of ours"):
        keep(Lasso(), X, y)
    labels = y > 2
    classes = AtomicClassifier(alpha=0.05).fit(X, labels)
    kept = keep(classes, X, labels)
    assert monitor(classes, X[labels][:9], labels[labels][:9], kept).gap < 0.2  # one class only
    with pytest.raises(ValueError, match="knows two classes"):
        monitor(classes, X[:2], ["no", "yes"], kept)
