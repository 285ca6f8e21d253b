"""KernelMap: low-rank (Nystroem) features of one kernel, by pivoted Cholesky factorization."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from atomlearn.core import Array
from atomlearn.maps.settings import SETTINGS

#: K(A, B), shape (len(A), len(B)), positive semidefinite where A = B.
KernelFunction = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class KernelMap:
    """Nystroem feature map of one kernel k: phi(x) = scale * L^-1 k(pivots, x).

    Attributes
    ----------
    pivots : (r,) int64
        Numbers of the training rows that are landmarks (pivots).
    triangle : (r, r) float64
        The Cholesky factor L of the kernel matrix of the pivots, L L' = K.
    scale : float
        Factor of the columns, see ``normalize`` of ``Kernels``.
    residual : float
        Approximation error as a fraction of the trace of K.
    """

    pivots: NDArray[np.int64]
    triangle: Array
    scale: float
    residual: float

    def columns(self, to_pivots: NDArray[Any]) -> Array:
        """Return phi (n, r) of n rows, from their kernel values ``to_pivots`` (n, r)."""
        transposed = solve_triangular(self.triangle, to_pivots.T, lower=True, check_finite=False)
        return np.asarray(self.scale * transposed.T)


def factored(
    kernel: KernelFunction, data: NDArray[Any], weight: Array, rank: int, tol: float, number: int
) -> tuple[KernelMap, Array]:
    """Return the map of a kernel and its columns Z (n, r) at the samples, with r at most ``rank``.

    Z Z' approximates the kernel matrix, by a pivoted Cholesky factorization (``pivoted``). ``data``
    (n, d) are the samples, ``weight`` (n,) their weights, and ``tol`` is the share of the trace
    that the residual may have. Samples of weight 0 are no pivots, and their residual does not
    count. ``number`` is the number of the kernel, for messages.
    """
    # At first many points have the same residual; sorting makes the choice independent of the order
    # of the rows.
    order = np.lexsort(data.T)
    data = data[order]
    weight = weight[order]
    pivots, z, residual = pivoted(
        _diagonal(kernel, data, number),
        lambda pivot: kernel(data, data[[pivot]])[:, 0],
        min(rank, weight.size),
        f"Kernels: kernel {number}",
        weight,
        tol,
    )
    trace = float(weight @ ((z**2).sum(axis=1) + residual))
    share = float(weight @ residual) / trace if trace > 0 else 0.0
    # Back to the order of the samples.
    columns = np.empty_like(z)
    columns[order] = z
    return KernelMap(order[pivots], np.tril(z[pivots]), 1.0, share), columns


def pivoted(
    diagonal: Array,
    column_of: Callable[[int], NDArray[Any]],
    most: int,
    what: str,
    weight: Array | None = None,
    tol: float = 0.0,
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return pivots, Z (n, r) with Z Z' = K up to a residual, and the diagonal of the residual.

    ``diagonal`` (n,) is the diagonal of K, and ``column_of(i)`` returns column i, (n,). Each step
    of this Cholesky factorization takes the point with the largest residual as the next pivot. So
    the kernel is exact between the pivots, and everywhere after n steps. It takes O(n r^2)
    operations. It ends after ``most`` steps, or when the residual is rounding, or when it is at
    most the share ``tol`` of the trace, weighted by ``weight`` (n,). Points of weight 0 do not
    count and are no pivots. Raise ValueError, which names ``what``, unless K is positive
    semidefinite. [Fine, Scheinberg 2001, Efficient SVM training using low-rank kernel
    representations]
    """
    weight = np.ones(diagonal.size) if weight is None else weight
    has_weight = weight > 0
    residual = diagonal.copy()
    pivots = list[int]()
    z: Array = np.zeros((diagonal.size, most), order="F")
    trace = float(weight @ residual)
    largest = float(residual.max())
    while residual.min() >= -SETTINGS.indefinite * largest:
        pivot = int(np.argmax(residual * has_weight))
        step = len(pivots)
        is_rounding = residual[pivot] <= SETTINGS.negligible * largest
        if step == most or is_rounding or (tol and weight @ residual <= tol * trace):
            return np.array(pivots, dtype=np.int64), z[:, :step], np.maximum(residual, 0.0)
        # The new column of Z: the column of the residual matrix, divided by the root of its pivot.
        column = np.asarray(column_of(pivot), dtype=np.float64) - z[:, :step] @ z[pivot, :step]
        z[:, step] = column / math.sqrt(residual[pivot])
        residual -= z[:, step] ** 2
        residual[pivot] = 0.0
        pivots.append(pivot)
    raise ValueError(f"{what} is not positive semidefinite; use one that is")


