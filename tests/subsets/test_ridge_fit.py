"""ridge_fit: the minimum to a relative accuracy, against formulas and digits of their own."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from atomlearn import losses
from atomlearn.subsets.result import SubsetStatus
from benchmarks.subsets.brute_force import Drawn, fitted
from tests.oracles.subset_sums import subset_sum


def exact_ridge(X: Any, y: Any, ridge: float) -> mpmath.mpf:
    """Return the least value of 1/2 ||y - X w||^2 + ridge/2 ||w||^2, to 60 digits."""
    with mpmath.workdps(60):
        A, b = mpmath.matrix(X.tolist()), mpmath.matrix(y.tolist())
        kernel = A * A.T / mpmath.mpf(ridge) + mpmath.eye(len(y))
        return (b.T * mpmath.lu_solve(kernel, b))[0] / 2


def whole(X: Any, y: Any, **given: Any) -> Any:
    """Return the fit of all columns, which are the only subset."""
    return subset_sum(X, y, n_features=X.shape[1], **given)


@pytest.mark.parametrize("seed", range(12))
def test_columns_of_all_lengths_and_few_rows(seed: int) -> None:
    # Longer columns swallow shorter ones in a Gram matrix, and one row makes it singular.
    rng = np.random.default_rng(seed)
    n, p = 1 + seed % 3, int(rng.integers(2, 6))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-5, 5, p)
    y, ridge = rng.standard_normal(n), float(10.0 ** rng.uniform(-6, 3))
    result, best = whole(X, y, ridge=ridge), exact_ridge(X, y, ridge)
    # An objective of 1e-16 of the loss at zero may be hidden by rounding: then the gap says so.
    if best > 1e-12 * float(y @ y):
        assert result.status is SubsetStatus.OPTIMAL
    assert result.status in (SubsetStatus.OPTIMAL, SubsetStatus.ROUNDING)
    assert abs(float(result.objective / best - 1)) <= max(1e-9, result.gap)
    assert result.lower_bound <= best * (1 + mpmath.mpf(1e-14))


@pytest.mark.parametrize("ridge", [1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize("loss", ["squared", losses.Huber(1.345)], ids=["squared", "huber"])
def test_what_one_column_explains_in_full_is_fitted_to_a_share_of_the_objective(
    loss: Any, ridge: float
) -> None:
    # The objective is 1e-10 of the loss at zero, and less.
    for seed in range(10):
        x = np.random.default_rng(seed).standard_normal((40, 1))
        result = whole(x, 2.0 * x[:, 0], ridge=ridge, loss=loss)
        best = exact_ridge(x, 2.0 * x[:, 0], ridge)
        assert result.status is SubsetStatus.OPTIMAL
        assert result.lower_bound <= float(best) * (1 + 1e-12)
        assert result.objective <= float(best) * (1 + 1e-4)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "poisson", "huber", "squared"])
@pytest.mark.parametrize("kind", ["plain", "intercept", "free"])
def test_every_loss_reaches_the_accuracy(loss: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 4)) * [1.0, 0.01, 100.0, 3.0]
    X[:, 3] = X[:, 0] + 1e-4 * X[:, 3]
    signal = 2.0 * X[:, 0] + rng.standard_normal(40)
    y: Any = signal * (10.0 if loss == "huber" else 1.0)
    if loss in ("logistic", "squared_hinge"):
        y = np.sign(signal)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(signal, -3, 3))).astype(float)
    given: dict[str, Any] = {"ridge": 1e-3, "fit_intercept": kind == "intercept"}
    columns, free = [0, 1, 2, 3], []
    if kind == "free":
        given["unpenalized"], columns, free = [1], [0, 2, 3], [1]
    result = subset_sum(
        X, y, n_features=len(columns), loss=losses.Huber(1.0) if loss == "huber" else loss, **given
    )
    best = fitted(Drawn(X, y, loss, given, [], free), columns)
    assert result.objective == pytest.approx(best, rel=1e-8)
    assert result.gap <= 1e-9


def test_a_fit_that_falls_to_zero_at_infinity_ends() -> None:
    # A free column and the intercept explain three counts: e^z falls to 0 for two of them.
    X = np.array([[2.2, -0.2, -2.2, -0.9], [0.0, -0.2, 0.9, 0.8], [0.1, -1.9, -0.7, 0.6]])
    given: dict[str, Any] = {"sample_weight": np.array([0.15, 0.1, 0.09]), "unpenalized": [3]}
    result = subset_sum(
        X,
        np.array([0.0, 5.0, 0.0]),
        n_features=3,
        ridge=0.66,
        loss="poisson",
        fit_intercept=True,
        **given,
    )
    assert result.status is SubsetStatus.PERFECT_FIT
    assert result.fitted.converged
    assert result.objective <= 1e-18
    assert result.nodes <= 3
