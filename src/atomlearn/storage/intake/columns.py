"""ColumnPlan: what one column of a file is, what is made of it, and how to make it again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

#: What may be made of a column: the words of ``use`` in a schema, and what they mean.
USES = {
    "number": "as it is",
    "category": "0/1 columns, one a value, selected as a whole",
    "ordered": "0, 1, 2, ... in the order of `values`",
    "parts": "year, month, day and weekday of a date",
    "elapsed": "days since the first date",
    "words": "tf-idf of its words, one sparse column a word",
    "leave out": "not used",
}
#: What a column may be for, beside being a feature, and what each means; "" for those with a
#: field of ``Reading``.
ROLES = {
    "target": "",
    "id": "",
    "weights": "column of sample weights",
    "offset": "column that is added to Xw + b",
    "exposure": "column whose logarithm is the offset (counts)",
    "time": "column of times until an event (survival)",
    "event": "column that says if it happened (0 or 1)",
    "split": "column that says which rows are train and which test (validation counts as train)",
    "rows_of": """column of whom rows are, as patient_id: rows of one are held out, folded and
        halved together (default: an identifier that repeats; none: each row by itself)""",
    "order": """column of dates or positions of a series: its end is held out, not random rows""",
}
#: Roles that a row may lack.
OPTIONAL = ("rows_of", "id", "split")


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One column of a file.

    kind : what it looks like (number, count, 0/1, category, ordered category, date, text,
    identifier, index, constant, duplicate); use : what is made of it, a key of ``USES`` or a role;
    values : labels of a category in their order, or words; numbers : idf of the words, or the first
    date; fill : what a missing value counts as (a number or a label), None where it is refused;
    flag : whether a 0/1 column tells that the value was missing; missing, distinct : how many;
    why : what the reader of a report should know.

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

    @property
    def is_used(self) -> bool:
        """Whether columns of X are made of it."""
        return self.use in USES and self.use != "leave out"

    def shown(self) -> tuple[str, ...]:
        """Return the labels that get a column: of two, the second says it all."""
        return self.values[1:] if len(self.values) == 2 else self.values

    def made(self) -> list[str]:
        """Return the names of the columns of X that are made of it."""
        own = {
            "category": [f"{self.name}={value}" for value in self.shown()],
            "parts": [f"{self.name}.{part}" for part in ("year", "month", "day", "weekday")],
            "words": [f"{self.name}~{word}" for word in self.values],
            "leave out": [],
        }.get(self.use, [self.name])
        return own + ([f"{self.name}=missing"] if self.flag else [])

    def portable(self) -> dict[str, Any]:
        """Return what JSON keeps: what is not as by default."""
        given = asdict(self)
        plain = asdict(ColumnPlan(self.name))
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in given.items()
            if value != plain[key] or key in ("name", "kind", "use")
        }


def plan_of(content: object, place: str) -> ColumnPlan:
    """Return the plan that a JSON object describes, or raise ValueError that names ``place``."""
    if not isinstance(content, dict) or not isinstance(content.get("name"), str):
        raise ValueError(f"{place} must be an object with a name, found {str(content)[:60]!r}")
    known = {field.name: field for field in fields(ColumnPlan)}
    strange = sorted(set(content) - set(known))
    if strange:
        raise ValueError(
            f"{place} has the unknown key {strange[0]!r}; known are {', '.join(known)}"
        )
    given = dict(content)
    if given.get("use", "number") not in (*USES, *ROLES):
        raise ValueError(
            f"{place}: use must be one of {', '.join(USES)}, found {str(given['use'])[:40]!r}"
        )
    _check(given, place)
    for key in ("values", "numbers"):
        given[key] = tuple(given.get(key, ()))
    if given.get("use") == "words" and len(given["values"]) != len(given["numbers"]):
        raise ValueError(f"{place}: values and numbers of words must be as many")
    return ColumnPlan(**given)


def _check(given: dict[str, Any], place: str) -> None:
    """Refuse values of other types than the fields have."""
    rules: dict[str, tuple[str, Any]] = {
        "kind": ("a text", lambda v: isinstance(v, str)),
        "why": ("a text", lambda v: isinstance(v, str)),
        "flag": ("true or false", lambda v: isinstance(v, bool)),
        "missing": ("a whole number", lambda v: type(v) is int and v >= 0),
        "distinct": ("a whole number", lambda v: type(v) is int and v >= 0),
        "fill": ("a number, a text or null", lambda v: v is None or _plain(v)),
        "values": ("a list of texts", lambda v: _listed(v, str)),
        "numbers": ("a list of numbers", lambda v: _listed(v, (int, float))),
    }
    for key, (expected, fits) in rules.items():
        if key in given and not fits(given[key]):
            raise ValueError(f"{place}.{key} must be {expected}, found {str(given[key])[:40]!r}")


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _listed(value: object, kinds: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, kinds) and not isinstance(item, bool) for item in value
    )
