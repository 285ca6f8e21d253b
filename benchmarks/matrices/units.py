"""Several targets under the trace norm, where the columns of X are in other units.

python -m benchmarks.matrices.units

X is n x p of normal numbers, its columns times numbers from 1 up to ``apart``; Y (n, q) is X times
a matrix of rank 2, made before the units, with noise. Processor seconds (median of five) and passes
to a gap of 1e-6, and the gap that is proved in the end.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

from atomlearn import norms
from atomlearn.designs import Tasks
from tests.oracles.sums import solve_sum

OUT = Path(__file__).resolve().parents[1] / "results" / "units.csv"


def main() -> None:
    """Write the table, a row for each shape, level and distance of the units."""
    with OUT.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("n", "p", "q", "share of the largest", "apart", "seconds", "passes", "gap"))
        for n, p, q in ((200, 30, 8), (100, 300, 12)):
            rng = np.random.default_rng(0)
            X, W = rng.standard_normal((n, p)), rng.standard_normal((p, 2))
            Y = X @ (W @ rng.standard_normal((2, q))) + rng.standard_normal((n, q))
            for share in (0.1, 0.01):
                for apart in (1.0, 1e2, 1e4, 1e6):
                    scaled = X * np.geomspace(1.0, apart, p)
                    level = share * float(np.linalg.norm(scaled.T @ Y, 2))
                    times = []
                    for _ in range(5):
                        began = time.process_time()
                        fit = solve_sum(
                            Tasks(scaled, q), Y.ravel(), norm=norms.TraceNorm(), level=level,
                            time_limit=5,
                        )  # fmt: skip
                        times.append(time.process_time() - began)
                    seconds, gap = float(np.median(times)), f"{fit.relative_gap:.1e}"
                    row = n, p, q, share, apart, round(seconds, 4), fit.passes, gap
                    print(*row, flush=True)
                    table.writerow(row)


if __name__ == "__main__":
    main()
