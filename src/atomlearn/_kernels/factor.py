"""The Cholesky factor of a Gram matrix that grows and shrinks: O(k^2) for a row more or less.

R is upper triangular with R'R = G, held in the upper left corner of a square buffer that the
caller owns and that may be larger than R; what lies below the diagonal is never read.
"""

from __future__ import annotations

import operator

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array


def _buffer(factor: Array, size: object, added: int = 0) -> int:
    """Return the size as an int, or raise where the buffer cannot hold R."""
    array = np.asarray(factor)
    if array.dtype != np.float64 or array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise TypeError(
            f"factor must be a square float64 array, got {array.dtype} of shape {array.shape}; "
            "use np.zeros((capacity, capacity))"
        )
    if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError("factor must be C-ordered and writeable; pass np.array(factor, order='C')")
    number = operator.index(size)  # type: ignore[arg-type]
    if not 0 <= number <= array.shape[0] - added:
        raise ValueError(
            f"a factor of size {number} with {added} more does not fit into a buffer for "
            f"{array.shape[0]}; copy it into a larger one"
        )
    return number


def factor_append(factor: Array, size: int, gram: Array, least: float = 1e-12) -> float:
    """Extend R in place by ``added`` rows and columns: O(added (size + added)^2).

    gram : (size + added, added) entries of G between all atoms (the old ones first) and the new
    ones; its last ``added`` rows are symmetric, and their upper part is read. Where an atom
    depends linearly on those before it, so that its squared pivot is below ``least`` times its
    diagonal entry, the pivot is raised to that: R'R = G + that on the diagonal.

    Returns the smallest squared pivot met, relative to its diagonal entry, before it was raised.
    """
    columns = np.asarray(gram)
    if columns.dtype != np.float64 or columns.ndim != 2:
        raise TypeError(
            f"gram must be a float64 array of shape (size + added, added), got {columns.dtype} "
            f"of shape {columns.shape}"
        )
    if not columns.flags.aligned or any(stride % 8 for stride in columns.strides):
        raise ValueError("gram is not aligned in memory; pass a copy (np.array(..., copy=True))")
    number = _buffer(factor, size, columns.shape[1])
    if columns.shape[0] != number + columns.shape[1]:
        raise ValueError(
            f"gram must have {number} + {columns.shape[1]} rows, one for each old and new atom; "
            f"got {columns.shape[0]}"
        )
    if not 0 < least < 1:
        raise ValueError(f"least must lie between 0 and 1, got {least!r}")
    return _native.append_to_factor(factor, number, columns, float(least))


def factor_delete(factor: Array, size: int, position: int) -> None:
    """Take row and column ``position`` out of G: R shrinks in place, by Givens rotations, O(k^2).

    [Golub, Van Loan 2013, Matrix Computations, section 6.5.2]
    """
    number = _buffer(factor, size)
    place = operator.index(position)
    if not 0 <= place < number:
        raise IndexError(f"position must lie in [0, {number}), got {place}")
    _native.delete_from_factor(factor, number, place)


def factor_solve(factor: Array, size: int, rhs: Array) -> Array:
    """Return G^-1 rhs = R^-1 R^-T rhs for a vector of ``size`` entries, O(k^2)."""
    number = _buffer(factor, size)
    x = np.array(_checks.weights(rhs, "rhs", number))
    _native.solve_with_factor(factor, number, x)
    return x
