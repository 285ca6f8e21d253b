"""Wall time of short calls."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def seconds(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median and least wall time in ms over ``repeats`` runs after one warm-up."""
    return side_by_side({"": call}, {"": repeats})[""]


def side_by_side(
    calls: dict[str, Callable[[], object]], repeats: dict[str, int]
) -> dict[str, dict[str, float]]:
    """Time calls in interleaved rounds, each as often as given, after one warm-up of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-1, max(repeats.values())):
        for name, call in calls.items():
            if turn >= repeats[name]:
                continue
            start = time.perf_counter()
            call()
            if turn >= 0:
                times[name].append(time.perf_counter() - start)
    return {
        name: {
            "median_ms": 1e3 * float(np.median(found)) if found else float("nan"),
            "least_ms": 1e3 * min(found, default=float("nan")),
        }
        for name, found in times.items()
    }
