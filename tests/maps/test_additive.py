"""Additive designs against explicit columns written out from the definitions of the kernels."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import SplineTransformer

from atomlearn import norms
from atomlearn.core import LIMITS
from atomlearn.designs import Additive
from atomlearn.maps.levels import nearest
from atomlearn.maps.terms import CodedBlock
from atomlearn.testing.designs import DesignChecks
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum

KERNELS = ["intersection", "gaussian", "splines"]


def data(seed=0, n=40, d=6):
    """Columns of all kinds: signed, positive, mostly zero, constant, of two values."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1] = np.abs(X[:, 1]) + 0.5
    X[:, 2] *= rng.random(n) < 0.3
    X[:, 3] = 2.5
    X[:, 4] = rng.integers(0, 2, n)
    return X


def thermometers(X, levels_of):
    """Columns by the definition: sqrt(gap) from each gap up, or minus that from it down."""
    columns = []
    for j, x in enumerate(X.T):
        levels = levels_of[j]
        origin = min(max(0.0, levels[0]), levels[-1])
        for low, high in pairwise(levels):
            root = np.sqrt(high - low)
            columns.append(root * (x >= high) if low >= origin else -root * (x <= low))
    return np.stack(columns, axis=1)


def rounded(X, design):
    """Each value as the nearest level, searched by brute force."""
    result = np.empty(X.shape)
    for j, x in enumerate(X.T):
        levels = design.map.levels.of(j)
        result[:, j] = levels[np.argmin(np.abs(x[:, None] - levels), axis=1)]
    return result


class _Checks(DesignChecks):
    def test_constant_inputs_have_no_column(self):
        assert self.build()[0].map.used.tolist() == [0, 1, 2, 4, 5]


class TestIntersection(_Checks):
    def build(self):
        X = data()
        return Additive(X), thermometers(X, [np.unique(np.append(x, self.zero(x))) for x in X.T])

    def zero(self, x):
        return min(max(0.0, x.min()), x.max())


class TestIntersectionOfSparse(TestIntersection):
    def build(self):
        array = super().build()[1]
        return Additive(sp.csc_array(data())), array


class TestIntersectionCoded(TestIntersection):
    @pytest.fixture(autouse=True)
    def _coded(self, monkeypatch):
        monkeypatch.setattr("atomlearn.maps.terms.LIMITS", replace(LIMITS, piece_entries=0))

    def test_blocks_are_coded(self):
        assert isinstance(self.build()[0].gather(np.arange(3)), CodedBlock)


class TestSplines(_Checks):
    gathers_exactly = False

    def build(self):
        X = data()
        design = Additive(X, "splines", n_knots=4)
        parts = []
        for j, x in enumerate(X.T):
            levels = np.unique(np.append(x, min(max(0.0, x.min()), x.max())))
            if levels.size == 1:
                continue
            degree = min(3, levels.size - 1)
            table = design.map.table(j)
            # The knots are ours; the basis on them is scikit-learn's.
            from scipy.interpolate import BSpline

            knots = np.quantile(x, [0, 1 / 3, 2 / 3, 1], method="inverted_cdf")
            knots = np.unique(np.concatenate([[levels[0]], knots, [levels[-1]]]))
            t = np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])
            basis = [
                BSpline(t, row, degree)(np.append(x, min(max(0.0, x.min()), x.max())))
                for row in np.eye(t.size - degree - 1)
            ]
            part = np.stack(basis, axis=1)
            assert part.shape[1] == table.shape[1]
            parts.append(part[:-1] - part[-1])
        return design, np.concatenate(parts, axis=1)

    def magnitude(self):
        return np.full(self.build()[1].shape, 4.0)


class TestSplinesCodedSparse(TestSplines):
    @pytest.fixture(autouse=True)
    def _coded(self, monkeypatch):
        monkeypatch.setattr("atomlearn.maps.terms.LIMITS", replace(LIMITS, piece_entries=0))

    def build(self):
        _, array = super().build()
        return Additive(sp.csc_array(data()), "splines", n_knots=4), array


