"""Files that contain a matrix: .npz, .npy, libsvm, .mat, .h5ad, genotypes, column stores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import (
    ColumnSubset,
    Concatenated,
    Design,
    RowSubset,
    as_design,
    is_sparse,
    part_of,
)
from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.messages import MANY, listing, require_name, spread
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.storage.formats.table import DataTable, Observations, Request, tidy_target
from atomlearn.storage.intake.annotated import annotated
from atomlearn.storage.intake.columns import ColumnPlan, known_rows
from atomlearn.storage.intake.encode import completed, encode_columns, groups_made
from atomlearn.storage.intake.frame import Frame, distinct_names
from atomlearn.storage.intake.genotypes import (
    OF_VARIANTS,
    components,
    distinct,
    kept_variants,
    taken,
)
from atomlearn.storage.intake.join import NamedRows, covariates_in, frame_of_samples, phenotype
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.plans import left_out
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.tables import encoded_table


def _names(table: DataTable) -> list[str]:
    """Return the names of all columns of X in ``table``; unnamed columns are x0, x1, ..."""
    return [table.schema.name(column) for column in range(table.X.shape[1])]


def _column_numbers(table: DataTable, texts: Sequence[str]) -> list[int]:
    """Return the numbers of the columns of ``table`` that ``texts`` name.

    Each text is a name, a list of names with commas, or a pattern such as ``x_*``.
    """
    if not texts:
        return []
    column_of = {name: column for column, name in enumerate(_names(table))}
    positions = spread(texts, list(column_of))
    for name in positions:
        require_name(name, column_of, f"{table.source} has no column")
    return [column_of[name] for name in positions]


def _renamed(table: DataTable, X: Any, names: Sequence[str], **changes: Any) -> DataTable:
    """Return the table with another X, whose columns have the names ``names``.

    ``changes`` are other fields of the table to replace.
    """
    return replace(
        table,
        X=X,
        schema=replace(table.schema, n_features=len(names), names=tuple(names)),
        **changes,
    )


def _with_rows(table: DataTable, rows: NDArray[np.int64]) -> DataTable:
    """Return the table with only the rows numbered ``rows``, in increasing order."""
    X = table.X
    if rows.size == X.shape[0]:
        return table
    return replace(table, X=RowSubset(X, rows) if isinstance(X, Design) else X[rows])


def _without_columns(table: DataTable, columns: Sequence[int]) -> DataTable:
    """Return the table without the columns with these numbers; groups and variants follow."""
    if not len(columns):
        return table
    X = table.X
    groups = table.groups
    variants = table.variants
    kept = np.delete(np.arange(X.shape[1]), columns)
    return _renamed(
        table,
        ColumnSubset(X, kept) if isinstance(X, Design) else X[:, kept],
        [table.schema.name(column) for column in kept.tolist()],
        groups=None if groups is None else groups[kept],
        variants=None if variants is None else taken(variants, kept),
    )


def _with_covariates(
    table: DataTable, added: Any, names: list[str], plans: Sequence[ColumnPlan]
) -> DataTable:
    """Return the table with covariates appended to X.

    ``added`` has the columns (n_samples, m), ``names`` their names, and ``plans`` say how they are
    encoded.
    """
    width = table.X.shape[1]
    known = table.schema.columns
    covariates = (*table.covariates, *range(width, width + len(names)))
    table = replace(table, schema=replace(table.schema, columns=(*known, *plans)))
    X: Any = table.X
    if isinstance(X, Design):
        X = Concatenated([X, as_design(added)])
    elif is_sparse(X):
        X = sp.csc_matrix(sp.hstack([X, added]))
    else:
        X = np.hstack([X, added])
    return _renamed(table, X, _names(table) + names, covariates=covariates)


def read_matrix(form: Format, path: Path, reading: Reading) -> DataTable:
    """Return the table of a file that contains a matrix, read as ``reading`` says.

    ``form`` is the format of the file ``path``.
    """
    rows = None if form.rows is None else form.rows(path)
    if reading.transpose or reading.sheet or reading.text or reading.dates:
        raise ValueError(
            f"--transpose, --sheet, --text and --dates are for tables of text, Excel and Parquet; "
            f"{path} is {form.name}: leave them out"
        )
    # A target in obs or in a file of phenotypes is read later.
    target = None if reading.pheno is not None else reading.role("target")
    if rows is not None and target in rows.header:
        target = None
    request = Request(target, missing=True, layer=reading.layer)
    return matrix_table(replace(form.table(path, request), source=str(path)), reading, rows)


def matrix_table(table: DataTable, reading: Reading, rows: Observations | None) -> DataTable:
    """Return a table whose X is a matrix after the choices of ``reading`` are applied.

    The steps are:

    1. Name the columns, and apply the options for AnnData.
    2. If X has missing values, impute them as in a table of cells, and return.
    3. Find the target.
    4. Filter variants; take out the columns of roles and those to leave out.
    5. Leave out rows without a target.
    6. Append covariates and principal components.

    Parameters
    ----------
    table : DataTable
        The table as it is in the file.
    reading : Reading
        The choices of the user.
    rows : Observations, optional
        Names of the rows and columns of obs, if the file is AnnData.

    Returns
    -------
    DataTable
    """
    path = Path(table.source)
    # The notes of the file are about its own target, which another file of targets replaces.
    notes = list(table.notes) if reading.pheno is None else []
    frame = None
    samples = None
    if reading.names is not None:
        table = _renamed(table, table.X, _names_in(reading.names, table.X.shape[1]))
    if rows is not None:
        table, frame, reading = annotated(table, rows, reading, notes)
        samples = NamedRows(table.ids or ())
    if _has_gaps(table.X, path):
        return _with_gaps(path, table, reading, frame, notes)
    # The target is in the file, in obs, or in a file of phenotypes.
    if table.samples is not None:
        samples = NamedRows(table.samples.name, table.samples.family)
    if frame is None:
        table = _with_plans(table, notes)
    name = table.target_name
    y = table.y
    if frame is not None and reading.role("target") in frame.columns:
        name = str(reading.role("target"))
        y = frame.columns[name]
    if reading.pheno is not None:
        name, y = phenotype(reading, samples, path, notes)
    # ``extras`` are the vectors of roles; ``kept`` are the rows with a target and these vectors.
    table = _filter_variants(table, reading, notes)
    table, extras = _take_roles(table, reading, frame)
    ids = None if samples is None else samples.names
    if "id" in extras:
        ids = [f"{number:.17g}" for number in extras.pop("id").tolist()]
    table = _without_columns(table, _column_numbers(table, reading.drop))
    kept, remarks = known_rows(y, name, extras, table.X.shape[0])
    notes += remarks
    # Covariates are columns of another file, or of obs; columns of X become free of penalty.
    if reading.covar is not None:
        frame = frame_of_samples(reading.covar, samples, path, notes)
        covariates = covariates_in(frame, reading, notes)
    else:
        covariates = [name for name in reading.covariates if frame and name in frame.columns]
        others = [name for name in reading.covariates if name not in covariates]
        table = replace(table, covariates=tuple(_column_numbers(table, others)))
    table, kept = _put_covariates(table, frame, covariates, reading, kept, samples, notes)
    if reading.pcs:
        table = _put_components(table, reading, notes)
    elif table.variants is not None and not any(map(_is_component, covariates)):
        notes.append(
            "no principal components are among the covariates: variants that differ between "
            "populations may be selected for that; type --pcs 10, or give PC1, PC2, ... in --covar"
        )
    return replace(
        table,
        y=None if y is None else tidy_target(y[kept], f"the target of {path}"),
        target_name=name,
        ids=None if ids is None else tuple(ids[row] for row in kept.tolist()),
        rows=kept,
        extras={role: values[kept] for role, values in extras.items()},
        notes=tuple(notes),
        samples=None,
    )


def _with_plans(table: DataTable, notes: list[str]) -> DataTable:
    """Return the table with the plans of its store, if they match the columns of X.

    A plan says how a column of the source was encoded. The columns of one plan are a group. A role
    ``rows_of`` is noted in ``notes``, because a store does not keep its values.
    """
    plans = table.schema.columns
    name = table.target_name
    # The columns of X that the plans make.
    columns = tuple(name for plan in plans if plan.is_used for name in plan.made())
    notes += [
        f"rows of one {plan.name!r} belong together, and the store does not hold whose each is: "
        "give it by --rows-of FILE.npy"
        for plan in plans
        if plan.use == "rows_of"
    ]
    if columns != table.schema.names:
        return replace(table, schema=replace(table.schema, columns=()))
    target_columns = [plan.name for plan in plans if plan.use == "target"]
    name = target_columns[0] if target_columns and name == "target" else name
    return replace(table, groups=groups_made(plans), target_name=name)


def _names_in(path: Path, count: int) -> tuple[str, ...]:
    """Return the first ``count`` names in the file ``path``, one in each line (the last field)."""
    with open_text(path) as stream:
        lines = [line.strip() for line in stream if line.strip()]
    names = tuple(line.split("\t")[-1].strip() for line in lines)
    if len(names) < count:
        raise ValueError(f"{path} has {len(names)} names, and the data {count} columns")
    return names[:count]


def _take_roles(
    table: DataTable, reading: Reading, frame: Frame | None
) -> tuple[DataTable, dict[str, NDArray[Any]]]:
    """Return the table without columns of roles, and the vectors (n_samples,) by role.

    A column with a role is no feature; roles are weights or offsets, for example. ``reading`` names
    their columns of obs (the table of the samples of AnnData, in ``frame``) or of X, or .npy files.
    Columns of X with a role are removed from X.
    """
    values = {}
    for role, name in reading.named_roles().items():
        # ``matrix_table`` sets the target, and ``annotated`` the names of rows if there is an obs.
        if role == "target" or (role == "id" and (frame is not None or reading.id is None)):
            continue
        if frame is not None and name in frame.columns:
            values[role] = frame.columns[name]
            continue
        if Path(name).suffix == ".npy":
            values[role] = load_npy(Path(name))
            continue
        # A column of X: it is read and removed.
        [column] = _column_numbers(table, [name])
        values[role] = as_design(table.X).gather(np.array([column])).dense()[:, 0]
        table = _without_columns(table, [column])
    return table, values


def _put_covariates(
    table: DataTable,
    frame: Frame | None,
    names: Sequence[str],
    reading: Reading,
    kept: NDArray[np.int64],
    samples: NamedRows | None,
    notes: list[str],
) -> tuple[DataTable, NDArray[np.int64]]:
    """Encode covariates and append them to X; return the table and the samples without gaps.

    Parameters
    ----------
    table : DataTable
        The table with all rows of the file.
    frame : Frame, optional
        Columns with one row for each row of the file.
    names : sequence of str
        Columns of ``frame`` that are covariates.
    reading : Reading
        The choices of the user.
    kept : int64 array
        Rows of the file in use; those with a missing covariate are removed.
    samples : NamedRows, optional
        Names of the samples, for notes.
    notes : list of str
        Receives remarks for the user.
    """
    if frame is None or not names:
        return _with_rows(table, kept), kept
    missing = "median" if reading.missing == "median" else "refuse"
    plans = [
        # A column that the user names is used, even if it looks like a row index.
        replace(plan, use="number") if plan.kind == "index" else plan
        for plan in described(frame, names)
    ]
    encoded = encode_columns(frame, completed(frame, plans, missing)[0])
    notes += left_out(encoded.plans)
    is_full: NDArray[np.bool_] = np.isfinite(encoded.X[kept]).all(axis=1)
    if not is_full.all():
        incomplete = [
            str(row if samples is None else samples.names[row]) for row in kept[~is_full].tolist()
        ]
        notes.append(
            f"{len(incomplete)} samples lack a covariate and are left out (--missing median fills "
            f"in): {listing(incomplete, MANY)}"
        )
    kept = np.asarray(kept[is_full])
    return _with_covariates(
        _with_rows(table, kept), encoded.X[kept], encoded.names, encoded.plans
    ), kept


def _filter_variants(table: DataTable, reading: Reading, notes: list[str]) -> DataTable:
    """Return the table of the variants that pass the filters of ``reading``, with distinct names.

    Remarks on the variants left out are added to ``notes``. Tables without variants are unchanged;
    choices for genotypes are refused for them.
    """
    has_filters = any(bound is not None for bound in (reading.maf, reading.geno))
    if table.variants is None:
        if has_filters or reading.pcs:
            raise ValueError(f"--maf, --geno and --pcs are for genotypes; {table.source} is not")
        return table
    table = _renamed(table, table.X, distinct(table.variants))
    if not has_filters:
        return table
    kept, remarks = kept_variants(table.X, reading)
    notes += remarks
    return _without_columns(table, np.setdiff1d(np.arange(table.X.shape[1]), kept).tolist())


def _is_component(name: str) -> bool:
    """Return whether the name of a covariate is that of a principal component, such as PC1."""
    return re.fullmatch(r"(?i)(u\.?|pc|pca|eigenvec|ev)[ _.]?\d+", name) is not None


def _put_components(table: DataTable, reading: Reading, notes: list[str]) -> DataTable:
    """Return the table with principal components of its variants appended to X, as covariates.

    ``reading`` has their number and the seed; a remark is added to ``notes``. They correct for
    differences between populations.
    """
    # The variants are the first columns; covariates may follow.
    X = table.X
    width = len(table.variants.names)
    genotypes = X if X.shape[1] == width else part_of(X, columns=np.arange(width))
    names = [table.schema.name(column) for column in range(width)]
    scores, decomposition = components(genotypes, reading.pcs, table.variants, names, reading.rng)
    plans = [ColumnPlan(name, fill=0.0, why=OF_VARIANTS) for name in decomposition.names]
    notes.append(
        f"{reading.pcs} principal components of all {width:,} variants of {X.shape[0]:,} samples "
        "are covariates, computed without the target; held-out samples are among them"
    )
    return replace(
        _with_covariates(table, scores, list(decomposition.names), plans), components=decomposition
    )


def _has_gaps(X: Any, path: Path) -> bool:
    """Return whether a dense X in memory has missing values; refuse them in a sparse one.

    X on disk (a Design) checks its own values. ``path`` is the file, for messages.
    """
    if isinstance(X, Design):
        return False
    # The sum is NaN if any entry is, and needs no temporary array of the size of X.
    with np.errstate(over="ignore", invalid="ignore"):
        has_nan = bool(np.isnan(X.sum()))
    if has_nan and is_sparse(X):
        raise ValueError(f"{path} is sparse and has missing entries; leave them unstored")
    return has_nan


def _with_gaps(
    path: Path, table: DataTable, reading: Reading, rows: Frame | None, notes: list[str]
) -> DataTable:
    """Return a table with a dense X in which missing values are imputed, as in tables of cells.

    Parameters
    ----------
    path : Path
        The file, for messages.
    table : DataTable
        The table with missing values in X.
    reading : Reading
        The choices of the user.
    rows : Frame, optional
        Columns of obs that have a role or are covariates.
    notes : list of str
        Remarks so far, to which the notes of the result are appended.
    """
    # A frame of all columns: X, the target, vectors in .npy files, and columns of obs.
    names = _names(table)
    targets = {} if table.y is None else {str(table.target_name): table.y}
    header = distinct_names([*names, *targets])[0]
    texts = [y.astype(object) if y.dtype.kind == "U" else y for y in targets.values()]
    columns = dict(zip(header, [*table.X.T, *texts], strict=True))
    files = [name for name in reading.roles.values() if Path(name).suffix == ".npy"]
    columns |= {name: load_npy(Path(name)) for name in files}
    if rows is not None:
        columns |= rows.columns
    frame = Frame(path, columns, table.X.shape[0])
    # All columns of X that have any value are numbers; their kinds need not be detected.
    gaps = {name: int(frame.missing(name).sum()) for name in header[: len(names)]}
    plans = (ColumnPlan(name, missing=gap) for name, gap in gaps.items() if gap < frame.n_rows)
    # The target is the last column of the header, or a column of obs, or in another file.
    target = header[-1] if targets else None if rows is None else reading.target
    request = replace(reading, target=target, schema=tuple(plans))
    encoded = encoded_table(frame, request, table.ids)
    schema_before = table.schema
    schema = replace(encoded.schema, origin=schema_before.origin, symbols=schema_before.symbols)
    X = encoded.X.astype(table.X.dtype, copy=False)
    return replace(encoded, X=X, schema=schema, notes=(*notes, *encoded.notes))
