"""Levels: the values that each input is rounded to, and the codes of its entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import CodedColumns
from atomlearn.core.interfaces import Array, Columns, Design
from atomlearn.maps.settings import SETTINGS

Bytes = NDArray[np.uint8]
Binning = Literal["quantile", "uniform"]


@dataclass(frozen=True, slots=True)
class Levels:
    """Input j is rounded to the nearest of values[starts[j] : starts[j + 1]], which increase.

    zero : (d,) int64, the code of the origin of each input: 0 where its values reach from below 0
    to above, else the value nearest to 0. Entries that sparse data does not store have it.
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
        """Return the levels of one input."""
        return self.values[self.starts[j] : self.starts[j + 1]]

    def codes(self, j: int, x: NDArray[Any]) -> Bytes:
        """Return the code of the level nearest to each value; beyond the ends, of the last one."""
        return nearest(self.of(j), x)


def nearest(levels: Array, x: NDArray[Any]) -> Bytes:
    """Return the position of the level nearest to each value, of two the lower one."""
    low, high = levels[:-1], levels[1:]
    middle = 0.5 * low + 0.5 * high
    # Between neighboring floats there is no middle: each is its own.
    middle = np.where((middle >= high) | (middle < low), low, middle)
    return np.searchsorted(middle, x, side="left").astype(np.uint8)


