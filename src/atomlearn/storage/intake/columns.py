"""ColumnPlan: the kind of one column of a file, its use, and how to encode it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.records import demand, of_type, record


@dataclass(frozen=True, slots=True)
class KindLimits:
    """Numbers that decide the kind of a column; a schema overrides them."""

    #: Number of first lines of a file from which its delimiter and its header are detected.
    sniffed: int = 30
    #: A text column with at most ``most_values`` distinct values is a category, and a target with
    #: at most ``most_values`` distinct whole numbers has classes. Up to ``many_values`` are allowed
    #: if each occurs ``most_values`` times on average.
    most_values: int = 20
    many_values: int = 100
    #: A column of text with this mean number of words per cell, or more, is free text.
    free_words: float = 3.5
    #: If this share of the cells of a column, or more, are numbers, its other cells are errors.
    numbers_share: float = 0.8


INTAKE = KindLimits()


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the entries of ``values``, a target or another role, that are missing."""
    if values.dtype.kind in "OUS":
        return np.array([str(cell) == "" for cell in values.tolist()], dtype=bool)
    return ~np.isfinite(values.astype(np.float64, copy=False))


def known_rows(
    y: NDArray[Any] | None, name: str | None, extras: Mapping[str, NDArray[Any]], n_rows: int
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the numbers of the rows with a target and all required roles, and notes.

    Parameters
    ----------
    y : (n_rows,) array, optional
        The target.
    name : str, optional
        Its name, for messages.
    extras : dict
        Vectors (n_rows,) by role, such as "weights"; those of ``OPTIONAL`` may be missing.
    n_rows : int
        Number of rows.
    """
    is_known = np.ones(n_rows, dtype=bool)
    notes = []
    # The vectors without which a row cannot be used, by their description for messages.
    required = {} if y is None else {f"the target {name!r}": y}
    required |= {role: values for role, values in extras.items() if role not in OPTIONAL}
    for description, values in required.items():
        gaps = absent(values)
        if gaps.all():
            raise ValueError(f"{description} has no value in any row; choose another column")
        if gaps.any():
            notes.append(f"{int(gaps.sum())} of {n_rows} rows lack {description} and are left out")
            is_known &= ~gaps
    if not is_known.any():
        raise ValueError("no row has both a target and all other numbers that were asked for")
    return np.flatnonzero(is_known), notes


#: Values of ``use`` in a schema, with the columns of X that each makes.
USES = {
    "number": "as it is",
    "category": "0/1 columns, one a value, selected as a whole",
    "ordered": "0, 1, 2, ... in the order of `values`",
    "parts": "year, month, day and weekday of a date",
    "elapsed": "days since the first date",
    "words": "tf-idf of its words, one sparse column a word",
    "leave out": "not used",
}
#: Roles that a column can have in place of a feature, with their help text; "" if ``Reading`` has a
#: field for the role.
ROLES = {
    "target": "",
    "id": "",
    "weights": "column of sample weights",
    "offset": "column that is a known part of the prediction: it is added as it is",
    "exposure": "column of how long or how much was watched (counts): its logarithm is the offset",
    "time": "column of times until an event (survival)",
    "event": """column that says if it happened (0/1, 1/2, true/false, dead/alive, ...), or
        NAME=LABEL: rows with this label have the event, and the others are censored""",
    "entry": """column of times from which a row was seen: late entry, or the start of an interval
        of time-varying (start-stop) data, whose end is --time""",
    "stratum": "column of strata, each with a baseline hazard of its own (survival)",
    "split": "column that says train or test for each row (validation counts as train)",
    "rows_of": """column that names whom a row is of, such as patient_id: rows of one are held out,
        folded and halved together (default: an identifier that repeats; none: each row by
        itself)""",
    "order": """column of dates or positions of a series: its end is held out, not random rows""",
}
#: Roles that a row may lack.
OPTIONAL = ("rows_of", "id", "split")


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One column of a file, and how it is encoded.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        Kind that was detected: number, count, 0/1, category, ordered category, date, text,
        identifier, index, constant or duplicate.
    use : str
        A key of ``USES``, or a role.
    values : tuple of str
        Labels of a category in their order, or words.
    numbers : tuple of float
        Inverse document frequencies of the words, or the first date.
    fill : float or str, optional
        Number or label that replaces missing values; None: they are refused.
    flag : bool
        Whether a 0/1 column marks missing values.
    missing, distinct : int
        Number of missing values, and of distinct ones.
    why : str
        Remark for the reader of a report.
    reference : str
        Label of the reference category, which gets no column. "": the first of two labels, and
        none of more labels.

    Examples
    --------
    >>> from atomlearn.storage.intake.columns import ColumnPlan
    >>> ColumnPlan("smoker", "category", "category", ("no", "yes")).made()
    ['smoker=yes']
    >>> ColumnPlan("age", "number", "number", fill=51.0, flag=True).made()
    ['age', 'age=missing']
    """

    name: str
    kind: str = "number"
    use: str = "number"
    values: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    fill: float | str | None = None
    flag: bool = False
    missing: int = 0
    distinct: int = 0
    why: str = ""
    reference: str = ""

    @property
    def reference_level(self) -> str:
        """The label of a category that gets no column, "" if each label has one."""
        return self.reference or (self.values[0] if len(self.values) == 2 else "")

    @property
    def is_used(self) -> bool:
        """Whether columns of X are made of this column."""
        return self.use in USES and self.use != "leave out"

    def shown(self) -> tuple[str, ...]:
        """Return the labels that get a column: all but the reference level."""
        return tuple(value for value in self.values if value != self.reference_level)

    def made(self) -> list[str]:
        """Return the names of the columns of X that are made of this column."""
        names = {
            "category": [f"{self.name}={value}" for value in self.shown()],
            "parts": [f"{self.name}.{part}" for part in ("year", "month", "day", "weekday")],
            "words": [f"{self.name}~{word}" for word in self.values],
            "leave out": [],
        }.get(self.use, [self.name])
        return names + ([f"{self.name}=missing"] if self.flag else [])

    def portable(self) -> dict[str, Any]:
        """Return the fields as a JSON object, without optional ones that have their default."""
        entries = asdict(self)
        plain = asdict(ColumnPlan(self.name))
        return {
            key: value
            for key, value in entries.items()
            if value != plain[key] or key in ("name", "kind", "use")
        }


def plan_of(content: object, place: str) -> ColumnPlan:
    """Return the plan that a JSON object, ``content``, describes.

    Fields that it lacks have their defaults. ValueError names ``place``, its place in the file.
    """
    plain: dict[str, Any] = {field.name: field.default for field in fields(ColumnPlan)[1:]}
    entries = plain | {"values": [], "numbers": []} | of_type(place, content, dict)
    plan: ColumnPlan = record(ColumnPlan, entries, place)
    expected = f"one of {', '.join(USES)}"
    demand(plan.use in (*USES, *ROLES), f"{place}: use", expected, plan.use)
    if plan.use == "words" and len(plan.values) != len(plan.numbers):
        raise ValueError(f"{place}: values and numbers of words must be as many")
    return plan
