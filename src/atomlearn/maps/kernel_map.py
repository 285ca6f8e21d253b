"""KernelMap: one kernel as columns, by pivoted Cholesky steps; what new data needs of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from atomlearn.core.interfaces.design import Array

#: K(A, B), shape (len(A), len(B)), positive semidefinite where A = B.
KernelFunction = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

#: Rows whose kernel with themselves is computed at a time.
DIAGONAL_ROWS = 32


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


@dataclass(frozen=True, slots=True)
class KernelMaps:
    """All kernels of a ``Kernels`` design as columns, for new data.

    kernels : functions, or None for a precomputed matrix; maps : one each; rows : X of the fit at
    the pivots of any kernel, (n_rows, d), or None; places : where each map's pivots stand in it.
    """

    kernels: tuple[KernelFunction | None, ...]
    maps: tuple[KernelMap, ...]
    rows: NDArray[Any] | None
    places: tuple[NDArray[np.int64], ...]
    n_samples: int


def factored(
    kernel: Array | KernelFunction,
    data: NDArray[Any] | None,
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
    order = np.arange(n_samples) if data is None else np.lexsort(data.T)
    residual = _diagonal(kernel, data, n_samples, number)
    trace, largest = float(weight @ residual), float(residual.max())
    z = np.zeros((n_samples, min(rank, n_samples)), order="F")
    pivots: list[int] = []
    while len(pivots) < z.shape[1]:
        pivot = _worst(np.where(counts, residual, -1.0), order)
        if residual[pivot] <= 1e-14 * largest or float(weight @ residual) <= tolerance * trace:
            break
        step = len(pivots)
        column = _column(kernel, data, pivot) - z[:, :step] @ z[pivot, :step]
        z[:, step] = column / math.sqrt(residual[pivot])
        residual -= z[:, step] ** 2
        pivots.append(pivot)
        # What is described exactly stays so, whatever the rounding.
        residual[pivots] = 0.0
        if not np.isfinite(residual).all() or residual.min() < -1e-8 * largest:
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


def _diagonal(
    kernel: Array | KernelFunction, data: NDArray[Any] | None, n_samples: int, number: int
) -> Array:
    if isinstance(kernel, np.ndarray):
        diagonal = np.diag(kernel).copy()
    else:
        assert data is not None
        diagonal = np.empty(n_samples)
        for start in range(0, n_samples, DIAGONAL_ROWS):
            rows = data[start : start + DIAGONAL_ROWS]
            found = np.asarray(kernel(rows, rows), dtype=np.float64)
            if found.shape != (rows.shape[0], rows.shape[0]):
                raise ValueError(
                    f"Kernels: kernel {number} of {rows.shape[0]} rows with themselves must have "
                    f"shape {(rows.shape[0], rows.shape[0])}, got {found.shape}"
                )
            diagonal[start : start + DIAGONAL_ROWS] = np.diag(found)
    if not np.isfinite(diagonal).all() or diagonal.min() < 0:
        raise ValueError(
            f"Kernels: kernel {number} is not positive semidefinite: K(x, x) must be finite and "
            f">= 0, got {diagonal.min()}"
        )
    return diagonal


def _column(kernel: Array | KernelFunction, data: NDArray[Any] | None, pivot: int) -> Array:
    if isinstance(kernel, np.ndarray):
        return np.asarray(kernel[:, pivot])
    assert data is not None
    return np.asarray(kernel(data, data[pivot : pivot + 1]), dtype=np.float64)[:, 0]


def kept_maps(
    given: list[Array | KernelFunction],
    maps: list[KernelMap],
    data: NDArray[Any] | None,
    n_samples: int,
) -> KernelMaps:
    """Return the maps with the rows of X that new data is compared with."""
    functions = tuple(None if isinstance(kernel, np.ndarray) else kernel for kernel in given)
    used = np.unique(np.concatenate([map.pivots for map in maps]))
    places = tuple(np.searchsorted(used, map.pivots) for map in maps)
    rows = None if data is None else data[used]
    return KernelMaps(functions, tuple(maps), rows, places, n_samples)
