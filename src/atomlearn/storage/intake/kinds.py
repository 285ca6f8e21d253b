"""Detect the kind of each column of a table, and choose its default use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.intake.cells import TextForm, is_numeric
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.written import (
    CLOCK,
    Written,
    days_of,
    numbers_written,
    order_of,
    without_limits,
)

#: Names of columns that usually identify rows, such as "id", "sample_name" or "PatientID".
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
#: Names of columns that usually number the rows.
_INDEX_NAME = re.compile(r"(?i)(column_0|unnamed.*|index|id|ids|row.*|nr|no|obs|x|case)$")
#: Remark on dates such as 3/4/2024, in which day and month could be exchanged. Notes and warnings
#: look for it in ``ColumnPlan.why``.
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
    """Return a plan for each of the columns ``names``, detected from its cells in ``frame``.

    A plan says which kind a column is, how it is used, and how it is encoded.
    """
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


def _left_out(name: str, kind: str, reason: str, **details: Any) -> ColumnPlan:
    """Return the plan of a column that is not used.

    ``name`` is the column, ``kind`` its kind, ``reason`` a remark for the user, and ``details`` are
    other fields of the plan.
    """
    return ColumnPlan(name, kind, "leave out", why=reason, **details)


def _numbers(frame: Frame, name: str) -> ColumnPlan:
    """Return the plan of a numeric column of ``frame``; its kind is decided in this order.

    1. constant: the values are equal, or all missing
    2. number: not all values are whole
    3. index: the values number the rows
    4. identifier: the values are distinct and the name of the column says that they identify rows,
       or they repeat and the name says that they identify persons
    5. 0/1; count, if no value is negative; else number
    """
    values = frame.columns[name]
    missing = int(frame.missing(name).sum())
    finite = values[np.isfinite(values)] if missing else values
    if finite.size == 0:
        return _left_out(name, "constant", "it is empty", missing=missing)
    low = float(finite.min())
    high = float(finite.max())
    if low == high:
        return _left_out(name, "constant", f"always {low:g}", missing=missing, distinct=1)
    # A few values are looked at first, because most columns of numbers are not whole.
    sample = finite[: INTAKE.sniffed]
    if not (sample == np.rint(sample)).all() or not (finite == np.rint(finite)).all():
        return ColumnPlan(name, missing=missing)
    distinct = int(np.unique(finite).size)
    counts: dict[str, Any] = {"missing": missing, "distinct": distinct}
    if distinct == frame.n_rows > 2:
        if _counts_rows(finite, high - low, least=3 if _INDEX_NAME.match(name) else 10):
            return _left_out(name, "index", "it counts rows", **counts)
        if is_id_name(name):
            return _left_out(name, "identifier", "another number in every row", **counts)
    # Values that repeat: persons, or things such as houses in a column "house_id".
    ends_in_id = is_id_name(name) and name.lower().rstrip("s").endswith("id")
    identifies = is_of_persons(name) or (ends_in_id and distinct > INTAKE.most_values)
    if identifies and 2 < distinct < finite.size:
        why = f"{distinct} different values in {frame.n_rows} rows"
        return _left_out(name, "identifier", why, **counts)
    kind = "0/1" if (low, high) == (0, 1) and distinct == 2 else "count" if low >= 0 else "number"
    return ColumnPlan(name, kind, **counts)


def _counts_rows(values: NDArray[Any], span: float, least: int) -> bool:
    """Return whether distinct whole numbers ``values`` only number the rows.

    They have no gaps, and begin at 0 or 1 or go up or down by 1 from row to row. ``span`` is the
    largest one minus the smallest. With fewer than ``least`` rows the result is False.
    """
    if span != values.size - 1 or values.size < least:
        return False
    return bool(values.min() in (0, 1) or (np.abs(np.diff(values)) == 1).all())


def _text(frame: Frame, name: str) -> ColumnPlan:
    """Return the plan of a text column of ``frame``; its kind is decided in this order.

    1. constant: at most one value
    2. date
    3. mixed: numbers with a few other cells
    4. number: numbers with a unit, such as "5 kg"
    5. identifier: every row differs, or the name of the column says that it identifies persons
    6. ordered category: the values are of a known scale
    7. category: few values
    8. text: free text of several words
    9. identifier or text: many values
    """
    cells = frame.columns[name].tolist()
    filled = [cell for cell in cells if cell]
    n_rows = len(cells)
    counts = Counter(filled)
    labels = sorted(counts)
    summary: dict[str, Any] = {"missing": n_rows - len(filled), "distinct": len(labels)}
    repeats = f"{len(labels)} different values in {n_rows} rows"
    if len(labels) < 2:
        why = f"always {labels[0]!r}" if labels else "it is empty"
        return _left_out(name, "constant", why, **summary)
    if days_of(filled) is not None:
        # The order of day, month and year, and whether another order would do as well.
        order, doubt = order_of(filled)
        why = "dates: --dates parts (or elapsed) makes numbers of them"
        why += f"; read as {DOUBT}" if doubt else ""
        return _left_out(name, "date", why, values=(order,), **summary)
    # Numbers, plain or with a unit, and the cells among them that are none (strays).
    written = numbers_written(labels) if not is_id_name(name) else None
    strays = strays_among(labels) if written is None else written.strays
    # Limits of detection count as numbers.
    words = [label for label in strays if not is_numeric([without_limits(label)])]
    has_numbers = sum(counts[label] for label in words) < (1 - INTAKE.numbers_share) * len(filled)
    if has_numbers and 0 < len(strays) < len(labels):
        why = f"{strays[0]!r} among numbers"
        return _left_out(name, "mixed", why, values=strays, **summary)
    if written is not None and not strays:
        return _written(name, labels, written, summary)
    is_free = _words(filled) >= INTAKE.free_words
    if n_rows >= 6 and len(labels) == n_rows and not is_free:
        return _left_out(name, "identifier", "another value in every row", **summary)
    # Codes of persons have digits; a column "mouse" with names of strains is a category.
    has_codes = is_id_name(name) or all(any(map(str.isdigit, cell)) for cell in labels)
    if is_of_persons(name) and has_codes and 2 < len(labels) < len(filled):
        return _left_out(name, "identifier", repeats, **summary)
    ordered = _scale(labels)
    if ordered is not None:
        return ColumnPlan(name, "ordered category", "ordered", ordered, **summary)
    are_frequent = len(labels) <= INTAKE.many_values and n_rows >= INTAKE.most_values * len(labels)
    if len(labels) <= INTAKE.most_values or are_frequent:
        return ColumnPlan(name, "category", "category", tuple(labels), **summary)
    if is_free:
        why = f"free text: --text {name} makes columns of its words"
        return _left_out(name, "text", why, **summary)
    if len(labels) > n_rows // 2 or is_id_name(name):
        return _left_out(name, "identifier", repeats, **summary)
    why = f"{len(labels)} values, too many for a column each: group them"
    return _left_out(name, "text", why, **summary)


def _written(
    name: str, labels: Sequence[str], written: Written, summary: dict[str, Any]
) -> ColumnPlan:
    """Return the plan of a column of numbers that are written with a unit, such as "5 kg".

    ``name`` is the column, ``labels`` are its different cells, ``written`` their numbers, and
    ``summary`` its numbers of missing and distinct cells. The remark of the plan shows how one
    label was read: the first one that is more than digits and a decimal point.
    """
    example = int(np.argmax([not label.replace(".", "", 1).isdecimal() for label in labels]))
    value = f"{written.values[example]:.6g}"
    unit = (written.unit,) if written.unit else ()
    why = f"{labels[example]!r} is {value}" + (" hours" if written.unit == CLOCK else "")
    return ColumnPlan(name, "number", "number", unit, why=why, **summary)


def strays_among(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that are neither numbers nor missing."""
    form = TextForm(decimal=".")
    return tuple(label for label in labels if form.number(label) is None)


