"""Groups, k-support and latent groups with Poisson and Cox at p = 100,000, certified to 1e-6.

    python -m benchmarks.responses.structured [--only "cox groups"] [--limit 100] [--out FOLDER]

n = 1000, AR(0.5) columns, at 0.3 of the least level with w = 0: groups of 10 neighbors, the
100-support norm (squared form), windows of 10 that overlap by 5. Nobody else fits them, so there
are times and passes alone; a fit is cut after --limit seconds, and says so.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from atomlearn import losses, norms, paths, solve
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options
from benchmarks.responses.problems import Problem

FRACTION = 0.3


def cases(p: int) -> list[tuple[str, Any, str]]:
    """Return the name, the norm and the form of each structure."""
    windows = [np.arange(start, min(start + 10, p)) for start in range(0, p - 5, 5)]
    return [
        ("groups", norms.Groups(np.arange(p) // 10), "penalized"),
        ("k-support", norms.KSupport(100), "squared"),
        ("latent groups", norms.LatentGroups(windows), "penalized"),
    ]


def main() -> None:
    """All losses and structures, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of a fit")
    given = parser.parse_args()
    n, p = (200, 2000) if given.smoke else (1000, 100_000)
    with Table("responses_structured", Options(given.smoke, given.repeats, given.out)) as table:
        for loss in ("poisson", "cox"):
            X, y, _ = Problem(loss, "dense", n, p, FRACTION).data()
            target: Any = y
            if loss == "cox":
                target = losses.survival_target(y[:, 1] > 0, y[:, 0])
            for name, norm, form in cases(p):
                if not f"{loss} {name}".startswith(given.only):
                    continue
                # One level alone: the first of a path that begins at the largest useful one.
                grid: Any = {"n_alphas": 2, "alpha_ratio": FRACTION, "max_iter": 1}
                how: Any = {"loss": loss, "norm": norm, "form": form, "fit_intercept": False}
                alpha = paths.path(X, target, **how, **grid).alphas[-1]
                fit = solve(X, target, **how, alpha=alpha, time_limit=given.limit)
                table.add(
                    loss=loss,
                    norm=name,
                    seconds=fit.seconds,
                    passes=fit.passes,
                    relative_gap=fit.relative_gap,
                    selected=fit.columns.size,
                    status=fit.status.name,
                )


if __name__ == "__main__":
    main()
