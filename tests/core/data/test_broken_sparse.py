"""Broken compressed arrays say what is broken, and never crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given as drawn
from hypothesis import strategies as st

from atomlearn.core import SparseDesign
from atomlearn.designs import as_design


def healthy(container: type = sp.csr_array, index: type = np.int32) -> Any:
    matrix = container(sp.random_array((12, 9), density=0.3, rng=np.random.default_rng(0)))
    matrix.indices = matrix.indices.astype(index)
    matrix.indptr = matrix.indptr.astype(index)
    return matrix


DAMAGES: dict[str, Callable[[Any], None]] = {
    "index too large": lambda m: m.indices.put(4, 10_000_000),
    "index at the limit": lambda m: m.indices.put(4, m.shape[m.format == "csr"]),
    "pointers decrease": lambda m: m.indptr.put([3, 4], [m.indptr[-1], 1]),
    "pointer negative": lambda m: m.indptr.put(2, -5),
    "pointers start late": lambda m: m.indptr.put(0, 1),
    "pointers end negative": lambda m: m.indptr.put(-1, -1),
    "data too short": lambda m: setattr(m, "data", m.data[:3]),
    "indices not whole": lambda m: setattr(m, "indices", m.indices.astype(np.float64)),
    "data two-dimensional": lambda m: setattr(m, "data", m.data[:, None]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("container", "index"), [(sp.csr_array, np.int32), (sp.csc_matrix, np.int64)]
)
def test_damage_is_named(damage: str, container: type, index: type) -> None:
    matrix = healthy(container, index)
    DAMAGES[damage](matrix)
    with pytest.raises(ValueError, match="rebuild it") as caught:
        as_design(matrix)
    assert matrix.format.upper() in str(caught.value)


@drawn(st.data())
def test_random_damage_never_crashes(data: st.DataObject) -> None:
    matrix = healthy(
        data.draw(st.sampled_from([sp.csr_array, sp.csc_array])),
        data.draw(st.sampled_from([np.int32, np.int64])),
    )
    limit = np.iinfo(matrix.indices.dtype)
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from([matrix.indices, matrix.indptr]))
        value = data.draw(st.one_of(st.integers(-3, 40), st.sampled_from([limit.min, limit.max])))
        part[data.draw(st.integers(0, part.size - 1))] = value
    try:
        design = as_design(matrix)
    except ValueError:
        return
    # What was accepted is a matrix: NumPy adds up its entries one by one.
    expected = np.zeros(matrix.shape)
    for major in range(matrix.indptr.size - 1):
        for place in range(matrix.indptr[major], matrix.indptr[major + 1]):
            minor = matrix.indices[place]
            spot = (major, minor) if matrix.format == "csr" else (minor, major)
            expected[spot] += matrix.data[place]
    v = np.random.default_rng(1).standard_normal(12)
    np.testing.assert_allclose(design.scores(v).full(), expected.T @ v, atol=1e-12)
    np.testing.assert_allclose(design.gather(np.arange(9)).dense(), expected, atol=1e-12)
    np.testing.assert_allclose(design.squared_norms(), (expected**2).sum(axis=0), atol=1e-12)


def broken_lil() -> Any:
    matrix = sp.lil_array(healthy())
    matrix.rows[2] = [7_000_000] * len(matrix.rows[2]) or [7_000_000]
    return matrix


def test_other_formats() -> None:
    coo, negative = sp.coo_array(healthy()), sp.coo_matrix(healthy())
    coo.coords[0][2], negative.col[2] = 999_999, -1
    blocks, pointers = (sp.bsr_array(healthy(), blocksize=(3, 3)) for _ in range(2))
    blocks.indices[1] = pointers.indptr[1] = 99
    for broken in (coo, negative, blocks, pointers, broken_lil()):
        with pytest.raises(ValueError, match="rebuild it"):
            as_design(broken)


def test_spare_room_behind_the_last_entry_is_ignored() -> None:
    matrix = healthy()
    expected = matrix.toarray()
    matrix.data = np.concatenate([matrix.data, [np.nan, 5.0]])
    matrix.indices = np.concatenate([matrix.indices, [10**9, -7]]).astype(np.int32)
    design = as_design(matrix)
    np.testing.assert_array_equal(design.gather(np.arange(9)).dense(), expected)


def test_lying_flags_are_not_believed() -> None:
    matrix = sp.csc_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(2, 1)
    )
    matrix.has_canonical_format = True
    assert SparseDesign(matrix).squared_norms()[0] == 4.0 + 25.0


def test_only_compressed_formats_of_floats() -> None:
    for given in (sp.coo_array(healthy()), sp.csr_array(np.eye(3, dtype=int)), np.eye(3)):
        with pytest.raises(ValueError, match="as_design"):
            SparseDesign(given)


def test_triplets_of_different_lengths_are_refused() -> None:
    broken = sp.coo_array(np.eye(3))
    broken.data = broken.data[:2]
    with pytest.raises(ValueError, match=r"the same length.*rebuild it"):
        as_design(broken)
