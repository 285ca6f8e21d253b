"""Quantiles of weighted numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the least value that at least this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-14)))
    # Samples without a weight are no quantile of anything.
    while place + 1 < order.size and weight[order[place]] == 0.0:
        place += 1
    return float(values[order[min(place, order.size - 1)]])
