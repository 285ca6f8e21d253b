"""Statistics of the methods: prediction, size and stability on real data, recovery on made data.

python -m benchmarks.quality [--repeats 5] [--out benchmarks/results]   goes on where it stopped
python -m benchmarks.quality --write                                    docs/quality.md from it

A repeat is five folds (stratified by class), the same for all methods; every method chooses its
parameters by cross-validation within the training rows, standardized by their own means. A row of
the CSV is one repeat: the mean score of its folds (area under the ROC curve, or R^2), the mean
number of features, and how stable they are (Nogueira, Sechidis, Brown 2018: 1 where folds agree, 0
where they agree by chance). On made data a repeat is one draw, and the row says how many of the
true features were found and how many others.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.quality_data import LARGE, MADE, REAL, Table
from benchmarks.quality_methods import METHODS, Method
from benchmarks.quality_page import write

ROOT = Path(__file__).resolve().parents[1]
FIELDS = (
    "repeat", "data", "method", "score", "selected", "stability", "true_found", "false_found",
    "seconds", "failed",
)  # fmt: skip
Array = Any
Row = dict[str, Any]


def main() -> None:
    """Go through repeats, data and methods, and keep each row as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", help="a data set by name")
    parser.add_argument("--methods", help="some methods by name, with semicolons between them")
    parser.add_argument("--write", action="store_true", help="make the page of what is kept")
    options = parser.parse_args()
    path = options.out / "quality.csv"
    if options.write:
        write(path, ROOT / "docs" / "quality.md")
        return
    warnings.simplefilter("ignore")
    known = {(row["repeat"], row["data"], row["method"]) for row in kept(path)}
    methods = [
        m for m in METHODS if options.methods is None or m.name in options.methods.split(";")
    ]
    for row in rows(options.repeats, options.only, known, methods):
        print(row, flush=True)
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, FIELDS)
            if new:
                table.writeheader()
            table.writerow(row)


def kept(path: Path) -> list[dict[str, str]]:
    """Return the rows found so far."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rows(
    repeats: int, only: str | None, known: set[tuple[str, str, str]], methods: list[Method]
) -> Iterator[Row]:
    """Yield the rows that are missing: one repeat of all, then all others, the large sets last."""
    small = {**REAL, **MADE}
    turns = [(0, small), *((r, small) for r in range(1, 3)), (0, LARGE)]
    turns += [(r, {**small, **LARGE}) for r in range(1, repeats)]
    for repeat, tables in turns:
        for name, load in tables.items():
            if only not in (None, name):
                continue
            if repeat >= repeats:
                continue
            wanted = [m for m in methods if (str(repeat), name, m.name) not in known]
            data = load(repeat) if wanted else None
            if data is None:
                continue
            for method in wanted:
                if method.suits(data):
                    began = time.process_time()
                    row = attempt(lambda m=method, d=data: measured(m, d, repeat))  # noqa: B023
                    row |= {"repeat": repeat, "data": name, "method": method.name}
                    known.add((str(repeat), name, method.name))
                    yield row | {"seconds": round(time.process_time() - began, 2)}


def attempt(run: Callable[[], Row]) -> Row:
    """Return the row, or one that says what went wrong."""
    try:
        return run()
    except Exception as error:  # a rival's failure is a result too
        print(repr(error), file=sys.stderr)
        return {"failed": type(error).__name__}


def measured(method: Method, data: Table, repeat: int) -> Row:
    """Return the scores of five folds, or of one draw of made data."""
    if data.truth is not None:
        found = method.fit(data, data.X, data.y).columns
        hits = int(np.isin(found, data.truth).sum())
        return {"selected": len(found), "true_found": hits, "false_found": len(found) - hits}
    splitter: Any = StratifiedKFold if data.classes else KFold
    folds = splitter(5, shuffle=True, random_state=repeat).split(data.X, data.y)
    scores, sets, sizes = [], [], []
    for train, test in folds:
        scaler = StandardScaler().fit(data.X[train])
        model = method.fit(data, scaler.transform(data.X[train]), data.y[train])
        scores.append(model.score(scaler.transform(data.X[test]), data.y[test]))
        sizes.append(model.size)
        sets.append(model.columns)
    row = {"score": round(float(np.mean(scores)), 4), "selected": round(float(np.mean(sizes)), 1)}
    if all(one is not None for one in sets):
        row["stability"] = round(stability(sets, data.X.shape[1]), 3)
    return row


def stability(sets: list[Array], p: int) -> float:
    """Return 1 - (mean variance of a feature's selection) / (that of a random choice)."""
    chosen = np.zeros((len(sets), p))
    for row, columns in zip(chosen, sets, strict=True):
        row[columns] = 1.0
    share = float(chosen.mean())
    if share in (0.0, 1.0):
        return 1.0 if share else float("nan")
    return float(1.0 - chosen.var(axis=0, ddof=1).mean() / (share * (1.0 - share)))


if __name__ == "__main__":
    main()
