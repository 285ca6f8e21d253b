from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from atomlearn.core import SparseDesign, feature_names
from atomlearn.designs import as_design
from atomlearn.interfaces import Design
from tests.oracles.covering import in_turn

X = np.random.default_rng(0).standard_normal((7, 4))


def dense(design: Design) -> np.ndarray:
    return design.gather(np.arange(design.shape[1])).dense()


# --- arrays -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_are_never_copied(dtype: type, order: str) -> None:
    big = np.ones((1000, 1000), dtype=dtype, order=order)
    tracemalloc.start()
    design = as_design(big)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < big.nbytes / 20
    assert design.dtype == dtype
    big[3, 5] = 2.0
    assert design.gather(np.array([5])).dense()[3, 0] == 2.0


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        ("?", "f4"),
        ("i1", "f4"),
        ("u2", "f4"),
        ("f2", "f4"),
        ("i4", "f8"),
        ("u8", "f8"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("g", "f8"),
    ],
)
def test_other_numbers_are_converted_exactly(given_type: str, expected: str) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(given_type)
    design = as_design(values)
    assert design.dtype == np.dtype(expected)
    assert_array_equal(dense(design), values.astype(np.float64))


def test_misaligned_floats_are_converted() -> None:
    raw = np.zeros(8 * 6 + 1, dtype=np.uint8)
    misaligned = raw[1:].view(np.float64).reshape(2, 3)
    misaligned[:] = [[1, 2, 3], [4, 5, 6]]
    assert_array_equal(dense(as_design(misaligned)), misaligned)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_lists_and_matrices() -> None:
    assert_array_equal(dense(as_design([[1, 2.5], [3, 4]])), [[1, 2.5], [3, 4]])
    assert_array_equal(dense(as_design(np.asmatrix(X))), X)
    assert_array_equal(dense(as_design(np.ma.masked_array(X))), X)


@pytest.mark.parametrize(
    ("bad", "error", "remedy"),
    [
        (np.ones(3), ValueError, r"reshape\(-1, 1\)"),
        (np.float64(3), ValueError, "2-d"),
        (np.ones((2, 2, 2)), ValueError, "reshape"),
        (np.ones((0, 3)), ValueError, "0 sample"),
        (np.ones((3, 0)), ValueError, "0 feature"),
        (np.array([[1, "a"]], dtype=object), TypeError, "astype"),
        (np.array([["1", "a"]]), TypeError, "astype"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "astype"),
        (np.ones((2, 2)) * 1j, ValueError, "Complex"),
        ([[1, 2], [3]], ValueError, "same length"),
        (None, TypeError, "numbers"),
        (np.ma.masked_array(X, mask=X > 0), ValueError, "filled"),
        (sp.coo_array(np.array([1.0, 2.0])), ValueError, "2-d"),
        (sp.csr_array((0, 3)), ValueError, "0 sample"),
        (sp.csr_array(np.ones((2, 2)) * 1j), ValueError, "Complex"),
    ],
)
def test_what_is_no_design_is_refused_with_a_remedy(
    bad: Any, error: type[Exception], remedy: str
) -> None:
    with pytest.raises(error, match=remedy):
        as_design(bad)


# --- finite -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("convert", "value", "dtype"),
    in_turn(
        [np.ascontiguousarray, np.asfortranarray, sp.csc_array, sp.csr_array],
        [np.nan, np.inf, -np.inf],
        [np.float32, np.float64],
    ),
)
def test_the_offending_entry_is_named(value: float, dtype: type, convert: Any) -> None:
    bad = X.astype(dtype)
    bad[5, 2] = value
    what = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=rf"{what} at \(row, column\) = \(5, 2\)"):
        as_design(convert(bad))
    assert as_design(convert(bad), check_finite=False).shape == X.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_that_overflow_are_not_mistaken_for_infinity(dtype: type) -> None:
    huge = np.full((4, 3), np.finfo(dtype).max, dtype=dtype)
    assert as_design(huge).shape == (4, 3)
    huge[3, 2] = np.inf
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        as_design(huge)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_any_one_bad_entry_is_found(n: int, p: int, data: st.DataObject) -> None:
    array = np.ones((n, p), dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    row, column = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, p - 1))
    array[row, column] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    with pytest.raises(ValueError, match=rf"\({row}, {column}\)"):
        as_design(array.copy(order=data.draw(st.sampled_from("CF"))))


def test_the_finite_check_of_tables_names_the_column() -> None:
    with pytest.raises(ValueError, match=r"NaN at \(row, column\) = \(1, 1\), 'age'"):
        as_design(pd.DataFrame({"height": [1.0, 2.0], "age": [3.0, None]}))
    with pytest.raises(ValueError, match="'age'"):
        as_design(pl.DataFrame({"height": [1.0, 2.0], "age": [3, None]}))
    with pytest.raises(ValueError, match="'age'"):
        as_design(pa.table({"height": [1.0, 2.0], "age": [3, None]}))