class TestGaussian(_Checks):
    """The columns are any with the right products: those of the design, checked below."""

    def build(self):
        design = Additive(data(), "gaussian")
        columns = [design.map.table(j)[_codes(design, j)] for j in range(6)]
        return design, np.concatenate(columns, axis=1)


def _codes(design, j):
    n = design.codes.n_rows
    return design.codes.codes[j * n : (j + 1) * n]


# --- kernels by their definition ----------------------------------------------------------------


def anchored(kernel, x, origin):
    """k(x, y) - k(x, o) - k(o, y) + k(o, o)."""
    x = np.append(x, origin)
    K = kernel(x[:, None], x[None, :])
    K = K - K[:, -1:] - K[-1:, :] + K[-1, -1]
    return K[:-1, :-1]


def gram(design):
    A = np.asarray(design.gather(np.arange(design.shape[1])))
    return A @ A.T


@given(st.integers(0, 2**31), st.integers(2, 30), st.integers(1, 4), st.integers(2, 40))
def test_intersection_is_the_sum_of_minima(seed, n, d, n_bins):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[n // 2] = X[-1]
    X[0] = 0.0
    for binning in ("quantile", "uniform"):
        design = Additive(X, n_bins=n_bins, binning=binning)
        near = rounded(X, design)
        expected = np.minimum(near[:, None, :], near[None, :, :]).sum(axis=2)
        assert_allclose(gram(design), expected, atol=1e-12)
        sparse = Additive(sp.csr_array(X), n_bins=n_bins, binning=binning)
        assert_allclose(gram(sparse), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "chi2", "callable"])
def test_maps_of_enough_columns_are_their_kernel(name):
    X = np.abs(data(4)[:, [0, 5]])
    expected = np.zeros((40, 40))
    for x in X.T:
        deviation = x.std()
        kernels = {
            "gaussian": lambda a, b, s=deviation: np.exp(-0.5 * ((a - b) / (0.7 * s)) ** 2),
            "chi2": lambda a, b: 2 * a * b / np.maximum(a + b, 1e-300),
            "callable": lambda a, b: np.exp(-np.abs(a - b)),
        }
        expected += anchored(kernels[name], x, x.min())
    kernel = kernels[name] if name == "callable" else name
    design = Additive(X, kernel, n_components=60, length_scale=0.7)
    # The deviation of the gaussian is of the levels, which are the values here.
    assert_allclose(gram(design), expected, atol=1e-7)
    assert design.map.residual.max() <= 1e-12
    rough = Additive(X, kernel, n_components=4, length_scale=0.7)
    assert np.abs(gram(rough) - expected).max() <= 16 * rough.map.residual.sum()


def test_splines_span_those_of_scikit_learn():
    x = np.random.default_rng(5).standard_normal((60, 1))
    design = Additive(x, "splines", n_knots=5)
    knots = np.quantile(x[:, 0], np.linspace(0, 1, 5), method="inverted_cdf")
    theirs = SplineTransformer(knots=knots[:, None], degree=3).fit_transform(x)
    ours = np.column_stack([np.ones(60), np.asarray(design.gather(np.arange(design.shape[1])))])
    fitted = ours @ np.linalg.lstsq(ours, theirs, rcond=None)[0]
    # Their knots beyond the ends are evenly spaced, ours repeat: the functions inside are the same.
    assert_allclose(fitted, theirs, atol=1e-8)
    assert np.linalg.matrix_rank(theirs) == np.linalg.matrix_rank(ours)


