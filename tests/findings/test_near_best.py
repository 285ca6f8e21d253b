"""Ranges of coefficients over all near-best models, against another solver and random models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    SubsetClassifier,
    SubsetRegressor,
    solve_subset,
)
from atomlearn.findings import near_best
from atomlearn.norms import L1, Groups, KSupport

cvxpy = pytest.importorskip("cvxpy")


def table(seed: int = 0, n: int = 40, p: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, X[:, 0] - 0.8 * X[:, 3] + 0.6 * rng.standard_normal(n)


def ranges_by_cvxpy(X: Any, y: Any, loss: str, penalty: Any, within: float, bounds: Any) -> Any:
    """Return the smallest and the largest near-best value of each coefficient, (p, 2)."""
    n, p = X.shape
    w, b = cvxpy.Variable(p), cvxpy.Variable()
    z = X @ w + b
    fit = cvxpy.sum_squares(y - z) / 2 if loss == "squared" else cvxpy.sum(
        cvxpy.logistic(-cvxpy.multiply(y, z))
    )  # fmt: skip
    objective = fit + n * penalty(w)
    best = cvxpy.Problem(cvxpy.Minimize(objective), bounds(w)).solve(solver="CLARABEL")
    near = [objective <= (1.0 + within) * best, *bounds(w)]
    return np.array(
        [[cvxpy.Problem(side(w[j]), near).solve(solver="CLARABEL") for side in SIDES] for j in FEW]
    )


FEW = [0, 1, 3, 8]
SIDES = (cvxpy.Minimize, cvxpy.Maximize)
WEIGHTS = np.linspace(0.5, 2.0, 12)
LOWER = np.array([0.0, -np.inf] * 6)
CASES: dict[str, tuple[str, dict[str, Any], Any, Any]] = {
    "lasso": (
        "squared", {"alpha": 0.1},
        lambda w: 0.1 * cvxpy.norm1(w), lambda w: [],
    ),
    "elastic net": (
        "squared", {"alpha": 0.2, "l1_ratio": 0.5},
        lambda w: 0.1 * cvxpy.norm1(w) + 0.05 * cvxpy.sum_squares(w), lambda w: [],
    ),
    "weights": (
        "squared", {"alpha": 0.1, "norm": L1(weights=WEIGHTS)},
        lambda w: 0.1 * WEIGHTS @ cvxpy.abs(w), lambda w: [],
    ),
    "bounds": (
        "squared", {"alpha": 0.05, "norm": L1(lower=LOWER, upper=np.full(12, 0.5))},
        lambda w: 0.05 * cvxpy.norm1(w), lambda w: [w[::2] >= 0, w <= 0.5],
    ),
    "logistic": (
        "logistic", {"alpha": 0.05},
        lambda w: 0.05 * cvxpy.norm1(w), lambda w: [],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", CASES)
def test_ranges_are_those_of_another_solver(name: str) -> None:
    loss, settings, penalty, bounds = CASES[name]
    X, y = table()
    y = y if loss == "squared" else np.sign(y)
    kind = AtomicRegressor if loss == "squared" else AtomicClassifier
    model = kind(**settings).fit(X, y)
    found = near_best(model, X, y, within=0.03, columns=FEW)
    assert found.columns[found.tight].tolist() == FEW
    found = replace(found, ranges=found.ranges.at(FEW))
    expected = ranges_by_cvxpy(X, y, loss, penalty, 0.03, bounds)
    low, high = expected.T
    off = 0.03 * (high - low) + 1e-5
    assert np.all(found.ranges.lower <= low + 1e-5)
    assert np.all(found.ranges.lower >= low - off)
    assert np.all(found.ranges.upper >= high - 1e-5)
    assert np.all(found.ranges.upper <= high + off)
    assert np.all(found.ranges.least >= low - 1e-5)
    assert np.all(found.ranges.most <= high + 1e-5)
    # Without fits, one dual point bounds them, too.
    far = near_best(model, X, y, within=0.03, columns=[])
    assert not far.tight.any()
    far = replace(far, ranges=far.ranges.at(FEW))
    assert np.all(far.ranges.lower <= low + 1e-5)
    assert np.all(far.ranges.upper >= high - 1e-5)
    assert np.any(far.ranges.upper < 3.0 * high + 1e-5)


GROUPED = [[3 * g, 3 * g + 1, 3 * g + 2] for g in range(4)]


@pytest.mark.parametrize(
    ("norm", "form"),
    [
        (Groups(GROUPED), "penalized"),
        (KSupport(3), "squared"),
        (KSupport(3), "penalized"),
        ("l1", "squared"),
    ],
)
def test_ranges_of_other_norms_contain_all_near_models(norm: Any, form: Any) -> None:
    X, y = table(1)
    model = AtomicRegressor(norm, 0.1, form=form).fit(X, y)
    found = near_best(model, X, y, within=0.05)
    gauge = AtomicRegressor(norm).norm
    rng = np.random.default_rng(0)
    value = L1() if gauge == "l1" else gauge

    def objective(w: Any) -> float:
        r = y - X @ w
        g = value.value(w)
        return 0.5 * float(np.mean((r - r.mean()) ** 2)) + 0.1 * (
            g if form == "penalized" else g * g / 2
        )

    best = objective(model.coef_)
    assert found.objective == pytest.approx(best, rel=1e-4)
    reached = np.zeros((12, 2))
    for _ in range(300):
        way = rng.standard_normal(12) * (rng.random(12) < rng.choice([0.1, 0.5]))
        length = 10.0
        while objective(model.coef_ + length * way) > 1.05 * best:
            length *= 0.8
        w = model.coef_ + length * way
        reached = np.column_stack([np.minimum(reached[:, 0], w), np.maximum(reached[:, 1], w)])
        at = found.columns
        assert np.all(found.ranges.lower <= w[at] + 1e-9)
        assert np.all(found.ranges.upper >= w[at] - 1e-9)
    assert found.tight.all()
    assert np.all(
        found.ranges.upper - found.ranges.lower < 5.0 * np.ptp(reached[found.columns], axis=1)
    )


def test_units_names_covariates_and_weights() -> None:
    X, y = table(2)
    weight = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    frame = pd.DataFrame(X * np.linspace(0.1, 10.0, 12), columns=list("abcdefghijkl"))
    model = AtomicRegressor(alpha=0.1, standardize=True, unpenalized=["b"])
    model.fit(frame, y, sample_weight=weight)
    found = near_best(model, frame, y, weight)
    assert "b" not in found.names
    at = found.columns
    coef = model.coef_[at]
    assert np.all((found.ranges.lower <= coef) & (coef <= found.ranges.upper))
    np.testing.assert_allclose(found.values, coef, atol=1e-4 * np.abs(coef).max())
    # Rows that are repeated as often as their weights say are the same problem.
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    long = frame.iloc[rows].reset_index(drop=True)
    again = near_best(clone_fit(model, long, y[rows]), long, y[rows])
    tight = found.tight
    width = (found.ranges.upper - found.ranges.lower)[tight]
    for one, other in [
        (found.ranges.lower, again.ranges.lower),
        (found.ranges.upper, again.ranges.upper),
    ]:
        assert np.all(np.abs(one - other)[tight] <= 0.05 * width)
    assert {"name", "lower", "upper"} <= set(found.to_frame().columns)
    assert "says nothing about other rows" in str(found)


def clone_fit(model: Any, X: Any, y: Any) -> Any:
    return AtomicRegressor(alpha=0.1, standardize=True, unpenalized=["b"]).fit(X, y)


@pytest.mark.parametrize("kind", [SubsetRegressor, SubsetClassifier])
def test_ranges_of_a_best_subset_are_those_of_its_result(kind: Any) -> None:
    X, y = table(4)
    y = y if kind is SubsetRegressor else np.where(y > 0, "yes", "no")
    model = kind(2, within=0.1, standardize=True, unpenalized=[7]).fit(X, y)
    found = near_best(model, X, y, within=0.1)
    models = model.result_.near_models
    assert found.complete == models.complete
    assert found.columns.tolist() == models.columns.tolist()
    # The ranges are per unit of the data: those of columns that are scaled by hand, divided.
    scales = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / scales
    labels = y if kind is SubsetRegressor else np.where(y == "yes", 1.0, -1.0)
    loss = "squared" if kind is SubsetRegressor else "logistic"
    by_hand = solve_subset(
        scaled, labels, n_features=2, l2=model.l2_, loss=loss, unpenalized=[7], within=0.1
    ).near_models
    assert by_hand.columns.tolist() == found.columns.tolist()
    for one, other in [
        (found.ranges.lower, by_hand.coefficients.lower),
        (found.ranges.upper, by_hand.coefficients.upper),
    ]:
        np.testing.assert_allclose(one, other / scales[models.columns], rtol=1e-4, atol=1e-6)
    rows = models.predictions(X[:3])
    expected = by_hand.predictions(scaled[:3])
    np.testing.assert_allclose(rows.lower, expected.lower, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(rows.upper, expected.upper, rtol=1e-4, atol=1e-6)
    assert set(models.in_all) <= set(found.columns)
    with pytest.raises(ValueError, match=r"fit it with within=0\.5"):
        near_best(model, X, y, within=0.5)


def test_what_has_no_ranges_is_refused() -> None:
    X, y = table()
    with pytest.raises(TypeError, match="convex model of ours"):
        near_best(AtomicRegressor(), X, y)
    with pytest.raises(ValueError, match="within"):
        near_best(AtomicRegressor(alpha=0.1).fit(X, y), X, y, within=-1.0)
