"""Intervals of predictions against their definition, by fits that are made again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneOut

from atomlearn import (
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    AtomicSurvivalCV,
)
from atomlearn.losses import survival_target


def data(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(n)


@pytest.mark.parametrize("cv", [KFold(4), LeaveOneOut()])
@pytest.mark.parametrize("relax", [0.0, 1.0])
def test_ends_are_those_of_cv_plus(cv: object, relax: float) -> None:
    X, y = data()
    new = data(7, 1)[0]
    model = AtomicRegressorCV(n_alphas=5, cv=cv, relax=relax, tol=1e-9).fit(X, y)
    again = AtomicRegressor(alpha=model.alpha_, relax=relax, tol=1e-9)
    low, high = [], []
    for train, test in cv.split(X):
        fold = clone(again).fit(X[train], y[train])
        far = np.abs(y[test] - fold.predict(X[test]))[:, None]
        low.append(fold.predict(new) - far)
        high.append(fold.predict(new) + far)
    low, high = np.sort(np.vstack(low), axis=0), np.sort(np.vstack(high), axis=0)
    count = math.ceil(0.8 * 61)
    prediction, lower, upper = model.predict(new, interval=0.8)
    np.testing.assert_allclose(upper, high[count - 1], atol=1e-5)
    np.testing.assert_allclose(lower, low[60 - count], atol=1e-5)
    np.testing.assert_array_equal(prediction, model.predict(new))
    # More than n / (n + 1) of new rows cannot be promised from n.
    assert np.isinf(model.predict(new, interval=0.99)[2]).all()


def test_one_split_gives_the_split_conformal_interval() -> None:
    X, y = data()
    train, test = np.arange(40), np.arange(40, 60)
    model = AtomicRegressorCV(n_alphas=5, cv=[(train, test)], refit=False).fit(X, y)
    prediction, lower, upper = model.predict(X[:5], interval=0.75)
    far = np.sort(np.abs(y[test] - model.predict(X[test])))[math.ceil(0.75 * 21) - 1]
    np.testing.assert_allclose(upper - prediction, far, rtol=1e-5)
    np.testing.assert_allclose(prediction - lower, far, rtol=1e-5)


def test_a_group_counts_once_and_rows_without_weight_do_not() -> None:
    X, y = data()
    rows = np.concatenate([np.arange(60), np.repeat(59, 15)])
    groups = np.minimum(np.arange(75), 59)
    model = AtomicRegressorCV(n_alphas=4).fit(X[rows], y[rows], groups=groups)
    known = model._out_of_fold
    assert known.mass.sum() == pytest.approx(60 / 61)
    assert known.mass[known.rows >= 59].sum() == pytest.approx(1 / 61)
    weight = np.ones(60)
    weight[::2] = 0.0
    half = AtomicRegressorCV(n_alphas=4).fit(X, y, sample_weight=weight)._out_of_fold
    assert np.sort(half.rows).tolist() == list(range(1, 60, 2))


def test_offsets_and_counts() -> None:
    X, _ = data(200)
    exposure = np.random.default_rng(3).uniform(0, 2, 200)
    counts = np.random.default_rng(2).poisson(np.exp(0.4 * X[:, 0] + exposure)).astype(float)
    model = AtomicRegressorCV(n_alphas=5, loss="poisson").fit(X, counts, offset=exposure)
    prediction, lower, upper = model.predict(X, exposure, interval=0.9)
    assert (lower >= 0).all()
    assert 0.85 < ((lower <= counts) & (counts <= upper)).mean() < 0.97
    # Where more is expected the error is larger, in units of its root.
    wide = upper - lower
    far = prediction > 4
    assert wide[far].mean() > 1.3 * wide[prediction < 1.5].mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_of_labels_hold_their_share_and_follow_the_definition(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((1500, 6))
    decisions = 2 * X[:, :n_classes] + rng.gumbel(size=(1500, n_classes))
    y = np.array(["a", "b", "c"])[decisions.argmax(axis=1)]
    model = AtomicClassifierCV(n_alphas=5, tol=1e-9).fit(X[:300], y[:300])
    labels, found = model.predict(X[300:], interval=0.8)
    codes = np.searchsorted(model.classes_, y[300:])
    assert found[np.arange(1200), codes].mean() == pytest.approx(0.8, abs=0.05)
    assert found.sum(axis=1).std() > 0.2
    # One row, by fits made again: u is known only to the bits of a decision, so the sure part.
    known = model._out_of_fold
    assert known.scores.min() >= 0
    assert known.scores.max() <= 1 + 1e-12
    hard = np.sort(model.predict_proba(X[300:]), axis=1)[:, -1] < 0.5 + 0.2 * (n_classes == 2)
    assert found[hard].sum(axis=1).mean() > found[~hard].sum(axis=1).mean() + 0.1
    np.testing.assert_array_equal(labels, model.predict(X[300:]))
    # The same row has the same set wherever it is asked for.
    np.testing.assert_array_equal(model.predict(X[310:312], interval=0.8)[1], found[10:12])


def hazard_of(times: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """Breslow's cumulative hazard at each of the times, at all of which there are events."""
    shares = [np.sum(times == t) / np.exp(risk[times >= t]).sum() for t in times]
    return np.array([sum(s for s, u in zip(shares, times, strict=True) if u <= t) for t in times])


