"""Fits without a penalty are those of scikit-learn's generalized linear models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import d2_pinball_score, d2_tweedie_score

from atomlearn import AtomicRegressor
from atomlearn.losses import NegativeBinomial, Quantile, Tweedie

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 4))
MEAN = np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1] + 1.0)
TARGETS = {
    "poisson": rng.poisson(MEAN).astype(float),
    "gamma": rng.gamma(2.0, MEAN / 2.0),
    "tweedie": np.where(rng.random(150) < 0.3, 0.0, rng.gamma(2.0, MEAN / 2.0)),
}
OTHERS = {
    "poisson": PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky"),
    "gamma": GammaRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky"),
    "tweedie": TweedieRegressor(
        power=1.5, link="log", alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky"
    ),
}
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
WEIGHT = rng.integers(1, 4, 150).astype(float)


@pytest.mark.parametrize("name", TARGETS)
def test_unpenalized_fits_are_those_of_scikit_learn(name: str) -> None:
    y = TARGETS[name]
    loss = Tweedie(1.5) if name == "tweedie" else name
    free = AtomicRegressor(loss=loss, unpenalized=[0, 1, 2, 3], tol=1e-12).fit(X, y, WEIGHT)
    other = OTHERS[name].fit(X, y, WEIGHT)
    assert_allclose(free.coef_, other.coef_, atol=1e-8)
    assert free.intercept_ == pytest.approx(other.intercept_, abs=1e-8)
    assert_allclose(free.predict(X), other.predict(X), rtol=1e-7)
    assert_allclose(np.log(free.predict(X)), free.decision_function(X), atol=1e-12)
    assert free.score(X, y) == pytest.approx(
        d2_tweedie_score(y, free.predict(X), power=POWERS[name])
    )


@pytest.mark.parametrize("loss", ["poisson", "negative binomial"])
def test_fits_of_counts_with_an_exposure_solve_the_equations_of_likelihood(loss: str) -> None:
    """As those of statsmodels do: sum_i (y_i - m_i) x_i / (1 + m_i / shape) = 0."""
    exposure, shape = rng.uniform(0.5, 5.0, 150), np.inf if loss == "poisson" else 2.0
    mean = MEAN * exposure
    y = rng.poisson(mean) if loss == "poisson" else rng.negative_binomial(2, 2 / (2 + mean))
    given = "poisson" if loss == "poisson" else NegativeBinomial(2.0)
    free = AtomicRegressor(loss=given, unpenalized=[0, 1, 2, 3], tol=1e-12)
    free.fit(X, y.astype(float), offset=np.log(exposure))
    m = exposure * np.exp(X @ free.coef_ + free.intercept_)
    ones = np.column_stack([np.ones(150), X])
    assert_allclose(ones.T @ ((y - m) / (1.0 + m / shape)), 0.0, atol=1e-5)


def test_quantiles_are_those_of_scikit_learn() -> None:
    y = X[:, 0] + rng.standard_t(3, 150)
    model = AtomicRegressor(alpha=0.02, loss=Quantile(0.8), tol=1e-10).fit(X, y)
    other = QuantileRegressor(quantile=0.8, alpha=0.02, solver="highs").fit(X, y)
    objectives = [
        np.mean(np.maximum(0.8 * (y - z), -0.2 * (y - z))) + 0.02 * np.abs(w).sum()
        for z, w in ((model.predict(X), model.coef_), (other.predict(X), other.coef_))
    ]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-8)
    assert model.objective_ == pytest.approx(objectives[0], rel=1e-10)
    expected = d2_pinball_score(y, model.predict(X), alpha=0.8)
    assert model.score(X, y) == pytest.approx(expected, abs=2e-3)
