"""What do gaps below what was asked for cost? Three paths, asked for more and more digits.

python -m benchmarks.overshoot [--smoke] [--out benchmarks/results]

A path of 50 levels to 0.02 of the largest: l1 on dense and on sparse data, and groups of ten. The
processor's seconds are the least of three runs; ``median_gap`` and ``largest_gap`` are relative,
over the levels, as proved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.norms import Groups
from atomlearn.paths import path
from benchmarks.harness import Options, Table

#: Relative gaps that are asked for.
ASKED = (1e-3, 1e-4, 1e-6, 1e-8, 1e-10)


def dense(size: float) -> tuple[Any, Any, Any]:
    """1000 x 5000, 50 of the columns matter."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((int(1000 * size), int(5000 * size))))
    return X, X[:, :50].sum(axis=1) + 3.0 * rng.standard_normal(X.shape[0]), "l1"


def scattered(size: float) -> tuple[Any, Any, Any]:
    """5000 x 50,000 with one entry in 200, 100 of the columns matter."""
    rng = np.random.default_rng(0)
    shape = int(5000 * size), int(50_000 * size)
    X = sparse.random_array(shape, density=0.005, rng=rng, format="csc")
    z = X[:, :100].sum(axis=1)
    return X, z + 0.3 * z.std() * rng.standard_normal(z.size), "l1"


def grouped(size: float) -> tuple[Any, Any, Any]:
    """600 x 3000 in groups of ten, five of which matter."""
    X, y, _ = dense(0.6 * size)
    return X, y, Groups(np.arange(X.shape[1]) // 10)


def measured(made: tuple[Any, Any, Any], asked: float, repeats: int) -> dict[str, Any]:
    """Return the price and the gaps of one path."""
    X, y, norm = made
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        found = path(X, y, norm=norm, alpha_ratio=0.02, fit_intercept=True, tol=asked)
        seconds.append(time.process_time() - began)
    gaps = found.relative_gaps
    return {
        "asked": asked,
        "processor_s": min(seconds),
        "passes": found.passes,
        "median_gap": float(np.median(gaps)),
        "largest_gap": float(np.max(gaps)),
    }


def main() -> None:
    """Measure all."""
    options = Options.parse(__doc__)
    kinds: tuple[Callable[[float], Any], ...] = (dense, scattered, grouped)
    with Table("overshoot", options) as table:
        for make in kinds:
            made = make(0.1 if options.smoke else 1.0)
            for asked in ASKED:
                table.add(data=make.__name__, **measured(made, asked, options.times(3)))


if __name__ == "__main__":
    main()
