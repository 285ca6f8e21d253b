"""Data frames of every library that narwhals supports, converted to one numeric array."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support.libraries import is_arrow, is_table, library_of
from atomlearn._support.numbers import all_text


def as_table(X: Any) -> Any:
    """Return X as a pyarrow or polars table if it has only Arrow's PyCapsule interface.

    The new table shares its memory. Other objects are returned unchanged. Raises ImportError if
    neither library is installed.
    """
    if not is_arrow(X):
        return X
    import narwhals.stable.v2 as nw

    readers: list[Any] = [name for name in ("pyarrow", "polars") if importlib.util.find_spec(name)]
    if not readers:
        raise ImportError(
            f"{type(X).__name__} offers its columns as Arrow does, which pyarrow reads; "
            "pip install pyarrow"
        )
    return nw.from_arrow(X, backend=readers[0]).to_native()


def as_frame(X: Any) -> Any:
    """Return X, a table of any library, as a narwhals data frame.

    Raises TypeError if it is lazy, and ValueError if it is one-dimensional.
    """
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    X = as_table(X)
    name = f"{library_of(X)} {type(X).__name__}"
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except DuplicateError:  # Two columns have one name: name the columns by their numbers.
        numbers = [*map(str, range(X.shape[1]))]
        rename = X.rename_columns if library_of(X) == "pyarrow" else partial(X.set_axis, axis=1)
        return nw.from_native(rename(numbers))
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{name} holds no data yet; pass X.collect()")
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(f"{name} is one-dimensional; pass a DataFrame, for example X.to_frame()")
    return frame


def table_names(X: object) -> list[str] | None:
    """Return the column names of a table as strings, None if X has none.

    As in scikit-learn, names are used only if all of them are strings.
    """
    X = as_table(X)
    names = getattr(X, "column_names" if library_of(X) == "pyarrow" else "columns", None)
    if names is None or not is_table(X) or not all_text(names):
        return None
    return list(names)


def narrowest(types: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if it represents every value of these types exactly, else float64."""
    exact = all(np.can_cast(kind, np.float32, casting="safe") for kind in types)
    return np.dtype(np.float32 if exact else np.float64)


def number_types(frame: Any) -> list[np.dtype[Any] | None]:
    """Return the NumPy dtype of each column of a narwhals frame; None for other columns.

    Only columns of numbers and booleans have a dtype here; text, dates and categories have None.
    """
    import narwhals.stable.v2 as nw

    type_of: dict[Any, np.dtype[Any] | None] = {}
    types = []
    empty = frame.head(0)
    for name, kind in frame.schema.items():
        if kind not in type_of or kind == nw.Unknown:
            # A table with zero rows shows how the library maps its types to NumPy's. This is done
            # once for each type, but for each column of type Unknown, as these may differ.
            type_ = empty.get_column(name).to_numpy().dtype
            is_number = type_.kind in "biuf" and kind not in (nw.Categorical, nw.Enum)
            type_of[kind] = type_ if is_number else None
        types.append(type_of[kind])
    return types


def holds_numbers(X: Any) -> bool:
    """Return whether all columns of a table X are numbers or booleans, not dates or strings."""
    if library_of(X) == "pandas":
        # Complex columns pass here ("c"), and are refused later, like complex arrays.
        return all(kind.kind in "biufc" for kind in set(np.ravel(X.dtypes)))
    return all(kind is not None for kind in number_types(as_frame(X)))


def frame_to_array(X: Any) -> NDArray[Any]:
    """Return the table X as a float32 or float64 array, with NaN for missing entries.

    A pandas table of one float type is viewed, not copied; others become one Fortran array. Raises
    TypeError if a column is not numeric.
    """
    import narwhals.stable.v2 as nw

    frame = as_frame(X)
    types = number_types(frame)
    # The name and type of each column, and its NumPy type.
    columns_and_types = zip(frame.schema.items(), types, strict=True)
    name = f"{library_of(X) or 'Arrow'} {type(X).__name__}"
    _refuse(name, [column for column, type_ in columns_and_types if type_ is None])
    number_kinds = [kind for kind in types if kind is not None]
    dtype = narrowest(number_kinds)
    if library_of(X) == "pandas":
        # pandas gives a view if all columns have this type.
        is_view = set(X.dtypes) == {dtype}
        return np.asarray(X.to_numpy() if is_view else X.to_numpy(dtype=dtype, na_value=np.nan))
    if not number_kinds:
        return np.zeros((len(frame), 0))
    target = nw.Float32 if dtype == np.float32 else nw.Float64
    return np.asfortranarray(frame.select(nw.all().cast(target)).to_numpy())


def _refuse(name: str, bad: list[tuple[Any, Any]]) -> None:
    """Raise TypeError if there are columns that are not numeric.

    name : of the table, for the message. bad : the names and types of these columns.
    """
    if not bad:
        return
    listed = ", ".join(f"{column!r} ({kind})" for column, kind in bad[:5])
    remainder = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    raise TypeError(
        f"{name} has columns that are not numeric or boolean: {listed}{remainder}; fit an "
        "estimator with encode=True, encode them by datasets.read(table, target), or leave them out"
    )
