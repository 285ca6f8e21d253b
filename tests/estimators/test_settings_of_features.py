"""``features=`` with settings, products of three columns, and the general intersection kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator
from atomlearn.designs import Additive, Cubic

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6))
NEW = RNG.standard_normal((50, 6))


def test_products_of_three_by_name_are_those_of_the_design() -> None:
    y = X[:, 1] * X[:, 3] * X[:, 4] + 0.5 * X[:, 0] ** 2 * X[:, 2] + 0.1 * X[:, 5]
    model = AtomicRegressor(alpha=0.05, features="cubic").fit(X, y)
    by_design = AtomicRegressor(alpha=0.05).fit(Cubic(X), y)
    assert_allclose(model.predict(NEW), by_design.predict(Cubic(NEW)), rtol=1e-6, atol=1e-6)
    names = model.feature_map_.names(model.selected_)
    assert {"x1:x3:x4", "x0^2:x2"} <= set(names)
    assert (
        model.score(NEW, NEW[:, 1] * NEW[:, 3] * NEW[:, 4] + 0.5 * NEW[:, 0] ** 2 * NEW[:, 2]) > 0.9
    )
    found = [[j for j in row if j >= 0] for row in model.feature_map_.inputs_of(model.selected_)]
    assert [1, 3, 4] in found
    assert [0, 0, 2] in found


@pytest.mark.parametrize("standardize", [False, True])
def test_generation_selects_a_product_of_three(standardize: bool) -> None:
    scales = np.array([1.0, 100.0, 1.0, 0.01, 1.0, 1.0])
    y = np.sign(X[:, 1] * X[:, 3] * X[:, 4])
    settings: dict[str, Any] = {"batch": 1, "loss": "squared_hinge", "standardize": standardize}
    model = FeatureGenerator(1, features="cubic", **settings)
    model.fit(X * scales if standardize else X, y)
    assert model.selected_names_ == ["x1:x3:x4"]
    assert model.pairs_.tolist() == [[1, 3, 4]]
    new = NEW * scales if standardize else NEW
    assert np.mean(model.predict(new) == np.sign(NEW[:, 1] * NEW[:, 3] * NEW[:, 4])) > 0.95
    # (gamma x'y + r)^3: gamma and r scale the degrees, which changes what is selected first.
    other = FeatureGenerator(1, features="cubic", gamma=1e-3, r=1.0, batch=1).fit(X, y)
    assert (other.pairs_ >= 0).sum() == 1
    with pytest.raises(ValueError, match="'polynomial' and 'cubic'"):
        FeatureGenerator(1, features="splines", gamma=2.0).fit(X, y)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csc_array])
def test_the_general_intersection_kernel_is_exact(exponent: float, container: Any) -> None:
    """k(x, z) = sum_j min(|x_j|^a, |z_j|^a), [T] section 6: the products of the columns."""
    data = np.round(2 * X[:40]) * (X[:40] > -1)
    design = Additive(container(data), "intersection", exponent=exponent)
    A = design.gather(np.arange(design.shape[1])).dense()
    powers = np.abs(data) ** exponent
    kernel = np.minimum(powers[:, None, :], powers[None, :, :]).sum(axis=2)
    lowest = powers.min(axis=0)
    assert_allclose(A @ A.T, kernel - lowest.sum(), atol=1e-9)
    rows = Additive.from_map(container(data[::-1].copy()), design.map)
    assert_allclose(rows.gather(np.arange(design.shape[1])).dense(), A[::-1])


def test_the_exponent_by_features_fits_as_kernel_ridge_does() -> None:
    """With the l2 norm squared, the model is ridge regression in the kernel: scikit-learn's."""
    data = np.round(4 * np.abs(X)) / 4
    data[0] = 0.0
    # Other rows of the same levels, which are exact; values between levels are rounded.
    new = np.column_stack([RNG.permutation(column)[:50] for column in data.T])
    y = data[:, 0] ** 2 - data[:, 1]
    n = len(y)
    features = ("intersection", {"exponent": 2.0, "normalize": False, "n_bins": 255})
    settings: dict[str, Any] = {"norm": "l2", "form": "squared", "fit_intercept": False}
    model = AtomicRegressor(alpha=0.5 / n, features=features, tol=1e-10, **settings).fit(data, y)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.minimum(A[:, None] ** 2, B[None] ** 2).sum(axis=2)

    ridge = KernelRidge(alpha=0.5, kernel="precomputed").fit(kernel(data, data), y)
    assert_allclose(model.predict(new), ridge.predict(kernel(new, data)), atol=1e-4)
    again = clone(model)
    assert again.features == features
    levels, values = model.curve(0)
    assert levels.max() == data[:, 0].max()
    assert values.shape == levels.shape
    assert model.feature_map_.names([0])[0].startswith("|x0|>=")


def test_settings_of_other_maps_and_what_is_refused() -> None:
    y = np.sin(2 * X[:, 2])
    few = AtomicRegressor(norm="groups", alpha=0.01, features=("splines", {"n_knots": 4})).fit(X, y)
    many = AtomicRegressor(norm="groups", alpha=0.01, features="splines").fit(X, y)
    assert few.feature_map_.n_columns == 6 * 6
    assert many.feature_map_.n_columns == 6 * 10
    for features, said in (
        (("splines", {"exponent": 2.0}), "no setting 'exponent'"),
        (("quadratic", {"gamma": 2.0}), "its settings are: none"),
        (("cubes", {}), "features must be one of"),
        (("splines", 3), "features must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            AtomicRegressor(features=features).fit(X, y)
    with pytest.raises(ValueError, match="exponent is that of kernel='intersection'"):
        Additive(X, "gaussian", exponent=2.0)
    with pytest.raises(ValueError, match="exponent must be"):
        Additive(X, exponent=-1.0)
    labels = np.sign(X[:, 0] * X[:, 1] + 0.1)
    polynomial = ("polynomial", {"gamma": 0.5, "r": 2.0})
    model = AtomicClassifier(alpha=0.02, features=polynomial).fit(X, labels)
    assert model.score(X, labels) > 0.8