def test_normalized_groups_have_variance_one():
    for kernel in KERNELS:
        design = Additive(data(6) * [1, 10, 100, 1, 1e-3, 5], kernel, normalize=True)
        A = np.asarray(design.gather(np.arange(design.shape[1])))
        totals = np.bincount(design.groups, weights=A.var(axis=0))
        assert_allclose(totals, 1.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_trees_of_inputs_are_those_of_their_columns(kernel):
    X = data(17, n=80, d=8)
    design = Additive(X, kernel, n_bins=9)
    sets = [[0, 1, 2], [0], [4, 5, 6, 7], [4, 5], [6], [2]]
    tree = norms.Trees([design.map.columns_of(inputs) for inputs in sets], weights="sqrt_size")
    v = np.random.default_rng(2).standard_normal(80)
    A = np.asarray(design.gather(np.arange(design.shape[1])))
    z, scores = A.T @ v, design.scores(v)
    delta = [np.sqrt(design.map.columns_of(inputs).size) for inputs in sets]
    ratings = [
        np.linalg.norm(z[design.map.columns_of(inputs)]) / weight
        for inputs, weight in zip(sets, delta, strict=True)
    ]
    assert tree.polar(scores) == pytest.approx(max(ratings), rel=1e-10)
    y = np.abs(X[:, 6]) + X[:, 0]
    implicit = solve_sum(design, y, norm=tree, level=3.0, fit_intercept=True, tol=1e-8)
    explicit = solve_sum(A, y, norm=tree, level=3.0, fit_intercept=True, tol=1e-8)
    assert implicit.converged
    assert implicit.objective == pytest.approx(explicit.objective, rel=1e-7)


# --- groups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_group_norms(kernel, sparse, normalize):
    X = sp.csc_array(data(7)) if sparse else data(7)
    design = Additive(X, kernel, n_bins=9, normalize=normalize)
    v = np.random.default_rng(8).standard_normal(40)
    A = np.asarray(design.gather(np.arange(design.shape[1])))
    expected = np.sqrt(np.bincount(design.groups, weights=(A.T @ v) ** 2))
    scores = design.scores(v)
    assert_allclose(scores.group_norms(design.groups, design.n_groups), expected, rtol=1e-10)
    assert_array_equal(design.map.used, [0, 1, 2, 4, 5])
    for norm in (norms.Groups(design.groups), norms.KSupport(2, design.groups)):
        largest = np.sort(expected)[::-1]
        expected_polar = largest[0] if isinstance(norm, norms.Groups) else np.hypot(*largest[:2])
        assert norm.polar(design.scores(v)) == pytest.approx(expected_polar)


# --- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "loss", "dtype"),
    in_turn(KERNELS, ["squared", "logistic"], [np.float32, np.float64]),
)
def test_fits_equal_those_of_the_explicit_columns(kernel, loss, dtype):
    """And their certificate is confirmed by the gap recomputed on the explicit columns."""
    X = data(11, n=60).astype(dtype)
    rng = np.random.default_rng(12)
    signal = np.sin(2 * X[:, 0]) + X[:, 4]
    y = np.where(signal > np.median(signal), 1.0, -1.0) if loss == "logistic" else signal
    weight = rng.uniform(0.2, 2.0, 60)
    design = Additive(sp.csc_array(X), kernel, n_bins=20)
    A = np.asarray(design.gather(np.arange(design.shape[1])), dtype=np.float64)
    norm = norms.Groups(design.groups)
    implicit, explicit = (
        solve_sum(
            part,
            y,
            tol=1e-9,
            loss=loss,
            norm=norm,
            level=1.0,
            fit_intercept=True,
            sample_weight=weight,
        )
        for part in (design, A)
    )
    assert implicit.converged
    assert explicit.converged
    assert implicit.objective == pytest.approx(explicit.objective, rel=1e-7)
    # By hand: the objective, and a dual bound from the same point.
    w = np.zeros(design.shape[1])
    w[implicit.columns] = implicit.weights
    prediction = A @ w + implicit.intercept
    residual = y - prediction if loss == "squared" else y / (1 + np.exp(y * prediction))
    fit = 0.5 * residual**2 if loss == "squared" else np.logaddexp(0, -y * prediction)
    gauge = np.sqrt(np.bincount(design.groups, weights=w * w)).sum()
    assert weight @ fit + gauge == pytest.approx(implicit.objective, rel=1e-9)
    z = A.T @ (weight * residual)
    assert np.sqrt(np.bincount(design.groups, weights=z * z)).max() <= 1 + 1e-3
    assert design.dtype == dtype
    assert_allclose(design.predict(w) + implicit.intercept, prediction, atol=1e-9)


