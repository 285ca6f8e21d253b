"""Values in the type of a store: checked, converted, and genotypes packed into two bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def position_of(X: NDArray[Any], bad: NDArray[np.bool_], first_row: int, first_column: int) -> str:
    """Return "(row, column) = ..." of the first entry that is bad."""
    row, column = np.unravel_index(int(np.argmax(bad)), X.shape)
    return f"(row, column) = ({first_row + int(row)}, {first_column + int(column)})"


#: How a missing genotype is written in arrays of int8 on the way to two bits.
MISSING = -1


def encode(X: NDArray[Any], kind: str, first_row: int = 0, first_column: int = 0) -> NDArray[Any]:
    """Return dense values or stored entries in the type of the store, or say which one is unfit.

    Rounding to float32 and float16 is what was asked for; overflow, NaN, and numbers that int8 or
    genotypes cannot hold are refused.
    """
    if kind == "genotype":
        missing = ~np.isfinite(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
        values = np.where(missing, 0, X)
        _refuse(X, ~np.isin(values, (0, 1, 2)), "0, 1, 2 or missing", (first_row, first_column))
        return np.where(missing, MISSING, values.astype(np.int8)).astype(np.int8)
    if X.dtype.kind == "f":
        _refuse(X, ~np.isfinite(X), "a finite number", (first_row, first_column))
    dtype = np.dtype(kind)
    if X.dtype == dtype:
        return X
    if dtype == np.int8:
        fits = (X >= -128) & (X <= 127) & (np.rint(X) == X)
        _refuse(X, ~fits, "a whole number from -128 to 127 (int8)", (first_row, first_column))
        return X.astype(np.int8)
    with np.errstate(over="ignore"):
        values = X.astype(dtype, copy=False)
    if dtype.itemsize < X.dtype.itemsize:
        _refuse(X, ~np.isfinite(values), f"within {dtype}'s range", (first_row, first_column))
    return values


def _refuse(X: NDArray[Any], bad: NDArray[np.bool_], expected: str, first: tuple[int, int]) -> None:
    if not bad.any():
        return
    matrix = X if X.ndim == 2 else X[:, None]
    where = position_of(matrix, bad.reshape(matrix.shape), *first)
    found = matrix.ravel()[int(np.argmax(bad.reshape(-1)))]
    raise ValueError(
        f"expected {expected}, got {found} at {where}; fill missing values in, leave such rows or "
        "columns out, or choose another --dtype"
    )


def pack(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return genotypes (n, m) of 0, 1, 2 and MISSING in PLINK's code, column after column."""
    n_samples, n_columns = codes.shape
    table = np.array([3, 2, 0, 1], dtype=np.uint8)  # none, one, two, missing
    padded = np.zeros((n_columns, (n_samples + 3) // 4 * 4), dtype=np.uint8)
    padded[:, :n_samples] = table[codes.T]
    quads = padded.reshape(n_columns, -1, 4)
    packed: NDArray[np.uint8] = (
        quads[:, :, 0] | quads[:, :, 1] << 2 | quads[:, :, 2] << 4 | quads[:, :, 3] << 6
    )
    return packed.ravel()
