"""Every explicit design gives what the dense NumPy array gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from atomlearn import designs
from atomlearn.core import DenseDesign, SparseDesign
from atomlearn.core.data import dense
from atomlearn.designs import Concatenated, RowSubset, as_design
from atomlearn.interfaces import Design
from atomlearn.testing.designs import DesignChecks, brute_force_top
from tests.oracles.arrays import N_FEATURES, N_SAMPLES, normal


def holes(seed: int = 0, density: float = 0.2) -> np.ndarray:
    X = normal(seed)
    X[np.random.default_rng(seed + 1).random(X.shape) > density] = 0.0
    return X


def pair(X: np.ndarray) -> tuple[Design, np.ndarray]:
    return DenseDesign(X), np.array(X, dtype=np.float64, order="C")


@pytest.mark.parametrize(
    ("view", "dtype"),
    [
        ("C", np.float32),
        ("F", np.float64),
        ("sliced", np.float32),
        ("broadcast", np.float64),
    ],
)
class TestDense(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, dtype: type, view: str) -> None:
        self.dtype, self.view = dtype, view

    def build(self) -> tuple[Design, np.ndarray]:
        big = normal(shape=(2 * N_SAMPLES, 3 * N_FEATURES)).astype(self.dtype)
        X = {
            "C": lambda: big[:N_SAMPLES, :N_FEATURES].copy(order="C"),
            "F": lambda: big[:N_SAMPLES, :N_FEATURES].copy(order="F"),
            "sliced": lambda: big[::2, ::3],
            "broadcast": lambda: np.broadcast_to(big[0, :N_FEATURES], (N_SAMPLES, N_FEATURES)),
        }[self.view]()
        return pair(X)


def with_duplicates(matrix: sp.csc_array) -> sp.csc_array:
    """Every entry twice, as 0.25 and 0.75 of itself, and rows in falling order."""
    data = np.repeat(matrix.data, 2) * np.tile([0.25, 0.75], matrix.nnz).astype(matrix.dtype)
    doubled = type(matrix)(
        (data, np.repeat(matrix.indices, 2), matrix.indptr * 2), shape=matrix.shape
    )
    return falling(doubled)


def falling(matrix: sp.csc_array) -> sp.csc_array:
    """The same entries, each column (or row) written backwards."""
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    ).astype(np.int64)
    return type(matrix)(
        (matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape
    )


SMALL, LARGE = (np.float32, np.int32), (np.float64, np.int64)


@pytest.mark.parametrize(
    ("container", "twist", "types"),
    [
        (sp.csc_array, "plain", SMALL),
        (sp.csr_array, "plain", LARGE),
        (sp.csc_matrix, "falling", LARGE),
        (sp.csr_array, "duplicates", SMALL),
        (sp.csr_array, "full", LARGE),
    ],
)
class TestSparse(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, types: tuple[type, type], container: type, twist: str) -> None:
        self.container, self.twist = container, twist
        self.dtype, self.index = types

    def build(self) -> tuple[Design, np.ndarray]:
        # Multiples of 1/8: the halves of duplicate entries add up without rounding.
        X = np.round(8 * (normal() if self.twist == "full" else holes())) / 8
        matrix = self.container(X.astype(self.dtype))
        matrix = {"falling": falling, "duplicates": with_duplicates}.get(self.twist, lambda m: m)(
            matrix
        )
        matrix.indices = matrix.indices.astype(self.index)
        matrix.indptr = matrix.indptr.astype(self.index)
        before = [matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()]
        design = SparseDesign(matrix)
        for part, old in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
            assert (part == old).all()
        return design, X


class TestExtremeScales(DesignChecks):
    """Scales from 1e-150 to 1e150: their squares still are numbers."""

    def build(self) -> tuple[Design, np.ndarray]:
        return pair(normal() * 10.0 ** np.linspace(-140, 120, N_FEATURES))


class TestConcatenated(DesignChecks):
    def build(self) -> tuple[Design, np.ndarray]:
        parts = [normal(1)[:, :9], holes(2), normal(3)[:, :2].astype(np.float32)]
        design = Concatenated(
            [as_design(parts[0]), as_design(sp.csr_array(parts[1])), as_design(parts[2])]
        )
        return design, np.hstack([part.astype(np.float64) for part in parts])


@pytest.mark.parametrize("sparse", [False, True])
class TestRowSubset(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, sparse: bool) -> None:
        self.sparse = sparse

    def build(self) -> tuple[Design, np.ndarray]:
        X = holes(4)
        rows = np.random.default_rng(5).integers(0, N_SAMPLES, size=17)
        return RowSubset(as_design(sp.csc_array(X) if self.sparse else X), rows), X[rows]

    def magnitude(self) -> np.ndarray:
        # A full pass adds up repeated rows of v first: as large as the sum of their magnitudes.
        return 3 * super().magnitude()


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("container", [sp.csc_array, sp.csr_array])
def test_sparse_arrays_are_not_copied(index: type, container: type) -> None:
    matrix = container(holes())
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    design = as_design(matrix)
    parts = (matrix.data, matrix.indices, matrix.indptr)
    for mine, theirs in zip(design._parts, parts, strict=True):  # type: ignore[attr-defined]
        assert np.shares_memory(mine, theirs)


def at_an_odd_address(array: np.ndarray) -> np.ndarray:
    """Return a copy as it may come out of a network buffer."""
    room = np.zeros(array.nbytes + 1, dtype=np.uint8)
    room[1:] = array.view(np.uint8)
    return room[1:].view(array.dtype)


@pytest.mark.parametrize("container", [sp.csc_array, sp.csr_array])
def test_sparse_arrays_at_odd_addresses(container: type) -> None:
    X = holes()
    matrix = container(X)
    matrix.data = at_an_odd_address(matrix.data)
    matrix.indices, matrix.indptr = map(at_an_odd_address, (matrix.indices, matrix.indptr))
    assert not matrix.indices.flags.aligned
    np.testing.assert_array_equal(as_design(matrix).gather(np.arange(N_FEATURES)).dense(), X)


CONVERSIONS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csc": sp.csc_array,
    "csr": sp.csr_array,
    "coo": sp.coo_matrix,
}


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from(sorted(CONVERSIONS)), st.data())
def test_any_small_shape(n: int, p: int, kind: str, data: st.DataObject) -> None:
    """One row, one column, all zeros, ties: small whole numbers, so that everything is exact."""
    entries = st.lists(st.integers(-2, 2), min_size=n * p, max_size=n * p)
    X = np.array(data.draw(entries), dtype=np.float64).reshape(n, p)
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    design = as_design(CONVERSIONS[kind](X.astype(dtype)))
    v = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)), dtype=float)
    z, count = X.T @ v, data.draw(st.integers(0, p + 1))
    columns, values = design.scores(v).top(count)
    np.testing.assert_array_equal(columns, brute_force_top(z, count)[0])
    np.testing.assert_array_equal(values, brute_force_top(z, count)[1])
    np.testing.assert_array_equal(design.predict(z), X @ z)
    np.testing.assert_array_equal(design.squared_norms(), (X**2).sum(axis=0))
    asked = np.array(data.draw(st.lists(st.integers(0, p - 1), max_size=15)), dtype=np.int64)
    block = design.gather(asked)
    np.testing.assert_array_equal(block.dense(), X[:, asked])
    np.testing.assert_array_equal(block.gram(np.ones(n)), X[:, asked].T @ X[:, asked])


def test_many_rows_of_float32_are_all_multiplied(monkeypatch):
    """By columns and by rows: pieces of rows, more of them than there are columns."""
    monkeypatch.setattr(dense, "LIMITS", replace(dense.LIMITS, piece_entries=2))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(11, 3)).astype(np.float32)
    W = rng.normal(size=(3, 2))
    design = designs.as_design(X)
    assert_allclose(design.product(W), X.astype(float) @ W, rtol=1e-13)


def test_all_columns_of_a_fortran_array_are_not_copied_and_stay_as_they_are() -> None:
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    before = X.copy()
    block = DenseDesign(X).gather(np.arange(3))
    assert np.shares_memory(block.dense(), X)
    larger = block.append(block.gather(np.array([1])))
    assert not np.shares_memory(larger.dense(), X)
    assert X.flags.writeable
    assert (before == X).all()
    reordered = DenseDesign(X).gather(np.array([2, 0, 1])).dense()
    assert (reordered == X[:, [2, 0, 1]]).all()
    assert not np.shares_memory(reordered, X)
