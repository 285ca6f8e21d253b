"""Open text and binary files, plain or compressed, and import optional packages."""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import lzma
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from atomlearn.storage.formats.held import LIMITS, fits, understood
from atomlearn.storage.formats.messages import listing


def _only_member(path: Path) -> zipfile.ZipInfo:
    """Return the only file in a .zip; refuse archives with several or none.

    Folders and the files that macOS adds do not count.
    """
    with understood(path, ".zip file"), zipfile.ZipFile(path) as archive:
        members = [
            member
            for member in archive.infolist()
            if not member.is_dir() and not member.filename.startswith("__MACOSX/")
        ]
    if len(members) != 1:
        names = listing([member.filename for member in members]) if members else "no file"
        raise ValueError(f"{path} holds {names}; unzip it, and give one of its files")
    return members[0]


def _open_zip(path: Path, mode: str) -> Any:
    """Return a stream of the only file in the zip archive ``path``.

    ``mode`` is not used; other functions in ``_OPENERS`` need it.
    """
    with understood(path, ".zip file"):
        return zipfile.ZipFile(path).open(_only_member(path))


#: Functions of (path, mode) that open a compressed file, by the ending of its name.
_OPENERS: Mapping[str, Callable[[Path, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _open_zip,
}


class _Decompressed(io.RawIOBase):
    """Decompressed bytes of the file ``path``; damage raises an error of one line.

    ``opener`` is the function of ``_OPENERS`` for this compression.
    """

    def __init__(self, path: Path, opener: Callable[[Path, Any], Any]) -> None:
        """Open the compressed file ``path`` by ``opener``, a function of (path, mode)."""
        self._path, self._stream = path, opener(path, "rb")

    def readable(self) -> bool:
        """Return True: the stream is read."""
        return True

    def seekable(self) -> bool:
        """Return True: the stream can seek."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into the buffer, and return their number."""
        with self._understood():
            return int(self._stream.readinto(buffer))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to ``offset`` in the decompressed data and return it; ``whence`` as in ``io``."""
        with self._understood():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        """Return the position in the decompressed data."""
        return int(self._stream.tell())

    def close(self) -> None:
        """Close the stream and the file."""
        self._stream.close()
        super().close()

    def _understood(self) -> Any:
        """Return a context that reports damaged compressed data by a clear error."""
        kind = f"{self._path.suffix.lower()} file"
        return understood(self._path, kind, "; it is damaged or cut off, copy it afresh")


def open_text(path: Path, encoding: str = "utf-8-sig", errors: str = "strict") -> TextIO:
    """Return a stream of a text file, which may be compressed; line ends become line feeds.

    Parameters
    ----------
    path : Path
        File to open.
    encoding : str
        Name of the encoding; by default UTF-8 with or without a byte order mark.
    errors : str
        Name of Python's error handler for bytes that are no text.
    """
    "".encode(encoding)  # raises before the file is open if the encoding is unknown
    return io.TextIOWrapper(open_bytes(path), encoding, errors)


def open_bytes(path: Path) -> BinaryIO:
    """Return a stream of the bytes of a file after decompression; ``seek`` counts these bytes."""
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        return path.open("rb")
    return io.BufferedReader(_Decompressed(path, opener), LIMITS.head_bytes)


def whole_lines(stream: Any, size: int, path: Path, so_far: int = 0) -> Any:
    """Return about ``size`` bytes (or characters), extended to the end of the last line.

    The result is empty at the end of the file. A line is refused if its parsed form would take more
    memory than is free.

    Parameters
    ----------
    stream : file
        Text or binary.
    size : int
        Bytes (or characters) to read before the line is completed.
    path : Path
        File to name in error messages.
    so_far : int
        Bytes of the same lines that the caller has read before.
    """
    # Parsing takes ``LIMITS.copies`` times the memory of the text.
    fits(path, "a line of it, parsed,", LIMITS.copies * so_far)
    pieces = [stream.read(size)]
    # An empty text or empty bytes, as the stream has them. A long line is read in pieces, so that
    # the memory is checked before each of them.
    empty = pieces[0][:0]
    while pieces[-1] and not pieces[-1].endswith("\n" if empty == "" else b"\n"):
        pieces.append(stream.readline(LIMITS.piece_bytes))
        so_far += len(pieces[-1])
        fits(path, "a line of it, parsed,", LIMITS.copies * so_far)
    return empty.join(pieces)


def suffix_of(path: Path) -> str:
    """Return the ending that says the format, in lower case: ".csv" for DATA.CSV.GZ.

    The ending of a compression is left out; for a .zip, the ending of its only file counts.
    """
    suffix = path.suffix.lower()
    inner = path.with_suffix("") if suffix in _OPENERS else path
    if suffix == ".zip":
        inner = Path(_only_member(path).filename)
    return inner.suffix.lower()


#: UTF-8 with or without a byte order mark.
UTF8 = "utf-8-sig"


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file: UTF-16, as Excel's "Unicode text", or else UTF-8."""
    with open_bytes(path) as stream:
        head = stream.read(LIMITS.head_bytes)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Every other byte of Western text in UTF-16 is zero: the first of each two if it is big-endian.
    are_zero = [head[start::2].count(0) > 0.4 * len(head) for start in (0, 1)]
    return "utf-16-be" if are_zero[0] else "utf-16-le" if are_zero[1] else UTF8


def first_line(path: Path) -> str:
    """Return the first line that is not blank, at most 64 KiB of it.

    The result is "" if every line is blank, or if the line has a zero byte, as binary files do.
    """
    with open_text(path, encoding_of(path), "replace") as stream:
        while line := stream.readline(1 << 16):
            if line.strip():
                return line if "\0" not in line else ""
    return ""


def imported(module: str, extra: str, path: Path, library: str = "") -> Any:
    """Return a module that only some formats need; the error says how to install it.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        Name of the extra of atomlearn that installs it.
    path : Path
        File that needs it, for the message.
    library : str
        Name of the package to install, if it is not that of the module.
    """
    library = library or module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"reading {path} needs {library}: pip install {library} "
            f"(in a clone of atomlearn also: pip install '.[{extra}]')"
        ) from error
