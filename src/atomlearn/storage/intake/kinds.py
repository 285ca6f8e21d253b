"""Detect the kind of each column of a table, and choose its default use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.frame import Frame

_ISO = re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})([T ]\d{1,2}:\d\d.*)?$")
_OTHER = re.compile(r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})([T ]\d{1,2}:\d\d.*)?$")


def order_of(cells: Sequence[str]) -> tuple[str, bool]:
    """Detect the order of dates: which of "year", "day" and "month" is first, and if it is a guess.

    If every date is valid in both orders, periods (3.4.2024) mean that the day is first, and other
    separators (3/4/2024) that the month is first, which is then reported as ambiguous.

    Examples
    --------
    >>> from atomlearn.storage.intake.kinds import order_of
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
    """Return the days since 1970-01-01, NaN if a cell is ""; None if a cell is no date.

    Parameters
    ----------
    cells : sequence of str
        Dates such as 2024-03-31 (with or without a time), 31.3.2024, 31/3/2024 or 3/31/2024.
    order : str
        Order that ``order_of`` found in the cells that a model was fitted to; "": it is detected.

    Examples
    --------
    >>> from atomlearn.storage.intake.kinds import days_of
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
        # The dates are written in another form than when the model was fitted, so that the order
        # has to be detected in them.
        order = ""
    day_first = (order or order_of(cells)[0]) == "day"
    try:
        return np.array([np.nan if match is None else _day(match, day_first) for match in found])
    except ValueError:
        return None


def _day(match: re.Match[str], day_first: bool) -> float:
    """Return the days since 1970-01-01 of a matched date."""
    given = match.groupdict()
    if "m" in given:
        month = int(given["m"])
        day = int(given["d"])
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


_ID_NAME = re.compile(
    r"(?i)(^|.*[\W_])(id|ids|key|uuid|guid|barcode|accession|sample_?name|nr|rownames?|row_?names?)"
    r"$|^(id|iid|fid)[\W_].*|^.*[a-z]ID$|^(column_0|unnamed: 0|index|name)$"
)
#: Names of columns that identify persons or animals, who can have several rows.
_OF_PERSONS = re.compile(
    r"(?i)(^|.*[\W_])((patient|subject|participant|donor)[\W_]*(id|nr|no|number|key|code)?|"
    r"(person|animal|mouse|family|household)[\W_]*(id|nr|no|number|key|code)|ptid)[\W_]*$"
)
#: Codes such as 0007, an account number of 20 digits, or 1E10 on a plate, which would change if
#: they were read as numbers.
_CODE = re.compile(r"0\d+|\d{16,}|\d+[eE]\d+")
_INDEX_NAME = re.compile(r"(?i)(column_0|unnamed.*|index|id|ids|row.*|nr|no|obs|x|case)$")
#: Remark on dates such as 3/4/2024, in which day and month could be exchanged.
DOUBT = "month/day/year, as day/month/year could be, too"
#: Values with a commonly known order.
SCALES: tuple[tuple[str, ...], ...] = (
    ("very low", "low", "medium", "high", "very high"),
    ("low", "moderate", "high"),
    ("none", "mild", "moderate", "severe"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("small", "medium", "large"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("i", "ii", "iii", "iv", "v"),
    ("stage i", "stage ii", "stage iii", "stage iv"),
)


def described(frame: Frame, names: Sequence[str]) -> list[ColumnPlan]:
    """Return a plan for each of these columns, based on its cells."""
    plans = [_text(frame, name) if frame.is_text(name) else _numbers(frame, name) for name in names]
    return _without_duplicates(frame, plans)


def is_id_name(name: str) -> bool:
    """Return whether the name of a column is one that usually identifies rows."""
    return _ID_NAME.match(name) is not None


def is_of_persons(name: str) -> bool:
    """Return whether the name of a column is one that usually identifies persons or animals."""
    return _OF_PERSONS.match(name) is not None


def is_code(cell: str) -> bool:
    """Return whether a cell is written unlike a number: with leading zeros, or too long."""
    return _CODE.fullmatch(cell) is not None


def _left_out(name: str, kind: str, why: str, **told: Any) -> ColumnPlan:
    return ColumnPlan(name, kind, "leave out", why=why, **told)


def _numbers(frame: Frame, name: str) -> ColumnPlan:
    """Return the plan of a numeric column: number, count, 0/1, identifier, index or constant."""
    values = frame.columns[name]
    missing = int(frame.missing(name).sum())
    known = values[np.isfinite(values)] if missing else values
    if known.size == 0:
        return _left_out(name, "constant", "it is empty", missing=missing)
    low = float(known.min())
    high = float(known.max())
    if low == high:
        return _left_out(name, "constant", f"always {low:g}", missing=missing, distinct=1)
    some = known[: INTAKE.sniffed]
    if not (some == np.rint(some)).all() or not (known == np.rint(known)).all():
        return ColumnPlan(name, missing=missing)
    distinct = int(np.unique(known).size)
    counts: dict[str, Any] = {"missing": missing, "distinct": distinct}
    if distinct == frame.n_rows > 2:
        if _counts_rows(known, high - low, least=3 if _INDEX_NAME.match(name) else 10):
            return _left_out(name, "index", "it counts rows", **counts)
        if is_id_name(name):
            return _left_out(name, "identifier", "another number in every row", **counts)
    ends_in_id = is_id_name(name) and name.lower().rstrip("s").endswith("id")
    codes = is_of_persons(name) or (ends_in_id and distinct > INTAKE.most_values)
    if codes and 2 < distinct < known.size:
        why = f"{distinct} different values in {frame.n_rows} rows"
        return _left_out(name, "identifier", why, **counts)
    kind = "0/1" if (low, high) == (0, 1) and distinct == 2 else "count" if low >= 0 else "number"
    return ColumnPlan(name, kind, **counts)


def _counts_rows(values: NDArray[Any], span: float, least: int) -> bool:
    """Return whether distinct whole numbers number the rows: 0 or 1, 2, ..., or in order."""
    if span != values.size - 1 or values.size < least:
        return False
    return bool(values.min() in (0, 1) or (np.abs(np.diff(values)) == 1).all())


def _text(frame: Frame, name: str) -> ColumnPlan:
    """Return the plan of a text column: date, category, free text, identifier or constant."""
    cells = frame.columns[name].tolist()
    known = [cell for cell in cells if cell]
    n_rows = len(cells)
    counts = Counter(known)
    labels = sorted(counts)
    summary: dict[str, Any] = {"missing": n_rows - len(known), "distinct": len(labels)}
    repeats = f"{len(labels)} different values in {n_rows} rows"
    if len(labels) < 2:
        why = f"always {labels[0]!r}" if labels else "it is empty"
        return _left_out(name, "constant", why, **summary)
    if days_of(known) is not None:
        order, doubt = order_of(known)
        why = "dates: --dates parts or --dates elapsed makes numbers of them"
        why += f"; read as {DOUBT}" if doubt else ""
        return _left_out(name, "date", why, values=(order,), **summary)
    strays = strays_among(labels)
    if 0 < sum(counts[label] for label in strays) < (1 - INTAKE.numbers_share) * len(known):
        return _left_out(name, "mixed", f"{strays[0]!r} among numbers", values=strays)
    is_free = _words(known) >= INTAKE.free_words
    if n_rows >= 6 and len(labels) == n_rows and not is_free:
        return _left_out(name, "identifier", "another value in every row", **summary)
    coded = is_id_name(name) or all(any(letter.isdigit() for letter in cell) for cell in labels)
    if is_of_persons(name) and coded and 2 < len(labels) < len(known):
        return _left_out(name, "identifier", repeats, **summary)
    ordered = _scale(labels)
    if ordered is not None:
        return ColumnPlan(name, "ordered category", "ordered", ordered, **summary)
    many = len(labels) <= INTAKE.many_values and n_rows >= INTAKE.most_values * len(labels)
    if len(labels) <= INTAKE.most_values or many:
        return ColumnPlan(name, "category", "category", tuple(labels), **summary)
    if is_free:
        why = f"free text: --text {name} makes columns of its words"
        return _left_out(name, "text", why, **summary)
    if len(labels) > n_rows // 2 or is_id_name(name):
        return _left_out(name, "identifier", repeats, **summary)
    why = f"{len(labels)} values, too many for a column each: group them"
    return _left_out(name, "text", why, **summary)


def strays_among(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that are no numbers."""
    form = TextForm(decimal=".")
    return tuple(label for label in labels if form.number(label) is None)


