"""Opening files: text and bytes, plain or compressed, and packages that only some formats need."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from atomlearn.storage.formats.held import LIMITS, fits, understood

_OPENERS: Mapping[str, Callable[[Path, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


class _Decompressed(io.RawIOBase):
    """The bytes inside a compressed file; a damaged one is an error of one line."""

    def __init__(self, path: Path, opener: Callable[[Path, Any], Any]) -> None:
        self._path, self._stream = path, opener(path, "rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._understood():
            return int(self._stream.readinto(buffer))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._understood():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        self._stream.close()
        super().close()

    def _understood(self) -> Any:
        kind = f"{self._path.suffix.lower()} file"
        return understood(self._path, kind, "; it is damaged or cut off, copy it afresh")


def open_text(path: Path, encoding: str = "utf-8-sig", errors: str = "strict") -> TextIO:
    """Open a text file, compressed ones included; lines end with a line feed, however written.

    encoding : UTF-8, with or without byte order mark, unless another is given.
    """
    "".encode(encoding)  # raises before a file is open, where there is no such encoding
    return io.TextIOWrapper(open_bytes(path), encoding, errors)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for its bytes, those inside where it is compressed; ``seek`` counts them."""
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        return path.open("rb")
    return io.BufferedReader(_Decompressed(path, opener), LIMITS.head_bytes)


def whole_lines(stream: Any, size: int, path: Path, so_far: int = 0) -> Any:
    """Return so many bytes (or letters) and the rest of their last line; empty at the end.

    Lines that take more memory than there is, once parsed, are refused. so_far : bytes of the
    lines that were read already.
    """
    fits(path, "a line of it, parsed,", LIMITS.copies * so_far)
    parts = [stream.read(size)]
    end = parts[0][:0]
    while parts[-1] and not parts[-1].endswith("\n" if end == "" else b"\n"):
        parts.append(stream.readline(LIMITS.piece_bytes))
        so_far += len(parts[-1])
        fits(path, "a line of it, parsed,", LIMITS.copies * so_far)
    return end.join(parts)


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
