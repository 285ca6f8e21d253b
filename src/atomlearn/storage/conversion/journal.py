"""The half-made store: a folder beside its place, with a journal of what is safely on disk."""

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
#: All that a conversion puts into its folder; a folder with anything else is somebody's.
_OURS = {_JOURNAL, SPILL, *FILES}


#: A piece takes this part of the memory: its rows, their transposed copy, and what parsing leaves
#: about take the rest.
PIECES = 8


class Workplace:
    """``OUT.partial``: one conversion at a time, resumed where it is of the same source.

    ``state`` is what the journal says is done; ``commit`` writes it, after the data it speaks of.
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
        # A fault of the data is there the next time, too: nothing of the work can be gone on from.
        lost = isinstance(error, ValueError) or (error is not None and not self.state)
        if lost and not self.is_complete:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _read(self) -> None:
        """Take over the journal of the same conversion; clear what is left of any other."""
        journal = self.folder / _JOURNAL
        try:
            content = json.loads(journal.read_bytes())
            state = content["state"]
            same = content["fingerprint"] == self.fingerprint
            same = same and content["crc32"] == digest(state)
        except (OSError, ValueError, KeyError, TypeError):
            same = False
            state = {}
        if same:
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
        """Note what is done, for good."""
        self.state.update(changes)
        content = {
            "fingerprint": self.fingerprint,
            "state": self.state,
            "crc32": digest(self.state),
        }
        write_whole(self.folder / _JOURNAL, json.dumps(content).encode())

    def spill(self, name: str) -> Path:
        """Return the path of a file that is needed on the way only."""
        return self.folder / SPILL / name

    @property
    def is_complete(self) -> bool:
        """Whether all is written and only ``finish`` is left to do."""
        return bool(self.state.get("complete", False))

    def finish(self) -> None:
        """Make the folder the store; a kill on the way leaves a complete folder to finish."""
        # First: once files of the way are gone, nothing but finishing can go on from them.
        self.commit(complete=True)
        shutil.rmtree(self.folder / SPILL)
        sync_folder(self.folder)
        os.rename(self.folder, self.out)
        sync_folder(self.out.parent)
        # Last: until the store has its name the journal must say that everything is done.
        (self.out / _JOURNAL).unlink()
