"""The folder of an unfinished store, with a journal from which a killed conversion resumes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from atomlearn.core import sync_folder, write_whole
from atomlearn.storage.store.store_file import FILES, digest

_JOURNAL = "journal.json"
SPILL = "spill"
#: Files that a conversion writes; a folder with any other file belongs to the user.
_OURS = {_JOURNAL, SPILL, *FILES}


#: A block of rows takes 1 / PIECES of the memory; the rest is for its transposed copy and the
#: parser.
PIECES = 8


class Workplace:
    """The folder ``OUT.partial`` of one conversion, a context manager that locks it.

    A conversion with the same ``fingerprint`` (source, its size and time, options) resumes from the
    journal. ``state`` is the content of the journal; ``commit`` writes it to disk, and is called
    only after the data that it describes are on disk.
    """

    def __init__(self, out: Path, fingerprint: dict[str, Any]) -> None:
        self.out = out
        self.folder = out.with_name(out.name + ".partial")
        self.fingerprint = fingerprint
        self.state: dict[str, Any] = {}
        self.resumed = False

    def __enter__(self) -> Workplace:
        if self.folder.is_symlink():
            raise ValueError(f"{self.folder} is a link, where work would be lost; remove it")
        self.folder.mkdir(exist_ok=True)
        self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise ValueError(
                f"another conversion to {self.out} is running; wait for it, or give another name"
            ) from error
        self._read()
        (self.folder / SPILL).mkdir(exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A ValueError is a fault of the data and would occur again, so the files are deleted.
        is_unusable = isinstance(error, ValueError) or (error is not None and not self.state)
        if is_unusable and not self.is_complete:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _read(self) -> None:
        """Load the journal if it has the same fingerprint; else remove the files in the folder."""
        journal = self.folder / _JOURNAL
        try:
            content = json.loads(journal.read_bytes())
            state = content["state"]
            is_same = content["fingerprint"] == self.fingerprint
            is_same = is_same and content["crc32"] == digest(state)
        except (OSError, ValueError, KeyError, TypeError):
            is_same = False
            state = {}
        if is_same:
            self.state, self.resumed = state, bool(state)
            return
        entries = list(self.folder.iterdir())
        for entry in entries:
            if re.sub(r"\.\d+\.new$", "", entry.name) not in _OURS:
                raise ValueError(
                    f"{entry} is no file of a conversion, and {self.folder} would be cleared; move "
                    "it away"
                )
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def commit(self, **changes: Any) -> None:
        """Update ``state`` with these changes and write the journal to disk atomically."""
        self.state.update(changes)
        content = {
            "fingerprint": self.fingerprint,
            "state": self.state,
            "crc32": digest(self.state),
        }
        write_whole(self.folder / _JOURNAL, json.dumps(content).encode())

    def temporary(self, name: str) -> Path:
        """Return the path of a temporary file of the conversion."""
        return self.folder / SPILL / name

    @property
    def is_complete(self) -> bool:
        """Whether all files are written, so that only ``finish`` remains."""
        return bool(self.state.get("complete", False))

    def finish(self) -> None:
        """Rename the folder to the store; a process killed on the way leaves a complete folder."""
        # The temporary files go first: without them, a conversion can only be finished.
        self.commit(complete=True)
        shutil.rmtree(self.folder / SPILL)
        sync_folder(self.folder)
        os.rename(self.folder, self.out)
        sync_folder(self.out.parent)
        # The journal goes last: until the store has its name, the journal must say that it is
        # complete.
        (self.out / _JOURNAL).unlink()
