"""SparseTensor: a sparse tensor of PyTorch, stored by columns and summed on its device.

The array API has no sparse tensors, so this file uses PyTorch directly.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import LIMITS, Array, Block, Columns, block_of_entries
from atomlearn.storage.device.layouts import by_columns, torch_module
from atomlearn.storage.device.tensors import BUDGET, HeldTensor, as_written, dtype_of, to_host


class SparseTensor(HeldTensor):
    """A sparse PyTorch tensor in CSC layout: products, float32 scores and columns for ``OnDevice``.

    A CSC tensor is used in place. Other layouts are converted once, on their device, and repeated
    entries of a COO tensor are added up. Converted row indices are 32-bit if that suffices. PyTorch
    validates all indices before they are used. ``sample`` are the values, ``_begins`` are the
    column pointers on the host, and ``_host`` is a copy of X there, or None.

    Parameters
    ----------
    values, rows, starts : tensors
        Values, row indices and column pointers of CSC.
    shape : (int, int)
        (n_samples, n_features).
    """

    is_sparse = True

    def __init__(self, values: Any, rows: Any, starts: Any, shape: tuple[int, int]) -> None:
        """Store the CSC arrays (``values``, ``rows``, ``starts``) of an X of this shape."""
        self.shape, self.dtype = shape, dtype_of(values)
        self.sample = values
        self._rows = rows
        self._starts = starts
        # The host needs a copy of the column pointers to divide the columns into pieces.
        self._begins = np.array(to_host(starts), dtype=np.int64)
        self.nonzeros = int(self._begins[-1])
        # Columns with few zeros are used as dense ones.
        self.is_full = self.nonzeros >= LIMITS.dense_from * shape[0] * shape[1]
        self._host: sp.csc_array | None = None

    @classmethod
    def of(cls, X: Any) -> SparseTensor:
        """Return X, a sparse tensor of PyTorch in any layout, checked and stored by columns."""
        shape = int(X.shape[0]), int(X.shape[1])
        return cls(*by_columns(X.detach()), shape)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the cached copy on the processor."""
        return self.__dict__ | {"_host": None}

    def exact(self, v: Array, columns: Columns | None, squared: bool = False) -> Array:
        """Return X_S'v, or (X_S * X_S)'v if ``squared``, in float64.

        S is the set ``columns``, or all columns if it is None. ``v`` is (n_samples,), or
        (n_samples, m) for m vectors; the result is (size of S,) or (size of S, m).
        """
        weights = self._to_device(np.asarray(v, dtype=np.float64))
        width = self.shape[1] if columns is None else columns.size
        result = np.empty((width, *v.shape[1:]))
        # A pair for each vector: the scores to fill in, and the vector on the device.
        pairs = [(result, weights)] if v.ndim == 1 else list(zip(result.T, weights.T, strict=True))
        for part, values, rows, starts in self._pieces(columns):
            values = values * values if squared else values
            for sums, vector in pairs:
                sums[part] = to_host(_sums(values, rows, starts, vector))
        return result

    def single(self, v: NDArray[np.float32]) -> Any:
        """Return X'v on the device, each score summed in float32."""
        weights = self._to_device(v)
        return _sums(self.sample, self._rows, self._starts, weights).double()

    def terms(self) -> tuple[Any, Any]:
        """Return the numbers of terms of each column's float32 sum, and of its score.

        Both are the number of stored entries: a column is summed in float32 as a whole.
        """
        lengths = self._starts.diff().double()
        return lengths, lengths

    def predict(self, weights: Array) -> Array:
        """Return X w for w = ``weights``, in float64, summed in the order of the device."""
        torch = torch_module()
        # If few weights are nonzero, only the entries of their columns are multiplied.
        nonzero = np.flatnonzero(weights)
        columns = nonzero if 4 * nonzero.size < self.shape[1] else None
        w = self._to_device(weights if columns is None else weights[nonzero])
        total = torch.zeros(self.shape[0], dtype=torch.float64, device=self.sample.device)
        for part, values, rows, starts in self._pieces(columns):
            # The weight of the column of each entry.
            weights_of_entries = torch.repeat_interleave(
                w[part], starts.diff(), output_size=values.numel()
            )
            total.index_add_(0, rows, values * weights_of_entries)
        return to_host(total)

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in the processor's memory).

        The block is dense if X is nearly dense (``is_full``), else sparse.
        """
        positions, lengths = self._places(columns)
        data = to_host(self.sample[positions]).astype(np.float64)
        rows = np.array(to_host(self._rows[positions]))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return block_of_entries(
            (data, rows, starts.astype(rows.dtype)), self.shape[0], self.is_full
        )

    def columns(self, lo: int, hi: int) -> Any:
        """Return the columns lo, ..., hi - 1 as a dense tensor (n_samples, hi - lo)."""
        torch = torch_module()
        width = hi - lo
        begin = int(self._begins[lo])
        end = int(self._begins[hi])
        device = self.sample.device
        # The column of each entry, counted from lo.
        lengths = self._starts[lo : hi + 1].diff()
        entry_columns = torch.repeat_interleave(
            torch.arange(width, device=device), lengths, output_size=end - begin
        )
        # The entry (i, j) is at place i width + j of the flat tensor.
        tile = torch.zeros(self.shape[0] * width, dtype=self.sample.dtype, device=device)
        tile[self._rows[begin:end].long() * width + entry_columns] = self.sample[begin:end]
        return tile.view(self.shape[0], width)

    def host(self) -> sp.csc_array:
        """Return X as a SciPy array on the processor, copied once."""
        if self._host is None:
            X = sp.csc_array(self.shape, dtype=self.dtype)
            # The attributes are set one by one, because the constructor would copy 64-bit indices
            # that fit into 32 bits.
            X.data, X.indices = np.array(to_host(self.sample)), np.array(to_host(self._rows))
            X.indptr = self._begins.astype(X.indices.dtype)
            self._host = X
        return self._host

    # --- entries --------------------------------------------------------------------------------

    def _to_device(self, array: NDArray[Any]) -> Any:
        """Return the array as a tensor on the device."""
        return torch_module().from_numpy(np.array(array, order="C")).to(self.sample.device)

    def _places(self, columns: Columns) -> tuple[Any, NDArray[np.int64]]:
        """Return the positions of the entries of columns, and the number of entries of each.

        Positions count the stored entries of X; they are a tensor on the device, one column after
        the other.
        """
        torch = torch_module()
        first = self._begins[columns]
        lengths = self._begins[columns + 1] - first
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if ends.size else 0
        # The position of an entry is its number in the result plus an offset of its column.
        offsets = self._to_device(first - (ends - lengths))
        counts = self._to_device(lengths)
        positions = torch.repeat_interleave(offsets, counts, output_size=total)
        return positions + torch.arange(total, device=positions.device), lengths

    def _pieces(self, columns: Columns | None) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Yield groups of columns as (positions, values in float64, row indices, column pointers).

        ``columns`` None means all columns. Positions are a slice of ``columns``, or of all columns.
        A group has a bounded number of entries, or one column.
        """
        # Number of entries up to the end of each requested column.
        ends = self._begins[1:]
        if columns is not None:
            ends = np.cumsum(self._begins[columns + 1] - self._begins[columns])
        start = 0
        while start < ends.size:
            start_entry = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, start_entry + BUDGET.tile_entries, side="right"))
            group = slice(start, max(stop, start + 1))
            # Neighboring columns are a slice of the entries; chosen ones are copied.
            if columns is None:
                entries: Any = slice(int(self._begins[group.start]), int(self._begins[group.stop]))
                starts = self._starts[group.start : group.stop + 1] - entries.start
            else:
                entries, counts = self._places(columns[group])
                numbers = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
                starts = self._to_device(numbers).to(self._rows.dtype)
            yield group, self.sample[entries].double(), self._rows[entries], starts
            start = group.stop


