"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

from pathlib import Path

from atomlearn.core.data.whole_files import write_whole


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
