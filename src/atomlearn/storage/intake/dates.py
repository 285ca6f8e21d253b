"""Dates: cells of text as days since 1970, in the forms that people write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

_ISO = re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})([T ]\d{1,2}:\d\d.*)?$")
_OTHER = re.compile(r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})([T ]\d{1,2}:\d\d.*)?$")


def order_of(cells: Sequence[str]) -> tuple[str, bool]:
    """Return "year", "day" or "month", by which comes first, and whether another order fits, too.

    Where both orders of day and month are possible in every cell, points mean day first and
    slashes month first.

    Examples
    --------
    >>> from atomlearn.storage.intake.dates import order_of
    >>> order_of(["3/4/2024", "25/4/2024"]), order_of(["3/4/2024", "5/4/2024"])
    (('day', False), ('month', True))
    """
    given = [match for match in map(_OTHER.match, filter(None, cells)) if match is not None]
    if not given:
        return "year", False
    for part, order in (("a", "day"), ("b", "month")):
        if any(int(match[part]) > 12 for match in given):
            return order, False
    doubt = any(match["a"] != match["b"] for match in given)
    return ("day", False) if "." in given[0].string else ("month", doubt)


def days_of(cells: Sequence[str], order: str = "") -> NDArray[np.float64] | None:
    """Return the days since 1970-01-01, NaN where a cell is ""; None where one is no date.

    2024-03-31 (also with a time), 31.3.2024, 31/3/2024 and 3/31/2024; ``order`` : as ``order_of``
    found it in the cells that a model was fitted to; "": it is found in these.

    Examples
    --------
    >>> from atomlearn.storage.intake.dates import days_of
    >>> days_of(["1970-01-02", "", "1970-02-01"]).tolist()
    [1.0, nan, 31.0]
    """
    first = next((cell for cell in cells if cell), "")
    pattern = _ISO if _ISO.match(first) else _OTHER
    found: list[re.Match[str] | None] = []
    for cell in cells:
        match = pattern.match(cell) if cell else None
        if cell and match is None:
            return None
        found.append(match)
    given = [match for match in found if match is not None]
    if not given:
        return None
    if order and (order == "year") != (pattern is _ISO):
        # Written in another form than those of the fit: which order is meant, they say themselves.
        order = ""
    day_first = (order or order_of(cells)[0]) == "day"
    try:
        return np.array([np.nan if match is None else _day(match, day_first) for match in found])
    except ValueError:
        return None


def _day(match: re.Match[str], day_first: bool) -> float:
    given = match.groupdict()
    if "m" in given:
        month, day = int(given["m"]), int(given["d"])
    else:
        day, month = (int(given["a"]), int(given["b"]))[:: 1 if day_first else -1]
    return float(date(int(given["y"]), month, day).toordinal() - date(1970, 1, 1).toordinal())


def date_parts(days: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return year, month, day of the month, and weekday (Monday 0) of days since 1970."""
    known = np.where(np.isfinite(days), days, 0).astype("datetime64[D]")
    years = known.astype("datetime64[Y]")
    months = known.astype("datetime64[M]")
    parts = [
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64) + 1,
        (known - months).astype(np.int64) + 1,
        (known.astype(np.int64) + 3) % 7,
    ]
    return [np.where(np.isfinite(days), part, np.nan).astype(np.float64) for part in parts]