def _words(cells: Sequence[str]) -> float:
    """Return the mean number of words of a cell, from about 200 of the cells."""
    sample = cells[:: max(1, len(cells) // 200)]
    return sum(len(cell.split()) for cell in sample) / max(len(sample), 1)


def _scale(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels in the order of a common scale, such as low, medium, high; None if none.

    There must be at least three labels, all of one scale in ``SCALES``, in upper or lower case.
    """
    folded = {label.casefold(): label for label in labels}
    if len(folded) < 3:
        return None
    for scale in SCALES:
        if set(folded) <= set(scale):
            return tuple(folded[step] for step in scale if step in folded)
    return None


#: Numbers that often mean a missing value. The first are negative ones in columns that are
#: otherwise not negative. The second are far above all other values; each has the number of cells
#: that makes it suspicious.
_CODES_BELOW = (-7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, -99999)
_CODES_ABOVE = {9: 4, 77: 3, 88: 3, 99: 3, **dict.fromkeys((777, 888, 999, 9999, 99999, 999999), 2)}
#: Smallest ratio of such a code to the largest other value.
_FAR_ABOVE = 3.0
#: Words that often mean a missing value.
_UNKNOWN = re.compile(
    r"(?i)(unknown|unk|missing|not (done|known|available|reported|recorded|applicable|assessed)|"
    r"no data|no answer|refused|don'?t know|declined|-+|none given|not stated|undetermined)"
)


def suspicious(values: NDArray[np.float64]) -> list[float]:
    """Return the numbers of a column that may mean a missing value, such as -9 or 999.

    Negative codes count if all other values are at least 0. Large codes count if they occur often
    enough and are at least three times as large as all other values.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.storage.intake.kinds import suspicious
    >>> suspicious(np.array([31.0, 54.0, -9.0, 47.0])), suspicious(np.array([-9.0, 2.0, -1.0]))
    ([-9.0], [])
    """
    # A code is always the smallest or the largest value.
    finite = values[np.isfinite(values)]
    if not finite.size or not ({finite.min(), finite.max()} & {*_CODES_BELOW, *_CODES_ABOVE}):
        return []
    codes = list[float]()
    below = np.isin(finite, _CODES_BELOW)
    remaining = finite[~below]
    # A negative code is suspicious if no other value is negative, and not all others are 0.
    if below.any() and remaining.size and remaining.min() >= 0 and remaining.max() > 0:
        codes += np.unique(finite[below]).tolist()
    # From the largest code down, because a column may use several.
    for code, least in reversed(_CODES_ABOVE.items()):
        others = remaining[remaining != code]
        often = np.count_nonzero(remaining == code) >= least
        if often and others.size and 0 < others.max() <= code / _FAR_ABOVE:
            codes.append(float(code))
            remaining = others
    return codes


def unknown_words(labels: Iterable[str]) -> list[str]:
    """Return the labels that may mean a missing value, such as "unknown"."""
    return [label for label in labels if _UNKNOWN.fullmatch(label.strip())]


def _without_duplicates(frame: Frame, plans: list[ColumnPlan]) -> list[ColumnPlan]:
    """Return the plans of columns, with numeric ones left out that repeat an earlier column.

    ``frame`` has the cells. Such a column has the same values in every row.
    """
    # Names of different columns, by their first cells; only columns with equal first cells are
    # compared in full. Adding 0.0 turns -0.0 to 0.0.
    seen: dict[bytes, list[str]] = {}
    merged = []
    for plan in plans:
        if plan.is_used and not frame.is_text(plan.name):
            values = frame.columns[plan.name]
            similar = seen.setdefault((values[: INTAKE.sniffed] + 0.0).tobytes(), [])
            for first in similar:
                if np.array_equal(frame.columns[first], values, equal_nan=True):
                    why = f"the same as {first!r}"
                    plan = replace(plan, kind="duplicate", use="leave out", why=why)
                    break
            else:
                similar.append(plan.name)
        merged.append(plan)
    return merged


def as_asked(
    plans: Iterable[ColumnPlan],
    frame: Frame,
    *,
    text: Sequence[str] = (),
    dates: str | None = None,
    categories: Sequence[str] = (),
) -> list[ColumnPlan]:
    """Return the plans with the detected use of columns replaced by the user's choices.

    Parameters
    ----------
    plans : iterable of ColumnPlan
        The detected plans.
    frame : Frame
        The cells, from which the labels of categories are taken.
    text : sequence of str
        Columns to encode as tf-idf of their words.
    dates : str, optional
        Use of all date columns: "parts" or "elapsed".
    categories : sequence of str
        Columns to one-hot encode.
    """
    adjusted = []
    for plan in plans:
        if plan.name in text:
            plan = replace(plan, kind="text", use="words", values=(), why="")
        elif plan.name in categories:
            labels = tuple(sorted({cell for cell in frame.cells(plan.name).tolist() if cell}))
            plan = replace(plan, kind="category", use="category", values=labels, why="")
        elif plan.kind == "date" and dates is not None:
            # ``why`` is the reason why a column is left out, so it is dropped for a column in use.
            # The doubt about day and month remains, because these dates may still be misread.
            plan = replace(plan, use=dates, why=DOUBT if DOUBT in plan.why else "")
        adjusted.append(plan)
    return adjusted
