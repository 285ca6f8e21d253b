"""Reading: what is asked of a file; and schema files, which say what its columns are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import ROLES, ColumnPlan, plan_of
from atomlearn.storage.intake.genotypes import Filters

WAYS = ("refuse", "median", "indicator", "drop")
FORMAT = "atomlearn-schema"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is asked of a file.

    target : column, key or .npy file to predict; missing : what to do with missing values; id :
    column of row names; drop, covariates : columns to leave out, and to use without penalty;
    roles : role -> column ("weights", "offset", "exposure", "time", "event", "split", "rows_of",
    "order"; rows_of "" : an identifier that repeats does not bind rows together); pheno,
    pheno_name, covar : files of targets and covariates joined by row names; transpose : samples
    are columns; sheet : of a workbook; form : of text; text, dates, categories : columns of free
    text to make words of, what to make of dates, numbers that are labels; schema : plans of
    columns that a person wrote; names : file with a name a column, for formats without; filters,
    pcs, seed : of genotypes, which variants to leave out and how many principal components to add;
    memory_limit : bytes; data that take more than a third of it become a column store, in a
    temporary folder, that is read as it is used.
    """

    target: str | None = None
    missing: str = "refuse"
    id: str | None = None
    drop: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    pheno: Path | None = None
    pheno_name: str | None = None
    covar: Path | None = None
    transpose: bool = False
    sheet: str | None = None
    form: TextForm = field(default_factory=TextForm)
    text: tuple[str, ...] = ()
    dates: str | None = None
    categories: tuple[str, ...] = ()
    schema: tuple[ColumnPlan, ...] = ()
    names: Path | None = None
    filters: Filters = field(default_factory=Filters)
    pcs: int = 0
    seed: int = 0
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        paths = {"pheno": self.pheno, "covar": self.covar, "names": self.names}
        for name, path in paths.items():
            object.__setattr__(self, name, None if path is None else Path(path))
        lists: dict[str, str | Sequence[str]] = {
            "drop": self.drop,
            "covariates": self.covariates,
            "text": self.text,
            "categories": self.categories,
        }
        for name, given in lists.items():
            # One name by itself, as one would type it; a text is a sequence of letters otherwise.
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if self.missing not in WAYS:
            raise ValueError(f"missing must be one of {', '.join(WAYS)}, got {self.missing!r}")
        if self.dates not in (None, "parts", "elapsed"):
            raise ValueError(f"dates must be 'parts' or 'elapsed', got {self.dates!r}")

    def role(self, role: str) -> str | None:
        """Return the column of a role, as asked or as the schema says."""
        if role in self.roles:
            return self.roles[role] or None
        given = {"target": self.target, "id": self.id}.get(role)
        return given or next((plan.name for plan in self.schema if plan.use == role), None)

    def text_form(self) -> TextForm:
        """Return how the text is written, names of rows told."""
        named = self.role("id")
        labels = self.form.labels | ({named} if named else set())
        return replace(self.form, labels=labels)

    def named_roles(self) -> dict[str, str]:
        """Return all roles that columns have."""
        found = {role: self.role(role) for role in ROLES}
        return {role: name for role, name in found.items() if name is not None}


def read_schema(path: str | Path) -> tuple[ColumnPlan, ...]:
    """Return the plans of a schema.json, as ``atomlearn inspect`` writes it."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a schema: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(
            f'{path} is not a schema: it has no "format": "{FORMAT}"; write one with `atomlearn '
            "inspect DATA --out FILE`"
        )
    columns = content.get("columns")
    if not isinstance(columns, list):
        raise ValueError(f"columns of {path} must be a list of columns")
    return tuple(plan_of(item, f"columns[{place}] of {path}") for place, item in enumerate(columns))


def schema_text(source: str, n_rows: int, plans: Sequence[ColumnPlan]) -> str:
    """Return the text of a schema.json."""
    content: dict[str, Any] = {"format": FORMAT, "version": 1, "source": source, "rows": n_rows}
    content["columns"] = [plan.portable() for plan in plans]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
