"""as_design(X): convert X of any supported type to a design, or raise with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn._support import (
    as_table,
    frame_to_array,
    is_table,
    library_of,
    narrowest,
    table_names,
    unmasked,
)
from atomlearn.core.catalogue import DESIGNS, Kind, loaded
from atomlearn.core.data.compressed import checked_parts, is_sparse
from atomlearn.core.data.dense import DenseDesign
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Design


def _kind_of(X: object) -> Kind | None:
    """Return the entry of the catalogue ``DESIGNS`` for objects such as X; None if it has none.

    NumPy's arrays, SciPy's sparse arrays and data frames need no entry: ``as_design`` reads them.
    """
    return next((kind for kind in DESIGNS if kind.recognizes(X)), None)


def as_design(X: object, *, check_finite: bool = True) -> Design:
    """Return X as a Design, without copying float32 and float64 arrays.

    Parameters
    ----------
    X : array, sparse array or matrix, list of rows, Design, or table (pandas, polars, pyarrow, or
        any object with ``__arrow_c_stream__``, the PyCapsule interface of Arrow);
        the path of a column store, a PLINK .bed or an .h5ad; an AnnData object; a dask.array or
        dask.dataframe; a tensor of an array library, or a sparse tensor of PyTorch, which becomes
        ``OnDevice`` if NumPy cannot read it in place
        Integers, booleans and half precision are converted once, to float32 if that is exact,
        else to float64. Sparse formats other than CSC and CSR are converted to CSC.
    check_finite : bool, default=True
        Refuse NaN and infinity (one pass over the data, no copy). A Design is never checked.

    Returns
    -------
    Design
        X itself if it is a Design.

    Raises
    ------
    ValueError, TypeError
        If X has the wrong number of dimensions, no rows or columns, entries that are not
        finite real numbers, or a broken sparse structure; the message gives the remedy. Entries of
        Dask collections are checked in the first pass over them.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import as_design
    >>> as_design([[1, 2], [3, 4]]).scores(np.array([1.0, 1.0])).full()
    array([4., 6.])
    """
    # An entry may make an object of another kind. For example, a file may hold a sparse array.
    while not isinstance(X, Design):
        kind = _kind_of(X)
        if kind is None and is_sparse(X):
            return _sparse_design(X, check_finite)
        if kind is None:
            array = frame_to_array(X) if is_table(X) else _numeric_array(X)
            check_shape(array.shape, X)
            design = DenseDesign(array)
            if check_finite:
                refuse_not_finite(design, X)
            return design
        X = loaded(kind.make)(X)
    return X


def readable(X: Any) -> Any:
    """Return X; raise ValueError or TypeError if NumPy would misread its entries.

    Such entries are masked ones, dates (read as days), and complex numbers (read as real parts). A
    table with only the interface of Arrow is returned as a pyarrow or polars table.
    """
    unmasked("X", X)
    X = as_table(X)
    types: Any = getattr(X, "dtypes" if is_table(X) else "dtype", None)
    # The kinds c, m and M are complex numbers, time differences and dates.
    is_misread = any(getattr(dtype, "kind", "f") in "cmM" for dtype in np.atleast_1d(types))
    # The types of pandas are NumPy's; those of other libraries are checked by a conversion.
    if is_table(X) and (is_misread or library_of(X) != "pandas"):
        frame_to_array(X[:0])  # Without rows it checks only the types.
    elif is_misread:
        check_kind(types)
    return X


def is_opened(X: object) -> bool:
    """Return whether X is a design or is opened to become one: not an array or a table."""
    if isinstance(X, Design):
        return True
    kind = _kind_of(X)
    return kind is not None and kind.opened


def feature_names(X: object) -> list[str] | None:
    """Return the column names of a design, table or file as strings, None if X has none.

    As in scikit-learn, names of a table are used only if all of them are strings.
    """
    if isinstance(X, Design):
        return X.names
    kind = _kind_of(X)
    if kind is None:
        return table_names(X)
    names: list[str] | None = loaded(kind.names)(X) if kind.names else None
    return names


def check_shape(shape: tuple[int, ...], X: object) -> None:
    """Raise ValueError unless ``shape`` has two dimensions and neither of them is 0.

    X : the data of this shape, whose type the message names.
    """
    kind = type(X).__name__
    if len(shape) == 1:
        raise ValueError(
            f"X must be 2-d (rows are samples), got a 1-d {kind} of length {shape[0]}. Reshape "
            "your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one sample"
        )
    if len(shape) != 2:
        raise ValueError(
            f"X must be 2-d (rows are samples), got a {len(shape)}-d {kind} of shape {shape}. "
            "Reshape your data: X.reshape(len(X), -1) flattens every sample"
        )
    for count, axis_kind in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"X has 0 {axis_kind}(s) (shape={shape}) while a minimum of 1 is required; "
                "check how the data was loaded or filtered"
            )


def _numeric_array(X: object) -> NDArray[Any]:
    """Return an array-like X as float32 or float64; copy it only if the dtype requires it.

    Raises ValueError or TypeError if X is not a rectangular array of numbers.
    """
    unmasked("X", X)
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"X of type {type(X).__name__} is not a rectangular array of numbers ({error}); "
            "give all rows the same length"
        ) from error
    check_kind(array.dtype)
    # Convert other types, then byte orders and addresses that kernels cannot read.
    if array.dtype not in (np.float32, np.float64):
        return array.astype(narrowest([array.dtype]))
    if not array.dtype.isnative or not array.flags.aligned:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def check_kind(dtype: np.dtype[Any]) -> None:
    """Raise ValueError if ``dtype`` is complex, and TypeError if it is not of numbers at all."""
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {dtype}; pass X.real, or real and imaginary "
            "parts as separate columns"
        )
    if dtype.kind not in "biuf":
        raise TypeError(
            f"X must hold numbers, got dtype {dtype}; convert it with X.astype(float) where its "
            "entries are numbers, encode categories with sklearn.preprocessing.OneHotEncoder"
        )


def _sparse_design(X: Any, check_finite: bool) -> SparseDesign:
    """Return a SciPy sparse X as a design of float32 or float64, after checks.

    check_finite : whether to refuse NaN and infinity.
    """
    check_shape(X.shape, X)
    check_kind(X.dtype)
    X = as_compressed(X)
    if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
        data, *indices = checked_parts(X)
        X = type(X)((data.astype(narrowest([data.dtype])), *indices), shape=X.shape)
    design = SparseDesign(X)
    if check_finite and not np.isfinite(X.data).all():
        refuse_not_finite(design)
    return design


def as_compressed(X: Any) -> Any:
    """Return a sparse X of any format in CSR or CSC, and a table of Arrow as pyarrow's.

    Other objects are returned unchanged. Triplets are checked before SciPy follows their indices.
    CSR and CSC of float32 and float64 need no conversion; they are checked when a design is made.
    """
    if not is_sparse(X):
        return as_table(X)
    if X.format in ("csc", "csr"):
        if X.dtype not in (np.float32, np.float64):
            checked_parts(X)
        return X
    try:
        triplets = X.tocoo()
        coordinates = triplets.row, triplets.col
        return sp.coo_array((triplets.data, coordinates), shape=X.shape).tocsc()
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(
            f"{X.format.upper()} array of shape {tuple(X.shape)} is broken ({error}); rebuild it "
            "with scipy.sparse.coo_array((values, (rows, columns)), shape)"
        ) from error


def refuse_entry(value: Any, row: int, column: int, names: list[str] | None) -> None:
    """Raise ValueError for a non-finite entry of X, with its position and the remedy.

    value : the entry; row, column : its position; names : the names of all columns, or None.
    """
    shown = "NaN" if np.isnan(value) else "infinity"
    name = "" if names is None else f", {names[column]!r}"
    raise ValueError(
        f"X contains {shown} at (row, column) = ({row}, {column}){name}; impute missing values "
        "(for example with sklearn.impute.SimpleImputer) or leave such rows out"
    )


def refuse_not_finite(design: Design, X: object = None, first: tuple[int, int] = (0, 0)) -> None:
    """Raise ValueError with row and column of a NaN or infinite entry: one pass without a copy.

    design : a piece of the data; X : the source of the piece, which may name the columns;
    first : the row and the column of X where the piece begins.
    """
    # A sum is finite only if all its terms are.
    sums = design.scores(np.ones(design.shape[0])).full()
    for column in np.flatnonzero(~np.isfinite(sums)).tolist():
        # An exact check of this column, as sums of finite entries near 1e308 overflow, too.
        entries = design.gather(np.array([column])).dense()[:, 0]
        bad = np.flatnonzero(~np.isfinite(entries))
        if bad.size:
            refuse_entry(entries[bad[0]], first[0] + int(bad[0]), first[1] + column, table_names(X))
