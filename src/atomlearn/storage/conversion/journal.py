"""The folder of an unfinished column store, with a journal from which a killed conversion resumes.

A column store is a folder with X, column after column. The journal is a JSON file that says how
much of the conversion is done.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from atomlearn._support import sync_folder, write_whole
from atomlearn.storage.store.store_file import FILES, digest

_JOURNAL = "journal.json"
SPILL = "spill"
#: Files that a conversion writes; a folder with any other file belongs to the user.
_OURS = {_JOURNAL, SPILL, *FILES}


#: A block of rows takes the share 1 / PIECES of the memory. The rest is for the parser and for the
#: transposed copy of the block.
PIECES = 8


class Workplace:
    """The folder ``OUT.partial`` of one conversion, a context manager that locks it.

    A conversion with the same fingerprint resumes from the journal of an earlier, killed one.

    Parameters
    ----------
    out : Path
        Folder of the store to write. It must not exist.
    fingerprint : dict
        Source file, its size, its time of modification and the options. It decides whether a
        journal in the folder is of the same conversion.

    Attributes
    ----------
    folder : Path
        The folder with the unfinished files, next to ``out``.
    state : dict
        Content of the journal. ``commit`` writes it to disk, after the data that it describes.
    resumed : bool
        Whether the journal of an earlier run was found and is used.
    """

    def __init__(self, out: Path, fingerprint: dict[str, Any]) -> None:
        """Name the folder of a conversion to ``out``; nothing is written before ``with``.

        ``fingerprint`` describes the source file and the options.
        """
        self.out = out
        self.folder = out.with_name(out.name + ".partial")
        self.fingerprint = fingerprint
        self.state: dict[str, Any] = {}
        self.resumed = False

    def __enter__(self) -> Workplace:
        """Make and lock the folder, load its journal, and return this object.

        ValueError if another process has locked the folder.
        """
        if self.folder.is_symlink():
            raise ValueError(f"{self.folder} is a link, where work would be lost; remove it")
        self.folder.mkdir(exist_ok=True)
        # The system removes the lock when the process ends, however it ends.
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
        """Unlock the folder; remove it first if its files cannot serve a second attempt.

        The arguments ``kind`` (class), ``error`` and ``trace`` are those of Python's context
        managers: the error that ended the block, or None.
        """
        # A ValueError is a fault of the data and would occur again, so the files are deleted.
        # They are also deleted after any error before the first commit: there is no work to keep.
        is_unusable = isinstance(error, ValueError) or (error is not None and not self.state)
        if is_unusable and not self.is_complete:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _read(self) -> None:
        """Load the journal if it has the same fingerprint; else remove the files in the folder.

        A journal that is missing, unreadable or damaged counts as one with another fingerprint. A
        file that no conversion writes is never removed: it raises ValueError.
        """
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
        # All names are checked before the first file is removed. ``write_whole`` leaves files
        # NAME.NUMBER.new if its process is killed.
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
        """Update ``state`` with the entries ``changes`` and write the journal to disk atomically.

        The caller has written to disk all data that the changes describe.
        """
        self.state.update(changes)
        content = {
            "fingerprint": self.fingerprint,
            "state": self.state,
            "crc32": digest(self.state),
        }
        write_whole(self.folder / _JOURNAL, json.dumps(content).encode())

    def temporary(self, name: str) -> Path:
        """Return the path of the temporary file with this file name; its folder exists."""
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
        # The journal is removed last. A process killed before the renaming leaves it behind, so
        # that the next run knows that only the renaming remains.
        (self.out / _JOURNAL).unlink()