def test_the_lower_bound_of_times_is_that_of_cv_plus_in_units_of_hazard() -> None:
    """All events are seen. Fits made again; hazards, and what is between events, by hand."""
    X, new = data(50)[0], data(6, 1)[0]
    times = np.random.default_rng(4).exponential(np.exp(-X[:, 0]))
    y, folds = survival_target(np.ones(50, bool), times), KFold(4)
    model = AtomicSurvivalCV(alphas=[0.05], cv=folds, tol=1e-9).fit(X, y)
    own, there = np.empty(50), np.empty((6, 50))
    for train, test in folds.split(X):
        fold = AtomicSurvival(alpha=0.05, tol=1e-9).fit(X[train], y[train])
        middle = fold.predict(X).mean()
        own[test] = fold.predict(X[test]) - middle
        there[:, test] = fold.predict(new)[:, None] - middle
    hazard = hazard_of(times, own)
    bounds = np.sort(np.log(hazard) + own - there, axis=1)[:, math.floor(0.2 * 51) - 1]
    order = np.argsort(times)
    expected = np.interp(np.exp(bounds), [0, *hazard[order]], [0, *times[order]])
    risk, lower = model.predict(new, interval=0.8)
    np.testing.assert_allclose(lower, expected, rtol=1e-4)
    np.testing.assert_array_equal(risk, model.predict(new))


def test_the_lower_bound_of_times_is_held_where_the_risk_tells_who_leaves() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((3000, 8))
    times, left = rng.exponential(np.exp(-X[:, 0])), rng.exponential(0.7 * np.exp(-X[:, 0]))
    y = survival_target(times <= left, np.minimum(times, left))
    model = AtomicSurvivalCV(n_alphas=5, tol=1e-4).fit(X[:500], y[:500])
    assert np.mean(times[500:] >= model.predict(X[500:], interval=0.8)[1]) == pytest.approx(
        0.8, abs=0.04
    )
    # Without columns an event stands for one over the share of Kaplan and Meier that had not left.
    known = AtomicSurvivalCV(alphas=[9.0]).fit(X[:500], y[:500])._out_of_fold
    order, share = np.argsort(y["time"][:500]), 1.0
    stands = 501 * known.mass[np.argsort(known.rows)]
    for n_left, row in zip(range(500, 50, -1), order, strict=False):
        if y["event"][row]:
            assert stands[row] == pytest.approx(1 / share, rel=0.02)
        else:
            share *= 1 - 1 / n_left
    assert stands.mean() == pytest.approx(1)
    late = survival_target(y["event"], y["time"], entry=np.where(np.arange(3000) < 9, 0.0, -1.0))
    with pytest.raises(ValueError, match="late entries"):
        AtomicSurvivalCV(n_alphas=3).fit(X[:99], late[:99]).predict(X, interval=0.9)


def test_what_has_no_interval_says_so() -> None:
    X, y = data()
    model = AtomicRegressorCV(n_alphas=3).fit(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict(X, interval=90)
    hinge = AtomicClassifierCV(n_alphas=3, loss="squared_hinge").fit(X, y > 0)
    with pytest.raises(ValueError, match="has no intervals"):
        hinge.predict(X, interval=0.9)


def test_a_model_without_columns_has_an_interval_about_its_constant() -> None:
    X, y = data()
    prediction, lower, upper = AtomicRegressorCV(alphas=[100.0]).fit(X, y).predict(X, interval=0.9)
    assert np.ptp(prediction) == 0
    assert 0.8 < ((lower <= y) & (y <= upper)).mean() < 1
