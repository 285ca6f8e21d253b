"""KernelMap: one kernel as columns, by pivoted Cholesky steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from atomlearn.core.interfaces import Array
from atomlearn.core.problem.checks import check_weight
from atomlearn.maps.settings import SETTINGS

#: K(A, B), shape (len(A), len(B)), positive semidefinite where A = B.
KernelFunction = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class KernelMap:
    """phi(x) = scale * L^-1 k(pivots, x): one kernel as columns.

    pivots : (r,) rows of the data of the fit; triangle : (r, r) the lower triangle L, L L' = K at
    the pivots; scale : see ``normalize``; residual : trace of what the columns leave out of K,
    as a share of the trace of K.
    """

    pivots: NDArray[np.int64]
    triangle: Array
    scale: float
    residual: float

    def columns(self, to_pivots: NDArray[Any]) -> Array:
        """Return phi of rows whose kernel with the pivots is given, (n, r) -> (n, r)."""
        found = solve_triangular(self.triangle, to_pivots.T, lower=True, check_finite=False)
        return np.asarray(self.scale * found.T)


def factored(
    kernel: KernelFunction,
    data: NDArray[Any],
    weight: Array,
    rank: int,
    tolerance: float,
    number: int,
) -> tuple[KernelMap, Array]:
    """Return the map of a kernel and its columns Z at the samples, by pivoted Cholesky steps.

    Samples of weight 0 are no pivots, and what they leave over does not count.
    """
    n_samples, counts = weight.size, weight > 0
    # Many are equally far at first: whatever the order of the rows, the same ones are taken.
    order = np.lexsort(data.T)
    residual = _diagonal(kernel, data, number)
    trace, largest = float(weight @ residual), float(residual.max())
    z = np.zeros((n_samples, min(rank, n_samples)), order="F")
    pivots: list[int] = []
    while len(pivots) < z.shape[1]:
        pivot = _worst(np.where(counts, residual, -1.0), order)
        if (
            residual[pivot] <= SETTINGS.negligible * largest
            or float(weight @ residual) <= tolerance * trace
        ):
            break
        step = len(pivots)
        column = (
            np.asarray(kernel(data, data[[pivot]]), dtype=np.float64)[:, 0]
            - z[:, :step] @ z[pivot, :step]
        )
        z[:, step] = column / math.sqrt(residual[pivot])
        residual -= z[:, step] ** 2
        pivots.append(pivot)
        # What is described exactly stays so, whatever the rounding.
        residual[pivots] = 0.0
        if not np.isfinite(residual).all() or residual.min() < -SETTINGS.indefinite * largest:
            raise ValueError(
                f"Kernels: kernel {number} is not positive semidefinite; use one that is"
            )
        np.maximum(residual, 0.0, out=residual)
    chosen = np.array(pivots, dtype=np.int64)
    z = np.asfortranarray(z[:, : chosen.size])
    share = float(weight @ residual) / trace if trace > 0 else 0.0
    return KernelMap(chosen, np.tril(z[chosen]), 1.0, share), z


def _worst(residual: Array, order: NDArray[np.int64]) -> int:
    """Return the first sample in this order of about the largest residual."""
    sorted_ = residual[order]
    return int(order[np.argmax(sorted_ >= (1.0 - 1e-9) * sorted_.max())])


def _diagonal(kernel: KernelFunction, data: NDArray[Any], number: int) -> Array:
    diagonal = np.empty(len(data))
    for start in range(0, len(data), SETTINGS.diagonal_rows):
        rows = data[start : start + SETTINGS.diagonal_rows]
        found = np.asarray(kernel(rows, rows), dtype=np.float64)
        if found.shape != (len(rows), len(rows)):
            raise ValueError(
                f"Kernels: kernel {number} of {len(rows)} rows with themselves must have "
                f"shape {(len(rows), len(rows))}, got {found.shape}"
            )
        diagonal[start : start + len(rows)] = np.diag(found)
    if not np.isfinite(diagonal).all() or diagonal.min() < 0:
        raise ValueError(
            f"Kernels: kernel {number} is not positive semidefinite: K(x, x) must be finite and "
            f">= 0, got {diagonal.min()}"
        )
    return diagonal


def _entries(matrix: Array, first: NDArray[Any], second: NDArray[Any]) -> Array:
    """Return a precomputed kernel of samples given by their numbers, (len(first), len(second))."""
    found: Array = matrix[np.ix_(first[:, 0], second[:, 0])]
    return found


def checked_kernels(
    kernels: Sequence[Any], X: object
) -> tuple[list[KernelFunction], NDArray[Any], bool]:
    """Return the kernels as functions, the rows they work on, and whether they are precomputed.

    Those of matrices work on the numbers of the samples.
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
    found: list[KernelFunction] = []
    precomputed = 0
    for number, kernel in enumerate(kernels):
        if callable(kernel):
            if data is None:
                raise ValueError(f"Kernels: kernel {number} is a function and needs X; give X")
            found.append(kernel)
            continue
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
        found.append(partial(_entries, matrix))
        precomputed += 1
    if precomputed not in (0, len(found)):
        raise ValueError(
            "Kernels: kernels are all matrices or all functions; pass the matrices of the functions"
        )
    rows = np.arange(n_samples)[:, None] if data is None or precomputed else data
    return found, rows, bool(precomputed)


def shares(sample_weight: object, n_samples: int) -> Array:
    """Return weights that sum to 1."""
    weight = check_weight(sample_weight, n_samples)
    shares: Array = weight / weight.sum()
    return shares
