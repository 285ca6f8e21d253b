"""Many repetitions of ``error_control.py``, cheaply: what is false, and found, in each setting.

    OMP_NUM_THREADS=1 python benchmarks/findings/error_grid.py --seconds 3600

Columns and knockoffs are drawn once for both losses; the rest is what ``KnockoffSelector`` does by
default ("default", its first draw) and with ``n_draws=10`` ("e_values"). ``fdr_sums.csv`` keeps
sums a cell, written as they come: stop it and go on at any time, with the next seed. All cells
are taken to the same number of repetitions before any is taken further.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from error_control import FDR, Data

from atomlearn import KnockoffSelector
from atomlearn.findings.gaussian import generator, knockoffs_of, standardized

LOSSES = ("squared", "logistic")
METHODS = {"default": 1, "e_values": 10}
SUMS = ["fdp", "fdp2", "power", "power2"]
HEAD = ["rows", "columns", "kind", "loss", "method", "repetitions", *SUMS]
#: Repetitions that every cell gets, one stage after another.
STAGES = [
    ("default", 10), ("e_values", 2), ("default", 20), ("e_values", 10), ("default", 50),
    ("e_values", 20), ("default", 100), ("e_values", 50), ("default", 200), ("e_values", 200),
]  # fmt: skip

Cells = dict[tuple[str, ...], list[float]]


def read(path: Path) -> Cells:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as stream:
        return {tuple(row[:5]): [float(v) for v in row[5:]] for row in list(csv.reader(stream))[1:]}


def write(cells: Cells, path: Path) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEAD)
        for key, (count, *sums) in sorted(cells.items()):
            writer.writerow([*key, int(count), *(f"{value:.6g}" for value in sums)])
    os.replace(beside, path)


def drawn(X: np.ndarray, seed: int, draws: int) -> list[np.ndarray]:
    """Return the knockoffs that the selector draws with this seed."""
    X, means, scales = standardized(X)
    made, rng = knockoffs_of(X), generator(seed)
    return [made.draw(rng) * scales + means for _ in range(draws)]


def repetition(cells: Cells, n: int, p: int, kind: str, method: str, seed: int) -> None:
    both = [Data(n, p, kind, loss, seed) for loss in LOSSES]  # X is the same
    knockoffs = drawn(both[0].X, seed, METHODS[method])
    for loss, data in zip(LOSSES, both, strict=True):
        found = KnockoffSelector(fdr=FDR, rng=seed, knockoffs=knockoffs).fit(data.X, data.y)
        chosen = found.get_support()
        fdp = float((chosen & ~data.true).sum() / max(1, chosen.sum()))
        power = float(chosen[data.true].mean())
        cell = cells.setdefault((str(n), str(p), kind, loss, method), [0.0] * 5)
        for place, value in enumerate((1.0, fdp, fdp**2, power, power**2)):
            cell[place] += value


def table(cells: Cells) -> None:
    """Print the mean of each cell with its standard error, and of all cells of a method."""
    for loss in LOSSES:
        for method in METHODS:
            rows = [(key, v) for key, v in sorted(cells.items()) if key[3:] == (loss, method)]
            for key, (count, fdp, fdp2, power, _) in rows:
                spread = max(fdp2 / count - (fdp / count) ** 2, 0.0)
                error = (spread / max(count - 1, 1)) ** 0.5
                print(f"{' '.join(key):40s} {int(count):4d}  FDP {fdp / count:.3f} +- {error:.3f}  "
                      f"power {power / count:.3f}")  # fmt: skip
            if rows:
                total = np.sum([v for _, v in rows], axis=0)
                print(f"  all {loss}, {method}: {int(total[0])} repetitions, FDP "
                      f"{total[1] / total[0]:.4f}, power {total[3] / total[0]:.3f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 1000])
    parser.add_argument("--columns", type=int, nargs="*", default=[1000, 3000, 5000])
    parser.add_argument("--kinds", nargs="*", default=["0", "0.5", "0.8", "factors"])
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fdr_sums.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells, began = read(options.out), time.perf_counter()
    scenes = [(n, p, kind) for p in options.columns for n in options.rows for kind in options.kinds]
    for method, wanted in STAGES:
        if method not in options.methods:
            continue
        for seed in range(wanted):
            for n, p, kind in scenes:
                key = (str(n), str(p), kind, LOSSES[0], method)
                if cells.get(key, [0])[0] > seed:
                    continue
                if time.perf_counter() - began > options.seconds:
                    return table(cells)
                repetition(cells, n, p, kind, method, seed)
                write(cells, options.out)
        print(f"{method}: {wanted} repetitions, {time.perf_counter() - began:.0f} s", flush=True)
    return table(cells)


if __name__ == "__main__":
    main()
