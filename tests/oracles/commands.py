"""The command line from tests: words of any kind in, tables out."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atomlearn.cli import main


def run(*words: object) -> int:
    """Run ``atomlearn`` with these words; return its code."""
    return main([str(word) for word in words])


def rows(path: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def written(columns: Mapping[str, Any], path: Path) -> Path:
    """Write columns as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def names(path: Path) -> set[str]:
    """Return the selected features that a ``selected.csv`` lists, which have a rank."""
    return {row["feature"] for row in rows(path) if row["rank"]}
