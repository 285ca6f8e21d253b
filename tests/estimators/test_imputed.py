"""Imputed: what scikit-learn's imputer before the estimator gives, in each of its ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator, Imputed, norms


def _data(seed: int, share: float = 0.15) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 8))
    y = X[:, 1] - 2 * X[:, 4] + 0.1 * rng.standard_normal(90)
    # Columns 0 and 6 have no gaps, so they get no flags.
    gaps = rng.random(X.shape) < share
    gaps[:, [0, 6]] = False
    return np.where(gaps, np.nan, X), y


def test_medians_are_those_of_a_pipeline() -> None:
    X, y = _data(0)
    new = _data(10)[0]
    model = AtomicRegressor(alpha=0.05)
    ours = Imputed(model, "median").fit(X, y)
    theirs = make_pipeline(SimpleImputer(strategy="median"), model).fit(X, y)
    assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-12)
    labels = Imputed(AtomicClassifier(alpha=0.05), "median").fit(X, y > 0)
    others = make_pipeline(SimpleImputer(strategy="median"), AtomicClassifier(alpha=0.05))
    others.fit(X, y > 0)
    assert_allclose(labels.predict_proba(new), others.predict_proba(new), rtol=1e-10)


def test_indicators_are_those_of_a_pipeline_and_go_with_their_values() -> None:
    X, y = _data(4)
    ours = Imputed(AtomicRegressor(alpha=0.05), "indicator").fit(X, y)
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    theirs = make_pipeline(imputer, AtomicRegressor(alpha=0.05)).fit(X, y)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    assert_array_equal(ours.groups_, [*range(8), 1, 2, 3, 4, 5, 7])
    generator = Imputed(FeatureGenerator(2, loss="squared"), "indicator").fit(X, y)
    by_hand = FeatureGenerator(2, loss="squared", groups=ours.groups_)
    by_hand.fit(imputer.fit_transform(X), y)
    assert_array_equal(generator.estimator_.get_support(), by_hand.get_support())
    chosen = np.unique(generator.groups_[generator.estimator_.get_support()])
    assert_array_equal(chosen, [1, 4])
    # A group whole: a value of a column with gaps never without its flag.
    assert generator.estimator_.get_support().sum() == 4


def test_dropped_rows_take_no_part_and_are_predicted_by_medians() -> None:
    X, y = _data(5, 0.05)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    ours = Imputed(AtomicRegressor(norms.L1(), 0.05), "drop").fit(X, y, sample_weight=weight)
    full = ~np.isnan(X).any(axis=1)
    theirs = AtomicRegressor(alpha=0.05).fit(X[full], y[full], sample_weight=weight[full])
    filled = SimpleImputer(strategy="median").fit(X).transform(X)
    assert_allclose(ours.predict(X), theirs.predict(filled), rtol=1e-12)
    with pytest.raises(ValueError, match="every row"):
        Imputed(AtomicRegressor(), "drop").fit(np.full((3, 1), np.nan), np.arange(3.0))
