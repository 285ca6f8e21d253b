"""Reading: the choices for reading a file; and schema files, which describe its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import ROLES, ColumnPlan, plan_of

FORMAT = "atomlearn-schema"


@dataclass(frozen=True)
class Reading:
    """Choices for reading a file.

    Parameters
    ----------
    target : str, optional
        Column to predict, or key, or .npy file (libsvm and .npz: y by default).
    missing : str
        Treatment of missing values: refuse (the default) raises an error; median fills in the
        median, or the most frequent value of a category; indicator does the same, and adds a 0/1
        column that is selected together with the value; drop leaves out such rows. Rows without a
        target are always left out. A missing genotype becomes the mean of its variant.
    id : str, optional
        Column of row names; it is no feature.
    drop : str or sequence of str
        Columns to leave out; x_* means all that begin with x_.
    covariates : str or sequence of str
        Columns that are in every model, without penalty.
    roles : mapping
        Columns by role: "weights", "offset", "exposure", "time", "event", "split", "rows_of",
        "order". With "none" for rows_of, a repeated identifier does not make rows belong together.
    pheno : file, optional
        Table of targets, joined by sample (FID and IID, or the names of rows).
    pheno_name : str, optional
        Column of the table of targets to predict.
    covar : file, optional
        Table of covariates (without penalty), joined by sample. Samples it lacks are left out.
    transpose : bool
        Samples are columns, for example in a table with a gene in each row.
    sheet : str, optional
        Sheet of a workbook (default: the first).
    form : TextForm
        How text is written.
    text : str or sequence of str
        Columns of free text, of whose words columns are made.
    dates : str, optional
        Use of dates: parts (year, month, day and weekday), or elapsed (days since the first date).
    categories : str or sequence of str
        Columns of numbers that are labels.
    reference : str or sequence of str
        Reference levels of categories, as NAME=LEVEL: coefficients of the other levels compare with
        this level. By default it is the first level of a category of two, and of a covariate. Other
        categories have none, so that all of their values can be selected.
    keep_codes : bool
        Numbers that often stand for a missing value, such as -9 and 999, are values. Otherwise they
        are refused until --na names them.
    schema : file, or sequence of ColumnPlan
        Description of the columns, as `inspect` writes it.
    names : file, optional
        Names of columns, one in each line (libsvm, .npy).
    layer : str, optional
        Layer of AnnData to read in place of X, or raw. Options that name columns of a table also
        take columns of obs.
    pseudobulk : str, optional
        Column of obs of AnnData, such as donor, or several by commas. All cells with the same value
        become one row: raw counts are added, and become log2(1 + counts per million); other values
        are averaged.
    maf : float, optional
        Leave out variants whose rarer allele has a smaller frequency than this.
    geno : float, optional
        Leave out variants missing in more than this share of the samples.
    pcs : int
        Number of principal components to add as covariates.
    rng : int
        Seed of the principal components.
    memory_limit : int, optional
        Bytes that reading may take.
    """

    target: str | None = None
    missing: Literal["refuse", "median", "indicator", "drop"] = "refuse"
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
    dates: Literal["parts", "elapsed"] | None = None
    categories: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    keep_codes: bool = False
    schema: tuple[ColumnPlan, ...] = ()
    names: Path | None = None
    layer: str | None = None
    pseudobulk: str | None = None
    maf: float | None = None
    geno: float | None = None
    pcs: int = 0
    rng: int = 0
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        """Convert names to tuples and paths, read a schema file, and check the choices."""
        settings = vars(self)
        for name in ("pheno", "covar", "names"):
            settings[name] = None if settings[name] is None else Path(settings[name])
        for name in ("drop", "covariates", "text", "categories", "reference"):
            # A single name becomes a tuple; as a sequence it would be split into characters.
            is_single = isinstance(settings[name], str)
            settings[name] = (settings[name],) if is_single else tuple(settings[name])
        if isinstance(self.schema, str | Path):
            settings["schema"] = read_schema(self.schema)
        choices = {"missing": ("refuse", "median", "indicator", "drop")}
        for name, allowed in (choices | {"dates": (None, "parts", "elapsed")}).items():
            if settings[name] not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {settings[name]!r}")

    def role(self, role: str) -> str | None:
        """Return the column that has the ``role``, such as "weights", by the choices or the schema.

        The result is None if no column has it; "none" in the choices overrides the schema.
        """
        if role in self.roles:
            return None if self.roles[role] == "none" else self.roles[role]
        name = {"target": self.target, "id": self.id}.get(role)
        return name or next((plan.name for plan in self.schema if plan.use == role), None)

    def text_form(self) -> TextForm:
        """Return how text is written, with the column of row names as labels, not numbers."""
        id_column = self.role("id")
        labels = self.form.labels | ({id_column} if id_column else set())
        return replace(self.form, labels=labels)

    def named_roles(self) -> dict[str, str]:
        """Return the columns of all roles that have one, by role."""
        names = {role: self.role(role) for role in ROLES}
        return {role: name for role, name in names.items() if name is not None}


def read_schema(path: str | Path) -> tuple[ColumnPlan, ...]:
    """Return the plans in the file ``path``, a schema.json that ``atomlearn inspect`` wrote.

    A plan says how a column of a data file is used and encoded.
    """
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
    return tuple(plan_of(item, f"columns[{index}] of {path}") for index, item in enumerate(columns))


def schema_text(source: str, n_rows: int, plans: Sequence[ColumnPlan]) -> str:
    """Return the text of a schema.json, which describes the columns of a file.

    ``source`` is the file, ``n_rows`` its number of rows, and ``plans`` say how each of its columns
    is encoded.
    """
    content: dict[str, Any] = {"format": FORMAT, "version": 1, "source": source, "rows": n_rows}
    content["columns"] = [plan.portable() for plan in plans]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
