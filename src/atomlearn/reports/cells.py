"""Text cells that no spreadsheet runs: what begins like a formula is written behind an apostrophe.

A spreadsheet takes a cell that begins with one of ``= @ + -`` for a formula, and a formula can read
other cells, or open an address. Names of columns and labels come from files that others wrote.
``plain(inert(text)) == text`` for every text, and numbers are written as they are.

OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

from __future__ import annotations

from typing import Any

_RUN, _MARK = ("=", "@", "+", "-", "\t", "\r"), "'"


def inert(cell: Any) -> Any:
    """Return a text with an apostrophe before it where a spreadsheet would run it.

    Examples
    --------
    >>> from atomlearn.reports.cells import inert, plain
    >>> inert("=1+1"), inert("-0.5"), inert("dose"), plain(inert("=1+1"))
    ("'=1+1", '-0.5', 'dose', '=1+1')
    """
    if not isinstance(cell, str) or not _would_run(cell):
        return cell
    return _MARK + cell


def plain(cell: str) -> str:
    """Return the text that ``inert`` was given."""
    return cell[1:] if cell.startswith(_MARK) and _would_run(cell[1:]) else cell


def _would_run(text: str) -> bool:
    # Apostrophes before it count as well, so that what is written reads back as it was.
    if not text.lstrip(_MARK).startswith(_RUN):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return "_" in text or not text.isprintable()
