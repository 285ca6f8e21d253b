"""AnnData: columns of obs, detection of raw counts or normalized values, and pseudobulk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Design, Rows, as_design, is_sparse
from atomlearn.storage.formats.cell_files import symbols_of
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.formats.messages import listing, require_name, spread
from atomlearn.storage.formats.table import DataTable, Observations, Schema, finite_matrix
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import Frame, distinct_names
from atomlearn.storage.intake.kinds import described, is_of_persons
from atomlearn.storage.intake.plans import with_rows_of
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.typed import frame_of

#: Values above this one are not log-normalized counts, because no cell has e^20 counts.
MOST_LOG = 20.0


def of_anndata(data: Any, layer: str | None) -> tuple[DataTable, Observations]:
    """Return a matrix of ``data``, an AnnData object, as a table, and obs as ``Observations``.

    The matrix is X, or the one that ``layer`` names: a layer or "raw".
    """
    data = data.to_memory() if data.isbacked else data
    # The matrix and its columns; raw has other columns than X.
    layers = (*data.layers, *(["raw"] if data.raw is not None else []))
    X = data.X
    names = data.var_names
    if layer not in (None, "X"):
        require_name(layer, layers, "the AnnData object has no layer")
        if layer in data.layers:
            X = data.layers[layer]
        else:
            X = data.raw.X
            names = data.raw.var_names
    if X is None:
        raise ValueError(f"X of the AnnData object is empty; give layer=, one of {listing(layers)}")
    # Messages name the object in place of a file.
    where = Path("the AnnData object")
    obs = frame_of(data.obs, Path("obs"))
    schema = Schema(X.shape[1], tuple(map(str, names)))
    table = DataTable(finite_matrix(X, where, missing=True), None, schema, None, str(where))
    # Columns of obs and gene symbols, each read by a function of its name.
    labels = {name for name in obs.header if data.obs[name].dtype.name == "category"}

    def cells(name: str) -> NDArray[Any]:
        """Return the column ``name`` of obs; a categorical one as text, even if it has numbers."""
        return obs.cells(name) if name in labels else obs.columns[name]

    var = (data.raw if layer == "raw" and "raw" not in data.layers else data).var

    def symbol_column(name: str) -> NDArray[Any]:
        """Return the column ``name`` of var as text, "" for NaN."""
        return np.array(["" if cell != cell else cell for cell in var[name]], dtype=object)

    symbols = symbols_of(list(map(str, var.columns)), symbol_column, list(map(str, names)))
    rows = tuple(map(str, data.obs_names))
    return table, Observations(rows, tuple(obs.header), cells, layers, symbols)


def annotated(
    table: DataTable, rows: Observations, reading: Reading, notes: list[str]
) -> tuple[DataTable, Frame, Reading]:
    """Apply the options of ``reading`` that refer to obs, AnnData's table of the samples.

    Cells are aggregated to pseudobulk samples if ``reading.pseudobulk`` names columns of obs. The
    role ``rows_of``, which keeps all rows of a donor in the same fold, is detected from the names
    of the columns of obs if it is not given.

    Parameters
    ----------
    table : DataTable
        The table with the matrix of the file.
    rows : Observations
        Names of the rows and columns of obs.
    reading : Reading
        The choices of the user.
    notes : list of str
        Receives remarks for the user.

    Returns
    -------
    table : DataTable
        The table with names of rows and columns, and perhaps fewer, aggregated rows.
    frame : Frame
        The columns of obs that have a role or are covariates.
    reading : Reading
        The choices, with name patterns expanded and with ``rows_of``.
    """
    path = Path(table.source)
    n_rows = table.X.shape[0]
    if len(rows.names) != n_rows:
        raise ValueError(f"{path} has {n_rows} rows of X, and {len(rows.names)} in obs")
    names, renamed = distinct_names([table.schema.name(j) for j in range(table.X.shape[1])])
    notes += renamed
    if symbols := {name: rows.symbols[name] for name in names if name in rows.symbols}:
        notes.append(f"{len(symbols):,} columns have a gene symbol in var, which is shown as well")
    by = spread([reading.pseudobulk or ""], rows.header)
    reading = replace(reading, covariates=spread(reading.covariates, rows.header))
    # The columns of obs in use must exist; a target from a file of phenotypes is none of them.
    column_of = {**reading.named_roles()}
    if reading.pheno is not None:
        column_of.pop("target", None)
    if column_of.get("target") in reading.covariates:
        raise ValueError(f"{column_of['target']!r} is the target, and no covariate")
    covariates = reading.covariates if reading.covar is None else ()
    role_columns = [*column_of.values(), *by, *covariates]
    known = {*rows.header, *names}
    for name in role_columns:
        if name not in known and Path(name).suffix != ".npy":
            require_name(name, rows.header, f"obs of {path} has no column")
    # Columns that name donors or patients are candidates for ``rows_of``.
    persons = [name for name in rows.header if is_of_persons(name)]
    frame = _frame(path, rows, persons, n_rows)
    plans = described(frame, persons)
    # ``with_rows_of`` takes an identifier whose values repeat: these columns count as identifiers.
    plans = [replace(plan, kind="identifier") for plan in plans if plan.kind != "constant"]
    reading = with_rows_of(frame, reading, plans)[0]
    # If samples combine several columns of obs, such as donor and day, the first names the donors.
    donor = reading.roles.get("rows_of", by[0] if len(by) > 1 else "none")
    if donor != "none":
        reading = replace(reading, roles={**reading.roles, "rows_of": donor})
        role_columns.append(donor)
    frame = _frame(path, rows, [name for name in role_columns if name in rows.header], n_rows)
    # A note says which kind of values X has, because raw counts need another treatment.
    kind = values_of(table.X)
    other_matrices = [name for name in ("X", *rows.layers) if name != (reading.layer or "X")]
    hint = f"; there are also {listing(other_matrices)} (--layer NAME)" if other_matrices else ""
    notes.append(f"{reading.layer or 'X'} holds {kind}{hint}")
    origin = {"values": kind.partition(":")[0]}
    origin |= {"layer": reading.layer} if reading.layer else {}
    ids = rows.names if reading.id is None else tuple(frame.cells(reading.id).tolist())
    if by:
        constant = {*column_of.values(), donor, *by}
        X, frame, ids = _pooled(table.X, frame, by, constant, origin["values"], notes)
        table = replace(table, X=X)
        origin = origin | {"pseudobulk": ",".join(by)}
    elif kind.startswith("raw counts"):
        notes[-1] += (
            ". They are used as they are: rows of more counts have larger values in every column. "
            "Take a normalized layer, or --pseudobulk NAME"
        )
    plans_of_rows = () if donor == "none" else (ColumnPlan(donor, "identifier", "rows_of"),)
    schema = replace(table.schema, names=tuple(names), origin=origin, columns=plans_of_rows)
    schema = replace(schema, symbols=symbols)
    return replace(table, schema=schema, ids=ids), frame, reading


def _frame(path: Path, rows: Observations, names: Sequence[str], n_rows: int) -> Frame:
    """Return the columns ``names`` of obs, which ``rows`` describes, as a frame of ``n_rows`` rows.

    ``path`` is the file, for messages.
    """
    return Frame(path, {name: rows.cells(name) for name in names}, n_rows)


def values_of(X: Any) -> str:
    """Return a text that says which kind of values the matrix X has, from a sample of columns.

    It begins with "raw counts", "log-normalized values", "normalized values" or "scaled values",
    and gives the reason after that.
    """
    # Evenly spaced columns, as many as fit into a piece of memory.
    n_rows, n_columns = X.shape
    count = min(n_columns, max(1, LIMITS.piece_bytes // (8 * n_rows)))
    columns = np.unique(np.linspace(0, n_columns - 1, count).astype(np.int64))
    block: Any = X.gather(columns).dense() if isinstance(X, Design) else X[:, columns]
    block = block.toarray() if is_sparse(block) else block
    values = block[np.isfinite(block)]
    largest = float(values.max(initial=0.0))
    if values.min(initial=0.0) < 0:
        return "scaled values: some are negative"
    if (values == np.rint(values)).all():
        return f"raw counts: whole numbers, up to {largest:,.0f}"
    if largest > MOST_LOG:
        return f"normalized values: not whole, and up to {largest:,.0f}, so no logarithms"
    return f"log-normalized values, as it seems: not whole, up to {largest:.1f}"


def _pooled(
    X: Any, frame: Frame, by: Sequence[str], constant: set[str], kind: str, notes: list[str]
) -> tuple[Any, Frame, tuple[str, ...]]:
    """Aggregate cells to pseudobulk samples, one for each combination of values of ``by``.

    Parameters
    ----------
    X : matrix (n_cells, n_features)
        Values of the cells.
    frame : Frame
        Columns of obs, one row for each cell.
    by : sequence of str
        Columns of obs whose combinations of values are the samples.
    constant : set of str
        Columns of obs that must have one value within each sample.
    kind : str
        "raw counts" are summed, and become log2(1 + counts per million); other values are averaged.
    notes : list of str
        Receives remarks for the user.

    Returns
    -------
    X : (n_pseudobulk, n_features) array
    frame : Frame
        The aggregated columns of obs.
    names : tuple of str
        Names of the samples.
    """
    # The name of a sample joins its values of ``by``; cells that lack a value are left out.
    gaps = np.any([frame.missing(name) for name in by], axis=0)
    label_columns = [frame.cells(name).astype(str)[~gaps] for name in by]
    joined = np.array([" / ".join(cells) for cells in zip(*label_columns, strict=True)])
    names, first, indices, sizes = np.unique(
        joined, return_index=True, return_inverse=True, return_counts=True
    )
    # Sums over the cells of each sample, in one pass: X'm for the 0/1 vector m of its cells.
    memberships = np.zeros((frame.n_rows, names.size))
    memberships[np.flatnonzero(~gaps), indices] = 1.0
    sums = np.array([scores.full() for scores in as_design(X).scores_many(memberships)])
    description = "means of their values"
    pooled = sums / sizes[:, None]
    if kind == "raw counts":
        totals = sums.sum(axis=1, keepdims=True)
        if not totals.all():
            raise ValueError(f"{str(names[totals[:, 0] == 0][0])!r} has no counts; leave it out")
        pooled = np.log2(1.0 + 1e6 * sums / totals)
        description = "log2(1 + counts per million)"
    note = f"; {int(gaps.sum())} rows lack it and are left out" if gaps.any() else ""
    notes.append(
        f"pseudo-bulk: {int(sizes.sum()):,} rows are {names.size:,} by {listing(by)}, of "
        f"{sizes.min():,} to {sizes.max():,} rows each, as {description}{note}"
    )
    # Columns of obs get one value for each sample; text and roles must not differ within one.
    rows_kept = frame.rows(np.flatnonzero(~gaps))
    columns = {}
    for name, cells in rows_kept.columns.items():
        columns[name], differing = _value_of_groups(cells, first, indices)
        if differing is not None and (cells.dtype == object or name in constant):
            row = str(names[differing])
            raise ValueError(
                f"{name!r} differs between the rows of {row!r}, which are to be one; type "
                f"--pseudobulk {','.join(by)},{name} or leave it out"
            )
        if differing is not None:
            notes.append(f"{name!r} differs between rows that are one: its mean is taken")
    return pooled, Frame(frame.path, columns, names.size), tuple(names.tolist())


def _value_of_groups(
    cells: NDArray[Any], first: Rows, group_of: Rows
) -> tuple[NDArray[Any], int | None]:
    """Return one value of a column of obs for each group: the mean of numbers, or the first text.

    ``cells`` is the column, ``first`` the first row of each group, ``group_of`` the group of each
    row. Missing numbers (NaN) are ignored. The second result is a group in which the values differ,
    or None.
    """
    if cells.dtype == object:
        differing = group_of[cells != cells[first][group_of]]
        return cells[first], int(differing[0]) if differing.size else None
    is_finite = np.isfinite(cells)
    counts = np.bincount(group_of[is_finite], minlength=first.size)
    sums = np.bincount(group_of[is_finite], cells[is_finite], first.size)
    means = np.divide(sums, counts, out=np.full(first.size, np.nan), where=counts > 0)
    # Values that differ by rounding errors only are the same.
    values = cells[is_finite]
    differing = group_of[is_finite][
        np.abs(values - means[group_of[is_finite]]) > 1e-9 * (1.0 + np.abs(values))
    ]
    return means, int(differing[0]) if differing.size else None
