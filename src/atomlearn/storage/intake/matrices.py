"""Matrices as they come: .npz, .npy, libsvm, .mat, .h5ad, genotypes, column stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import as_design
from atomlearn.core.data.parts import ColumnSubset, RowSubset, part_of
from atomlearn.core.data.wrappers import Concatenated
from atomlearn.core.interfaces import Design
from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.messages import require_name, spread
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.storage.formats.table import DataTable, Request, Schema, tidy_target
from atomlearn.storage.intake.columns import ColumnPlan, known_rows
from atomlearn.storage.intake.encode import completed, encode_columns, groups_made
from atomlearn.storage.intake.frame import Frame, distinct_names
from atomlearn.storage.intake.genotypes import components, distinct, kept_variants, taken
from atomlearn.storage.intake.join import NamedRows, covariates_in, frame_of_samples, phenotype
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.tables import encoded_table


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

    def named(self) -> list[str]:
        """Return the names of all columns, numbers where they have none."""
        return [self.name(column) for column in range(self.X.shape[1])]

    def places(self, asked: Sequence[str]) -> list[int]:
        """Return the columns of these names, lists and patterns spread out."""
        if not asked:
            return []
        known = {name: column for column, name in enumerate(self.named())}
        found = spread(asked, list(known))
        for name in found:
            require_name(name, known, f"{self.path} has no column")
        return [known[name] for name in found]

    def keep_rows(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows, increasing."""
        if rows.size < self.X.shape[0]:
            self.X = RowSubset(self.X, rows) if isinstance(self.X, Design) else self.X[rows]

    def leave_out(self, columns: Sequence[int]) -> None:
        """Leave out these columns."""
        if not len(columns):
            return
        kept = np.delete(np.arange(self.X.shape[1]), columns)
        self.names = [self.name(column) for column in kept.tolist()]
        self.X = ColumnSubset(self.X, kept) if isinstance(self.X, Design) else self.X[:, kept]
        self.groups = None if self.groups is None else self.groups[kept]
        if self.variants is not None:
            self.variants = taken(self.variants, kept)

    def put_beside(self, added: Any, names: list[str], plans: Sequence[ColumnPlan]) -> None:
        """Put covariates behind the columns of X: genotypes, which alone have samples by name."""
        width = self.X.shape[1]
        self.covariates = (*self.covariates, *range(width, width + len(names)))
        self.names = self.named() + names
        self.X = Concatenated([self.X, as_design(added)])
        self.plans = (*self.plans, *plans)


def read_matrix(form: Format, path: Path, reading: Reading) -> DataTable:
    """Return the table of a file that holds a matrix rather than columns of cells."""
    if reading.transpose or reading.sheet or reading.text or reading.dates:
        raise ValueError(
            f"--transpose, --sheet, --text and --dates are for tables of text, Excel and Parquet; "
            f"{path} is {form.name}: leave them out"
        )
    asked = None if reading.pheno is not None else reading.role("target")
    table = form.table(path, Request(asked, missing=True))
    given = table.schema.names
    if reading.names is not None:
        given = _names_in(reading.names, table.X.shape[1])
    names = None if given is None else list(given)
    matrix = _Matrix(path, table.X, names, table.schema.first_index, variants=table.variants)
    if _has_gaps(table.X, path):
        return _with_gaps(path, table, matrix.named(), reading)
    samples = None
    if table.samples is not None:
        samples = NamedRows(table.samples.name, table.samples.family)
    name, y = _with_plans(matrix, table), table.y
    if reading.pheno is not None:
        name, y = phenotype(reading, samples, path, matrix.notes)
    _genotypes(matrix, reading)
    extras = _take_roles(matrix, reading)
    matrix.leave_out(matrix.places(reading.drop))
    kept, notes = known_rows(y, name, extras, table.X.shape[0])
    matrix.notes += notes
    if reading.covar is None:
        matrix.keep_rows(kept)
        matrix.covariates = tuple(matrix.places(reading.covariates))
    else:
        kept = _put_covariates(matrix, reading, samples, kept)
    if reading.pcs:
        _put_components(matrix, reading)
    columns = None if matrix.names is None else tuple(matrix.names)
    return DataTable(
        matrix.X,
        None if y is None else tidy_target(y[kept], f"the target of {path}"),
        Schema(matrix.X.shape[1], columns, matrix.first_index, matrix.plans),
        name,
        str(path),
        groups=matrix.groups,
        ids=None if samples is None else tuple(samples.names[row] for row in kept.tolist()),
        covariates=matrix.covariates,
        rows=kept,
        extras={role: values[kept] for role, values in extras.items()},
        notes=tuple(matrix.notes),
        variants=matrix.variants,
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
    matrix.plans, matrix.groups = plans, groups_made(plans)
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
        [column] = matrix.places([name])
        found[role] = as_design(matrix.X).gather(np.array([column])).dense()[:, 0]
        matrix.leave_out([column])
    return found


def _put_covariates(
    matrix: _Matrix, reading: Reading, samples: NamedRows | None, kept: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Put the covariates of a file behind the columns; return the rows that have them all."""
    assert reading.covar is not None
    other = frame_of_samples(reading.covar, samples, matrix.path, matrix.notes)
    wanted = described(other, covariates_in(other, reading, matrix.notes))
    way = "median" if reading.missing == "median" else "refuse"
    made = encode_columns(other, completed(other, wanted, way)[0])
    full: NDArray[np.bool_] = np.isfinite(made.X[kept]).all(axis=1)
    if not full.all():
        matrix.notes.append(f"{int((~full).sum())} samples lack a covariate and are left out")
    matrix.keep_rows(kept[full])
    matrix.put_beside(made.X[kept[full]], made.names, made.plans)
    return np.asarray(kept[full])


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
        matrix.leave_out(np.setdiff1d(np.arange(matrix.X.shape[1]), kept).tolist())


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


def _has_gaps(X: Any, path: Path) -> bool:
    """Return whether a dense matrix in memory has missing values; refuse those of sparse ones."""
    if isinstance(X, Design):
        return False
    # A sum is NaN where a term is, and needs no other array.
    with np.errstate(over="ignore", invalid="ignore"):
        found = bool(np.isnan(X.sum()))
    if found and is_sparse(X):
        raise ValueError(f"{path} is sparse and has missing entries; leave them unstored")
    return found


def _with_gaps(path: Path, table: DataTable, names: list[str], reading: Reading) -> DataTable:
    """Return the table of a dense matrix with missing values: its columns are those of a frame."""
    given = {} if table.y is None else {str(table.target_name): table.y}
    header = distinct_names([*names, *given])[0]
    texts = [y.astype(object) if y.dtype.kind == "U" else y for y in given.values()]
    columns = dict(zip(header, [*table.X.T, *texts], strict=True))
    files = [name for name in reading.roles.values() if Path(name).suffix == ".npy"]
    columns |= {name: load_npy(Path(name)) for name in files}
    frame = Frame(path, columns, table.X.shape[0])
    gaps = {name: int(frame.missing(name).sum()) for name in header[: len(names)]}
    plans = (ColumnPlan(name, missing=gap) for name, gap in gaps.items() if gap < frame.n_rows)
    target = header[-1] if given else None
    found = encoded_table(frame, replace(reading, target=target, schema=tuple(plans)), None)
    return replace(found, X=found.X.astype(table.X.dtype, copy=False))
