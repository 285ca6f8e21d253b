"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
    target = Path(path)
    # Names of files come with stand-ins for their bytes where the locale is not UTF-8 (LC_ALL=C).
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        # mkstemp makes files for the owner only; a result is as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
