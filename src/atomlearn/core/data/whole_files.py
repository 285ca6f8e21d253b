"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file for good; readers see the old one or the new one, never half of one.

    Of two processes that write one file each has a copy of its own, and the last one stays.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
    # Names of files come with stand-ins for their bytes where the locale is not UTF-8 (LC_ALL=C).
    known = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    write_whole(Path(path), known.encode())
