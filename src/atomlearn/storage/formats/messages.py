"""Names, cells and errors as messages repeat them: in one line, and not too long."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

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
