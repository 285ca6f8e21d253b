"""Atomic writes: a temporary file in the same folder is written, synced and then renamed."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

#: Name of the temporary folder that holds the files of a run until all of them are complete.
_WAITING = ".atomlearn"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, and rename it to ``path`` if the block succeeds.

    The replacement is atomic: readers see the old file or the new one, never a partial one. Two
    processes that write the same file use different temporary files; the last one to finish wins.
    If the block fails, the temporary file is deleted.
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
    """Replace the file at ``path`` atomically by one with this content."""
    with whole_file(path) as stream:
        stream.write(content)


def write_together(folder: Path, files: Mapping[str, str], before: Iterable[str] = ()) -> None:
    """Replace the files of an earlier run by the files of a new run, as one transaction.

    folder : where the files are. files : maps file names to texts. before : names of the earlier
    files; those that are not in ``files`` are deleted. All new files are written to a temporary
    folder before the first of them is moved, so that a full disk changes nothing. The first name in
    ``files`` is the last old file to be deleted and the first new one to be moved. So a process
    that is killed midway never leaves files of two runs.
    """
    waiting = _temporary(folder / _WAITING)
    first = next(iter(files))
    clear_left(folder / _WAITING)
    try:
        waiting.mkdir(exist_ok=True)
        for name, text in files.items():
            write_whole(waiting / name, _encoded(text))
        with _exclusive_lock(folder):
            # All earlier files go before the first new one is moved in.
            for name in {*before, *files} - {first}:
                (folder / name).unlink(missing_ok=True)
            sync_folder(folder)
            for name in files:
                os.replace(waiting / name, folder / name)
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
    sync_folder(folder)


def clear_left(path: Path) -> None:
    """Delete the temporary files and folders of ``path`` whose processes no longer run.

    Processes that were killed leave such files.
    """
    for entry in path.parent.glob(f"{glob.escape(path.name)}.*.new"):
        # The name is NAME.NUMBER.new, with the number of the process that wrote it.
        number = entry.name.split(".")[-2]
        if number.isdecimal() and not _runs(int(number)):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """Return the temporary name of ``path``, which contains the number of this process."""
    return path.with_name(f"{path.name}.{os.getpid()}.new")


def _runs(number: int) -> bool:
    """Return whether a process with this number runs.

    The answer is True if the system does not say, so that no file in use is deleted.
    """
    if os.name == "nt":  # On Windows, the call of os.kill below would end the process.
        return True
    try:
        os.kill(number, 0)  # signal 0 only checks that the process exists
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the folder, so that only one process moves files into it."""
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
    """Flush the entries of a folder to disk (fsync), so that renames survive a power failure."""
    if os.name == "nt":  # Windows cannot open a folder.
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_place(path: str | Path) -> None:
    """Raise ValueError if ``path`` is a folder or its parent folder does not exist."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"path is the folder {target}; name a file in it, such as report.html")
    if not target.parent.is_dir():
        raise ValueError(f"path is {target}, and there is no folder {target.parent}; make it first")


def write_text(path: str | Path, text: str) -> None:
    """Replace the file at ``path`` atomically by ``text``, encoded as UTF-8."""
    check_place(path)
    clear_left(Path(path))
    write_whole(Path(path), _encoded(text))


def _encoded(text: str) -> bytes:
    """Return the text as UTF-8, with surrogate escapes decoded to the bytes that they encode."""
    # File names contain surrogate escapes if the locale is not UTF-8 (LC_ALL=C). Bytes that are
    # not valid UTF-8 become the replacement character.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
