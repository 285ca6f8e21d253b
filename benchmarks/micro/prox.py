"""k-support prox: ours against the four published ways, a NumPy sort, and ModOpt if installed.

python benchmarks/micro/prox.py [--quick]
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _common import arguments, seconds, write

from atomlearn import _kernels as kernels

METHODS: dict[str, Callable[..., Any]] = {
    "scaling (ours)": kernels.ksupport_prox,
    "box norm": kernels.ksupport_prox_box_norm,
    "binary search": kernels.ksupport_prox_binary_search,
    "two-step": kernels.ksupport_prox_two_step,
    "exhaustive": kernels.ksupport_prox_exhaustive,
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


def rows(quick: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """One row for each (input, d, k, method)."""
    rng = np.random.default_rng(0)
    sizes = [10**4] if quick else [10**2, 10**4, 10**6]
    for size in sizes:
        for kind, v in {
            "gaussian": rng.standard_normal(size),
            "gaussian float32": rng.standard_normal(size).astype(np.float32),
            "cauchy": rng.standard_cauchy(size),
        }.items():
            powers = [10**e for e in range(20) if 10**e < size]
            for k in [*powers, size // 2, 9 * size // 10, size - 1, size]:
                calls = METHODS | {"NumPy sort": numpy_sort}
                if k * (size - k + 1) > MOST_PAIRS:
                    del calls["exhaustive"]
                for name, method in calls.items():
                    ours = name.startswith("scaling")
                    count = repeats or (15 if ours else 2 if size >= 10**6 else 9)
                    try:
                        times = seconds(lambda m=method, a=v, b=k: m(a, b, 1.0), count)
                    except ArithmeticError:  # the rounding of its prefix sums hid the answer
                        times = {"least_ms": float("nan"), "median_ms": float("nan")}
                    yield {"input": kind, "d": size, "k": k, "method": name, **times}
                call = modopt_prox(v, k, 1.0)
                if call is not None and kind == "gaussian" and k < size:
                    yield {"input": kind, "d": size, "k": k, "method": "ModOpt", **seconds(call, 1)}


if __name__ == "__main__":
    options = arguments("k-support prox of Gaussian and Cauchy vectors, step 1")
    print(write("prox", rows(options.quick, options.repeats)))
