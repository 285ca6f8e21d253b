"""Information criteria by their formulas, and what they choose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LassoLarsIC
from sklearn.metrics import mean_poisson_deviance

from atomlearn import paths
from atomlearn.core.paths.criteria import CRITERIA, Criterion

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 30))


def test_least_squares_are_those_of_scikit_learn_but_for_a_constant() -> None:
    y = X[:, 0] - X[:, 1] + rng.standard_normal(120)
    found = paths.path(X, y, n_levels=10, intercept=True, gap=1e-10)
    squares = np.array([np.sum((y - r.predict(X)) ** 2) for r in found.results])
    expected = 120 * np.log(squares / 120) + found.n_selected * np.log(120)
    received = paths.information_criterion(found, X, y, "bic")
    np.testing.assert_allclose(received, expected, rtol=1e-10)
    # scikit-learn fixes the variance at that of all columns: the choice is much the same.
    other = LassoLarsIC("bic").fit(X, y)
    chosen = found.results[int(np.argmin(received))]
    assert {0, 1} <= set(chosen.columns.tolist())
    assert abs(chosen.columns.size - np.count_nonzero(other.coef_)) <= 3


def test_counts_have_their_deviance() -> None:
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    found = paths.path(X, y, loss="poisson", n_levels=5, intercept=True)
    received = paths.information_criterion(found, X, y, "aic", loss="poisson")
    deviances = [120 * mean_poisson_deviance(y, np.exp(r.predict(X))) for r in found.results]
    np.testing.assert_allclose(received, np.array(deviances) + 2 * found.n_selected, rtol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_true_columns_are_found(criterion: Criterion) -> None:
    y = 2 * X[:, 0] - 2 * X[:, 1] + rng.standard_normal(120)
    found = paths.path(X, y, n_levels=30, intercept=True)
    best = found.results[int(np.argmin(paths.information_criterion(found, X, y, criterion)))]
    assert {0, 1} <= set(best.columns.tolist())


def test_prices_rise_with_the_number_of_columns() -> None:
    y = X[:, 0] + rng.standard_normal(120)
    found = paths.path(X, y, n_levels=5, intercept=True)
    bic, ebic, mbic = (paths.information_criterion(found, X, y, c) for c in ("bic", "ebic", "mbic"))
    assert np.all(ebic >= bic)
    assert np.all(mbic >= bic)
    zero = paths.information_criterion(found, X, y, "ebic", gamma=0.0)
    np.testing.assert_allclose(zero, bic)
    with pytest.raises(ValueError, match="criterion must be one of"):
        paths.information_criterion(found, X, y, "cic")  # type: ignore[arg-type]
