"""Matrices as they come: .npz, .npy, libsvm, .mat, .h5ad, genotypes, column stores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from atomlearn.storage.intake.columns import ColumnPlan, plan_of
from atomlearn.storage.intake.encode import completed, encode, groups_of
from atomlearn.storage.intake.genotypes import components, distinct, kept_variants, taken
from atomlearn.storage.intake.join import (
    Samples,
    covariates_in,
    joined,
    named_frame,
    phenotype,
)
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.problems import Problems, listed, spread
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


def read_matrix(form: Format, path: Path, reading: Reading) -> DataTable:
    """Return the table of a file that holds a matrix rather than columns of cells."""
    if reading.transpose or reading.sheet or reading.text or reading.dates:
        raise ValueError(
            f"--transpose, --sheet, --text and --dates are for tables of text, Excel and Parquet; "
            f"{path} is {form.name}: leave them out"
        )
    asked = None if reading.pheno is not None else reading.role("target")
    table = form.table(path, Request(asked, missing=True))
    names = table.schema.names
    if reading.names is not None:
        names = _names_in(reading.names, table.X.shape[1])
    matrix = _Matrix(
        path, table.X, None if names is None else list(names), table.schema.first_index
    )
    samples = _samples(table.X)
    name, y = _with_plans(matrix, table), table.y
    if reading.pheno is not None:
        other = _other(reading.pheno, samples, path, matrix.notes)
        name, y = phenotype(other, reading.pheno_name or reading.target)
    _genotypes(matrix, reading)
    extras = _take_roles(matrix, reading)
    _drop(matrix, reading)
    covariates = _covariates(matrix, reading, samples)
    kept, notes = known_rows(y, name, extras, table.X.shape[0])
    matrix.notes += notes
    if covariates is not None:
        kept = kept[_complete(covariates, kept, reading, matrix.notes)]
    matrix.take(rows=kept)
    if covariates is not None:
        _put_beside(matrix, covariates.rows(kept))
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


def _with_plans(matrix: _Matrix, table: DataTable) -> str | None:
    """Take what a store knows of the table it was made of; return the name of the target."""
    place = f"a column in the schema of {matrix.path}"
    plans = tuple(plan_of(item, place) for item in getattr(table.X, "plans", ()))
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


def _samples(X: Any) -> Samples | None:
    """Return the names of the rows, where the data have such."""
    held = getattr(X, "samples", None)
    return None if held is None else Samples(held.name, held.family)


def _other(file: Path, samples: Samples | None, path: Path, notes: list[str]) -> Any:
    """Return the frame of a phenotype or covariate file, one row a sample of the data."""
    if samples is None:
        raise ValueError(
            f"{file} is joined by names of samples, and {path} has none; give --pheno and --covar "
            "with genotypes, or with tables that have a column of names (--id)"
        )
    found, count = joined(named_frame(file), samples, file)
    notes.append(f"{count} of {len(samples.names)} samples are in {file.name}")
    return found


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


@dataclass(slots=True)
class _Covariates:
    """Columns of another file, encoded, with the gaps that they have."""

    X: NDArray[np.float64]
    names: list[str]
    plans: list[ColumnPlan]
    gaps: NDArray[np.bool_]

    def rows(self, kept: NDArray[np.int64]) -> _Covariates:
        return replace(self, X=self.X[kept], gaps=self.gaps[kept])


def _covariates(matrix: _Matrix, reading: Reading, samples: Samples | None) -> _Covariates | None:
    """Return the covariates of the file that was given; those among the columns are marked."""
    if reading.covar is None:
        if reading.covariates:
            names = matrix.names or []
            mine = spread(reading.covariates, names)
            for name in mine:
                require_name(name, names, matrix.path)
            matrix.covariates = tuple(names.index(name) for name in mine)
        return None
    other = _other(reading.covar, samples, matrix.path, matrix.notes)
    wanted = covariates_in(other, reading, matrix.notes)
    way = "median" if reading.missing == "median" else "refuse"
    plans, _ = completed(other, described(other, wanted), way)
    gaps = np.zeros(other.n_rows, dtype=bool)
    for plan in plans:
        if plan.is_used and plan.fill is None:
            gaps |= other.missing(plan.name)
    made = encode(other, plans)
    return _Covariates(np.asarray(made.X), made.names, made.plans, gaps)


def _complete(
    covariates: _Covariates, kept: NDArray[np.int64], reading: Reading, notes: list[str]
) -> NDArray[np.int64]:
    """Return which of these rows have all covariates."""
    gaps = covariates.gaps[kept]
    if gaps.any():
        notes.append(f"{int(gaps.sum())} samples lack a covariate and are left out")
    return np.flatnonzero(~gaps)


def _genotypes(matrix: _Matrix, reading: Reading) -> None:
    """Leave out variants that do not pass; name those without a name."""
    design = matrix.X
    matrix.variants = getattr(design, "variants", None)
    asked = reading.filters.any or reading.pcs
    if matrix.variants is None:
        if asked:
            raise ValueError(
                f"--maf, --geno, --hwe and --pcs are for genotypes; {matrix.path} is not"
            )
        return
    matrix.names = distinct(matrix.variants)
    if not reading.filters.any:
        return
    n_samples, missing = design.shape[0], design.missing.astype(np.float64)
    copies = design.copies.astype(np.float64)

    def squares() -> NDArray[np.float64]:
        known = n_samples - missing
        means = np.divide(copies, known, out=np.zeros(known.size), where=known > 0)
        return np.asarray(design.squared_norms() - missing * means**2)

    kept, notes = kept_variants(copies, missing, n_samples, reading.filters, squares)
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
    gaps = np.zeros(found.shape[0], dtype=bool)
    _put_beside(matrix, _Covariates(found, names, plans, gaps))


def _put_beside(matrix: _Matrix, covariates: _Covariates) -> None:
    """Put the covariates behind the columns of X."""
    width = matrix.X.shape[1]
    mine = range(width, width + len(covariates.names))
    matrix.covariates = (*matrix.covariates, *mine)
    matrix.names = [matrix.name(column) for column in range(width)] + covariates.names
    if isinstance(matrix.X, Design):
        matrix.X = Concatenated([matrix.X, as_design(covariates.X)])
    elif is_sparse(matrix.X):
        matrix.X = sp.csr_matrix(sp.hstack([matrix.X, sp.csr_matrix(covariates.X)]))
    else:
        matrix.X = np.column_stack([matrix.X, covariates.X])
    matrix.plans = (*matrix.plans, *covariates.plans)
    if matrix.groups is not None:
        last = int(matrix.groups.max(initial=-1))
        matrix.groups = np.append(matrix.groups, last + 1 + groups_of(covariates.plans))


def _fill(matrix: _Matrix, reading: Reading) -> NDArray[np.int64]:
    """Fill missing values in, flag them, or leave rows out; return the rows that stay."""
    everything = np.arange(matrix.X.shape[0])
    if isinstance(matrix.X, Design):
        return everything
    values = matrix.X.data if is_sparse(matrix.X) else matrix.X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or not np.isnan(values).any():
            return everything
    if is_sparse(matrix.X):
        raise ValueError(f"{matrix.path} is sparse and has missing entries; leave them unstored")
    gaps = np.isnan(matrix.X)
    holes = np.flatnonzero(gaps.any(axis=0))
    names = [matrix.name(column) for column in holes.tolist()]
    if reading.missing == "refuse":
        problems, row = Problems(matrix.path), int(np.flatnonzero(gaps.any(axis=1))[0])
        problems.add(
            f"{holes.size} columns {listed(names)}: {int(gaps.sum())} values are missing (NaN), "
            f"the first in row {row}, counted from 0",
            "--missing median (or indicator, or drop)",
        )
        problems.refuse()
    if reading.missing == "drop":
        rows = np.flatnonzero(~gaps.any(axis=1))
        if not rows.size:
            raise ValueError(f"{matrix.path}: every row lacks a value; type --missing median")
        matrix.notes.append(f"{gaps.shape[0] - rows.size} rows with missing values left out")
        matrix.take(rows=rows)
        return rows
    return _imputed(matrix, gaps, holes, reading.missing == "indicator", everything)


def _imputed(
    matrix: _Matrix,
    gaps: NDArray[np.bool_],
    holes: NDArray[np.int64],
    flags: bool,
    everything: NDArray[np.int64],
) -> NDArray[np.int64]:
    X = np.array(matrix.X)
    empty = holes[gaps[:, holes].all(axis=0)]
    if empty.size:
        name = matrix.name(int(empty[0]))
        raise ValueError(f"column {name!r} of {matrix.path} is empty; type --drop {name}")
    names = [matrix.name(column) for column in range(X.shape[1])]
    medians = {int(j): float(np.nanmedian(X[:, j])) for j in holes}
    for j, median in medians.items():
        X[gaps[:, j], j] = median
    plans = [
        ColumnPlan(names[j], fill=median, flag=flags, missing=int(gaps[:, j].sum()))
        for j, median in medians.items()
    ]
    matrix.plans = (*matrix.plans, *plans)
    if flags:
        matrix.groups = np.append(np.arange(X.shape[1]), holes).astype(np.int64)
        X = np.column_stack([X, gaps[:, holes].astype(X.dtype)])
        names += [f"{names[j]}=missing" for j in holes.tolist()]
        matrix.names = names
    matrix.X = X
    return everything
