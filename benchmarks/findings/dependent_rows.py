"""How often noise is told "better" where rows belong together: patients of 5 rows, and series.

    python benchmarks/findings/dependent_rows.py --tables 500

150 rows x 50 columns that nothing connects with the target: of 30 patients with 5 rows each, whose
columns vary by 5, 20 and 50% from row to row and whose target is theirs, told by ``groups``; and
autoregressive series (0.95), columns and target, told by ``order``. The first tables are told by
rows, too, as if these were independent.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.findings import held_out_verdict
from atomlearn.findings.trials import Trial

KINDS = ("5%", "20%", "50%", "series")


def table(kind: str, rng: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    """Return X, y and what rows belong together."""
    if kind == "series":
        steps = rng.standard_normal((400, 51))
        for row in range(1, 400):
            steps[row] = 0.95 * steps[row - 1] + np.sqrt(1 - 0.95**2) * steps[row]
        return steps[250:, :50], steps[250:, 50], {"order": np.arange(150)}
    own, groups = float(kind[:-1]) / 100, rng.permutation(np.repeat(np.arange(30), 5))
    X = np.sqrt(1 - own) * rng.standard_normal((30, 50))[groups]
    X += np.sqrt(own) * rng.standard_normal(X.shape)
    return X, rng.standard_normal(30)[groups], {"groups": groups}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500, help="a kind, each a regression")
    parser.add_argument("--by-rows", type=int, default=20, help="tables told by rows, too")
    parser.add_argument("--classes", action="store_true", help="the target above its median")
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/dependent_rows.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    Trial._with_power = lambda trial, found, parts: found  # type: ignore[method-assign]
    counts = {kind: [0, 0, 0] for kind in options.kinds}
    for repetition in range(options.tables):
        for kind in options.kinds:
            X, y, told = table(kind, np.random.default_rng([KINDS.index(kind), repetition]))
            model: Any = AtomicRegressor(alpha=0.2, tol=1e-4)
            if options.classes:
                y, model = y > np.median(y), AtomicClassifier(alpha=0.1, tol=1e-4)
            counts[kind][0] += 1
            counts[kind][1] += held_out_verdict(model, X, y, rng=repetition, **told).better
            if repetition < options.by_rows:
                counts[kind][2] += held_out_verdict(model, X, y, rng=repetition).better
        with options.out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["noise", "tables", "better", "better, first ones by rows"])
            writer.writerows([kind, *found] for kind, found in counts.items())


if __name__ == "__main__":
    main()
