"""Latent groups and hierarchies through the estimators: names, parts, products of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
)
from atomlearn.designs import Polynomial
from atomlearn.norms import Hierarchy, LatentGroups, ZeroSum

NAMES = ["age", "dose", "bmi", "sbp", "ldl"]
SETS = {"body": ["age", "bmi"], "drug": ["dose", "ldl"], "heart": ["bmi", "sbp", "ldl"]}


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=NAMES)
    signal = 2.0 * X["age"] + X["age"] * X["dose"] + 0.5 * X["bmi"] ** 2
    return X, np.asarray(signal + 0.2 * rng.normal(size=n))


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_hierarchical_interactions_by_name(kind):
    X, y = table()
    model = AtomicRegressor(Hierarchy(kind), alpha=0.2, features="interactions").fit(X, y)
    assert model.coef_.shape == (15,)
    assert model.n_features_in_ == 5
    assert "age:dose" in model.selected_names_
    for name in model.selected_names_:
        if ":" in name:
            mains = name.split(":")
            found = [main in model.selected_names_ for main in mains]
            assert all(found) if kind == "strong" else any(found)
    explicit = np.asarray(Polynomial.interactions(X.to_numpy()).gather(np.arange(15)))
    assert_allclose(model.predict(X), explicit @ model.coef_ + model.intercept_, rtol=1e-10)
    same = AtomicRegressor(Hierarchy(kind), alpha=0.2).fit(explicit, y)
    assert_allclose(same.coef_, model.coef_, atol=1e-4)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_parts_by_name_in_classes(frame):
    X, y = table()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    data = frame({name: X[name].to_numpy() for name in NAMES})
    model = AtomicClassifier(LatentGroups(SETS, "sqrt_size"), alpha=0.05).fit(data, labels)
    assert len(model.parts_) == 3
    for coef, parts in zip(model.coef_, model.parts_, strict=True):
        total = np.zeros(5)
        for part in parts:
            total[part.columns] += part.weights
            assert {NAMES[j] for j in part.columns} <= set(SETS[part.name])
        assert_allclose(total, coef, atol=1e-12)
    assert_array_equal(model.selected_, np.flatnonzero(model.coef_.any(axis=0)))


def test_cross_validation_grid_search_and_pipelines():
    X, y = table()
    model = AtomicRegressorCV(
        [LatentGroups(SETS), LatentGroups(SETS, "sqrt_size")], n_alphas=5, cv=3
    ).fit(X, y)
    assert isinstance(model.norm_, LatentGroups)
    assert {part.name for part in model.parts_} <= set(SETS)
    assert clone(model.norm_) == model.norm_
    pairs = AtomicRegressorCV(Hierarchy("weak"), features="interactions", n_alphas=5, cv=3)
    assert pairs.fit(X, y).score(X, y) > 0.8
    classes = AtomicClassifierCV(LatentGroups(SETS), n_alphas=4, cv=3).fit(X, y > 0)
    assert classes.score(X, y > 0) > 0.7
    pipe = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        AtomicRegressor(LatentGroups({"first": "age", "rest": "[!a]*"}), alpha=0.1),
    )
    assert pipe.fit(X, y)[-1].parts_[0].name == "first"


def test_unusable_requests():
    X, y = table()
    with pytest.raises(ValueError, match="Polynomial design already"):
        AtomicRegressor(features="interactions").fit(Polynomial.interactions(X), y)
    with pytest.raises(ValueError, match=r"designs\.Polynomial\.interactions"):
        AtomicRegressor(Hierarchy("weak")).fit(X.iloc[:, :4], y)


def test_constant_of_a_row_does_not_change_a_compositional_model() -> None:
    rng = np.random.default_rng(0)
    X = np.log(rng.dirichlet(np.ones(12), 60))
    weights = np.concatenate([[1.0, -1.0, 0.5, -0.5], np.zeros(8)])
    y = X @ weights + 0.3 * rng.standard_normal(60)
    model = AtomicClassifier(ZeroSum(), alpha=0.01, tol=1e-9).fit(X, y > np.median(y))
    other = AtomicClassifier(ZeroSum(), alpha=0.01, tol=1e-9)
    other.fit(X + rng.standard_normal((60, 1)), y > np.median(y))
    assert model.status_.is_converged
    assert_allclose(other.coef_, model.coef_, atol=1e-4)
