"""DenseTensor: a dense tensor of any library of the array API, read in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import LIMITS, Array, Block, Columns, DenseBlock
from atomlearn.storage.device.tensors import (
    BUDGET,
    HeldTensor,
    as_written,
    device_of,
    dtype_of,
    namespace,
    to_device_of,
    to_host,
)


class DenseTensor(HeldTensor):
    """A dense tensor on a device: matrix products, float32 scores and columns for ``OnDevice``.

    Parameters
    ----------
    X : tensor (n_samples, n_features), float32 or float64
    """

    is_sparse = False

    def __init__(self, X: Any) -> None:
        """Store the dense tensor X (n_samples, n_features), float32 or float64, without a copy."""
        # Gradients with respect to X would keep every product in memory.
        self.sample = X.detach() if hasattr(X, "detach") else X
        self.shape = int(X.shape[0]), int(X.shape[1])
        self.dtype = dtype_of(X)
        self.nonzeros = self.shape[0] * self.shape[1]

    def exact(self, v: Array, columns: Columns | None, squared: bool = False) -> Array:
        """Return X_S'v, or (X_S * X_S)'v if ``squared``, in float64.

        S is the set ``columns``, or all columns if it is None. ``v`` is (n_samples,), or
        (n_samples, m) for m vectors; the result is (size of S,) or (size of S, m).
        """
        xp = namespace(self.sample)
        weights = to_device_of(self.sample, np.asarray(v, dtype=np.float64))
        width = self.shape[1] if columns is None else columns.size
        total = xp.zeros((width, *v.shape[1:]), dtype=xp.float64, device=device_of(self.sample))
        X = self.sample if columns is None else self._take(columns)
        # Float32 entries and squares are copied, a bounded number of rows at a time.
        is_copy = squared or self.dtype != np.float64
        tiles = LIMITS.pieces(self.shape[0], width, BUDGET.tile_entries)
        for rows in tiles if is_copy else [slice(None)]:
            tile = xp.astype(X[rows, :], xp.float64, copy=False)
            tile = tile * tile if squared else tile
            total = total + xp.matmul(xp.matrix_transpose(tile), weights[rows, ...])
        return to_host(total)

    def single(self, v: NDArray[np.float32]) -> Any:
        """Return X'v on the device: float32 sums over blocks of rows, added up in float64.

        So the rounding error depends on the rows of a block only.
        """
        xp = namespace(self.sample)
        weights = to_device_of(self.sample, v)
        total = xp.zeros(self.shape[1], dtype=xp.float64, device=device_of(self.sample))
        with as_written(self.sample):
            for start in range(0, self.shape[0], BUDGET.single_terms):
                rows = slice(start, min(start + BUDGET.single_terms, self.shape[0]))
                product = xp.matmul(xp.matrix_transpose(self.sample[rows, :]), weights[rows])
                total = total + xp.astype(product, xp.float64)
        return total

    def terms(self) -> tuple[int, int]:
        """Return the number of terms of each float32 sum, and the number of terms of a score.

        They bound the rounding error of ``single``.
        """
        return min(self.shape[0], BUDGET.single_terms), self.shape[0]

    def predict(self, weights: Array) -> Array:
        """Return X w in float64 for w = ``weights``, a bounded number of rows at a time."""
        xp = namespace(self.sample)
        # If few weights are nonzero, only their columns are multiplied.
        nonzero = np.flatnonzero(weights)
        is_sparse = 4 * nonzero.size < self.shape[1]
        w = to_device_of(self.sample, weights[nonzero] if is_sparse else weights)
        positions = to_device_of(self.sample, nonzero) if is_sparse else None
        width = nonzero.size if is_sparse else self.shape[1]
        products = []
        for rows in LIMITS.pieces(self.shape[0], width, BUDGET.tile_entries):
            tile = self.sample[rows, :]
            tile = tile if positions is None else xp.take(tile, positions, axis=1)
            products.append(to_host(xp.matmul(xp.astype(tile, xp.float64, copy=False), w)))
        return np.concatenate(products)

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a dense block (columns in memory) on the host.

        The host is the processor, whose solvers use the block.
        """
        if not columns.size:
            return DenseBlock(np.zeros((self.shape[0], 0), dtype=self.dtype))
        return DenseBlock(to_host(self._take(columns)))

    def columns(self, lo: int, hi: int) -> Any:
        """Return columns lo, ..., hi - 1 as a tensor (n_samples, hi - lo), a view if possible."""
        return self.sample[:, lo:hi]

    def _take(self, columns: Columns) -> Any:
        """Return a copy, on the device, of the columns with these numbers."""
        return namespace(self.sample).take(self.sample, to_device_of(self.sample, columns), axis=1)
