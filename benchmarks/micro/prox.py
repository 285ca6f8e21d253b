"""k-support prox: ours against the four published ways, a NumPy sort, and ModOpt if installed.

Gaussian and Cauchy vectors, step 1, on one thread and on two.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from atomlearn import _kernels as kernels
from benchmarks.harness import Options, Table
from benchmarks.micro.timing import side_by_side

METHODS: dict[str, Callable[..., Any]] = {
    "scaling (ours)": kernels.ksupport_prox,
    "box norm": partial(kernels.ksupport_prox, method="box_norm"),
    "binary search": partial(kernels.ksupport_prox, method="binary_search"),
    "two-step": partial(kernels.ksupport_prox, method="two_step"),
    "exhaustive": partial(kernels.ksupport_prox, method="exhaustive"),
}
#: Most (r, l) pairs that the exhaustive search is given.
MOST_PAIRS = 10**8


def numpy_sort(v: np.ndarray, k: int, step: float) -> tuple[np.ndarray, float]:
    """Sort, prefix sums and a binary search over t, in plain NumPy."""
    magnitudes = np.abs(v)
    z = np.sort(magnitudes)
    sums = np.concatenate([[0.0], np.cumsum(z)])

    def total(t: float) -> float:
        first, last = np.searchsorted(z, [step / t, (1 + step) / t])
        return float(t * (sums[last] - sums[first]) - step * (last - first) + z.size - last)

    if np.count_nonzero(z) <= k:
        return v / (1 + step), np.inf
    points = np.sort(np.concatenate([step / z[z > 0], (1 + step) / z[z > 0]]))
    low, high = 0, points.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(points[middle]) <= k else (low, middle)
    below, above = total(points[low]), total(points[high])
    t = points[low] + (k - below) / (above - below) * (points[high] - points[low])
    d = np.clip(t * magnitudes - step, 0, 1)
    return v * d / (d + step), t


def modopt_prox(v: np.ndarray, k: int, step: float) -> Callable[[], Any] | None:
    """ModOpt's KSupportNorm at the same point, or None where it is not installed."""
    if importlib.util.find_spec("modopt") is None:
        return None
    from modopt.opt.proximity import KSupportNorm

    operator = KSupportNorm(beta=step, k_value=k)
    return lambda: operator.op(v)


#: The vectors that are timed on two threads as well.
LONG = 10**5


def rows(options: Options) -> Iterator[dict[str, Any]]:
    """One row for each (input, d, k, threads, method)."""
    rng = np.random.default_rng(0)
    sizes = [10**4] if options.smoke else [10**2, 10**4, 10**6]
    for size in sizes:
        for kind, v in {
            "gaussian": rng.standard_normal(size),
            "gaussian float32": rng.standard_normal(size).astype(np.float32),
            "cauchy": rng.standard_cauchy(size),
        }.items():
            powers = [10**e for e in range(20) if 10**e < size]
            for k in [*powers, size // 2, 9 * size // 10, size - 1, size]:
                for threads in (1, 2) if size >= LONG or options.smoke else (1,):
                    with threadpool_limits(threads):
                        for row in _at(v, k, options, with_modopt=kind == "gaussian"):
                            yield {"input": kind, "d": size, "k": k, "threads": threads, **row}


def _at(v: np.ndarray, k: int, options: Options, with_modopt: bool) -> Iterator[dict[str, Any]]:
    """One row for each method at this vector and k, the ratio being to ours."""
    calls: dict[str, Callable[[], Any]] = {
        name: lambda m=method: m(v, k, 1.0)
        for name, method in (METHODS | {"NumPy sort": numpy_sort}).items()
    }
    if k * (v.size - k + 1) > MOST_PAIRS:
        del calls["exhaustive"]
    modopt = modopt_prox(v, k, 1.0) if with_modopt and k < v.size else None
    if modopt is not None:
        calls["ModOpt"] = modopt
    few = {"scaling (ours)": 15, "ModOpt": 1}
    usual = 3 if v.size >= 10**6 else 9
    timed = side_by_side(calls, {name: options.times(few.get(name, usual)) for name in calls})
    ours = timed["scaling (ours)"]["median_ms"]
    for name, times in timed.items():
        yield {"method": name, **times, "ratio": times["median_ms"] / ours}


def main() -> None:
    """Time all, and say where ours is not ahead."""
    with Table("prox", Options.parse(__doc__)) as table:
        for row in rows(table.options):
            table.add(**row)
        behind = [
            f"{row['method']} {row['input']} d={row['d']} k={row['k']} threads={row['threads']}"
            for row in table.rows
            if row["ratio"] < 1
        ]
        table.note(behind=behind or "nowhere")


if __name__ == "__main__":
    main()