# --- sparse formats ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_format(name: str, kind: str) -> None:
    holes = np.where(X > 0, X, 0.0)
    design = as_design(getattr(sp, f"{name}_{kind}")(holes))
    assert isinstance(design, SparseDesign)
    assert_array_equal(dense(design), holes)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64])
def test_sparse_numbers_are_converted(dtype: type) -> None:
    holes = (X > 0).astype(dtype)
    design = as_design(sp.csr_array(holes))
    assert design.dtype == (np.float64 if dtype == np.int64 else np.float32)
    assert_array_equal(dense(design), holes)


# --- tables -----------------------------------------------------------------------------------

COLUMNS = {
    "small": np.array([1, -2, 3], dtype=np.int8),
    "flag": np.array([True, False, True]),
    "single": np.array([0.5, 0.25, -4.0], dtype=np.float32),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_numbers(make: Any) -> None:
    table = make(COLUMNS)
    design = as_design(table)
    assert design.dtype == np.float32
    assert_array_equal(dense(design), np.column_stack(list(COLUMNS.values())).astype(float))
    assert feature_names(table) == list(COLUMNS)
    exact = 2**40 + 1
    wide = as_design(make({**COLUMNS, "wide": np.array([exact, 0, 1])}))
    assert wide.dtype == np.float64
    assert dense(wide)[0, 3] == exact
    with pytest.raises(TypeError, match=r"'city'.*'name'.*encode=True"):
        as_design(make({"age": [1.0, 2.0], "city": ["a", "b"], "name": ["x", "y"]}))


def test_pandas_of_one_float_type_is_not_copied() -> None:
    array = np.ones((50, 6), dtype=np.float32)
    frame = pd.DataFrame(array, copy=False)
    assert np.shares_memory(as_design(frame)._X, array)  # type: ignore[attr-defined]


def test_pandas_extension_types() -> None:
    frame = pd.DataFrame(
        {"a": pd.array([1, 2], dtype="Int64"), "b": pd.array([1, 0], dtype="boolean")}
    )
    assert_array_equal(dense(as_design(frame)), [[1, 1], [2, 0]])
    arrow = pd.DataFrame({"a": pd.array([1.5, 2], dtype="float64[pyarrow]")})
    assert_array_equal(dense(as_design(arrow)), [[1.5], [2]])
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.eye_array(3, format="csc"))
    assert_array_equal(dense(as_design(sparse)), np.eye(3))
    missing = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})
    with pytest.raises(ValueError, match=r"NaN at \(row, column\) = \(1, 0\), 'a'"):
        as_design(missing)
    with pytest.raises(TypeError, match="Categorical"):
        as_design(pd.DataFrame({"a": pd.Categorical([1, 2])}))
    with pytest.raises(TypeError, match="Datetime"):
        as_design(pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}))


def test_what_is_no_table_is_refused() -> None:
    for series in (pd.Series([1.0]), pl.Series([1.0]), pa.array([1.0]), pa.chunked_array([[1.0]])):
        with pytest.raises(ValueError, match="one-dimensional"):
            as_design(series)
    with pytest.raises(TypeError, match="collect"):
        as_design(pl.LazyFrame({"a": [1.0]}))
    for table in (pd.DataFrame({"a": np.zeros(0)}), pl.DataFrame(), pa.table({})):
        with pytest.raises(ValueError, match=r"0 (sample|feature)"):
            as_design(table)


def test_chunked_arrow_columns() -> None:
    column = pa.chunked_array([[1, 2], [3]])
    flags = pa.chunked_array([[True], [False, True]])
    half = pa.chunked_array([np.array([1, 2, 3], dtype=np.float16)])
    table = pa.table({"n": column, "flag": flags, "half": half})
    assert_array_equal(dense(as_design(table)), [[1, 1, 1], [2, 0, 2], [3, 1, 3]])
    assert_array_equal(dense(as_design(table.to_batches()[0])), [[1, 1, 1]])


def test_the_first_columns_of_text_are_named() -> None:
    table = pd.DataFrame({f"c{j}": np.array(["x", "y"], dtype=object) for j in range(8)})
    with pytest.raises(TypeError, match=r"'c4' \(\w+\) and 3 more; fit"):
        as_design(table)


def test_feature_names() -> None:
    assert feature_names(X) is None
    assert feature_names([[1.0]]) is None
    assert feature_names(sp.eye_array(3)) is None
    assert feature_names(pd.DataFrame(X)) is None
    assert feature_names(pd.DataFrame(X, columns=list("abcd"))) == list("abcd")
