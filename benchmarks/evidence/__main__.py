"""Run the settings of this package and keep one row for each of their figures."""

from __future__ import annotations

import argparse
import csv
import importlib
import os
import pkgutil
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks import evidence
from benchmarks.evidence.settings import COLUMNS, SETTINGS, measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, its seed")
    parser.add_argument("--only", default="", help="settings whose names contain this")
    parser.add_argument("--out", type=Path, help="a CSV file; rows of these settings are replaced")
    parser.add_argument("--list", action="store_true", help="print the names of the settings")
    given = parser.parse_args()
    for module in pkgutil.iter_modules(evidence.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{evidence.__name__}.{module.name}")
    names = [name for name in SETTINGS if given.only in name]
    if not names:
        parser.error(f"no setting is called {given.only!r}; --list prints their names")
    for name in names:
        if given.list:
            print(name)
            continue
        rows = list(measured(name, given.draws, given.first))
        for row in rows:
            print(*(f"{key}={value}" for key, value in row.items()), flush=True)
        if given.out is not None:
            keep(given.out, name, rows)


def keep(path: Path, name: str, rows: list[dict[str, object]]) -> None:
    """Replace the rows of a setting in a table, and leave the others as they are."""
    before: list[dict[str, object]] = []
    if path.exists():
        with path.open(newline="") as file:
            before = [dict(row) for row in csv.DictReader(file) if row["setting"] != name]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*before, *rows])


if __name__ == "__main__":
    main()
