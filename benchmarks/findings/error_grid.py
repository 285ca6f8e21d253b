"""Many repetitions of ``error_control.py``, cheaply: what is false, and found, in each setting.

    OMP_NUM_THREADS=1 python benchmarks/findings/error_grid.py --seconds 3600

Columns and knockoffs are drawn once for both losses (data sets of one loss are independent); the
rest is what ``KnockoffSelector`` does by default ("default", its first draw) and with
``n_draws=10`` ("e_values"). ``fdr_grid.csv`` gets a row a data set as it is done: stop it and go on
at any time, with the next seed. All settings are taken to the same number of repetitions before
any is taken further. ``--summary`` prints and writes ``fdr_grid_summary.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from error_control import FDR, Data

from atomlearn import KnockoffSelector
from atomlearn.findings.gaussian import generator, knockoffs_of
from atomlearn.findings.precision import standardized

LOSSES = ("squared", "logistic")
METHODS = {"default": 1, "e_values": 10}
HEAD = ["rows", "columns", "kind", "loss", "method", "seed", "fdp", "power"]
SUMMARY = [*HEAD[:5], "repetitions", "fdp", "fdp_error", "power", "power_error"]
#: Repetitions that every setting gets, one stage after another.
STAGES = [
    ("default", 20), ("e_values", 2), ("default", 40), ("e_values", 4), ("default", 60),
    ("e_values", 6), ("default", 80), ("e_values", 10), ("default", 120), ("e_values", 20),
    ("default", 200), ("e_values", 200),
]  # fmt: skip


def read(path: Path) -> list[list[str]]:
    if not path.exists():
        path.write_text(",".join(HEAD) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def drawn(X: np.ndarray, seed: int, draws: int) -> list[np.ndarray]:
    """Return the knockoffs that the selector draws with this seed."""
    X, means, scales = standardized(X)
    made, rng = knockoffs_of(X), generator(seed)
    return [made.draw(rng) * scales + means for _ in range(draws)]


def repetition(n: int, p: int, kind: str, losses: list[str], method: str, seed: int) -> list:
    """Return a row a loss."""
    data = [Data(n, p, kind, loss, seed) for loss in losses]  # X is the same
    knockoffs, rows = drawn(data[0].X, seed, METHODS[method]), []
    for loss, one in zip(losses, data, strict=True):
        found = KnockoffSelector(fdr=FDR, random_state=seed, knockoffs=knockoffs).fit(one.X, one.y)
        chosen = found.get_support()
        fdp = float((chosen & ~one.true).sum() / max(1, chosen.sum()))
        power = float(chosen[one.true].mean())
        rows.append([n, p, kind, loss, method, seed, f"{fdp:.4g}", f"{power:.4g}"])
    return rows


def summarize(rows: list[list[str]], out: Path) -> None:
    """Write and print the mean of each setting with its standard error, and of all of a method."""
    cells: dict[tuple[str, ...], list[list[float]]] = {}
    for *key, _, fdp, power in rows:
        for wide in (tuple(key), ("all", "all", "all", *key[3:])):
            cells.setdefault(wide, []).append([float(fdp), float(power)])
    with out.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(SUMMARY)
        for key, values in sorted(cells.items()):
            table = np.array(values)
            mean = table.mean(axis=0)
            error = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else mean * 0
            numbers = [f"{number:.4f}" for pair in zip(mean, error, strict=True) for number in pair]
            writer.writerow([*key, len(table), *numbers])
            print(*key, len(table), *numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 1000])
    parser.add_argument("--columns", type=int, nargs="*", default=[1000, 3000, 5000])
    parser.add_argument("--kinds", nargs="*", default=["0", "0.5", "0.8", "factors"])
    parser.add_argument("--losses", nargs="*", default=list(LOSSES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fdr_grid.csv"))
    parser.add_argument("--summary", action="store_true", help="of what there is; run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began, done = time.perf_counter(), {tuple(row[:6]) for row in read(options.out)}
    scenes = [(n, p, kind) for p in options.columns for n in options.rows for kind in options.kinds]
    # Stages name the small seeds of the one before again.
    todo = [
        (*scene, method, seed)
        for method, wanted in STAGES if method in options.methods
        for seed in range(wanted) for scene in scenes
    ]  # fmt: skip
    for n, p, kind, method, seed in [] if options.summary else todo:
        if time.perf_counter() - began > options.seconds:
            break
        left = [loss for loss in options.losses
                if (str(n), str(p), kind, loss, method, str(seed)) not in done]  # fmt: skip
        if not left:
            continue
        rows = repetition(n, p, kind, left, method, seed)
        with options.out.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
        done |= {tuple(map(str, row[:6])) for row in rows}
    summarize(read(options.out), options.out.with_name(options.out.stem + "_summary.csv"))


if __name__ == "__main__":
    main()
