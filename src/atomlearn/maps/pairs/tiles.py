"""Tiles: all products of some inputs with some others, as one matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.maps.pairs.index import PairIndex


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


def pairs_in_tile(n_rows: int, n_columns: int, lo: int, start: int, shift: int) -> int:
    """Return how many sums of inputs lo, ... with inputs start, ... are pairs."""
    first = np.maximum(np.arange(lo, lo + n_rows) + shift - start, 0)
    return int(np.maximum(n_columns - first, 0).sum())
