"""Convert values to the type of a store, with checks, and pack genotypes into two bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Code of a missing genotype in arrays of int8, before they are packed into two bits.
MISSING = -1


def encode_values(X: NDArray[Any], kind: str, rows: Any = 0, columns: Any = 0) -> NDArray[Any]:
    """Return dense values or stored entries in the type of the store; refuse unfit values.

    Rounding to float32 and float16 is allowed. Overflow, NaN, and numbers that int8 or genotypes
    cannot hold are refused.

    Parameters
    ----------
    X : array
        Dense values (rows, columns), or stored entries (entries,).
    kind : str
        Type of the store: a name of NumPy, or "genotype".
    rows, columns : int or array
        Row and column of the first value, or of each stored entry, for messages.

    Returns
    -------
    array
        Of the shape of X. Genotypes are int8, with MISSING for values that are not finite.
    """
    if kind == "genotype":
        missing = ~np.isfinite(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
        values = np.where(missing, 0, X)
        _refuse(X, ~np.isin(values, (0, 1, 2)), "0, 1, 2 or missing", (rows, columns))
        return np.where(missing, MISSING, values.astype(np.int8)).astype(np.int8)
    if X.dtype.kind == "f":
        _refuse(X, ~np.isfinite(X), "a finite number", (rows, columns))
    dtype = np.dtype(kind)
    if X.dtype == dtype:
        return X
    if dtype == np.int8:
        fits = (X >= -128) & (X <= 127) & (np.rint(X) == X)
        _refuse(X, ~fits, "a whole number from -128 to 127 (int8)", (rows, columns))
        return X.astype(np.int8)
    # A finite number that becomes infinite is outside of the range of a smaller type.
    with np.errstate(over="ignore"):
        values = X.astype(dtype, copy=False)
    if dtype.itemsize < X.dtype.itemsize:
        _refuse(X, ~np.isfinite(values), f"within {dtype}'s range", (rows, columns))
    return values


def _refuse(X: NDArray[Any], bad: NDArray[np.bool_], expected: str, first: tuple[Any, Any]) -> None:
    """Raise ValueError with row and column of the first value of X that the mask ``bad`` marks.

    ``expected`` describes valid values. ``first`` has ``rows`` and ``columns`` of
    ``encode_values``.
    """
    if not bad.any():
        return
    position = np.unravel_index(int(np.argmax(bad)), X.shape)
    value = X[position]
    # Dense values are numbered from the first one; each stored entry has its own row and column.
    if X.ndim == 2:
        row, column = (int(position[k]) + first[k] for k in (0, 1))
    else:
        row, column = (int(numbers[position]) for numbers in first)
    location = f"(row, column) = ({row}, {column})"
    raise ValueError(
        f"expected {expected}, got {value} at {location}; fill missing values in, leave such rows "
        "or columns out, or choose another --dtype"
    )


def pack(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Pack genotypes ``codes`` (n_samples, m), 0, 1, 2 or MISSING, into PLINK's two-bit code.

    Returns the bytes of all columns, one column after the other, ceil(n_samples / 4) bytes each.
    """
    n_samples, n_columns = codes.shape
    # PLINK's codes of 0, 1 and 2 copies, and of MISSING = -1, which indexes the last one.
    table = np.array([3, 2, 0, 1], dtype=np.uint8)
    # Columns are padded to whole bytes of four genotypes, the first one in the lowest bits.
    padded = np.zeros((n_columns, (n_samples + 3) // 4 * 4), dtype=np.uint8)
    padded[:, :n_samples] = table[codes.T]
    quads = padded.reshape(n_columns, -1, 4)
    packed: NDArray[np.uint8] = (
        quads[:, :, 0] | quads[:, :, 1] << 2 | quads[:, :, 2] << 4 | quads[:, :, 3] << 6
    )
    return packed.ravel()
