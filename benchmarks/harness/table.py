"""Table: rows printed as they come, kept as CSV, with a JSON file that says where and how."""

from __future__ import annotations

import csv
import json
import math
import os
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from benchmarks.harness.machine import commit, libraries, machine
from benchmarks.harness.options import Options


class Table:
    """Rows of one benchmark; ``with Table("lasso", options) as table: table.add(...)``."""

    def __init__(self, name: str, options: Options, *, quiet: bool = False) -> None:
        self.name, self.options, self.quiet = name, options, quiet
        self.rows: list[dict[str, Any]] = []
        self.notes: dict[str, Any] = {}
        self._machine = machine()
        self._began = time.monotonic()

    def add(self, **row: Any) -> None:
        """Add a row, print it, and keep what there is so far."""
        self.rows.append(row)
        if not self.quiet:
            print("  ".join(f"{key}={shown(value)}" for key, value in row.items()), flush=True)
        self._write()

    def note(self, **facts: Any) -> None:
        """Add facts about the whole table to the JSON file, and print them."""
        self.notes.update(facts)
        print("  ".join(f"{key}={shown(value)}" for key, value in facts.items()), flush=True)

    def show(self) -> None:
        """Print all rows in columns."""
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        cells = [columns] + [[shown(row.get(key, "")) for key in columns] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        print(f"\n{self.name}" + (" (smoke: the figures mean nothing)" * self.options.smoke))
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
        print(flush=True)

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.notes["ended_early"] = kind.__name__
        self._write()
        if not self.quiet and self.rows:
            self.show()

    def _write(self) -> None:
        out = self.options.out
        if out is None or not self.rows:
            return
        out.mkdir(parents=True, exist_ok=True)
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        with (out / f"{self.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: shown(v, 6) for k, v in row.items()} for row in self.rows)
        about = {
            "benchmark": self.name,
            "command": _command(self.options),
            "commit": commit(),
            "smoke": self.options.smoke,
            "finished": datetime.now(UTC).isoformat(timespec="minutes"),
            "seconds": round(time.monotonic() - self._began, 1),
            "machine": self._machine | {"load_at_end": round(os.getloadavg()[0], 2)},
            "libraries": libraries(),
            "notes": self.notes,
        }
        text = json.dumps(about, indent=1, default=float)
        (out / f"{self.name}.json").write_text(text + "\n")


def _command(options: Options) -> str:
    """Return the command that repeats this, without any folder."""
    threads = os.environ.get("OMP_NUM_THREADS")
    prefix = [f"OMP_NUM_THREADS={threads}"] if threads else []
    name = os.environ.get("ATOMLEARN_BENCHMARK", "NAME")
    return " ".join([*prefix, "python benchmarks/run.py", name, *options.flags])


def shown(value: Any, digits: int = 4) -> str:
    """Return a number with a few significant digits, anything else as it is."""
    if isinstance(value, float) and not isinstance(value, bool):
        return "" if math.isnan(value) else f"{value:.{digits}g}"
    return str(value)