def _words(cells: Sequence[str]) -> float:
    some = cells[:: max(1, len(cells) // 200)]
    return sum(len(cell.split()) for cell in some) / max(len(some), 1)


def _scale(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels in a commonly known order, or None."""
    folded = {label.casefold(): label for label in labels}
    if len(folded) < 3:
        return None
    for scale in SCALES:
        if set(folded) <= set(scale):
            return tuple(folded[step] for step in scale if step in folded)
    return None


def _without_duplicates(frame: Frame, plans: list[ColumnPlan]) -> list[ColumnPlan]:
    """Mark numeric columns that duplicate an earlier column as left out."""
    seen: dict[bytes, list[str]] = {}
    found = []
    for plan in plans:
        if plan.is_used and not frame.is_text(plan.name):
            values = frame.columns[plan.name]
            alike = seen.setdefault((values[: INTAKE.sniffed] + 0.0).tobytes(), [])
            for first in alike:
                if np.array_equal(frame.columns[first], values, equal_nan=True):
                    why = f"the same as {first!r}"
                    plan = replace(plan, kind="duplicate", use="leave out", why=why)
                    break
            else:
                alike.append(plan.name)
        found.append(plan)
    return found


def as_asked(
    plans: Iterable[ColumnPlan],
    frame: Frame,
    *,
    text: Sequence[str] = (),
    dates: str | None = None,
    categories: Sequence[str] = (),
) -> list[ColumnPlan]:
    """Override the detected use of columns by user options.

    Parameters
    ----------
    plans : iterable of ColumnPlan
    frame : Frame
    text : sequence of str
        Columns to encode as tf-idf of their words.
    dates : str, optional
        Use of all date columns: "parts" or "elapsed".
    categories : sequence of str
        Columns to one-hot encode.
    """
    found = []
    for plan in plans:
        if plan.name in text:
            plan = replace(plan, kind="text", use="words", values=(), why="")
        elif plan.name in categories:
            labels = tuple(sorted({cell for cell in frame.cells(plan.name).tolist() if cell}))
            plan = replace(plan, kind="category", use="category", values=labels, why="")
        elif plan.kind == "date" and dates is not None:
            plan = replace(plan, use=dates, why=DOUBT if DOUBT in plan.why else "")
        found.append(plan)
    return found
