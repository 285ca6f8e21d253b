"""Bounds, weights of 0 and infinite weights of norms in the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
)
from atomlearn.norms import L1, Groups, Scaled
from tests.core.norms.test_bounded_groups import FREE, GROUPS, KEPT, WEIGHTS, drawn, reduced


def test_estimators_and_norms_made_of_groups():
    X, y = drawn()
    for inside, outside in (
        (Groups(GROUPS, WEIGHTS), reduced()),
        (Scaled(Groups(GROUPS, WEIGHTS), 2.0), reduced(2.0)),
    ):
        for make in (AtomicRegressor, AtomicClassifier):
            target = y if make is AtomicRegressor else y > 0
            found = make(inside, alpha=0.1, tol=1e-9).fit(X, target)
            one = make(outside, alpha=0.1, tol=1e-9, unpenalized=FREE).fit(X[:, KEPT], target)
            assert_allclose(np.ravel(found.coef_)[KEPT], np.ravel(one.coef_), atol=1e-4)
    search = AtomicRegressorCV(Groups(GROUPS, WEIGHTS), n_alphas=4, cv=3, tol=1e-8).fit(X, y)
    other = AtomicRegressorCV(reduced(), n_alphas=4, cv=3, tol=1e-8, unpenalized=FREE)
    other.fit(X[:, KEPT], y)
    assert_allclose(search.alphas_, other.alphas_, rtol=1e-9)
    assert_allclose(search.coef_[KEPT], other.coef_, atol=1e-4)


def test_estimators_and_names():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    X = pandas.DataFrame(rng.standard_normal((40, 3)), columns=["age", "dose", "gene"])
    y = X["dose"] - X["gene"] + rng.standard_normal(40)
    norm = L1({"age": 0.0, "dose": 2.0}, lower={"gene": -0.3})
    model = AtomicRegressor(norm, alpha=0.01).fit(X, y)
    assert model.coef_[0] != 0.0
    assert_allclose(model.coef_[2], -0.3)
    with pytest.raises(ValueError, match="'height'"):
        AtomicRegressor(L1({"height": 0.0})).fit(X, y)
