"""FeatureGenerator with several classes: one selection that all of them share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from atomlearn import AtomicClassifier, FeatureGenerator, interop

Array = NDArray[np.float64]

pytestmark = pytest.mark.filterwarnings("ignore:the optimum has only")


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array, Array, Array]:
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.mark.parametrize(
    ("loss", "plain"), [("logistic", LogisticRegression), ("squared_hinge", LinearSVC)]
)
def test_twenty_pixels_tell_ten_digits_apart(digits: Any, loss: str, plain: Any) -> None:
    X, y, X_test, y_test = digits
    model = FeatureGenerator(20, loss=loss, standardize=True).fit(X, y)
    assert model.coef_.shape == (10, 64)
    assert model.intercept_.shape == (10,)
    assert model.get_support().sum() == model.n_selected_ == 20
    assert set(np.flatnonzero(model.coef_.any(axis=0))) <= set(model.selected_)
    assert model.decision_function(X_test).shape == (y_test.size, 10)
    assert model.score(X_test, y_test) > 0.84
    same = interop.to_sklearn(model)
    assert isinstance(same, plain)
    np.testing.assert_array_equal(same.predict(X_test), model.predict(X_test))
    if loss == "logistic":
        told = model.predict_proba(X_test)
        np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(same.predict_proba(X_test), told, atol=1e-12)
    else:
        assert not hasattr(model, "predict_proba")


def test_the_refit_over_the_selected_is_the_softmax_of_scikit_learn(digits: Any) -> None:
    X, y, *_ = digits
    model = FeatureGenerator(8, debias=0.1, standardize=False).fit(X, y)
    chosen = model.get_support(indices=True)
    plain = LogisticRegression(C=0.1, tol=1e-9, max_iter=5000).fit(X[:, chosen], y)
    np.testing.assert_allclose(model.coef_[:, chosen], plain.coef_, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, chosen]), atol=1e-3)


def test_weights_count_rows_and_names_and_sparse_data_change_nothing() -> None:
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 3, y.size)
    options: dict[str, Any] = {"n_features": 2, "batch": 1, "selected_tol": 1e-9}
    weighted = FeatureGenerator(**options, standardize=True).fit(X, y, sample_weight=counts)
    repeated = FeatureGenerator(**options, standardize=True).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    labels = np.array(["c", "a", "b"])[y]
    table = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    named = FeatureGenerator(**options, standardize=True).fit(table, labels)
    sparse = FeatureGenerator(**options, standardize=True).fit(sp.csr_matrix(X), y)
    assert named.selected_names_ == [str(table.columns[j]) for j in named.selected_]
    assert named.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(named.selected_, sparse.selected_)
    # Classes in another order are the same problem.
    np.testing.assert_allclose(named.coef_[[2, 0, 1]], sparse.coef_, rtol=1e-3, atol=1e-5)


def test_groups_that_overlap_are_selected_whole(digits: Any) -> None:
    X, y, *_ = digits
    rows = [[8 * i + j for j in range(8)] for i in range(8)]
    columns = [[8 * j + i for j in range(8)] for i in range(8)]
    model = FeatureGenerator(2, groups=rows + columns, standardize=True).fit(X, y)
    found = set(model.selected_.tolist())
    whole = [set(group) for group in rows + columns if set(group) <= found]
    assert model.n_selected_ == 2
    assert set.union(*whole) == found


def test_covariates_are_in_the_model_and_not_counted() -> None:
    X, y = load_iris(return_X_y=True)
    model = FeatureGenerator(1, unpenalized=[0], standardize=True).fit(X, y)
    assert model.n_selected_ == 1
    assert 0 not in model.selected_
    assert model.coef_[:, 0].all()


def test_an_offset_of_classes_has_a_column_for_each() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"offset must have shape \(150, 3\)"):
        FeatureGenerator(2, standardize=True).fit(X, y, offset=np.zeros(y.size))


def test_probabilities_one_against_rest_are_those_of_each_class() -> None:
    X, y = load_iris(return_X_y=True)
    for labels in (y, y == 1):
        model = AtomicClassifier(alpha=0.01).fit(X, labels)
        each = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
        each = each if each.ndim == 2 else np.column_stack([1.0 - each, each])
        assert_allclose(model.predict_proba(X), each / each.sum(axis=1, keepdims=True))
