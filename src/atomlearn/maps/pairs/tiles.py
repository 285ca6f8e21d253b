"""Tiles: all products of some inputs with some others, as one matrix product."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.interfaces import Array
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.search import Finalists
from atomlearn.maps.settings import SETTINGS


class Sums:
    """left @ right, tile by tile, each thread in memory of its own that it uses again.

    In single precision a bounded number of rows at a time: the error does not grow with the rest.
    """

    def __init__(self, single: bool) -> None:
        self.single = single
        self._threads = threading.local()

    def of(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the tile; it is overwritten by the next one of this thread."""
        n_samples = right.shape[0]
        tile = self._room("tile", left, right, left.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for by offer_tile
            if not self.single or n_samples <= SETTINGS.single_rows:
                return np.matmul(left, right, out=tile)
            total = self._room("total", left, right, np.dtype(np.float64))
            total[:] = 0.0
            for start in range(0, n_samples, SETTINGS.single_rows):
                rows = slice(start, start + SETTINGS.single_rows)
                total += np.matmul(left[:, rows], right[rows], out=tile)
        return total

    def _room(
        self, name: str, left: NDArray[Any], right: NDArray[Any], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        size = left.shape[0] * right.shape[1]
        room = getattr(self._threads, name, None)
        if room is None or room.size < size:
            room = np.empty(size, dtype=dtype)
            setattr(self._threads, name, room)
        shaped: NDArray[Any] = room[:size].reshape(left.shape[0], right.shape[1])
        return shaped


def put_tile(tile: NDArray[Any], lo: int, start: int, index: PairIndex, result: Array) -> None:
    """Write the pairs among the sums of inputs lo, ... with inputs start, ... where they belong."""
    width = tile.shape[1]
    begins = index.starts(np.arange(lo, lo + tile.shape[0])) - index.n_inputs
    for row, begin in enumerate(begins.tolist()):
        first = lo + row + index.shift
        skip = max(first - start, 0)
        if skip >= width:
            break
        place = begin + start + skip - first
        result[place : place + width - skip] = tile[row, skip:]


def weights_of_inputs(weights: Array, lo: int, hi: int, index: PairIndex, square: float) -> Array:
    """Return the weights of pairs of inputs lo..hi with inputs lo..d as a matrix, else zero."""
    starts = index.starts(np.arange(lo, hi + 1)) - index.n_inputs
    matrix = np.zeros((hi - lo, index.n_inputs - lo))
    for row in range(hi - lo):
        matrix[row, row + index.shift :] = weights[starts[row] : starts[row + 1]]
        if index.squares:
            matrix[row, row] *= square
    return matrix


def clear_below(tile: NDArray[Any], lo: int, start: int, shift: int, square: float) -> None:
    """Set what is no pair to zero, and weigh the squares."""
    for row in range(tile.shape[0]):
        diagonal = lo + row - start
        tile[row, : max(diagonal + shift, 0)] = 0.0
        if not shift and 0 <= diagonal < tile.shape[1]:
            tile[row, diagonal] *= square


def check_peak(peak: float) -> None:
    """Refuse sums of pairs the largest of which is not finite."""
    if not np.isfinite(peak):
        raise ValueError(
            "scores of pairs overflow: entries of X are too large for products of two columns; "
            "scale the columns of X, for example with designs.Standardized"
        )


def pairs_in_tile(n_rows: int, n_columns: int, lo: int, start: int, shift: int) -> int:
    """Return how many sums of inputs lo, ... with inputs start, ... are pairs."""
    first = np.maximum(np.arange(lo, lo + n_rows) + shift - start, 0)
    return int(np.maximum(n_columns - first, 0).sum())


def offer_tile(
    tile: NDArray[Any],
    lo: int,
    start: int,
    shift: int,
    bound: float,
    radii: Array,
    finalists: Finalists,
) -> int:
    """Offer the sums in a tile that may matter; ``bound`` >= r_i r_j in all of it.

    Returns how many pairs the tile holds.
    """
    computed = pairs_in_tile(tile.shape[0], tile.shape[1], lo, start, shift)
    peak = _kernels.tile_peak(tile)
    check_peak(peak)
    margin = finalists.error.relative * bound + finalists.error.absolute
    if peak < finalists.least_magnitude(margin):
        return computed
    # As many sums as are wanted have the wanted-th magnitude of this tile, or more.
    most = 4 * finalists.wanted + 4096
    chosen, number = _kernels.tile_places(tile, finalists.least_magnitude(margin), most)
    if number > most or finalists.threshold == 0.0:
        flat = np.abs(tile).ravel()
        place = flat.size - finalists.wanted
        if place >= 0:
            known = float(np.partition(flat, place)[place])
            finalists.raise_to(known * (1.0 - 4e-7) - margin)
        chosen = np.flatnonzero(flat >= finalists.least_magnitude(margin))
    i, j = np.divmod(chosen, tile.shape[1])
    magnitudes = np.abs(tile[i, j])
    i, j = i + lo, j + start
    pairs = j >= i + shift
    finalists.offer(i[pairs], j[pairs], magnitudes[pairs], radii)
    return computed
