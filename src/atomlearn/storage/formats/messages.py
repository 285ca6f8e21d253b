"""Parts of messages: names, cells and errors, shortened to one line."""

from __future__ import annotations

import difflib
import fnmatch
import shlex
from collections.abc import Iterable, Sequence


def refuse_all(path: object, faults: Sequence[tuple[str, str]]) -> None:
    """Raise one ValueError with all faults of the file ``path`` and the options that remedy them.

    ``faults`` has pairs of a fault and an option of the command line, "" without one. There is no
    error without faults. Long lists are cut off, so that the options are always visible.
    """
    if not faults:
        return
    options = dict.fromkeys(option for _, option in faults if option)
    remedy = f". Type {' '.join(options)}" if options else ""
    n_characters = max(LONGEST - len(f"{path}: ") - len(remedy), LONGEST // 10)
    text = clipped("; ".join(fault for fault, _ in faults), n_characters)
    raise ValueError(f"{path}: {text}{remedy}")


def typed(option: str, names: Sequence[str]) -> str:
    """Return the text to type in a shell for an option whose value is a list of names.

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
    """Return the names of columns in ``texts``: lists with commas, and patterns such as ``x_*``.

    ``header`` has the names of all columns, which patterns are compared with. A text that is itself
    the name of a column is not split. A name or pattern without such a column is kept as it is, for
    an error message later. Each name is in the result once.
    """
    names = set(header)
    expanded = dict[str, None]()
    for text in texts:
        patterns = [text] if text in names else [pattern.strip() for pattern in text.split(",")]
        for pattern in filter(None, patterns):
            matching = [pattern] if pattern in names else fnmatch.filter(header, pattern)
            expanded |= dict.fromkeys(matching or [pattern])
    return tuple(expanded)


#: Longest message, in characters.
LONGEST = 480


def clipped(text: str, most: int = 30) -> str:
    """Return ``text``, a name or a cell, shortened to ``most`` characters for messages."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: Maximum number of names in a message that lists samples or donors, where people look for theirs.
MANY = 40


def listing(names: Sequence[str], most: int = 4) -> str:
    """Return a text with the first ``most`` names, and the number of all if there are more."""
    listed = ", ".join(repr(clipped(name)) for name in names[:most])
    return listed if len(names) <= most else f"{listed}, ... ({len(names)} in all)"


def near_names(unknown: str, names: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name.

    It is "; did you mean ...?" if ``names`` has similar ones (in any case), else a list of them.
    """
    all_names = list(names)
    # Of names that differ only in case, the first one is kept.
    folded = {name.casefold(): name for name in reversed(all_names)}
    matches = difflib.get_close_matches(unknown.casefold(), folded)
    if matches:
        suggestions = " or ".join(repr(clipped(folded[name])) for name in matches)
        return f"; did you mean {suggestions}?"
    return f"; there are {listing(all_names)}" if all_names else "; there are none"


def require_name(name: str, names: Iterable[str], lack: str) -> None:
    """Raise ValueError "LACK 'name'; did you mean ...?" unless ``name`` is among ``names``.

    ``lack`` is the beginning of the message, such as "the file has no column".
    """
    all_names = list(names)
    if name not in all_names:
        raise ValueError(f"{lack} {name!r}{near_names(name, all_names)}")


def short(error: BaseException) -> str:
    """Return the message of a parser's error in one line, or the type of the error without one."""
    return clipped(" ".join(str(error).split()) or type(error).__name__, LONGEST // 2)
