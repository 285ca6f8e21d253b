"""Tables (pandas, polars, pyarrow) as one numeric array: numbers and booleans only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.libraries import is_arrow, is_table, library_of
from atomlearn.core.interfaces.numbers import all_text


def as_table(X: Any) -> Any:
    """Return such a table as one of pyarrow, which shares its memory; anything else as it is."""
    if not is_arrow(X):
        return X
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            f"{type(X).__name__} offers its columns as Arrow does, which pyarrow reads; "
            "pip install pyarrow"
        ) from error
    return pa.table(X)


def table_names(X: object) -> list[str] | None:
    """Return the column names of a table as strings, None if X has none.

    As in scikit-learn, names count only if all of them are strings.
    """
    X = as_table(X)
    names = getattr(X, "column_names" if library_of(X) == "pyarrow" else "columns", None)
    if names is None or not is_table(X) or not all_text(names):
        return None
    return list(names)


def narrowest(types: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if it holds every value of these types exactly, else float64."""
    exact = all(np.can_cast(kind, np.float32, casting="safe") for kind in types)
    return np.dtype(np.float32 if exact else np.float64)


def frame_to_array(X: Any) -> NDArray[Any]:
    """Return the table as a float32 or float64 array, missing entries as NaN.

    A pandas table of one float type is viewed, not copied; others are filled column by column
    into one Fortran array.
    """
    library = library_of(X)
    name = f"{library} {type(X).__name__}"
    if library == "pandas":
        return _from_pandas(X, name)
    if library == "polars":
        return _from_polars(X, name)
    return _from_pyarrow(X, name)


def _refuse(name: str, bad: list[tuple[Any, Any]]) -> None:
    if not bad:
        return
    shown = ", ".join(f"{column!r} ({kind})" for column, kind in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    words = [column for column, kind in bad if "date" not in str(kind)]
    encoded = f"make_column_transformer((OneHotEncoder(), {words[:5]}), remainder='passthrough')"
    way = f"in a pipeline behind scikit-learn's {encoded}, or " if words else ""
    raise TypeError(
        f"{name} has columns that are not numeric or boolean: {shown}{more}; encode them as "
        f"numbers, {way}by datasets.read(table, target, dates='elapsed'); or leave them out"
    )


def _from_pandas(X: Any, name: str) -> NDArray[Any]:
    if not hasattr(X, "columns"):
        raise ValueError(f"{name} is one-dimensional; pass a DataFrame, for example X.to_frame()")
    import pandas as pd

    def numpy_type(dtype: Any) -> np.dtype[Any] | None:
        base = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
        base = getattr(base, "numpy_dtype", base)
        return base if isinstance(base, np.dtype) and base.kind in "biuf" else None

    types = [numpy_type(dtype) for dtype in X.dtypes]
    _refuse(name, [(c, d) for c, d, t in zip(X.columns, X.dtypes, types, strict=True) if t is None])
    if len(set(X.dtypes)) == 1 and X.dtypes.iloc[0] in (np.float32, np.float64):
        return np.asarray(X.to_numpy())

    known = [kind for kind in types if kind is not None]
    return np.asarray(X.to_numpy(dtype=narrowest(known), na_value=np.nan))


def _from_polars(X: Any, name: str) -> NDArray[Any]:
    import polars as pl

    if isinstance(X, pl.LazyFrame):
        raise TypeError(f"{name} holds no data yet; pass X.collect()")
    if not isinstance(X, pl.DataFrame):
        raise ValueError(f"{name} is one-dimensional; pass a DataFrame, for example X.to_frame()")
    kinds = X.dtypes
    usable = [kind.is_integer() or kind.is_float() or kind == pl.Boolean for kind in kinds]
    _refuse(name, [(c, k) for c, k, ok in zip(X.columns, kinds, usable, strict=True) if not ok])
    # Zero rows of the table tell how polars maps its types to NumPy's.
    empty = X.clear()
    types = [empty.to_series(position).to_numpy().dtype for position in range(X.width)]

    target = pl.Float32 if narrowest(types) == np.float32 else pl.Float64
    return np.asarray(X.cast(target).to_numpy(order="fortran"))


def _from_pyarrow(X: Any, name: str) -> NDArray[Any]:
    import pyarrow as pa

    if not isinstance(X, (pa.Table, pa.RecordBatch)):
        raise ValueError(f"{name} is one-dimensional; pass a pyarrow.Table")
    kinds = X.schema.types
    ok = [
        pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_boolean(k) for k in kinds
    ]
    _refuse(
        name, [(c, k) for c, k, good in zip(X.schema.names, kinds, ok, strict=True) if not good]
    )
    dtype = narrowest(np.dtype(kind.to_pandas_dtype()) for kind in kinds)
    target = pa.float32() if dtype == np.float32 else pa.float64()
    result = np.empty(X.shape, dtype=dtype, order="F")
    for position in range(len(kinds)):
        result[:, position] = np.asarray(X.column(position).cast(target, safe=False))
    return result
