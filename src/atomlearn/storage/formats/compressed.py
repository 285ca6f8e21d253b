"""Opening files: text and bytes, plain or compressed, and packages that only some formats need."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

_OPENERS: Mapping[str, Callable[[Path, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def open_text(path: Path) -> TextIO:
    """Open a UTF-8 text file (with or without byte order mark), .gz, .bz2 and .xz included."""
    opener = _OPENERS.get(path.suffix.lower(), open)
    return io.TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", newline="")


def open_bytes(path: Path) -> Any:
    """Open a file for its bytes, those inside where it is compressed; ``seek`` counts them."""
    return _OPENERS.get(path.suffix.lower(), open)(path, "rb")


def suffix_of(path: Path) -> str:
    """Return the ending that tells the format, that of a compression left out."""
    inner = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    return inner.suffix.lower()


def first_line(path: Path) -> str:
    """Return the first line that is not blank, at most 64 KiB of it; "" where there is none."""
    with open_text(path) as stream:
        while line := stream.readline(1 << 16):
            if line.strip():
                return line
    return ""


def imported(module: str, extra: str, path: Path) -> Any:
    """Return a module that only some formats need, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"reading {path} needs {module.partition('.')[0]}: pip install 'atomlearn[{extra}]'"
        ) from error
