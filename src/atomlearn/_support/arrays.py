"""Types of arrays, functions of arrays, and bounds on rounding errors, that all packages use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Arrays of float64: predictions, weights, scores.
Array = NDArray[np.float64]
#: Indices of columns of X.
Columns = NDArray[np.int64]
#: Indices of rows of X.
Rows = NDArray[np.int64]
#: Boolean masks.
Mask = NDArray[np.bool_]
#: The machine epsilon, and the smallest normal number, of float64.
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


def power_of_two(w: Array) -> float:
    """Return 2^e with 2^e / 2 <= max |w| < 2^e; 1 if w is zero or not finite.

    Dividing ``w`` by it is exact, and leaves numbers of about 1, whose squares cannot overflow.
    """
    largest = float(np.abs(w).max(initial=0.0))
    if not math.isfinite(largest):
        return 1.0
    exponent = math.frexp(largest)[1]
    # Within these limits, 2^e and its inverse are normal numbers.
    return math.ldexp(1.0, min(max(exponent, -1021), 1023))


def ranges(starts: Columns, sizes: Columns) -> Columns:
    """Return starts_k, starts_k + 1, ..., starts_k + sizes_k - 1 for all k, one after the other.

    ``starts`` and ``sizes`` have one entry for each range.
    """
    # The entry at position m of range k is m minus the position at which range k begins, plus
    # starts_k.
    ends = np.cumsum(sizes)
    offsets: Columns = np.repeat(starts - (ends - sizes), sizes)
    offsets += np.arange(offsets.size)
    return offsets


def numbered(numbers: Columns, size: int) -> tuple[Columns, Columns]:
    """Return the distinct ``numbers``, increasing, and the position of each number among them.

    It is ``np.unique`` with inverse for numbers in [0, size), in O(size) instead of a sort.
    """
    is_present = np.zeros(size, dtype=np.bool_)
    is_present[numbers] = True
    distinct = np.flatnonzero(is_present)
    position = np.empty(size, dtype=np.int64)
    position[distinct] = np.arange(distinct.size)
    return distinct, position[numbers]


def growth(count: int) -> float:
    """Return eps * (4 + sqrt(count)), which bounds the relative error of a sum of count terms.

    Independent roundings add up like a random walk: [Higham, Mary 2019, doi:10.1137/18M1226312].
    """
    return EPS * (4.0 + math.sqrt(count))


def counted(weight: Array) -> Array | None:
    """Return 1 for each sample of positive ``weight``, else 0; None if all weights are positive."""
    return None if weight.all() else (weight > 0.0).astype(np.float64)


def spread_rows(v: Array, rows: Rows, n_rows: int) -> Array:
    """Return v (m,) or (m, t), whose entries are of ``rows``, over all ``n_rows``: 0 elsewhere.

    A row that is listed repeatedly gets the sum of its entries, as in X'v.
    """
    spread = np.zeros((n_rows, *v.shape[1:]))
    np.add.at(spread, rows, v)
    return spread
