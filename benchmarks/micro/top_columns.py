"""The largest |z|: ours against NumPy's partition."""

# ruff: noqa: B023 - every closure is called before its loop goes on
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atomlearn import _kernels as kernels
from benchmarks.harness import Options, Table
from benchmarks.micro.timing import seconds


def by_partition(z: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """np.argpartition of the magnitudes, then a sort of the few."""
    magnitudes = np.abs(z)
    few = np.argpartition(magnitudes, z.size - count)[z.size - count :]
    few = few[np.lexsort((few, -magnitudes[few]))]
    return few, z[few]


def rows(smoke: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """One row for each (size, count, method)."""
    rng = np.random.default_rng(0)
    for size in [10**5] if smoke else [10**4, 10**6, 5 * 10**7]:
        z = rng.standard_normal(size)
        for count in (10, 1000, size // 100):
            for name, call in {
                "top_magnitude": lambda: kernels.top_magnitude(z, count),
                "np.argpartition": lambda: by_partition(z, count),
            }.items():
                yield {"size": size, "count": count, "method": name, **seconds(call, repeats)}


def main() -> None:
    """Time all."""
    options = Options.parse(__doc__)
    with Table("top_columns", options) as table:
        for row in rows(options.smoke, options.times(9)):
            table.add(**row)


if __name__ == "__main__":
    main()
