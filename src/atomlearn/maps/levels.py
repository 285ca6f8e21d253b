"""Levels: the values that each input is rounded to, and the codes of its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._kernels import CodedColumns
from atomlearn.core import LIMITS, Array, Columns, Design

Bytes = NDArray[np.uint8]
Binning = Literal["quantile", "uniform"]


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of all inputs, the values to which their entries are rounded.

    Input j is rounded to the nearest of values[starts[j] : starts[j + 1]], which increase. The code
    of an entry is the number of its level among those of the input.

    Attributes
    ----------
    values : array
        Levels of all inputs, one after the other.
    starts : (d + 1,) int64
        First level of each input, and the end.
    zero : (d,) int64
        Code of the origin of each input: 0 if its values are on both sides of 0, else the value
        nearest to 0. It is the code of entries that sparse data does not store.
    """

    values: Array
    starts: Columns
    zero: Columns

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.starts.size - 1

    @property
    def sizes(self) -> Columns:
        """Number of levels of each input."""
        return np.diff(self.starts)

    def of(self, j: int) -> Array:
        """Return the levels of input j."""
        return self.values[self.starts[j] : self.starts[j + 1]]


def nearest(levels: Array, x: NDArray[Any]) -> Bytes:
    """Return the position of the level nearest to each value of x, in a tie the lower one.

    ``levels`` is an increasing array; the result has the shape of x.
    """
    values = np.ascontiguousarray(x, dtype=np.float64)
    codes = np.empty(values.size, dtype=np.uint8)
    # ``code_columns`` takes several columns. Here it is one: these are the begin and the end of its
    # entries, and of its levels.
    entry_ends = np.array([0, values.size])
    level_ends = np.array([0, levels.size])
    _kernels.code_columns(values.ravel(), entry_ends, levels, level_ends, codes)
    return codes.reshape(values.shape)


#: Entries of some columns one after the other, their rows (None if all rows), and the first entry
#: of each column.
Piece = tuple[NDArray[Any], NDArray[Any] | None, Columns]


def column_pieces(base: Design, stored: Any) -> Iterator[tuple[int, Piece]]:
    """Yield (number of the first column, entries) for consecutive groups of columns.

    The groups bound the memory. ``base`` is the design. ``stored`` is the same as a CSC array,
    whose stored entries are yielded; None if columns are dense.
    """
    n_samples, n_inputs = base.shape
    entries = n_samples * n_inputs if stored is None else stored.nnz
    width = max(1, LIMITS.piece_entries * n_inputs // (entries + 1))
    for start in range(0, n_inputs, width):
        stop = min(start + width, n_inputs)
        # ``begin`` is the first entry of each column of the group, and the end.
        if stored is None:
            array = np.asfortranarray(base.gather(np.arange(start, stop)).dense())
            begin = n_samples * np.arange(stop - start + 1)
            yield start, (array.ravel(order="K"), None, begin)
        else:
            begin = stored.indptr[start : stop + 1].astype(np.int64)
            stored_entries = slice(begin[0], begin[-1])
            yield (
                start,
                (stored.data[stored_entries], stored.indices[stored_entries], begin - begin[0]),
            )


def levels_and_codes(
    base: Design, n_bins: int, binning: Binning, weight: Array
) -> tuple[Levels, CodedColumns]:
    """Return the levels of every input and the codes of all entries, in one pass over X.

    An input with at most n_bins + 1 distinct values has these as levels. Otherwise it has n_bins
    levels and the origin. The ``binning`` "quantile" takes values of evenly spaced rank among those
    that are not the origin. "uniform" takes even steps from the smallest to the largest value. Row
    i counts weight_i times, with ``weight`` (n_samples,) >= 0. It takes O(entries log entries)
    operations for each column.
    """
    shares = np.linspace(0.0, 1.0, n_bins)
    uniform = binning == "uniform"
    # For each piece of columns: levels, numbers of levels, and the codes of origins.
    values = [np.zeros(0)]
    sizes = [np.zeros(1, np.int64)]
    origins = [np.zeros(0, np.int64)]

    def levels_of(first: int, piece: Piece) -> tuple[Array, Columns]:
        """Record and return the levels of the columns of a piece, and their starts.

        ``first`` is the number of the first column.
        """
        piece_levels, counts, zero = _kernels.find_levels(*piece, weight, shares, uniform)
        if not counts.all():
            bad = int(np.argmin(counts))
            raise ValueError(
                f"column {first + bad} reaches from {piece_levels[bad, 0]} to "
                f"{piece_levels[bad, 1]}, too far to be divided; scale it, or check it for NaN and "
                "infinity"
            )
        values.append(piece_levels[np.arange(n_bins + 1) < counts[:, None]])
        sizes.append(counts)
        origins.append(zero)
        return values[-1], np.concatenate([[0], np.cumsum(counts)])

    parts = _encoded(base, levels_of)
    starts = np.cumsum(np.concatenate(sizes))
    levels = Levels(np.concatenate(values), starts, np.concatenate(origins))
    return levels, CodedColumns(*parts, starts)


def encoded(base: Design, levels: Levels) -> CodedColumns:
    """Return the codes of all entries of ``base``, one byte each, for known ``levels``.

    For sparse data only stored entries have codes, and row indices are shared with X.
    """

    def levels_of(first: int, piece: Piece) -> tuple[Array, Columns]:
        """Return the known levels of the columns of a piece, and their starts.

        ``first`` is the number of the first column.
        """
        # The last part of a piece is the first entry of each column, and the end.
        piece_starts = levels.starts[first : first + piece[2].size]
        return levels.values[piece_starts[0] : piece_starts[-1]], piece_starts - piece_starts[0]

    return CodedColumns(*_encoded(base, levels_of), levels.starts)


def _encoded(
    base: Design, levels_of: Callable[[int, Piece], tuple[Array, Columns]]
) -> tuple[Bytes, NDArray[Any] | None, NDArray[Any] | None, int]:
    """Return codes, their rows, the begin of each column, and the number of rows.

    These are the arguments of ``CodedColumns``; dense data has no rows and begins. It takes one
    pass over X. ``levels_of(first, piece)`` returns the levels of the columns of a piece, one after
    the other, and the begin of each.
    """
    n_samples, n_inputs = base.shape
    stored = base.stored() if base.traits.is_sparse else None
    stored = None if stored is None else stored.tocsc()
    codes = np.empty(n_samples * n_inputs if stored is None else stored.nnz, dtype=np.uint8)
    done = 0
    for first, piece in column_pieces(base, stored):
        values, _, begin = piece
        piece_codes = codes[done : done + values.size]
        _kernels.code_columns(values, begin, *levels_of(first, piece), piece_codes)
        done += values.size
    if stored is None:
        return codes, None, None, n_samples
    return codes, stored.indices, stored.indptr, n_samples


def dense_codes(x: CodedColumns, zero: Columns, columns: Columns) -> Bytes:
    """Return the codes of some columns for all rows, (n_rows, len(columns)) in Fortran order.

    x has the codes of all columns. ``zero`` (d,) has the code of entries that sparse data does
    not store.
    """
    if x.indices is None or x.indptr is None:
        codes: Bytes = x.codes.reshape(-1, x.n_rows)[columns].T
        return codes
    result = np.empty((x.n_rows, columns.size), dtype=np.uint8, order="F")
    result[:] = zero[columns]
    for number, j in enumerate(columns.tolist()):
        entries = slice(int(x.indptr[j]), int(x.indptr[j + 1]))
        result[x.indices[entries], number] = x.codes[entries]
    return result
