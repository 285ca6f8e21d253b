"""Parts of messages: names, cells and errors, shortened to one line."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence


def refuse_all(path: object, faults: Sequence[tuple[str, str]]) -> None:
    """Raise one ValueError with all faults of a file and the options that remedy them."""
    if not faults:
        return
    options = dict.fromkeys(option for _, option in faults if option)
    remedy = f". Type {' '.join(options)}" if options else ""
    room = max(LONGEST - len(f"{path}: ") - len(remedy), LONGEST // 10)
    text = clipped("; ".join(fault for fault, _ in faults), room)
    raise ValueError(f"{path}: {text}{remedy}")


def typed(names: Sequence[str]) -> str:
    """Return names as the value of an option, separated by commas."""
    text = ",".join(names)
    return f'"{text}"' if any(mark in text for mark in " ;&|()'$") else text


def spread(given: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
    """Expand names of columns: lists with commas, and patterns such as ``x_*``.

    A text that is itself the name of a column is not split.
    """
    known = set(header)
    found = dict[str, None]()
    for text in given:
        parts = [text] if text in known else [part.strip() for part in text.split(",")]
        for part in filter(None, parts):
            matching = [part] if part in known else fnmatch.filter(header, part)
            found |= dict.fromkeys(matching or [part])
    return tuple(found)


#: Longest message, in characters.
LONGEST = 480


def clipped(text: str, most: int = 30) -> str:
    """Return a name or a cell, shortened to ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def listing(names: Sequence[str]) -> str:
    """Return the first names, and the number of names if there are more."""
    shown = ", ".join(repr(clipped(name)) for name in names[:4])
    return shown if len(names) <= 4 else f"{shown}, ... ({len(names)} in all)"


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" or a list of the names, for error messages."""
    known = list(names)
    folded = {name.casefold(): name for name in reversed(known)}
    near = difflib.get_close_matches(wanted.casefold(), folded)
    if near:
        shown = " or ".join(repr(clipped(folded[name])) for name in near)
        return f"; did you mean {shown}?"
    return f"; there are {listing(known)}" if known else "; there are none"


def require_name(name: str, names: Iterable[str], lack: str) -> None:
    """Raise ValueError "LACK 'name'; did you mean ...?" unless ``names`` has the name."""
    known = list(names)
    if name not in known:
        raise ValueError(f"{lack} {name!r}{near_names(name, known)}")


def short(error: BaseException) -> str:
    """Return the message of a parser's error in one line."""
    return clipped(" ".join(str(error).split()) or type(error).__name__, LONGEST // 2)