@pytest.mark.parametrize("norm", ["groups", "ksupport", "l1"])
def test_coded_blocks_fit_the_same(norm, monkeypatch):
    X = data(13, n=80)
    y = np.abs(X[:, 0]) + X[:, 5] ** 2
    design = Additive(X, n_bins=12)
    the_norm = {
        "groups": norms.Groups(design.groups),
        "ksupport": norms.KSupport(2, design.groups),
        "l1": norms.L1(),
    }[norm]
    form = "squared" if norm == "ksupport" else "penalized"
    dense = solve_sum(design, y, norm=the_norm, level=1.0, form=form, fit_intercept=True, tol=1e-8)
    monkeypatch.setattr("atomlearn.maps.terms.LIMITS", replace(LIMITS, piece_entries=0))
    coded = solve_sum(design, y, norm=the_norm, level=1.0, form=form, fit_intercept=True, tol=1e-8)
    assert dense.converged
    assert coded.converged
    assert coded.objective == pytest.approx(dense.objective, rel=1e-7)


def test_new_data_is_coded_by_the_levels_of_the_old():
    X = data(14, n=100)
    for kernel in KERNELS:
        design = Additive(X, kernel, n_bins=15)
        columns = np.arange(design.shape[1])
        again = Additive.from_map(X[:30], pickle.loads(pickle.dumps(design.map)))
        assert_array_equal(
            np.asarray(again.gather(columns)), np.asarray(design.gather(columns))[:30]
        )
        far = Additive.from_map(1e6 * np.ones((1, 6)), design.map)
        last = [design.map.table(j)[-1] for j in range(6)]
        assert_array_equal(np.asarray(far.gather(columns))[0], np.concatenate(last))
    with pytest.raises(ValueError, match="6 inputs"):
        Additive.from_map(X[:, :5], design.map)


def test_curves_are_what_is_predicted():
    X = data(16)
    for kernel in KERNELS:
        design = Additive(X, kernel)
        w = np.random.default_rng(1).standard_normal(design.shape[1])
        total = np.zeros(40)
        for j in range(6):
            levels, curve = design.map.curve(j, w)
            assert curve[design.map.levels.zero[j]] == pytest.approx(0.0, abs=1e-12)
            total += np.interp(X[:, j], levels, curve)
        assert_allclose(total, design.predict(w), atol=1e-9)


def test_names_of_columns():
    X = np.array([[-1.0, 0.0], [0.0, 3.0], [2.0, 3.0]])
    assert Additive(X).feature_names([0, 1, 2], ["age", "dose"]) == ["age<=-1", "age>=2", "dose>=3"]
    assert Additive(X, "splines").feature_names([0]) == ["x0[0]"]


def test_nearest_level_by_brute_force():
    levels = np.array([-2.0, np.nextafter(-2.0, 0), 0.0, 1.0, 3.0])
    x = np.array([-9.0, -2.0, np.nextafter(-2.0, 0), -1.1, -0.9, 0.5, 0.51, 2.0, 2.1, 99.0])
    assert nearest(levels, x).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"n_bins": 256}, "n_bins must be between"),
        ({"n_bins": 2.0}, "whole number"),
        ({"binning": "equal"}, "binning must be"),
        ({"length_scale": 0.0}, "length_scale must be positive and finite"),
        ({"kernel": "chi2"}, "values >= 0"),
        ({"kernel": lambda x, y: -np.exp(-((x - y) ** 2))}, "not positive semidefinite"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Additive(data(), **arguments)


def test_chi2_refuses_a_negative_constant():
    X = np.array([[-1.0, 1.0], [-1.0, 2.0]])
    with pytest.raises(ValueError, match=r"Negative values in data: .* column 0 has -1"):
        Additive(X, "chi2")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_general_intersection_kernel_is_exact(power: float) -> None:
    """min(|x|^a, |y|^a) is the intersection of powers: equal up to what an intercept takes up."""
    X = np.abs(np.random.default_rng(0).standard_normal((30, 2))) ** power
    design = Additive(X, "intersection", n_bins=255)
    A = np.asarray(design.gather(np.arange(design.shape[1])).dense())
    kernel = sum(np.minimum.outer(X[:, j], X[:, j]) for j in range(2))
    center = np.eye(30) - 1.0 / 30
    ours, theirs = center @ (A @ A.T) @ center, center @ kernel @ center
    assert_allclose(ours / np.trace(ours), theirs / np.trace(theirs), atol=1e-14)
