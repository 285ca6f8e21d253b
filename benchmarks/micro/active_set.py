"""The active-set QP while atoms come in, by one and by ten: factor kept, afresh, and SciPy's nnls.

Non-negative least squares on 2m correlated images; penalized, and with a bound on the sum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import nnls

from atomlearn._kernels import ActiveFactor, active_set_qp
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.problem.problem import objective_at, restrict
from atomlearn.interfaces import Master
from atomlearn.losses import Squared
from atomlearn.masters import SemismoothNewton, SequentialQP
from atomlearn.norms import L1, Nonnegative
from atomlearn.problem import Problem, Regularizer
from benchmarks.harness import Options, Table

#: Pivots are counted where the kernel is ours; nnls does not tell.
Times = dict[str, tuple[list[float], int]]


def images(size: int, more: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A (2 size, size + more) with common parts, y, and the sum of the true weights."""
    rng = np.random.default_rng(size)
    A = rng.standard_normal((2 * size, size + more)) + 0.3
    truth = np.abs(rng.standard_normal(size + more)) * (rng.random(size + more) < 0.7)
    return A, A @ truth + rng.standard_normal(2 * size), float(truth.sum())


def kernel_rows(size: int, growth: int, calls: int) -> Iterator[dict[str, Any]]:
    """Time the kernel alone, called after every ``growth`` new atoms."""
    A, y, total = images(size, growth * calls)
    gram, linear = A.T @ A, A.T @ y - 1.0
    for form, radius in (("penalized", math.inf), ("constrained", 0.7 * total)):
        times: Times = {}
        for name in ("factor kept", "refactorized", "from nothing", "scipy nnls"):
            if name == "scipy nnls" and form == "constrained":
                continue
            times[name] = _grow(name, A, y, gram, linear, size, growth, radius)
        for name, (seconds, counted) in times.items():
            pivots = math.nan if name == "scipy nnls" else counted
            yield {
                "what": "kernel",
                "m": size,
                "growth": growth,
                "form": form,
                "method": name,
                "median_ms": 1e3 * float(np.median(seconds)),
                "pivots_a_call": pivots / len(seconds),
                "pivots_a_second": pivots / sum(seconds),
            }


def _grow(
    name: str, A: np.ndarray, y: np.ndarray, gram: np.ndarray, linear: np.ndarray,
    size: int, growth: int, radius: float,
) -> tuple[list[float], int]:  # fmt: skip
    """Seconds of each call and all pivots, after a first call that is not counted."""
    state, c, seconds, pivots = ActiveFactor(), np.zeros(size), [], 0
    c, _ = active_set_qp(gram[:size, :size], linear[:size], c, state=state, radius=radius)
    for m in range(size + growth, A.shape[1] + 1, growth):
        c = np.append(c, np.zeros(growth))
        if name == "refactorized":
            state.forget()
        if name == "from nothing":
            state.forget()
            c = np.zeros(m)
        began = time.perf_counter()
        if name == "scipy nnls":
            nnls(A[:, :m], y)
        else:
            c, outcome = active_set_qp(
                gram[:m, :m], linear[:m], c, state=state, radius=radius, batch=min(growth, 5)
            )
            pivots += outcome.pivots
        seconds.append(time.perf_counter() - began)
    return seconds, pivots


def master_rows(size: int, growth: int, calls: int) -> Iterator[dict[str, Any]]:
    """Time whole calls of masters on a block that grows, to a relative gap of 1e-6."""
    A, y, _ = images(size, growth * calls)
    for master in (SequentialQP(), SemismoothNewton()):
        seconds, steps = _refits(master, A, y, size, growth)
        yield {
            "what": "master",
            "m": size,
            "growth": growth,
            "form": "penalized",
            "method": type(master).__name__,
            "median_ms": 1e3 * float(np.median(seconds)),
            "pivots_a_call": steps / len(seconds),
            "pivots_a_second": math.nan,
        }


def _refits(
    master: Master, A: np.ndarray, y: np.ndarray, size: int, growth: int
) -> tuple[list[float], int]:
    block, weights, seconds, steps = CachedBlock(DenseBlock(A[:, :size])), np.zeros(size), [], 0
    regularizer = Regularizer(Nonnegative(L1()), "penalized", 1.0)
    whole = Problem.build(block, y, Squared(), regularizer, fit_intercept=True)
    target = 1e-6 * objective_at(whole, weights, np.zeros(y.size))
    weights = master.solve(whole, weights, 0.0, target).weights
    for m in range(size + growth, A.shape[1] + 1, growth):
        block = block.append(DenseBlock(A[:, m - growth : m]))
        problem = restrict(whole, block, np.arange(m))
        began = time.perf_counter()
        refit = master.solve(problem, np.append(weights, np.zeros(growth)), 0.0, target)
        seconds.append(time.perf_counter() - began)
        weights, steps = refit.weights, steps + refit.steps
    return seconds, steps


def main() -> None:
    """Time all."""
    options = Options.parse(__doc__)
    with Table("active_set", options) as table:
        for size in [20] if options.smoke else [50, 100, 200, 500]:
            for growth in (1, 10):
                for row in kernel_rows(size, growth, options.times(15)):
                    table.add(**row)
                for row in master_rows(size, growth, options.times(15)):
                    table.add(**row)


if __name__ == "__main__":
    main()
