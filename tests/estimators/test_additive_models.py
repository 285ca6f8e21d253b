"""Additive models through the estimators: selection of inputs, curves, new data, scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    norms,
)
from atomlearn.designs import as_design
from atomlearn.maps.levels import nearest

FEATURES = ["splines", "intersection", "additive_gaussian"]


def waves(n=300, d=12, seed=0):
    """y is a sum of curves of inputs 2 and 7 that no straight line follows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    y = np.cos(2 * X[:, 2]) + X[:, 7] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("features", FEATURES)
def test_inputs_of_curves_are_found_and_predictions_are_their_sums(features):
    X, y = waves()
    model = AtomicRegressor("groups", alpha=0.05, features=features).fit(X, y)
    assert model.status_.is_converged
    used = {name.split("[")[0].split(">")[0].split("<")[0] for name in model.selected_names_}
    assert used == {"x2", "x7"}
    assert model.score(*waves(seed=1)) > 0.85
    for new in (X[:50], sp.csr_array(X[:50]), X[:50].astype(np.float32)):
        expected = np.full(50, model.intercept_)
        dense = new.toarray() if sp.issparse(new) else new
        for j in range(X.shape[1]):
            levels, curve = model.curve(j)
            distance = np.abs(dense[:, j, None] - levels)
            expected += curve[np.argmin(distance, axis=1)]
        # In single precision two levels may be about as near.
        loose = 1e-9 if new.dtype == np.float64 else 0.1
        assert_allclose(model.predict(new), expected, atol=loose)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("features", ["splines", "additive_chi2"])
def test_generation_selects_inputs(features):
    X, y = waves()
    X = X - X.min()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    labels = np.where(y > np.median(y), "high", "low")
    model = FeatureGenerator(2, 1, 10.0, "squared_hinge", features, standardize=True).fit(
        frame, labels
    )
    assert sorted(model.selected_.tolist()) == [2, 7]
    assert model.get_feature_names_out().tolist() == ["f2", "f7"]
    assert model.transform(frame).shape == (300, 2)
    assert np.flatnonzero(model.scaling_).tolist() == [2, 7]
    assert model.rounds_.shape == (2,)
    assert model.score(frame, labels) > 0.9
    levels, curve = model.curve("f2")
    assert levels.size == curve.size > 50


@pytest.mark.parametrize("norm", [norms.KSupport(2, "inputs"), norms.Groups("inputs")])
def test_classes_and_weights(norm):
    X, y = waves()
    labels = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    form = "squared" if isinstance(norm, norms.KSupport) else "penalized"
    arguments = {"norm": norm, "alpha": 0.02, "form": form, "features": "splines", "tol": 1e-9}
    model = AtomicClassifier(**arguments).fit(X, labels, sample_weight=weight)
    assert model.status_.is_converged
    assert model.score(X, labels) > 0.7
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert model.curve(2, 0)[1].shape == model.curve(2, 1)[1].shape
    assert repr(clone(model).norm) == repr(norm)


@pytest.mark.parametrize(
    ("kind", "features", "groups"),
    [(AtomicRegressorCV, "anova", "terms"), (AtomicClassifierCV, "splines", "inputs")],
)
def test_cross_validation(kind, features, groups):
    X, y = waves(150)
    target = y if kind is AtomicRegressorCV else y > np.median(y)
    model = kind(
        ["groups", norms.KSupport(2, groups)], features=features, n_alphas=5, cv=3
    ).fit(X, target)  # fmt: skip
    assert model.score(X, target) > 0.8
    assert model.norm_.groups == groups


def test_a_model_fitted_again_forgets_its_curves():
    X, y = waves(60)
    model = AtomicRegressor("groups", alpha=0.1, features="splines").fit(X, y)
    model.set_params(features="linear", norm="l1").fit(X, y)
    with pytest.raises(AttributeError, match="additive model"):
        model.curve(0)
    generator = FeatureGenerator(2, 1, loss="squared", features="splines", standardize=True).fit(
        X, y
    )
    generator.set_params(features="linear").fit(X[:, :5], y)
    assert generator.predict(X[:, :5]).shape == (60,)


def test_surfaces_of_pairs():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (400, 8)).astype(np.float32)
    y = X[:, 2] * np.abs(X[:, 5]) + 0.5 * X[:, 0]
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = AtomicRegressor("groups", 0.03, features="anova").fit(frame, y)
    assert model.status_.is_converged
    named = {name.split("[")[0] for name in model.selected_names_}
    assert "c:f" in named
    assert len(named) < 10
    assert model.score(frame, y) > 0.8
    one, other, effect = model.surface("c", "f")
    assert effect.shape == (one.size, other.size)
    assert_allclose(model.surface(5, 2)[2], effect.T)
    assert not model.surface("g", "h")[2].any()
    # What the model says is the sum of its curves and surfaces.
    total = np.full(len(X), float(model.intercept_))
    for j in range(8):
        levels, values = model.curve(j)
        total += values[nearest(levels, X[:, j].astype(np.float64))]
        for i in range(j):
            a, b, values = model.surface(i, j)
            rows = nearest(a, X[:, i].astype(np.float64)), nearest(b, X[:, j].astype(np.float64))
            total += values[rows]
    assert_allclose(model.predict(frame), total, atol=1e-5)
    same = AtomicRegressor(norms.KSupport(2, "terms"), 0.03, features="anova").fit(frame, y)
    assert same.status_.is_converged
    with pytest.raises(ValueError, match="'terms'"):
        AtomicRegressor(norms.Groups("inputs"), features="anova").fit(frame, y)
    with pytest.raises(ValueError, match="two different inputs"):
        model.surface(1, 1)
    with pytest.raises(AttributeError, match="features='anova'"):
        AtomicRegressor("groups", 0.1, features="splines").fit(frame, y).surface(0, 1)


def test_generation_selects_terms():
    """Curves and surfaces compete: a pair and an input are found, named, and predict together."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (500, 7))
    y = 3.0 * X[:, 2] * X[:, 5] + np.sin(3.0 * X[:, 0])
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    model = FeatureGenerator(2, 1, loss="squared", features="anova", standardize=True).fit(frame, y)
    assert sorted(model.selected_names_) == ["a", "c:f"]
    pairs = {tuple(pair) for pair in model.pairs_.tolist()}
    assert pairs == {(0, -1), (2, 5)}
    # The inputs are the first terms, pairs come in their order.
    order = [(i, j) for i in range(7) for j in range(i + 1, 7)]
    assert sorted(model.selected_.tolist()) == [0, 7 + order.index((2, 5))]
    assert model.scaling_.shape == (7 + len(order),)
    assert np.flatnonzero(model.scaling_).tolist() == sorted(model.selected_.tolist())
    assert model.get_support(indices=True).tolist() == [0, 2, 5]
    assert model.get_feature_names_out().tolist() == ["a", "c", "f"]
    assert model.transform(frame).shape == (500, 3)
    assert_array_equal(model.transform(as_design(X)), X[:, [0, 2, 5]])
    assert model.score(frame, y) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(frame), model.predict(frame))
    labels = np.where(y > np.median(y), "high", "low")
    classes = FeatureGenerator(3, 1, features="anova", standardize=True).fit(X, labels)
    assert "x2:x5" in classes.selected_names_
    with pytest.raises(ValueError, match="leave groups out"):
        FeatureGenerator(2, 1, features="anova", groups=[[0, 1]], standardize=True).fit(X, labels)
