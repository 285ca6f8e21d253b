"""The kinds of arrays that all rooms speak of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Numbers: predictions, weights, scores.
Array = NDArray[np.float64]
#: Places of columns of X, counted from 0.
Columns = NDArray[np.int64]
#: Places of rows of X, counted from 0.
Rows = NDArray[np.int64]
#: Which of some things are meant.
Mask = NDArray[np.bool_]
#: What rounds to one another at 1, and the least normal number: float64.
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


def power_of_two(w: Array) -> float:
    """Return 2^e with max |w| in [2^e / 2, 2^e); 1 for a zero vector. Dividing by it is exact."""
    largest = float(np.abs(w).max(initial=0.0))
    if not math.isfinite(largest):
        return 1.0
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, min(max(exponent, -1021), 1023))


def ranges(starts: Columns, sizes: Columns) -> Columns:
    """Return starts_k, starts_k + 1, ..., ``sizes_k`` numbers for each k, one after the other."""
    ends = np.cumsum(sizes)
    places: Columns = np.repeat(starts - (ends - sizes), sizes)
    places += np.arange(places.size)
    return places


def numbered(numbers: Columns, size: int) -> tuple[Columns, Columns]:
    """Return which of 0, ..., size - 1 are among the numbers, and the place of each there.

    As ``np.unique`` does by sorting, in O(size).
    """
    used = np.zeros(size, dtype=np.bool_)
    used[numbers] = True
    found = np.flatnonzero(used)
    place = np.empty(size, dtype=np.int64)
    place[found] = np.arange(found.size)
    return found, place[numbers]
