"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

#: Name of the folder in which the files of a run wait until all of them are whole.
_WAITING = ".atomlearn"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place when this block ends without an error.

    Readers see the old file or the new one, never half of one. Two processes that write the same
    file write to different temporary files; the one that ends last wins.
    """
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file as ``whole_file`` does."""
    with whole_file(path) as stream:
        stream.write(content)


def write_together(folder: Path, files: Mapping[str, str], before: Iterable[str] = ()) -> None:
    """Write texts by their names, all or none; files of ``before`` that are not among them go.

    Each is whole, in a folder of its own, before one of them takes its place: a full disk changes
    nothing. The first one is the last of ``before`` to go, and the first to come: whoever is
    killed on the way leaves files of one run only.
    """
    waiting = _temporary(folder / _WAITING)
    first = next(iter(files))
    clear_left(folder / _WAITING)
    try:
        waiting.mkdir(exist_ok=True)
        for name, text in files.items():
            write_whole(waiting / name, _encoded(text))
        with _alone_in(folder):
            for name in {*before, *files} - {first}:
                (folder / name).unlink(missing_ok=True)
            sync_folder(folder)
            for name in files:
                os.replace(waiting / name, folder / name)
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
    sync_folder(folder)


def clear_left(path: Path) -> None:
    """Remove what processes that were killed left of this file or folder."""
    for entry in path.parent.glob(f"{glob.escape(path.name)}.*.new"):
        number = entry.name.split(".")[-2]
        if number.isdecimal() and not _runs(int(number)):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """Return what a file or folder of this process is called until it is whole."""
    return path.with_name(f"{path.name}.{os.getpid()}.new")


def _runs(number: int) -> bool:
    """Return whether a process with this number runs; True where that cannot be known."""
    if os.name == "nt":  # where the call below would end it
        return True
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process takes files to their places in this folder."""
    if os.name == "nt":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_place(path: str | Path) -> None:
    """Raise an error where no file can be written, before any work is done for it."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path is the folder {target}; name a file in it, such as report.html")
    if not target.parent.is_dir():
        raise ValueError(f"path is {target}, and there is no folder {target.parent}; make it first")


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8; readers see the old file or the new one, never half of one."""
    check_place(path)
    clear_left(Path(path))
    write_whole(Path(path), _encoded(text))


def _encoded(text: str) -> bytes:
    # Names of files come with stand-ins for their bytes where the locale is not UTF-8 (LC_ALL=C).
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
