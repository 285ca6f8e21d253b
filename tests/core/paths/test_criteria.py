"""AIC, BIC and EBIC: against scikit-learn's LassoLarsIC, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import comb
from sklearn.linear_model import LassoLarsIC, LogisticRegression
from sklearn.metrics import log_loss

from atomlearn import paths


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(80)


def test_choice_is_that_of_scikit_learn_for_known_noise(data: Any) -> None:
    X, y = data
    # Theirs knows the variance: -2 log L = n log(2 pi s) + RSS / s.
    theirs = LassoLarsIC(criterion="bic", noise_variance=1.0).fit(X, y)
    found = paths.path(X, y, alphas=theirs.alphas_[1:-1], tol=1e-12)
    rss = np.array([((y - r.predict(X)) ** 2).sum() for r in found.results])
    ours = paths.information_criterion(found, X, y, criterion="bic")
    known = ours - 80 * np.log(rss / 80) + 80 * np.log(2 * np.pi) + rss
    # A column that enters exactly at the kink may count or not.
    off = np.abs(known - theirs.criterion_[1:-1]) / np.log(80)
    assert_allclose(off, np.round(off), atol=1e-6)
    assert off.max() <= 1 + 1e-6
    between = (theirs.alphas_[:-1] + theirs.alphas_[1:]) / 2
    line = paths.path(X, y, alphas=between, tol=1e-12)
    count = [np.count_nonzero(r.coef) for r in line.results]
    value = paths.information_criterion(line, X, y, criterion="aic")
    rss = np.array([((y - r.predict(X)) ** 2).sum() for r in line.results])
    assert_allclose(value, 80 * np.log(rss / 80) + 2 * np.array(count))


def test_likelihoods_of_classes_and_the_number_of_models(data: Any) -> None:
    X, y = data
    labels = (y > 0).astype(int)
    found = paths.path(X, labels, loss="logistic", alphas=[0.1, 0.02], tol=1e-11)
    bic, ebic = (
        paths.information_criterion(found, X, labels, loss="logistic", criterion=name)
        for name in ("bic", "ebic")
    )
    for alpha, value in zip(found.alphas, bic, strict=True):
        options: dict[str, Any] = {"l1_ratio": 1.0, "solver": "saga", "tol": 1e-10}
        model = LogisticRegression(C=1 / (80 * alpha), max_iter=100_000, **options).fit(X, labels)
        fit = 2 * 80 * log_loss(labels, model.predict_proba(X))
        assert_allclose(value, fit + np.log(80) * np.count_nonzero(model.coef_), rtol=1e-5)
    assert_allclose(ebic - bic, 2 * np.log(comb(12, found.n_selected)))


def test_equal_rows_are_weights_and_offsets_are_added(data: Any) -> None:
    X, _ = data
    rng = np.random.default_rng(1)
    y, offset, weight = rng.poisson(2.0, 80), rng.standard_normal(80), rng.integers(1, 4, 80)
    options: dict[str, Any] = {"loss": "poisson", "alphas": [0.2, 0.05], "tol": 1e-10}
    one = paths.path(X, y, sample_weight=weight, offset=offset, **options)
    rows = np.repeat(np.arange(80), weight)
    other = paths.path(X[rows], y[rows], offset=offset[rows], **options)
    found = [
        paths.information_criterion(one, X, y, loss="poisson", sample_weight=weight, offset=offset),
        paths.information_criterion(other, X[rows], y[rows], loss="poisson", offset=offset[rows]),
    ]
    assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "huber"}, "a loss that is a likelihood"),
        ({"criterion": "cp"}, "criterion must be one of"),
        ({"gamma": 2.0}, "gamma must be above 0"),
    ],
)
def test_what_has_no_likelihood_is_refused(data: Any, given: Any, message: str) -> None:
    X, y = data
    found = paths.path(X, y, n_alphas=3)
    with pytest.raises(ValueError, match=message):
        paths.information_criterion(found, X, y, **given)
    with pytest.raises(ValueError, match="X has 5 columns"):
        paths.information_criterion(found, X[:, :5], y)
