"""DeviceColumns: columns of a tensor, of all rows or some, plain or standardized on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Affine, Array, Design, SpreadRows, unwrapped
from atomlearn.storage.device.on_device import OnDevice
from atomlearn.storage.device.tensors import BUDGET, HeldTensor, namespace, to_device_of

#: A function of (lo, hi) that returns columns lo, ..., hi - 1 as a tensor on the device.
Reader = Callable[[int, int], Any]


@dataclass(frozen=True, slots=True)
class Shift:
    """Standardization (x_j - mean_j) factor_j of columns, rounded exactly as on the processor.

    Attributes
    ----------
    means : (n_features,) array, optional
        Numbers to subtract; None if nothing is subtracted.
    factors : (n_features,) array
        Factors of the columns.
    scaled_first : bool
        Whether it is computed as x_j factor_j - mean_j factor_j, as for sparse columns. The two
        forms are rounded differently.
    """

    means: Array | None
    factors: Array
    scaled_first: bool

    def of(self, tile: Any, lo: int, hi: int) -> Any:
        """Return ``tile``, a tensor of columns x_j for j = lo, ..., hi - 1, standardized.

        The result, (x_j - mean_j) factor_j, is float64.
        """
        xp = namespace(tile)
        tile = xp.astype(tile, xp.float64, copy=False)
        factors = to_device_of(tile, self.factors[lo:hi])
        if self.means is None:
            return tile * factors
        means = self.means[lo:hi]
        if self.scaled_first:
            return tile * factors - to_device_of(tile, means * self.factors[lo:hi])
        return (tile - to_device_of(tile, means)) * factors


@dataclass(frozen=True, slots=True)
class DeviceColumns:
    """The columns of a design (a matrix X, wherever it is stored) whose entries are on a device.

    Attributes
    ----------
    tensor : HeldTensor
        The entries.
    rows : array, optional
        Numbers of the rows in use, in order; None: all rows.
    shift : Shift, optional
        Standardization of the columns; None: none.
    """

    tensor: HeldTensor
    rows: NDArray[np.int64] | None = None
    shift: Shift | None = None

    @classmethod
    def of(cls, base: Design) -> DeviceColumns | None:
        """Return the columns of the design ``base``, or None if its X is not a tensor.

        The tensor may be inside wrappers: one that standardizes columns, ones that select rows, and
        ones that count passes.
        """
        base = unwrapped(base)
        if isinstance(base, OnDevice):
            return cls(base.tensor)
        if isinstance(base, SpreadRows):
            inner = cls.of(base.design)
            if inner is None:
                return None
            rows = base.rows if inner.rows is None else inner.rows[base.rows]
            return cls(inner.tensor, rows, inner.shift)
        if isinstance(base, Affine):
            inner = cls.of(base.design)
            # Only one standardization can be stored: a second one is left to the processor.
            if inner is None or inner.shift is not None:
                return None
            tensor = inner.tensor
            # On the processor sparse columns are scaled first, because they stay sparse.
            scaled_first = not tensor.is_full
            means = base.means if base.means.any() else None
            return cls(tensor, inner.rows, Shift(means, base.factors, scaled_first))
        return None

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_inputs)."""
        n_samples = self.tensor.shape[0] if self.rows is None else self.rows.shape[0]
        return n_samples, self.tensor.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the columns."""
        return self.tensor.dtype if self.shift is None else np.dtype(np.float64)

    def width(self, wanted: int, dtype: Any) -> int:
        """Return the number of columns to read at once, at most ``wanted``.

        Columns that are a view in type ``dtype`` are read as wanted; copies are limited in size.
        """
        if self._is_there(dtype):
            return wanted
        # 16 columns may exceed the limit, so that reads do not become too small.
        return max(1, min(wanted, max(16, BUDGET.held_entries // self.tensor.shape[0])))

    def reader(self, dtype: Any) -> Reader:
        """Return a function of (lo, hi) that returns columns lo, ..., hi - 1 in type ``dtype``.

        Its results are tensors (n_samples, hi - lo). If a copy of all columns is small enough, it
        is made here once, and the function returns views of it.
        """
        n_samples, n_inputs = self.shape
        if self._is_there(dtype) or n_samples * n_inputs > BUDGET.held_entries:
            return lambda lo, hi: self.read(lo, hi, dtype)
        step = self.width(n_inputs, dtype)
        starts = range(0, n_inputs, step)
        tiles = [self.read(lo, min(lo + step, n_inputs), dtype) for lo in starts]
        tensor = tiles[0] if len(tiles) == 1 else namespace(tiles[0]).concat(tiles, axis=1)
        return lambda lo, hi: tensor[:, lo:hi]

    def read(self, lo: int, hi: int, dtype: Any) -> Any:
        """Return columns lo, ..., hi - 1 of the rows in use, standardized, in type ``dtype``."""
        tile = self.tensor.columns(lo, hi)
        xp = namespace(tile)
        if self.rows is not None:
            tile = xp.take(tile, to_device_of(tile, self.rows), axis=0)
        if self.shift is not None:
            tile = self.shift.of(tile, lo, hi)
        kind = xp.float32 if np.dtype(dtype) == np.float32 else xp.float64
        return xp.astype(tile, kind, copy=False)

    def _is_there(self, dtype: Any) -> bool:
        """Return whether columns in type ``dtype`` are views of the tensor, without a copy."""
        is_untransformed = self.rows is None and self.shift is None
        return is_untransformed and not self.tensor.is_sparse and self.tensor.dtype == dtype
