"""Numbers and dates as people write them: $1,234.50, 45.2%, (12.5), 60 kg, 12:30, 7-Jan-18."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Unit of a clock time, which is read as hours.
CLOCK = "h:mm"
_CURRENCY = r"(?:(?:US|CA|AU|HK|NZ|R)?\$|[€£¥₹₩₽]|USD|EUR|GBP|CHF|JPY)"
# A unit of one letter without a space before it may be the end of a code, such as 12A.
_UNIT = r"(?:(?<=\s)[A-Za-z]|[gmshdlLyKCV%‰°µμ](?![\w])|[A-Za-zµμ°%‰Ω][\w°µμ%/·²³^*.]{1,15})"
#: A number with the parts that people add to it, each as a named group.
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[-+−])?\s*(?P<before>{_CURRENCY})?\s*(?P<sign>[-+−])?"
    r"(?P<digits>[\d.][\d.,'’ \u00a0\u202f]*?|-)(?P<power>[eE][+-]?\d+)?"
    rf"(?:(?P<size>[KMBkmb])(?!\w))?\s*(?P<after>{_CURRENCY}|{_UNIT})?\s*(?P<close>\))?"
)
_TIME = re.compile(
    r"(?P<h>\d{1,3}):(?P<m>[0-5]\d)(:(?P<s>[0-5]\d(\.\d+)?))?\s*(?P<half>[AaPp])?(?(half)\.?[Mm]\.?)"
)
#: Digits in groups of three, by the separator of the groups.
_GROUPED = {
    ",": re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?"),
    ".": re.compile(r"\d{1,3}(\.\d{3})+(,\d*)?"),
    " ": re.compile(r"\d{1,3}( \d{3})+([.,]\d*)?"),
}
_PLAIN = re.compile(r"(\d+([.,]\d*)?|[.,]\d+)")
#: A comma that is not a thousands separator.
_COMMA_IS_DECIMAL = re.compile(r"(^0|\.\d{3}|\d{4}),\d|,(\d{1,2}|\d{4,})$|^,")
#: Factors of amounts of money such as $5M.
_SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_LIMIT = re.compile(r"\s*[<>≤≥]=?\s*(?=[-+.\d])")


class Written(NamedTuple):
    """Numbers read from text.

    Attributes
    ----------
    values : array
        The numbers, NaN for "".
    unit : str
        Their common unit, such as "kg", "%", "$" or ``CLOCK``; "" if none is written.
    strays : tuple of str
        Cells that are no numbers; their values are NaN.
    """

    values: NDArray[np.float64]
    unit: str
    strays: tuple[str, ...]


def numbers_written(cells: Sequence[str]) -> Written | None:
    """Return cells as numbers with one unit; None if no cell has a unit, or if there are several.

    Currencies, percent, units, parentheses around negative amounts, separators of thousands and
    times of day (in hours) are understood. Some cells may lack the unit, unless it is percent or a
    time of day.

    Examples
    --------
    >>> from atomlearn.storage.intake.written import numbers_written
    >>> values, unit = numbers_written(["$1,234.50", "($7)", ""])[:2]
    >>> values.tolist(), unit
    ([1234.5, -7.0, nan], '$')
    >>> numbers_written(["60 kg", "130 lb"]) is None
    True
    """
    distinct = list(dict.fromkeys(cell for cell in cells if cell))
    matches = {cell: _NUMBER.fullmatch(cell) or _TIME.fullmatch(cell) for cell in distinct}
    # A cell such as "-" has no digits, unless a currency makes it an amount of zero.
    fields = {
        cell: match.groupdict()
        for cell, match in matches.items()
        if match is not None and (match.groupdict().get("digits") != "-" or match["before"])
    }
    # One cell such as 1,5 shows that the comma is the decimal mark in all of them.
    digits = [parts["digits"] for parts in fields.values() if "digits" in parts]
    by_comma = any(_COMMA_IS_DECIMAL.search(text.strip()) for text in digits)
    values = {cell: _value(parts, by_comma) for cell, parts in fields.items()}
    values = {cell: value for cell, value in values.items() if value is not None}
    units = {_unit(fields[cell]) for cell in values}
    unit_names = units - {""}
    # Plain numbers are read elsewhere: there must be a unit, or parentheses.
    has_parentheses = any(fields[cell].get("open") for cell in values)
    if (
        len(unit_names) > 1
        or not (unit_names or has_parentheses)
        or (unit_names & {"%", "‰", CLOCK} and "" in units)
    ):
        return None
    strays = tuple(cell for cell in distinct if cell not in values)
    numbers = np.array([values.get(cell, np.nan) for cell in cells], dtype=np.float64)
    return Written(numbers, "".join(unit_names), strays)


def _unit(parts: dict[str, Any]) -> str:
    """Return the unit of a number, "" without one; ``parts`` are the groups of its match."""
    if "h" in parts:
        return CLOCK
    return parts["before"] or parts["after"] or ""


def _value(parts: dict[str, Any], by_comma: bool) -> float | None:
    """Return the value of a matched number; None if it is written in no known way.

    ``parts`` are the groups of the match of ``_NUMBER`` or ``_TIME``; ``by_comma`` says that the
    decimal mark is the comma.
    """
    if "h" in parts:
        return hours(parts)
    if bool(parts["open"]) != bool(parts["close"]):
        return None
    # A letter for thousands or millions is understood only in amounts of money.
    is_money = re.fullmatch(_CURRENCY, _unit(parts)) is not None
    size = (parts["size"] or "").lower()
    if size and not is_money:
        return None
    value = 0.0 if parts["digits"] == "-" else _digits(parts["digits"], by_comma)
    if value is None:
        return None
    # Parentheses mean a negative amount; a minus may come before or after the currency.
    sign = "-" if parts["open"] else (parts["minus"] or "") + (parts["sign"] or "")
    value *= _SIZES[size] * float(f"1{parts['power'] or ''}")
    return -value if sign in ("-", "−") else value


def _digits(text: str, by_comma: bool) -> float | None:
    """Return the digits in ``text`` as a number; None if separators of thousands are misplaced.

    ``by_comma`` says that the comma is the decimal mark, and the period separates thousands.
    """
    plain = re.sub(r"['’\u00a0\u202f]", " ", text).strip()
    grouped = _GROUPED["." if by_comma else ","].fullmatch(plain) or _GROUPED[" "].fullmatch(plain)
    if grouped is None and (_PLAIN.fullmatch(plain) is None or ("," in plain and not by_comma)):
        return None
    plain = plain.replace(" ", "")
    plain = plain.replace(".", "").replace(",", ".") if by_comma else plain.replace(",", "")
    return float(plain)


def hours(parts: dict[str, Any]) -> float:
    """Return a matched time of day as hours.

    ``parts`` has its hour ``h``, minute ``m``, second ``s`` (or None) and ``half``, which is a or p
    of a.m. and p.m. (or None).
    """
    hour = int(parts["h"])
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"] in "pP" else 0)
    return hour + int(parts["m"]) / 60 + float(parts["s"] or 0) / 3600


def without_limits(cell: str) -> str:
    """Return a limit of detection such as <0.5 or >90 as its number, and other cells unchanged.

    Examples
    --------
    >>> from atomlearn.storage.intake.written import without_limits
    >>> without_limits("<0.5"), without_limits("> 90"), without_limits("<none")
    ('0.5', '90', '<none')
    """
    return _LIMIT.sub("", cell, count=1)


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?P<name>(?:{'|'.join(_MONTHS)})[a-z]*)\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_CLOCK_TIME = (
    r"(?:[T ,]\s*(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d+)?))?\s*(?:(?P<half>[ap])\.?m\.?)?"
    r"\s*(?:[a-z][\w/+-]*|[+-]\d\d:?\d\d)?)?"
)
_YEAR = r"(?P<y>\d{4}|\d\d)"
#: Forms of dates; all cells of a column have the same form.
_FORMS = tuple(
    re.compile(_WEEKDAY + form + _CLOCK_TIME, re.IGNORECASE)
    for form in (
        r"(?P<y>\d{4})[-/.](?P<mon>\d{1,2})[-/.](?P<d>\d{1,2})",
        rf"(?P<a>\d{{1,2}})[-/.](?P<b>\d{{1,2}})[-/.]{_YEAR}",
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[-/. ]\s*{_MONTH}[-/., ]\s*{_YEAR}",
        rf"{_MONTH}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})",
        rf"(?P<y>\d{{4}})[-/. ]{_MONTH}[-/. ](?P<d>\d{{1,2}})",
        rf"{_MONTH}[-/., ]+(?P<y>\d{{4}})",
    )
)
#: A year of two digits from this one on is in the 20th century, as in POSIX.
_PIVOT = 69
_EPOCH = datetime(1970, 1, 1)


def order_of(cells: Sequence[str]) -> tuple[str, bool]:
    """Return which of "year", "day" and "month" is first in dates, and whether that is a guess.

    ``cells`` are the dates of a column, "" if missing. A number above 12 decides between day and
    month. Without one, periods (3.4.2024) mean that the day is first. Other separators (3/4/2024)
    mean that the month is first, which is a guess.

    Examples
    --------
    >>> from atomlearn.storage.intake.written import order_of
    >>> order_of(["3/4/2024", "25/4/2024"]), order_of(["3/4/2024", "5/4/2024"])
    (('day', False), ('month', True))
    """
    # Only this form of dates has two numbers before the year.
    matches = [
        match for match in map(_FORMS[1].fullmatch, filter(None, cells)) if match is not None
    ]
    if not matches:
        return "year", False
    # The groups a and b are the first and the second number.
    for part, order in (("a", "day"), ("b", "month")):
        if any(int(match[part]) > 12 for match in matches):
            return order, False
    is_guess = any(match["a"] != match["b"] for match in matches)
    return ("day", False) if "." in matches[0].string else ("month", is_guess)


def days_of(cells: Sequence[str], order: str = "") -> NDArray[np.float64] | None:
    """Return the days since 1970-01-01, NaN if a cell is ""; None if a cell is no date.

    Times of day are the fraction of a day. Years of two digits are from 1969 to 2068.

    Parameters
    ----------
    cells : sequence of str
        Dates such as 2024-03-31 (with or without a time), 31.3.2024, 31/3/2024, 3/31/24, 7-Jan-18
        or March 5, 2021.
    order : str
        Order that ``order_of`` found in the cells that a model was fitted to; "": it is detected.

    Examples
    --------
    >>> from atomlearn.storage.intake.written import days_of
    >>> days_of(["1970-01-02", "", "1970-02-01 12:00"]).tolist()
    [1.0, nan, 31.5]
    """
    distinct = dict.fromkeys(cell for cell in cells if cell)
    first = next(iter(distinct), "")
    pattern = next((form for form in _FORMS if form.fullmatch(first)), None)
    if pattern is None:
        return None
    if order and (order == "year") == (pattern is _FORMS[1]):
        # The dates are written in another form than when the model was fitted, so that the order
        # has to be detected in them: only ``_FORMS[1]`` has day or month first.
        order = ""
    matches = {cell: pattern.fullmatch(cell) for cell in distinct}
    day_first = (order or order_of(list(distinct))[0]) == "day"
    try:
        days = {cell: _day(match, day_first) for cell, match in matches.items()}
    except ValueError:
        return None
    return np.array([days.get(cell, np.nan) for cell in cells])


def _day(match: re.Match[str] | None, day_first: bool) -> float:
    """Return the days since 1970-01-01 of a matched date; raise ValueError if it is none.

    ``match`` is the match of one of ``_FORMS``, or None. ``day_first`` decides the order of two
    numbers before the year.
    """
    if match is None:
        raise ValueError("a cell is no date")
    parts = match.groupdict()
    year = int(parts["y"])
    if len(parts["y"]) == 2:
        year += 1900 if year >= _PIVOT else 2000
    if "a" in parts:
        # Two numbers, in the order day and month or reversed.
        day, month = (int(parts["a"]), int(parts["b"]))[:: 1 if day_first else -1]
    else:
        name = parts.get("name")
        month = 1 + _MONTHS.index(name[:3].lower()) if name else int(parts["mon"])
        day = int(parts.get("d") or 1)
    time = hours(parts) if parts["h"] else 0.0
    return (datetime(year, month, day) - _EPOCH + timedelta(hours=time)) / timedelta(days=1)


def date_parts(days: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return year, month, day of the month, and weekday (Monday 0) of days since 1970.

    Each is an array like ``days``, with NaN for days that are not finite.
    """
    dates = np.floor(np.where(np.isfinite(days), days, 0)).astype("datetime64[D]")
    years = dates.astype("datetime64[Y]")
    months = dates.astype("datetime64[M]")
    parts = [
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64) + 1,
        (dates - months).astype(np.int64) + 1,
        (dates.astype(np.int64) + 3) % 7,
    ]
    return [np.where(np.isfinite(days), part, np.nan).astype(np.float64) for part in parts]
