"""Names, cells and errors as messages repeat them: in one line, and not too long."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


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


#: Letters of a message at most.
LONGEST = 480


def clipped(text: str, most: int = 30) -> str:
    """Return a name or a cell, cut where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def listing(names: Sequence[str]) -> str:
    """Return the first names, and how many there are."""
    shown = ", ".join(repr(clipped(name)) for name in names[:4])
    return shown if len(names) <= 4 else f"{shown}, ... ({len(names)} in all)"


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" or a list of what there is, for error messages."""
    known = list(names)
    folded = {name.casefold(): name for name in reversed(known)}
    near = difflib.get_close_matches(wanted.casefold(), folded)
    if near:
        shown = " or ".join(repr(clipped(folded[name])) for name in near)
        return f"; did you mean {shown}?"
    return f"; there are {listing(known)}" if known else "; there are none"


def short(error: BaseException) -> str:
    """Return what a parser says as one line of a message."""
    return clipped(" ".join(str(error).split()) or type(error).__name__, LONGEST // 2)
