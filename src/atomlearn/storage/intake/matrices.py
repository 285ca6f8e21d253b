"""Matrices as they come: .npz, .npy, libsvm, .mat, .h5ad, genotypes, column stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import as_design
from atomlearn.core.data.parts import ColumnSubset, RowSubset, part_of
from atomlearn.core.data.wrappers import Concatenated
from atomlearn.core.interfaces import Design
from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.storage.formats.table import DataTable, Request, Schema, require_name
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import Encoded, completed, encode, groups_of
from atomlearn.storage.intake.frame import frame_of_columns
from atomlearn.storage.intake.genotypes import components, distinct, kept_variants, taken
from atomlearn.storage.intake.join import Samples, covariates_in, of_samples, phenotype
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.plans import refuse
from atomlearn.storage.intake.problems import spread
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.targets import known_rows, tidy


@dataclass(slots=True)
class _Matrix:
    """What is being put together: X, names of its columns (None without), plans, notes."""

    path: Path
    X: Any
    names: list[str] | None
    first_index: int
    notes: list[str] = field(default_factory=list)
    plans: tuple[ColumnPlan, ...] = ()
    groups: NDArray[np.int64] | None = None
    covariates: tuple[int, ...] = ()
    variants: Any = None

    def name(self, column: int) -> str:
        return f"x{column + self.first_index}" if self.names is None else self.names[column]

    def schema(self) -> Schema:
        """Return what the columns are, to read another file into the same ones."""
        names = None if self.names is None else tuple(self.names)
        return Schema(self.X.shape[1], names, self.first_index, self.plans)

    def take(self, rows: NDArray[np.int64] | None = None, columns: Any = None) -> None:
        """Keep these rows, or these columns (increasing)."""
        if isinstance(self.X, Design):
            if rows is not None and rows.size < self.X.shape[0]:
                self.X = RowSubset(self.X, rows)
            if columns is not None:
                self.X = ColumnSubset(self.X, columns)
        elif rows is not None:
            self.X = self.X[rows] if rows.size < self.X.shape[0] else self.X
        else:
            self.X = self.X[:, columns]
        if columns is not None:
            self.groups = None if self.groups is None else self.groups[columns]
            self.names = [self.name(column) for column in columns.tolist()]
            if self.variants is not None:
                self.variants = taken(self.variants, columns)

    def put_beside(
        self, added: NDArray[np.float64], names: list[str], plans: list[ColumnPlan]
    ) -> None:
        """Put covariates behind the columns of X."""
        width = self.X.shape[1]
        self.covariates = (*self.covariates, *range(width, width + len(names)))
        self.names = [self.name(column) for column in range(width)] + names
        if isinstance(self.X, Design):
            self.X = Concatenated([self.X, as_design(added)])
        elif is_sparse(self.X):
            self.X = sp.csr_matrix(sp.hstack([self.X, sp.csr_matrix(added)]))
        else:
            self.X = np.column_stack([self.X, added])
        self.plans = (*self.plans, *plans)
        if self.groups is not None:
            last = int(self.groups.max(initial=-1))
            self.groups = np.append(self.groups, last + 1 + groups_of(plans))


def read_matrix(form: Format, path: Path, reading: Reading) -> DataTable:
    """Return the table of a file that holds a matrix rather than columns of cells."""
    _check_options(form, path, reading)
    asked = None if reading.pheno is not None else reading.role("target")
    table = form.table(path, Request(asked, missing=True))
    names = table.schema.names
    if reading.names is not None:
        names = _names_in(reading.names, table.X.shape[1])
    matrix = _Matrix(
        path, table.X, None if names is None else list(names), table.schema.first_index
    )
    matrix.variants, samples = table.variants, None
    if table.samples is not None:
        samples = Samples(table.samples.name, table.samples.family)
    name, y = _with_plans(matrix, table), table.y
    if reading.pheno is not None:
        name, y = phenotype(reading, samples, path, matrix.notes)
    _genotypes(matrix, reading)
    extras = _take_roles(matrix, reading)
    _drop(matrix, reading)
    covariates = _covariates(matrix, reading, samples)
    kept, notes = known_rows(y, name, extras, table.X.shape[0])
    matrix.notes += notes
    if covariates is not None:
        full = np.isfinite(covariates.X[kept]).all(axis=1)
        if not full.all():
            matrix.notes.append(f"{int((~full).sum())} samples lack a covariate and are left out")
        kept = kept[full]
    matrix.take(rows=kept)
    if covariates is not None:
        matrix.put_beside(covariates.X[kept], covariates.names, covariates.plans)
    if reading.pcs:
        _put_components(matrix, reading)
    kept = kept[_fill(matrix, reading)]
    ids = None if samples is None else tuple(samples.names[row] for row in kept.tolist())
    return DataTable(
        matrix.X,
        None if y is None else tidy(y[kept], f"the target of {path}"),
        matrix.schema(),
        name,
        str(path),
        groups=matrix.groups,
        ids=ids,
        covariates=matrix.covariates,
        rows=kept,
        extras={role: values[kept] for role, values in extras.items()},
        notes=tuple(matrix.notes),
        variants=matrix.variants,
    )


def _check_options(form: Format, path: Path, reading: Reading) -> None:
    if reading.transpose or reading.sheet or reading.text or reading.dates:
        raise ValueError(
            f"--transpose, --sheet, --text and --dates are for tables of text, Excel and Parquet; "
            f"{path} is {form.name}: leave them out"
        )


def _with_plans(matrix: _Matrix, table: DataTable) -> str | None:
    """Take what a store knows of the table it was made of; return the name of the target."""
    plans = table.schema.columns
    made = [name for plan in plans if plan.is_used for name in plan.made()]
    matrix.notes += [
        f"rows of one {plan.name!r} belong together, and the store does not hold whose each is: "
        "give it by --rows-of FILE.npy"
        for plan in plans
        if plan.use == "rows_of"
    ]
    if not plans or made != matrix.names:
        return table.target_name
    matrix.plans, groups = plans, groups_of(plans)
    matrix.groups = groups if np.unique(groups).size < groups.size else None
    named = [plan.name for plan in plans if plan.use == "target"]
    return named[0] if named and table.target_name == "target" else table.target_name


def _names_in(path: Path, count: int) -> tuple[str, ...]:
    """Return the names of columns in a file, one a line (its last field)."""
    with open_text(path) as stream:
        lines = [line.strip() for line in stream if line.strip()]
    names = tuple(line.split("\t")[-1].strip() for line in lines)
    if len(names) < count:
        raise ValueError(f"{path} has {len(names)} names, and the data {count} columns")
    return names[:count]


def _take_roles(matrix: _Matrix, reading: Reading) -> dict[str, NDArray[Any]]:
    """Return the numbers of rows by role: columns of X, taken out of it, or .npy files."""
    found = {}
    for role, name in reading.named_roles().items():
        if role in ("target", "id"):
            continue
        if Path(name).suffix == ".npy":
            found[role] = load_npy(Path(name))
            continue
        require_name(name, matrix.names or [], matrix.path)
        column = (matrix.names or []).index(name)
        found[role] = as_design(matrix.X).gather(np.array([column])).dense()[:, 0]
        matrix.take(columns=np.delete(np.arange(matrix.X.shape[1]), column))
    return found


def _drop(matrix: _Matrix, reading: Reading) -> None:
    if not reading.drop:
        return
    names = matrix.names or [matrix.name(column) for column in range(matrix.X.shape[1])]
    left_out = set(spread(reading.drop, names))
    for name in left_out:
        require_name(name, names, matrix.path)
    matrix.take(columns=np.flatnonzero([name not in left_out for name in names]))


def _covariates(matrix: _Matrix, reading: Reading, samples: Samples | None) -> Encoded | None:
    """Return the covariates of the file that was given; those among the columns are marked."""
    if reading.covar is None:
        names = matrix.names or []
        mine = spread(reading.covariates, names)
        for name in mine:
            require_name(name, names, matrix.path)
        matrix.covariates = tuple(names.index(name) for name in mine)
        return None
    other = of_samples(reading.covar, samples, matrix.path, matrix.notes)
    wanted = covariates_in(other, reading, matrix.notes)
    way = "median" if reading.missing == "median" else "refuse"
    return encode(other, completed(other, described(other, wanted), way)[0])


def _genotypes(matrix: _Matrix, reading: Reading) -> None:
    """Leave out variants that do not pass; name those without a name."""
    filters = any(asked is not None for asked in (reading.maf, reading.geno, reading.hwe))
    if matrix.variants is None:
        if filters or reading.pcs:
            raise ValueError(
                f"--maf, --geno, --hwe and --pcs are for genotypes; {matrix.path} is not"
            )
        return
    matrix.names = distinct(matrix.variants)
    if filters:
        kept, notes = kept_variants(matrix.X, reading)
        matrix.notes += notes
        matrix.take(columns=kept)


def _put_components(matrix: _Matrix, reading: Reading) -> None:
    """Put principal components of the variants behind the columns, as covariates."""
    width = len(matrix.variants.names)
    genotypes = (
        matrix.X if matrix.X.shape[1] == width else part_of(matrix.X, columns=np.arange(width))
    )
    found = components(genotypes, reading.pcs, reading.seed)
    names = [f"PC{number}" for number in range(1, reading.pcs + 1)]
    plans = [ColumnPlan(name, fill=0.0, why="of the variants") for name in names]
    matrix.put_beside(found, names, plans)


def _fill(matrix: _Matrix, reading: Reading) -> NDArray[np.int64]:
    """Fill missing values in, flag them, or leave rows out; return the rows that stay."""
    X, everything = matrix.X, np.arange(matrix.X.shape[0])
    if isinstance(X, Design):
        return everything
    if is_sparse(X):
        if np.isnan(X.data).any():
            raise ValueError(
                f"{matrix.path} is sparse and has missing entries; leave them unstored"
            )
        return everything
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is NaN where a term is, and needs no other array.
        if not np.isnan(X.sum()):
            return everything
    holes = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
    if not holes:
        return everything
    columns = {matrix.name(column): X[:, column] for column in holes}
    frame = frame_of_columns(matrix.path, columns)
    plans = [ColumnPlan(name, missing=int(frame.missing(name).sum())) for name in columns]
    empty = [plan.name for plan in plans if plan.missing == frame.n_rows]
    if empty:
        raise ValueError(f"column {empty[0]!r} of {matrix.path} is empty; type --drop {empty[0]}")
    plans, full = completed(frame, plans, reading.missing)
    if not full.any():
        raise ValueError(f"{matrix.path}: every row lacks a value; type --missing median")
    if not full.all():
        matrix.notes.append(f"{int((~full).sum())} rows with missing values left out")
        matrix.take(rows=np.flatnonzero(full))
        return np.flatnonzero(full)
    missing = {plan.name: plan.missing for plan in plans}
    refuse(matrix.path, plans, missing, lambda name: frame.line(int(frame.missing(name).argmax())))
    matrix.plans = (*matrix.plans, *plans)
    matrix.X = np.array(X)
    flags, names = [], []
    for column, plan in zip(holes, plans, strict=True):
        gaps = frame.missing(plan.name)
        matrix.X[gaps, column] = plan.fill
        if plan.flag:
            flags.append(gaps.astype(X.dtype))
            names.append(f"{plan.name}=missing")
    if flags:
        width = X.shape[1]
        matrix.names = [matrix.name(column) for column in range(width)] + names
        matrix.groups = np.append(np.arange(width), holes).astype(np.int64)
        matrix.X = np.column_stack([matrix.X, *flags])
    return everything
