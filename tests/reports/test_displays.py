"""Displays draw what was fitted."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    StabilitySelector,
    norms,
    reports,
)
from atomlearn.testing.tolerances import SAME_FLOAT64

matplotlib.use("agg")
X, Y = load_diabetes(return_X_y=True)
Z = scale(X)


def test_every_display_draws_on_given_axes_and_keeps_what_it_drew() -> None:
    import matplotlib.pyplot as plt

    axes = plt.subplots(2, 5)[1].ravel()
    cv = AtomicRegressorCV(n_alphas=5, cv=3).fit(Z, Y)
    found = reports.PathDisplay.from_estimator(cv, Z, Y, ax=axes[0])
    assert found.ax_ is axes[0]
    assert found.coefficients.shape == (found.alphas.size, len(found.names))
    assert found.chosen == cv.alpha_
    found = reports.ValidationDisplay.from_estimator(cv, Z, Y, ax=axes[1])
    np.testing.assert_allclose(found.mean, cv.cv_results_["mean_test_score"])
    found = reports.ConvergenceDisplay.from_estimator(cv, Z, Y, ax=axes[2])
    assert found.ax_.lines[0].get_ydata()[-1] == cv.results_[0].history[-1].relative_gap
    found = reports.CoefficientDisplay.from_estimator(cv, Z, Y, ax=axes[3])
    np.testing.assert_allclose(
        np.abs(found.values[0, 0]), np.abs(cv.coef_).max(), rtol=SAME_FLOAT64
    )
    selector = StabilitySelector(AtomicRegressor(alpha=5.0), 4, random_state=0).fit(Z, Y)
    found = reports.StabilityDisplay.from_estimator(selector, ax=axes[4])
    assert found.probabilities[0] == selector.selection_probabilities_.max()
    data = load_breast_cancer()
    B = scale(data.data)
    model = AtomicClassifier(alpha=0.05).fit(B, data.target)
    found = reports.CalibrationDisplay.from_estimator(model, B, data.target, ax=axes[5])
    assert len(found.points) == 1
    groups = AtomicRegressor(norms.Groups([[0, 1], [2, 3], list(range(4, 10))]), 1.0).fit(Z, Y)
    found = reports.GroupsDisplay.from_estimator(groups, ax=axes[6])
    norms_of = [np.linalg.norm(groups.coef_[g]) for g in ([0, 1], [2, 3], list(range(4, 10)))]
    assert found.sizes[0] == pytest.approx(max(norms_of))
    products = AtomicRegressor(alpha=2.0, features="interactions").fit(Z, Y)
    found = reports.InteractionsDisplay.from_estimator(products, ax=axes[7])
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    links = sparse.csr_array(np.diag([1.0, -2.0]))
    found = reports.MatrixDisplay(links, ["a", "b"]).plot(ax=axes[9])
    np.testing.assert_array_equal(found.image_.get_array(), links.toarray())
    plt.close("all")


def test_what_cannot_be_drawn_is_told() -> None:
    model = AtomicRegressor(alpha=1.0).fit(Z, Y)
    with pytest.raises(TypeError, match="cross-validation"):
        reports.ValidationDisplay.from_estimator(model)
    with pytest.raises(TypeError, match="Ridge has no path"):
        reports.PathDisplay.from_estimator(Ridge().fit(Z, Y), Z, Y)
    with pytest.raises(TypeError, match="AtomicRegressor has no products"):
        reports.InteractionsDisplay.from_estimator(model)
    with pytest.raises(TypeError, match="no history of gaps"):
        reports.ConvergenceDisplay.from_estimator(Ridge().fit(Z, Y))


def test_all_targets_are_drawn_and_other_kinds_of_estimators_are_refused() -> None:
    data = load_diabetes(as_frame=True)
    X, both = data.data, np.c_[data.target, -data.target]
    model = AtomicRegressor(alpha=0.5).fit(X, both)
    drawn = reports.CoefficientDisplay.from_estimator(model, X)
    assert drawn.outputs == ["y[0]", "y[1]"]
    np.testing.assert_allclose(drawn.values[0], -drawn.values[1], rtol=1e-3)
    assert len(drawn.ax_.patches) == drawn.values.size
    with pytest.raises(TypeError, match="AtomicRegressor knows no shares of halves"):
        reports.StabilityDisplay.from_estimator(model)
    with pytest.raises(TypeError, match="AtomicRegressor tells no probabilities"):
        reports.CalibrationDisplay.from_estimator(model, X, both)
