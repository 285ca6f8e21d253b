"""All that is wrong with a file in one short message, which says what to type."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from atomlearn.storage.formats.messages import LONGEST, clipped


@dataclass(slots=True)
class Problems:
    """Faults of a file, and the options that remedy them; ``refuse`` raises them at once."""

    path: Path
    faults: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def add(self, fault: str, option: str = "") -> None:
        """Note a fault, and what to type."""
        self.faults.append(fault)
        if option and option not in self.options:
            self.options.append(option)

    def refuse(self) -> None:
        """Raise ValueError with everything, within the letters of a message; or do nothing."""
        if not self.faults:
            return
        remedy = f". Type {' '.join(self.options)}" if self.options else ""
        head = f"{self.path}: "
        room = max(LONGEST - len(head) - len(remedy), LONGEST // 10)
        raise ValueError(f"{head}{clipped('; '.join(self.faults), room)}{remedy}")


def typed(names: Sequence[str]) -> str:
    """Return names as one types them after an option, separated by commas."""
    text = ",".join(names)
    return f'"{text}"' if any(mark in text for mark in " ;&|()'$") else text


def spread(given: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns: lists by commas and patterns such as ``x_*`` spread out.

    A name that is a column as it stands is taken so, commas and all.
    """
    known, found = set(header), dict[str, None]()
    for text in given:
        parts = [text] if text in known else [part.strip() for part in text.split(",")]
        for part in filter(None, parts):
            matching = [part] if part in known else fnmatch.filter(header, part)
            found |= dict.fromkeys(matching or [part])
    return tuple(found)