# --- sums over runs of entries --------------------------------------------------------------------


def _sums(values: Any, rows: Any, starts: Any, v: Any) -> Any:
    """Return X'v for CSC columns X, in the precision of ``values``, as a tensor on the device.

    ``values``, ``rows`` (row indices) and ``starts`` (column pointers) are the arrays of X. The
    arrays of CSC are those of the transpose X' in CSR, so that PyTorch's sparse matrix-vector
    product applies. If the device does not support it, the products of entries are added up by
    columns.
    """
    if not _has_product(values.device.type, values.dtype):
        terms = values * v[rows.long()]
        return torch_module().segment_reduce(terms, "sum", offsets=starts.long())
    shape = (starts.numel() - 1, v.numel())
    with as_written(values):  # autocast of PyTorch would multiply in half precision
        return torch_module().mv(_compressed(starts, rows, values, shape), v)


def _compressed(starts: Any, indices: Any, values: Any, size: tuple[int, int]) -> Any:
    """Return a CSR tensor of shape ``size`` from its arrays, without PyTorch's check of them.

    ``starts`` are the row pointers; ``indices`` and ``values`` are those of the stored entries.
    """
    return torch_module().sparse_csr_tensor(
        starts, indices, values, size=size, check_invariants=False
    )


@functools.cache
def _has_product(device: str, dtype: Any) -> bool:
    """Return whether PyTorch has a sparse matrix-vector product of this type on this device.

    The product of a 1 x 1 matrix is tried once for each pair of ``device`` and ``dtype``.
    """
    torch = torch_module()
    starts = torch.tensor([0, 1], device=device)
    ones = torch.ones(1, dtype=dtype, device=device)
    with warnings.catch_warnings(action="ignore"):
        # PyTorch warns once in a process that sparse tensors are in beta.
        try:
            product = torch.mv(_compressed(starts, starts[:1], ones, (1, 1)), ones)
        except (RuntimeError, NotImplementedError):
            return False
    return float(product[0]) == 1.0
