"""Full conformal intervals against another solver, target by target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, SubsetRegressor
from atomlearn.findings import full_conformal


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n + 2, p))
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(n + 2)


@pytest.mark.parametrize("p", [6, 60])
def test_the_interval_holds_the_targets_that_conform_and_ends_where_they_do(p: int) -> None:
    n, share, alpha = 29, 0.8, 0.15
    X, y = data(n, p)

    def conforms(new: int, target: float) -> bool:
        rows = np.append(np.arange(n), new)
        both = np.append(y[:n], target)
        fit = Lasso(alpha, tol=1e-12, max_iter=100_000).fit(X[rows], both)
        left = np.abs(both - fit.predict(X[rows]))
        return bool(np.sum(left >= left[-1] * (1 - 1e-7)) > 6)  # a fifth of 30

    model = AtomicRegressor(alpha=alpha).fit(X[:n], y[:n])
    ends = np.transpose(full_conformal(model, X[:n], y[:n], X[n:], share))
    for new, (low, high) in enumerate(ends, n):
        width = high - low
        inside = [t for t in np.linspace(low - width, high + width, 61) if conforms(new, t)]
        assert low - 1e-9 <= min(inside) < max(inside) <= high + 1e-9
        assert conforms(new, low + 1e-6)
        assert conforms(new, high - 1e-6)
        assert not conforms(new, low - 1e-6)
        assert not conforms(new, high + 1e-6)
    sparse = full_conformal(model, sp.csr_array(X[:n]), y[:n], sp.csr_array(X[n:]), share)
    np.testing.assert_allclose(np.transpose(sparse), ends, rtol=1e-8)


def test_covariates_are_named_in_tables() -> None:
    X, y = data(29, 6)
    table = pd.DataFrame(X).add_prefix("g")
    ends = [
        full_conformal(AtomicRegressor(alpha=0.2, unpenalized=free).fit(x, y), x, y, x[:2])
        for x, free in ((X, [3]), (table, ["g3"]))
    ]
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-12)


def test_more_than_the_rows_can_tell_has_no_bound_and_other_models_are_refused() -> None:
    X, y = data(29, 6)
    fitted = AtomicRegressor(alpha=0.2).fit(X, y)
    assert np.isinf(full_conformal(fitted, X, y, X[:1], 0.99)).all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        full_conformal(fitted, X, y, X[:1], 90)
    for other in (
        AtomicClassifier(alpha=0.05),
        AtomicRegressorCV(n_alphas=3),
        SubsetRegressor(2, standardize=True),
    ):
        target = y > 0 if isinstance(other, AtomicClassifier) else y
        with pytest.raises(ValueError, match="l1"):
            full_conformal(other.fit(X, target), X, target, X[:1])