def _diagonal(kernel: KernelFunction, data: NDArray[Any], number: int) -> Array:
    """Return K(x_i, x_i) of all rows of ``data``, (n,).

    Raise ValueError, with the number of the kernel, unless they are finite and >= 0.
    """
    diagonal = np.empty(len(data))
    # Blocks of rows: few calls of the kernel, and few entries that are not on the diagonal.
    width = math.isqrt(len(data)) + 1
    for start in range(0, len(data), width):
        rows = data[start : start + width]
        entries = np.asarray(kernel(rows, rows), dtype=np.float64)
        if entries.shape != (len(rows), len(rows)):
            raise ValueError(
                f"Kernels: kernel {number} of {len(rows)} rows with themselves must have "
                f"shape {(len(rows), len(rows))}, got {entries.shape}"
            )
        diagonal[start : start + width] = np.diag(entries)
    if not np.isfinite(diagonal).all() or diagonal.min() < 0:
        raise ValueError(
            f"Kernels: kernel {number} is not positive semidefinite: K(x, x) must be finite and "
            f">= 0, got {diagonal.min()}"
        )
    return diagonal


def _entries(matrix: Array, first: NDArray[Any], second: NDArray[Any]) -> Array:
    """Return the entries of a precomputed kernel ``matrix`` for samples given by their numbers.

    ``first`` (a, 1) and ``second`` (b, 1) have one number in each row; the result is (a, b).
    """
    entries: Array = matrix[np.ix_(first[:, 0], second[:, 0])]
    return entries


def checked_kernels(
    kernels: Sequence[Any], X: object
) -> tuple[list[KernelFunction], NDArray[Any], bool]:
    """Return the kernels as functions K(A, B), the rows for them, and whether they are precomputed.

    The rows are X as an array, or for precomputed kernels the numbers of the samples, (n, 1). Raise
    TypeError or ValueError for other arguments.
    """
    if isinstance(kernels, str) or not isinstance(kernels, Sequence | np.ndarray):
        raise TypeError(
            "Kernels: kernels must be a list of matrices (n, n), functions K(A, B) or KernelOn(...)"
            f", got {type(kernels).__name__}"
        )
    if not len(kernels):
        raise ValueError("Kernels: kernels is empty; give one at least")
    data = None if X is None else np.asarray(X, dtype=np.float64)
    if data is not None and (data.ndim != 2 or not np.isfinite(data).all()):
        raise ValueError(f"Kernels: X must be 2-d and finite, got shape {data.shape}")
    n_samples = 0 if data is None else data.shape[0]
    functions: list[KernelFunction] = []
    n_precomputed = 0
    for number, kernel in enumerate(kernels):
        if callable(kernel):
            if data is None:
                raise ValueError(f"Kernels: kernel {number} is a function and needs X; give X")
            functions.append(kernel)
            continue
        # A precomputed kernel must be square, finite and symmetric, and of the same samples.
        matrix = np.asarray(kernel, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"Kernels: kernel {number} must be a square matrix or a function, got shape "
                f"{matrix.shape}"
            )
        n_samples = n_samples or matrix.shape[0]
        if matrix.shape[0] != n_samples:
            raise ValueError(
                f"Kernels: kernel {number} is of {matrix.shape[0]} samples, the others of "
                f"{n_samples}"
            )
        largest = float(np.abs(matrix).max(initial=0.0))
        if not math.isfinite(largest):
            raise ValueError(f"Kernels: kernel {number} holds NaN or infinity")
        if np.abs(matrix - matrix.T).max() > SETTINGS.indefinite * largest:
            raise ValueError(f"Kernels: kernel {number} is not symmetric; pass (K + K.T) / 2")
        functions.append(partial(_entries, matrix))
        n_precomputed += 1
    if n_precomputed not in (0, len(functions)):
        raise ValueError(
            "Kernels: kernels are all matrices or all functions; pass the matrices of the functions"
        )
    rows = np.arange(n_samples)[:, None] if data is None or n_precomputed else data
    return functions, rows, bool(n_precomputed)