def read_columns(base: Design) -> Iterator[tuple[int, NDArray[Any], NDArray[Any] | None]]:
    """Yield (j, values, rows) for each column of a design, rows None where all are given.

    Sparse data gives what it stores, anything else dense columns, a bounded number at a time.
    """
    n_samples, n_inputs = base.shape
    X = base.stored_sparse()
    if X is None:
        width = max(1, SETTINGS.read_entries // n_samples)
        for start in range(0, n_inputs, width):
            some = np.arange(start, min(start + width, n_inputs), dtype=np.int64)
            array = base.gather(some).dense()
            for place, j in enumerate(some.tolist()):
                yield j, array[:, place], None
        return
    width = max(1, SETTINGS.read_entries * n_inputs // (X.nnz + 1))
    width = n_inputs if X.format == "csc" else width
    for start in range(0, n_inputs, width):
        stop = min(start + width, n_inputs)
        part = X if X.format == "csc" else X[:, start:stop].tocsc()
        for place in range(stop - start):
            chosen = slice(int(part.indptr[place]), int(part.indptr[place + 1]))
            yield start + place, part.data[chosen], part.indices[chosen]


def find_levels(base: Design, n_bins: int, binning: Binning, weight: Array) -> Levels:
    """Return the levels of every input: its own values where these are at most n_bins + 1.

    Else n_bins of them and the origin: "quantile" takes values of evenly spaced rank among those
    that are not the origin, "uniform" even steps from the smallest to the largest value. Rows
    count ``weight`` times, (n_samples,) >= 0. O(entries log entries of a column), one pass over X.
    """
    found: list[Array] = []
    zero = np.zeros(base.shape[1], dtype=np.int64)
    total = float(weight.sum())
    for j, values, rows in read_columns(base):
        x, mass = np.asarray(values, dtype=np.float64), weight if rows is None else weight[rows]
        if rows is not None and rows.size < base.shape[0]:
            x, mass = np.append(x, 0.0), np.append(mass, total - mass.sum())
        order = np.argsort(x, kind="stable")
        # What is left over of weights that are no whole numbers is rounding.
        order = order[mass[order] > 1e-12 * total]
        levels, origin = _levels_of(x[order], mass[order], n_bins, binning, j)
        zero[j] = np.searchsorted(levels, origin)
        found.append(levels)
    starts = np.concatenate([[0], np.cumsum([levels.size for levels in found])])
    return Levels(np.concatenate(found), starts.astype(np.int64), zero)


def _levels_of(x: Array, mass: Array, n_bins: int, binning: Binning, j: int) -> tuple[Array, float]:
    low, high = float(x[0]), float(x[-1])
    if not np.isfinite(high - low):
        raise ValueError(
            f"column {j} reaches from {low} to {high}, too far to be divided; scale it, or check "
            "it for NaN and infinity"
        )
    origin = min(max(0.0, low), high)
    keep = np.concatenate([[True], x[1:] != x[:-1]])
    levels = x[keep]
    if levels.size > n_bins + 1 or (levels.size == n_bins + 1 and origin not in levels):
        share = np.linspace(0.0, 1.0, n_bins)
        if binning == "uniform":
            levels = low * (1.0 - share) + high * share
        else:
            others = x != origin
            reached = np.cumsum(mass[others])
            levels = x[others][np.searchsorted(reached, share * (1.0 - 1e-12) * reached[-1])]
    # Adding 0 makes the zero that is not negative: of -0.0 and 0.0 only one is kept.
    return np.unique(np.append(levels, origin) + 0.0), origin


def encode(base: Design, levels: Levels) -> CodedColumns:
    """Return the codes of all entries: a byte each. CSC arrays share their rows with X."""
    n_samples, n_inputs = base.shape
    X = base.stored_sparse()
    if X is None:
        codes = np.empty(n_samples * n_inputs, dtype=np.uint8)
        for j, values, _ in read_columns(base):
            codes[j * n_samples : (j + 1) * n_samples] = levels.codes(j, values)
        return CodedColumns(codes, None, None, n_samples, levels.starts)
    codes = np.empty(X.nnz, dtype=np.uint8)
    if X.format == "csc":
        indices, indptr = X.indices, X.indptr
    else:
        counts = np.bincount(X.indices, minlength=n_inputs)
        indices = np.empty(X.nnz, dtype=X.indices.dtype)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(X.indices.dtype)
    for j, values, rows in read_columns(base):
        part = slice(int(indptr[j]), int(indptr[j + 1]))
        codes[part] = levels.codes(j, values)
        if X.format != "csc" and rows is not None:
            indices[part] = rows
    return CodedColumns(codes, indices, indptr, n_samples, levels.starts)


def codes_of(x: CodedColumns, zero: Columns, columns: Columns) -> Bytes:
    """Return the codes of some columns for all rows, (n_rows, len(columns)) in Fortran order."""
    result = np.empty((x.n_rows, columns.size), dtype=np.uint8, order="F")
    for place, j in enumerate(columns.tolist()):
        if x.indices is None or x.indptr is None:
            result[:, place] = x.codes[j * x.n_rows : (j + 1) * x.n_rows]
            continue
        part = slice(int(x.indptr[j]), int(x.indptr[j + 1]))
        result[:, place] = zero[j]
        result[x.indices[part], place] = x.codes[part]
    return result


def codes_of_rows(x: CodedColumns, zero: Columns, rows: NDArray[np.int64]) -> CodedColumns:
    """Return the codes of some rows, repeats allowed: a copy."""
    count = np.int64(rows.size)
    if x.indices is None or x.indptr is None:
        codes = np.empty(rows.size * x.n_columns, dtype=np.uint8)
        for j in range(x.n_columns):
            column = x.codes[j * x.n_rows : (j + 1) * x.n_rows]
            np.take(column, rows, out=codes[j * count : (j + 1) * count])
        return CodedColumns(codes, None, None, rows.size, x.starts)
    # Row i goes to the places where it stands among ``rows``, which are listed row after row.
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=x.n_rows)
    first = np.cumsum(counts) - counts
    repeats = counts[x.indices]
    ends = np.cumsum(repeats)
    within = np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - repeats, repeats)
    places = order[np.repeat(first[x.indices], repeats) + within]
    indptr = np.concatenate([[0], ends])[x.indptr]
    return CodedColumns(
        np.repeat(x.codes, repeats),
        places.astype(x.indices.dtype),
        indptr.astype(x.indptr.dtype),
        rows.size,
        x.starts,
    )
