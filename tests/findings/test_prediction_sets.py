"""Sets of predictions: of classes, of parts of the rows, of new rows unlike the old, of drift."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, reports
from atomlearn.estimators.prediction_sets import drift_along
from atomlearn.findings import prediction_sets

OLD, NEW = slice(0, 400), slice(400, 1400)


def rare_class(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1400, 5))
    z = X[:, 0] + 0.7 * X[:, 1] + rng.standard_normal(1400)
    return X, (z > np.quantile(z, 0.94)).astype(int)


def test_a_class_of_6_percent_has_its_own_share() -> None:
    alone, together = [], []
    for seed in range(8):
        X, y = rare_class(seed)
        search = AtomicClassifierCV(n_alphas=5).fit(X[OLD], y[OLD])
        rare = y[NEW] == 1
        together.append(search.predict(X[NEW], interval=0.9)[1][rare, 1].mean())
        held = prediction_sets(search, X[OLD], y[OLD], X[NEW], by="class")[1]
        alone.append(held[rare, 1].mean())
    assert np.mean(together) < 0.7  # what the sets of all rows hold of it,
    assert np.mean(alone) >= 0.88  # and what its own do


def test_a_part_of_the_rows_has_its_own_share() -> None:
    inside = {"all": [], "own": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, part = rng.standard_normal((1400, 5)), rng.random(1400) < 0.1
        y = X[:, 0] + rng.standard_normal(1400) * np.where(part, 3, 1)
        search = AtomicRegressorCV(n_alphas=5).fit(X[OLD], y[OLD])
        own = prediction_sets(search, X[OLD], y[OLD], X[NEW], by=(part[OLD], part[NEW]))
        for name, found in (("all", search.predict(X[NEW], interval=0.9)), ("own", own)):
            held = (found[1] <= y[NEW]) & (y[NEW] <= found[2])
            inside[name].append(held[part[NEW]].mean())
    assert np.mean(inside["all"]) < 0.7
    assert 0.85 <= np.mean(inside["own"]) <= 0.97


def test_rows_count_as_new_ones_are_like_them() -> None:
    inside = {False: [], True: []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1400, 4))
        X[NEW, 0] += 1.5
        y = X[:, 0] + np.exp(0.7 * X[:, 0]) * rng.standard_normal(1400)
        search = AtomicRegressorCV(n_alphas=5).fit(X[OLD], y[OLD])
        for shift in (False, True):
            _, low, high = prediction_sets(search, X[OLD], y[OLD], X[NEW], shift=shift)
            inside[shift].append(np.mean((low <= y[NEW]) & (y[NEW] <= high)))
    assert np.mean(inside[False]) < 0.75
    assert 0.84 <= np.mean(inside[True]) <= 0.97


def test_without_parts_the_sets_are_those_of_predict_and_a_part_of_one_row_says_nothing() -> None:
    X, y = rare_class(0)
    search = AtomicClassifierCV(n_alphas=5).fit(X[OLD], y[OLD])
    held = prediction_sets(search, X[OLD], y[OLD], X[NEW])[1]
    np.testing.assert_array_equal(held, search.predict(X[NEW], interval=0.9)[1])
    lone = np.arange(400) == 0, np.arange(1000) < 3
    held = prediction_sets(search, X[OLD], y[OLD], X[NEW], by=lone)[1]
    assert held[:3].all()
    with pytest.raises(ValueError, match="two arrays, of 400 and 1000 rows"):
        prediction_sets(search, X[OLD], y[OLD], X[NEW], by=(y[OLD], y[OLD]))
    with pytest.raises(ValueError, match="by='class'"):
        prediction_sets(search, X[OLD], y[OLD], X[NEW], by="class", shift=True)


def test_errors_that_grow_along_a_series_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    X, order = rng.standard_normal((200, 3)), np.arange(200)
    noise = rng.standard_normal(200)
    grows = AtomicRegressorCV(n_alphas=4).fit(X, X[:, 0] + (0.3 + order / 80) * noise, order=order)
    with pytest.warns(UserWarning, match="errors of held-out rows grow along order"):
        grows.predict(X, interval=0.9)
    same = AtomicRegressorCV(n_alphas=4).fit(X, X[:, 0] + noise, order=order)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same.predict(X, interval=0.9)


def test_drift_is_the_share_of_shifts_with_as_large_a_rank_correlation() -> None:
    rng = np.random.default_rng(1)
    errors = rng.random(30) + np.arange(30) / 40
    ranks = np.argsort(np.argsort(errors))
    each = [np.corrcoef(np.roll(ranks, k), np.arange(30))[0, 1] for k in range(30)]
    assert drift_along(errors) == pytest.approx(np.mean(np.array(each) >= each[0] - 1e-12))


def test_coverage_by_tenths_shows_where_intervals_say_too_much() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1400, 3))
    y = X[:, 0] + np.exp(X[:, 0]) * rng.standard_normal(1400)
    search = AtomicRegressorCV(n_alphas=5).fit(X[OLD], y[OLD])
    shown = reports.CoverageDisplay.from_estimator(search, X[NEW], y[NEW])
    assert shown.shares.size == 10
    assert shown.shares[-1] < 0.75 < 0.95 < shown.shares[0]
    few = reports.CoverageDisplay.of_errors(y[:60], X[:60, 0])
    assert few.shares.size == 5
    assert np.mean(few.held) >= 0.9
