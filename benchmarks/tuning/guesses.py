"""How far a path looks ahead: readings and processor seconds of paths whose guesses go wrong.

Each path is solved with the settings of ``core/paths/guess.py``, and with one of them changed.

    python -m benchmarks.tuning.guesses [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn import norms, paths
from atomlearn.core.paths.guess import GUESS
from benchmarks.harness.options import Options
from benchmarks.harness.table import Table
from benchmarks.paths import dense
from benchmarks.tuning.turns import varied

GRID: dict[str, tuple[float, ...]] = {
    "share": (0.7, 0.9),
    "wider": (0.5, 0.7, 0.8),
    "dear": (0.06, 1.0, 1e9),
    "sure": (0.3, 0.5, 0.6),
    "levels": (8, 24),
}


def cases(smoke: bool) -> dict[str, Any]:
    """Return the paths by name, each a function of nothing that returns its result."""
    n, p = (80, 1000) if smoke else (1000, 20_000)
    X, signal = dense(n, p)
    y = signal + 0.5 * signal.std() * np.random.default_rng(1).standard_normal(n)
    groups = norms.Groups(np.repeat(np.arange(p // 10), 10))
    squared: dict[str, Any] = {"form": "squared", "n_levels": 20, "ratio": 1e-4}
    return {
        "k = 10": lambda: paths.path(X, y, norm=norms.KSupport(10), **squared),
        "k = 50": lambda: paths.path(X, y, norm=norms.KSupport(50), **squared),
        "groups": lambda: paths.path(X, y, norm=groups, n_levels=20, ratio=0.1),
    }


def main() -> None:
    """Solve each path with each setting."""
    options = Options.parse(__doc__)
    variants = [("as it is", 0.0, GUESS)]
    for name, values in GRID.items():
        variants += [(name, value, replace(GUESS, **{name: value})) for value in values]
    with Table("tuning_guesses", options) as table:
        for case, solve in cases(options.smoke).items():
            for field, value, settings in variants:
                began = time.process_time()
                with varied(GUESS, settings):
                    found = solve()
                table.add(
                    path=case, field=field, value=value, readings=found.passes,
                    worst_gap=found.relative_gaps.max(),
                    processor_s=time.process_time() - began,
                )  # fmt: skip


if __name__ == "__main__":
    main()
