"""The options that every benchmark takes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """smoke : tiny sizes; repeats : runs of each, None for the benchmark's choice; out : folder
    of the CSV and JSON files, None to keep nothing."""

    smoke: bool = False
    repeats: int | None = None
    out: Path | None = None

    def times(self, full: int, smoke: int = 1) -> int:
        """Return the number of repeats: what was asked for, else the benchmark's choice."""
        return self.repeats or (smoke if self.smoke else full)

    def pick(self, full: object, smoke: object) -> object:
        """Return the setting of a full or of a smoke run."""
        return smoke if self.smoke else full

    @property
    def flags(self) -> list[str]:
        """The options as they are given on a command line, the folder left out."""
        asked = ["--smoke"] if self.smoke else []
        return asked + (["--repeats", str(self.repeats)] if self.repeats else [])

    @classmethod
    def parse(cls, description: str | None) -> Options:
        """Read the command line of a benchmark."""
        parser = argparse.ArgumentParser(description=description)
        add_options(parser)
        given = parser.parse_args()
        return cls(given.smoke, given.repeats, given.out)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --smoke, --repeats and --out."""
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it work?")
    parser.add_argument("--repeats", type=_positive, help="runs of each (default: chosen)")
    parser.add_argument("--out", type=Path, help="folder for CSV and JSON (default: keep nothing)")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value
