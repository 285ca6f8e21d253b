"""Estimators over products of columns that are never stored."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator, norms
from atomlearn.core import LIMITS
from atomlearn.designs import Polynomial
from atomlearn.estimators import coefficients
from atomlearn.result import Status


def products(n: int = 250, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = 2 * X[:, 1] * X[:, 4] + X[:, 7] ** 2 - 1 + X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, np.where(score > 0, "yes", "no")


FORMED = {
    "polynomial": lambda X: Polynomial(X),
    "quadratic": lambda X: Polynomial.interactions(X, squares=True),
    "interactions": Polynomial.interactions,
}


@pytest.mark.parametrize(
    ("features", "container", "loss"),
    [
        ("polynomial", np.asarray, "squared_hinge"),
        ("quadratic", sparse.csr_array, "squared"),
        ("interactions", sparse.csr_array, "squared_hinge"),
        ("interactions", np.asarray, "squared"),
    ],
)
def test_selection_is_that_of_formed_columns(features: str, container: Any, loss: str) -> None:
    X, y = products()
    target = y if loss == "squared_hinge" else (y == "yes") * 1.0
    design = FORMED[features](X)
    formed = design.gather(np.arange(design.shape[1])).dense()
    model = FeatureGenerator(6, 2, 10.0, loss, features, standardize=True).fit(container(X), target)
    plain = FeatureGenerator(6, 2, 10.0, loss, standardize=True).fit(formed, target)
    assert_array_equal(model.selected_, plain.selected_)
    assert_array_equal(model.rounds_, plain.rounds_)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.scaling_, plain.scaling_, rtol=1e-6, atol=1e-9)
    assert model.gap_ == pytest.approx(plain.gap_, rel=1e-6)
    test, _ = products(seed=1)
    other = FORMED[features](test)
    formed_test = other.gather(np.arange(other.shape[1])).dense()
    same = assert_array_equal if loss == "squared_hinge" else assert_allclose
    same(model.predict(container(test)), plain.predict(formed_test))
    assert_array_equal(model.get_support(), plain.get_support())
    transformed = model.transform(container(test))
    dense = transformed.toarray() if sparse.issparse(transformed) else transformed
    assert_allclose(dense, plain.transform(formed_test), rtol=1e-12)
    pairs = [design.pair(column) for column in model.selected_]
    assert_array_equal(model.pairs_, pairs)


def test_names_and_pipelines() -> None:
    X, y = products()
    table = pd.DataFrame(X, columns=[f"c{place}" for place in range(X.shape[1])])
    model = FeatureGenerator(3, 1, features="polynomial", standardize=True).fit(table, y)
    assert set(model.selected_names_) == {"c2", "c1:c4", "c7^2"}
    names = model.get_feature_names_out()
    assert_array_equal(names, np.array(model.selected_names_)[np.argsort(model.selected_)])
    assert names.dtype == object
    assert model.set_output(transform="pandas").transform(table).columns.tolist() == list(names)
    with pytest.raises(AttributeError, match="cannot be undone"):
        model.inverse_transform(np.zeros((2, 3)))


def test_coefficients_are_sparse_where_columns_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = products()
    container = sparse.csr_array
    settings = [
        FeatureGenerator(5, 2, features="polynomial", standardize=True),
        FeatureGenerator(5, 2, features="polynomial", loss="squared", standardize=True),
        AtomicClassifier(norms.KSupport(3), 0.1, form="squared", features="polynomial"),
        AtomicRegressor("l1", 0.05, features="quadratic", warm_start=True),
    ]
    for setting in settings:
        regression = isinstance(setting, AtomicRegressor) or setting.loss == "squared"
        target = (y == "yes") * 1.0 if regression else y
        dense = clone(setting).fit(container(X), target)
        with monkeypatch.context() as patch:
            patch.setattr(coefficients, "LIMITS", replace(LIMITS, most_dense=50))
            model = clone(setting).fit(container(X), target)
            again = pickle.loads(pickle.dumps(model))
            assert_array_equal(again.predict(container(X)), dense.predict(container(X)))
        assert sparse.issparse(model.coef_)
        assert_array_equal(model.coef_.toarray(), np.atleast_2d(dense.coef_))
        if isinstance(setting, FeatureGenerator):
            assert_array_equal(model.scaling_.toarray()[0], dense.scaling_)
    # A second fit begins where this one ended.
    with monkeypatch.context() as patch:
        patch.setattr(coefficients, "LIMITS", replace(LIMITS, most_dense=50))
        model.fit(container(X), target)
    assert model.n_iter_ == 1


def test_a_hundred_thousand_sparse_columns() -> None:
    """5 * 10^9 implicit columns: the planted product is found, and the optimum is proved."""
    rng = np.random.default_rng(3)
    n, d = 4000, 100_000
    columns = np.minimum(rng.zipf(1.3, (n, 15)) - 1, d - 1)
    rows = np.repeat(np.arange(n), 15)
    X = sparse.csr_array((np.ones(rows.size), (rows, columns.ravel())), shape=(n, d))
    X.data[:] = 1.0
    both = np.asarray(X[:, [5]].multiply(X[:, [9]]).todense()).ravel()
    y = 2.0 * both + 0.01 * rng.standard_normal(n)
    model = FeatureGenerator(
        2, 2, C=100.0, loss="squared", features="quadratic", standardize=True
    ).fit(X, y)
    assert "x5:x9" in model.selected_names_
    assert model.coef_.shape == (1, d + d * (d + 1) // 2)
    assert model.get_support(indices=True).size == 2
    with pytest.raises(ValueError, match=r"get_support\(indices=True\)"):
        model.get_support()
    assert model.transform(X).shape == (n, 2)
    assert model.score(X, y) > 0.9
    shares = [record.skipped for record in model.history_]
    assert shares[-1] is not None
    assert 0.0 < shares[-1] < 1.0
    proved = AtomicRegressor(
        norms.KSupport(2), 1e-3, form="squared", features="quadratic", tol=1e-5
    ).fit(X, y)
    assert proved.status_ is Status.CONVERGED
    assert proved.selected_names_[np.abs(proved.results_[0].weights).argmax()] == "x5:x9"
