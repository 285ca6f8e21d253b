"""Best subsets do not depend on units, on orders, nor on how weights and numbers are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import SubsetRegressor, losses
from atomlearn.subsets.result import SubsetResult
from atomlearn.subsets.solve import subset_problem, usual_ridge
from tests.oracles.subset_sums import subset_sum


def table(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 9))
    return X, X[:, :3] @ rng.standard_normal(3) + rng.standard_normal(40)


def same(one: SubsetResult, other: SubsetResult, factor: float, order: Any = None) -> None:
    """Assert that two results say the same, objectives being ``factor`` times as large."""
    number = (lambda columns: columns) if order is None else (lambda c: np.sort(order[c]))
    assert number(other.columns).tolist() == one.columns.tolist()
    assert other.objective / factor == pytest.approx(one.objective, rel=1e-8)
    assert other.status is one.status
    assert other.gap <= 1e-4
    assert number(other.proved_in).tolist() == one.proved_in.tolist()
    assert number(other.open_columns).tolist() == one.open_columns.tolist()
    assert other.near_complete
    found = {tuple(number(each.columns)): each.objective / factor for each in other.near}
    assert found == pytest.approx(
        {tuple(each.columns): each.objective for each in one.near}, rel=1e-8
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("of_y", "of_X"),
    [
        *((10.0**power, 1.0) for power in (-100, -60, -20, -7, 7, 20, 60, 75)),
        *((1.0, 10.0**power) for power in (-100, -60, -20, -7, 7, 20, 60, 100)),
        (1e50, 1e50),
        (1e-50, 1e-50),
        (1e70, 1e-70),
    ],
)
def test_units_of_y_and_of_all_columns(
    of_y: float, of_X: float, seed: int, intercept: bool
) -> None:
    X, y = table(seed)
    given: dict[str, Any] = {"n_features": 3, "within": 0.05, "fit_intercept": intercept}
    plain = subset_sum(X, y, ridge=2.0, **given)
    other = subset_sum(of_X * X, of_y * y, ridge=2.0 * of_X**2, **given)
    same(plain, other, of_y**2)
    # The ridge that is taken for none has the units of X.
    usual = subset_sum(X, y, **given)
    same(usual, subset_sum(of_X * X, of_y * y, **given), of_y**2)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared_hinge"])
@pytest.mark.parametrize("of_X", [1e-100, 1e-8, 1e8, 1e100])
def test_units_of_columns_under_other_losses(loss: str, of_X: float) -> None:
    X, y = table()
    y = np.random.default_rng(0).poisson(np.exp(0.5 * y)) if loss == "poisson" else np.sign(y)
    given: dict[str, Any] = {"n_features": 2, "within": 0.05, "fit_intercept": True, "loss": loss}
    plain = subset_sum(X, y, ridge=2.0, **given)
    same(plain, subset_sum(of_X * X, y, ridge=2.0 * of_X**2, **given), 1.0)


@pytest.mark.parametrize("of_y", [1e-100, 1e-8, 1e8, 1e60])
def test_units_of_the_width_of_a_huber_loss(of_y: float) -> None:
    X, y = table()
    given: dict[str, Any] = {"n_features": 2, "within": 0.05, "fit_intercept": True, "ridge": 2.0}
    plain = subset_sum(X, y, loss=losses.Huber(0.7), **given)
    same(plain, subset_sum(X, of_y * y, loss=losses.Huber(0.7 * of_y), **given), of_y**2)


@pytest.mark.parametrize("scale", [1e-6, 0.1, 1e6])
def test_units_of_each_column_where_they_are_standardized(scale: float) -> None:
    X, y = table()
    units = scale ** np.random.default_rng(1).uniform(-1, 1, 9)
    plain, other = (
        SubsetRegressor(3, standardize=True).fit(X, y),
        SubsetRegressor(3, standardize=True).fit(X * units, y),
    )
    assert other.selected_.tolist() == plain.selected_.tolist()
    np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-6, atol=1e-9)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_orders_weights_and_storage(loss: str) -> None:
    X, y = table(4)
    X = X.astype(np.float32).astype(np.float64)
    y = y if loss == "squared" else np.sign(y)
    given: dict[str, Any] = {"n_features": 3, "within": 0.05, "fit_intercept": True, "loss": loss}
    plain = subset_sum(X, y, ridge=2.0, **given)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(40), rng.permutation(9)
    same(plain, subset_sum(X[rows], y[rows], ridge=2.0, **given), 1.0)
    same(plain, subset_sum(X[:, columns], y, ridge=2.0, **given), 1.0, columns)
    same(plain, subset_sum(X.astype(np.float32), y, ridge=2.0, **given), 1.0)
    twice = subset_sum(np.vstack([X, X]), np.append(y, y), ridge=4.0, **given)
    same(plain, twice, 2.0)
    double = subset_sum(X, y, ridge=4.0, sample_weight=np.full(40, 2.0), **given)
    same(twice, double, 1.0)
    more = subset_sum(X, y, ridge=2.0, sample_weight=np.arange(40) % 3.0, **given)
    again = np.repeat(np.arange(40), np.arange(40) % 3)
    same(more, subset_sum(X[again], y[again], ridge=2.0, **given), 1.0)


def ridge_of(X: Any, intercept: bool = True) -> float:
    y = np.random.default_rng(5).standard_normal(len(X))
    problem = subset_problem(X, y, 1, None, "squared", None, intercept, None, None, None)
    assert usual_ridge(problem) == problem.regularizer.amount
    return len(X) * problem.regularizer.amount


def test_the_usual_ridge_is_a_tenth_of_the_median_of_columns_that_vary() -> None:
    X = np.random.default_rng(0).standard_normal((30, 5)) * [0.1, 0.2, 0.3, 0.4, 0.5]
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    assert ridge_of(X) == pytest.approx(0.1 * np.median(squares), rel=1e-12)
    assert ridge_of(X, False) == pytest.approx(0.1 * np.median((X**2).sum(axis=0)), rel=1e-12)
    # A column of nothing, and one that the intercept explains, do not count.
    constant = np.column_stack([X, np.zeros((30, 2)), np.full((30, 4), 12345.678)])
    assert ridge_of(constant) == pytest.approx(0.1 * np.median(squares), rel=1e-12)
    assert ridge_of(np.column_stack([X, np.zeros((30, 2))]), False) == pytest.approx(
        0.1 * np.median((X**2).sum(axis=0)), rel=1e-12
    )
    assert ridge_of(np.zeros((30, 3))) > 0.0
