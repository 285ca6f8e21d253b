from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import Counted, DenseDesign, SparseDesign, scaled_design
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.designs import RowSubset, Standardized, as_design
from atomlearn.interfaces import Block, Design, Scores
from atomlearn.testing.designs import DesignChecks

N_SAMPLES, N_FEATURES = 31, 17


def data(sparse: bool) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES)) * np.logspace(-3, 3, N_FEATURES)
    if sparse:
        X *= rng.random(X.shape) < 0.12
        X[:, 6] = 0.0
        X[3, 6] = 4.0
    else:
        X += np.linspace(-5, 5, N_FEATURES)
    X[:, 4] = 0.0
    X[:, 5] = 0.1
    return X


def by_hand(
    X: np.ndarray, center: bool, scale: bool, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = np.ones(X.shape[0]) if weight is None else weight
    means = np.average(X, axis=0, weights=weights)
    deviations = np.sqrt(np.average((X - means) ** 2, axis=0, weights=weights))
    constant = np.ptp(X[weights > 0], axis=0) == 0
    means[constant] = X[weights > 0][0, constant]
    scales = np.where(constant, 1.0, deviations) if scale else np.ones(X.shape[1])
    result = (X - (means if center else 0.0)) / scales
    if center:
        result[:, constant] = 0.0
    return result, means if center else np.zeros_like(means), scales


@pytest.mark.parametrize(
    ("kind", "center", "scale", "weighted"),
    [
        ("C", True, True, True),
        ("csr", True, True, False),
        ("F", True, False, True),
        ("csc", False, True, False),
    ],
)
class TestStandardized(DesignChecks):
    gathers_exactly = False

    @pytest.fixture(autouse=True)
    def _setting(self, kind: str, center: bool, scale: bool, weighted: bool) -> None:
        self.X = data(sparse=kind in ("csc", "csr"))
        self.kind, self.center, self.scale = kind, center, scale
        self.weight = np.random.default_rng(1).uniform(0.5, 2.0, N_SAMPLES) if weighted else None

    def design(self) -> Standardized:
        convert = {
            "C": np.ascontiguousarray,
            "F": np.asfortranarray,
            "csc": sp.csc_array,
            "csr": sp.csr_array,
        }
        return Standardized(
            as_design(convert[self.kind](self.X)), self.center, self.scale, self.weight
        )

    def build(self) -> tuple[Design, np.ndarray]:
        # Its own moments, which test_moments compares with those by hand.
        design = self.design()
        array = (self.X - design.means) / design.scales
        if self.center:
            array[:, [4, 5]] = 0.0
        return design, array

    def magnitude(self) -> np.ndarray:
        _, means, scales = by_hand(self.X, self.center, self.scale, self.weight)
        # The constant column 0.1 is noise before it is known to be constant.
        return 4 * (np.abs(self.X) + np.abs(means)) / scales

    def test_moments(self) -> None:
        _, means, scales = by_hand(self.X, self.center, self.scale, self.weight)
        design = self.design()
        assert_allclose(design.means, means, rtol=1e-12, atol=1e-16)
        assert_allclose(design.scales, scales, rtol=1e-11)

    def test_constant_columns_become_exact_zeros(self) -> None:
        design = self.design()
        constant = np.array([4, 5])
        assert_array_equal(design.scales[constant], [1.0, 1.0])
        if self.center:
            v = np.random.default_rng(2).standard_normal(N_SAMPLES)
            assert_array_equal(design.scores(v).at(constant), [0.0, 0.0])
            assert not design.gather(constant).dense().any()


def test_moments_far_from_zero_keep_their_digits() -> None:
    rng = np.random.default_rng(3)
    X = 1e6 + rng.standard_normal((40, 6))
    X[:, 1] = 1e15 + rng.integers(0, 3, 40)
    X[:, 2] *= 1e200
    X[:, 3] = 1e-12 * X[:, 3]
    X[:, 4] = 7e11
    design = Standardized(DenseDesign(X))
    for column in range(6):
        unit = Fraction(10) ** (200 if column == 2 else 0)
        exact = [Fraction(float(x)) for x in X[:, column]]
        mean = sum(exact) / 40
        variance = sum((x - mean) ** 2 for x in exact) / 40
        expected = float(variance / unit**2) ** 0.5 * float(unit) if variance else 1.0
        assert abs(design.means[column] - float(mean)) <= 4e-16 * abs(float(mean))
        assert design.scales[column] == pytest.approx(expected, rel=1e-9)
    gathered = design.gather(np.arange(6)).dense()
    assert_allclose((gathered[:, [0, 2, 3]] ** 2).mean(axis=0), 1.0, rtol=1e-9)
    assert_allclose(design.squared_norms()[[0, 2, 3]], 40.0, rtol=1e-9)
    uncentered = Standardized(DenseDesign(X), center=False)
    assert_array_equal(uncentered.scales, design.scales)
    expected = np.square(X / design.scales).sum(axis=0)
    assert_allclose(uncentered.squared_norms(), expected, rtol=1e-9)


def test_samples_of_weight_zero_do_not_count() -> None:
    X = np.random.default_rng(4).standard_normal((10, 4))
    X[:9, 2] = 3.0
    weight = np.ones(10)
    weight[9] = 0.0
    X[9] = 1e9
    some, few = Standardized(DenseDesign(X), weight=weight), Standardized(DenseDesign(X[:9]))
    assert_allclose(some.means, few.means, rtol=1e-12)
    assert_allclose(some.scales, few.scales, rtol=1e-9)


def test_sparse_columns_stay_sparse() -> None:
    X = sp.random_array((2000, 300), density=0.02, format="csc", rng=np.random.default_rng(5))
    block = Standardized(SparseDesign(X)).gather(np.arange(300))
    assert isinstance(block, CenteredBlock)
    assert isinstance(block.append(block), CenteredBlock)


def test_matches_scikit_learn() -> None:
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(6).lognormal(size=(50, 5))
    weight = np.random.default_rng(7).uniform(size=50)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    design = Standardized(DenseDesign(X), weight=weight)
    assert_allclose(design.means, scaler.mean_, rtol=1e-12)
    assert_allclose(design.scales, scaler.scale_, rtol=1e-12)


def test_takes_two_passes() -> None:
    design = Counted(DenseDesign(np.random.default_rng(8).standard_normal((20, 5))))
    Standardized(design)
    assert design.passes == 2.0


def test_rows_keep_the_moments_of_all_rows() -> None:
    X = data(sparse=False)
    whole = Standardized(DenseDesign(X))
    rows = np.array([4, 0, 9])
    part = RowSubset(whole, rows)
    assert_allclose(
        part.gather(np.arange(N_FEATURES)).dense(),
        whole.gather(np.arange(N_FEATURES)).dense()[rows],
        rtol=0,
        atol=0,
    )


def test_bad_weights() -> None:
    for weight, message in (
        (np.ones(3), "shape"),
        (-np.ones(4), ">= 0"),
        (np.zeros(4), "> 0"),
        (np.full(4, np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Standardized(DenseDesign(np.eye(4)), weight=weight)


class Bare(Design):
    """Only what a design must have: nothing of its own to rescale."""

    shape, dtype = (4, 2), np.dtype(np.float64)

    def __init__(self, X: np.ndarray, shape: tuple[int, int]) -> None:
        self.X, self.shape = X, shape

    def scores(self, v: np.ndarray) -> Scores:
        return as_design(self.X).scores(v)

    def gather(self, columns: np.ndarray) -> Block:
        return as_design(self.X).gather(columns)


def test_bare_designs_are_scaled_but_not_standardized() -> None:
    X, factors = np.arange(8.0).reshape(4, 2), np.array([2.0, 0.5])
    scaled = scaled_design(Bare(X, X.shape), factors)
    assert_allclose(scaled.scores(np.ones(4)).full(), X.sum(0) * factors)
    assert_allclose(scaled.gather(np.array([1, 0])).dense(), (X * factors)[:, ::-1])
    with pytest.raises(TypeError, match="standardize the data it is made of"):
        Standardized(Bare(X, (4, 2**40)))
