"""Parts of messages: names, cells and errors, shortened to one line."""

from __future__ import annotations

import difflib
import fnmatch
import shlex
from collections.abc import Iterable, Sequence


def refuse_all(path: object, faults: Sequence[tuple[str, str]]) -> None:
    """Raise one ValueError with all faults of a file and the options that remedy them."""
    if not faults:
        return
    options = dict.fromkeys(option for _, option in faults if option)
    remedy = f". Type {' '.join(options)}" if options else ""
    n_characters = max(LONGEST - len(f"{path}: ") - len(remedy), LONGEST // 10)
    text = clipped("; ".join(fault for fault, _ in faults), n_characters)
    raise ValueError(f"{path}: {text}{remedy}")


def typed(option: str, names: Sequence[str]) -> str:
    """Return an option with names as its value, as it is typed in a shell.

    Examples
    --------
    >>> from atomlearn.storage.formats.messages import typed
    >>> typed("--na", ["<0.5", "none"]), typed("--na", ["-9"])
    ("--na '<0.5,none'", '--na=-9')
    """
    text = ",".join(names)
    # Without "=", a value that begins with a dash would be taken for an option.
    return f"{option}{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"


def spread(texts: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
    """Expand names of columns: lists with commas, and patterns such as ``x_*``.

    A text that is itself the name of a column is not split.
    """
    names = set(header)
    expanded = dict[str, None]()
    for text in texts:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        for part in filter(None, parts):
            matching = [part] if part in names else fnmatch.filter(header, part)
            expanded |= dict.fromkeys(matching or [part])
    return tuple(expanded)


#: Longest message, in characters.
LONGEST = 480


def clipped(text: str, most: int = 30) -> str:
    """Return a name or a cell, shortened to ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: Maximum number of names in a list of samples or donors, in which readers look for their own.
MANY = 40


def listing(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, and the number of names if there are more than ``most``."""
    listed = ", ".join(repr(clipped(name)) for name in names[:most])
    return listed if len(names) <= most else f"{listed}, ... ({len(names)} in all)"


def near_names(unknown: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" or a list of the names, for error messages."""
    all_names = list(names)
    folded = {name.casefold(): name for name in reversed(all_names)}
    matches = difflib.get_close_matches(unknown.casefold(), folded)
    if matches:
        suggestions = " or ".join(repr(clipped(folded[name])) for name in matches)
        return f"; did you mean {suggestions}?"
    return f"; there are {listing(all_names)}" if all_names else "; there are none"


def require_name(name: str, names: Iterable[str], lack: str) -> None:
    """Raise ValueError "LACK 'name'; did you mean ...?" unless ``names`` has the name."""
    all_names = list(names)
    if name not in all_names:
        raise ValueError(f"{lack} {name!r}{near_names(name, all_names)}")


def short(error: BaseException) -> str:
    """Return the message of a parser's error in one line."""
    return clipped(" ".join(str(error).split()) or type(error).__name__, LONGEST // 2)
