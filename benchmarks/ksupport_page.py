"""The tables of docs/ksupport.md from the rows of benchmarks/ksupport.py."""

from pathlib import Path


def write(results: Path, page: Path) -> None: ...
