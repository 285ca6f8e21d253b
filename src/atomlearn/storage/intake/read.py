"""read: any data file as it comes, its columns understood and told, as X and y."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import COMPRESSED
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.held import enough, within
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import completed, encode
from atomlearn.storage.intake.frame import Frame, transposed
from atomlearn.storage.intake.from_store import read_from_store
from atomlearn.storage.intake.join import (
    Samples,
    covariates_in,
    joined,
    phenotype,
    with_keys,
)
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.limits import INTAKE
from atomlearn.storage.intake.matrices import read_matrix
from atomlearn.storage.intake.plans import (
    left_out,
    made_of,
    plans_of,
    refuse,
    require,
    spread_out,
    with_rows_of,
)
from atomlearn.storage.intake.problems import listed
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.tables import frame_of
from atomlearn.storage.intake.targets import known_rows, tidy


def read(path: str | PathLike[str] | Any, target: str | None = None, **options: Any) -> DataTable:
    """Return X and y of a data file or a data frame, as the command line reads it.

    Parameters
    ----------
    path : file, folder of a column store, or data frame of pandas or polars
        CSV, TSV and other delimited text (delimiter, decimal mark, encoding and compression are
        found out), Parquet, Arrow, Feather, Excel, libsvm, .npz, .npy, .mat, .h5ad, PLINK .bed and
        .pgen, column stores.
    target : str, optional
        The column (or key, or .npy file) to predict. Rows that lack it are left out.
    **options
        Fields of ``Reading``: missing ("refuse", "median", "indicator", "drop"), id, drop,
        covariates, roles, pheno, pheno_name, covar, transpose, sheet, form, text, dates,
        categories, schema, names, memory_limit (bytes: what does not fit is read from a column
        store in a temporary folder, made on the way).

    Returns
    -------
    DataTable
        With ``schema.columns``: what each column of the file is and what was made of it; and
        ``notes``: what was done that one should know.

    Raises
    ------
    FileNotFoundError, ValueError
        With everything that is wrong in one message, and what to do about it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from atomlearn.datasets import read
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("dose;smoker;ill\\n1,5;yes;1\\n;no;0\\n2,5;no;1\\n")
    >>> table = read(file, "ill", missing="median")
    >>> table.feature_names, table.X.tolist(), table.y.tolist()
    (('dose', 'smoker=yes'), [[1.5, 1.0], [2.0, 0.0], [2.5, 0.0]], [1, 0, 1])
    """
    reading = Reading(target=target, **options)
    with within(reading.memory_limit), enough(path):
        return _read(path, reading)


def _read(path: Any, reading: Reading) -> DataTable:
    if not isinstance(path, str | PathLike):
        frame = frame_of(path)
        return _of_frame(frame, reading, None)
    file = Path(path)
    form = format_of(file)
    if _is_larger(file, form, reading):
        return read_from_store(file, form, reading)
    if form.frame is None:
        return read_matrix(form, file, reading)
    named = reading.role("id")
    labels = reading.form.labels | ({named} if named else set())
    frame = form.frame(file, replace(reading.form, labels=labels), reading.sheet)
    ids = None
    if reading.transpose:
        frame, ids = transposed(frame)
    return _of_frame(frame, reading, ids)


def _is_larger(file: Path, form: Format, reading: Reading) -> bool:
    """Whether the data take more than their share of the memory allowed."""
    streams = form.rows is not None or (form.stream is not None and form.frame is None)
    if reading.memory_limit is None or form.in_place or not streams:
        return False
    packed = INTAKE.packed if file.suffix.lower() in COMPRESSED else 1
    size = packed * file.stat().st_size if form.size is None else form.size(file)
    return 3 * size > reading.memory_limit


def _of_frame(frame: Frame, reading: Reading, ids: Sequence[str] | None) -> DataTable:
    """Return the table of a frame."""
    reading = spread_out(frame, reading)
    require(frame, reading)
    names, notes = ids, list(frame.notes)
    plans = plans_of(frame, reading)
    reading = with_rows_of(frame, reading, plans)
    owner = reading.role("rows_of")
    plans = [
        replace(plan, use="rows_of") if plan.name == owner != reading.role("id") else plan
        for plan in plans
    ]
    id_column = reading.role("id") or next(
        (plan.name for plan in plans if plan.kind == "identifier"), None
    )
    if names is None and id_column is not None:
        names = [str(cell) for cell in frame.cells(id_column).tolist()]
    frame, plans, reading = _with_covariates(frame, plans, reading, names, notes)
    name, y = _target(frame, reading, names, notes)
    extras = {role: frame.held(column) for role, column in _other_roles(reading).items()}
    kept, told = known_rows(y, name, extras, frame.n_rows)
    notes += told
    frame = frame.rows(kept) if kept.size < frame.n_rows else frame
    plans, full = completed(frame, plans, reading.missing)
    if not full.all():
        notes.append(f"{int((~full).sum())} rows with missing values left out (--missing drop)")
        if not full.any():
            raise ValueError(f"{frame.path}: every row lacks a value; type --missing median")
        kept, frame = kept[full], frame.rows(np.flatnonzero(full))
    used = [plan.name for plan in plans if plan.is_used and reading.missing == "refuse"]
    gaps = {name: int(frame.missing(name).sum()) for name in used if frame.lacks(name)}
    refuse(frame.path, plans, gaps, lambda name: frame.line(int(np.argmax(frame.missing(name)))))
    notes += left_out(plans)
    made = encode(frame, plans)
    schema = Schema(len(made.names), tuple(made.names), columns=tuple(made.plans))
    return DataTable(
        made.X,
        None if y is None else tidy(y[kept], f"column {name!r} of {frame.path}"),
        schema,
        name,
        str(frame.path),
        groups=made.groups if made.has_groups else None,
        ids=None if names is None else tuple(names[row] for row in kept.tolist()),
        covariates=made_of(made.plans, reading.covariates),
        rows=kept,
        extras={role: values[kept] for role, values in extras.items()},
        notes=tuple(notes),
    )


def _other_roles(reading: Reading) -> dict[str, str]:
    return {k: v for k, v in reading.named_roles().items() if k not in ("target", "id")}


def _target(
    frame: Frame, reading: Reading, names: Sequence[str] | None, notes: list[str]
) -> tuple[str | None, NDArray[Any] | None]:
    """Return the name of the target and its values, "" or NaN where missing."""
    if reading.pheno is not None:
        other, count = _joined(reading.pheno, reading, names, frame)
        notes.append(f"{count} of {frame.n_rows} samples are in {reading.pheno.name}")
        twice = [name for name, found in Counter(names).items() if found > 1]
        if twice:
            notes.append(f"samples on several rows, all with the same target: {listed(twice)}")
        return phenotype(other, reading.pheno_name or reading.target)
    name = reading.role("target")
    return name, None if name is None else frame.held(name)


def _joined(
    file: Path, reading: Reading, names: Sequence[str] | None, own: Frame
) -> tuple[Frame, int]:
    """Return the frame of another file with one row a sample of this one."""
    if names is None:
        raise ValueError(
            f"{file} is joined by names of samples, and {own.path} has no column of such: type "
            "--id NAME (or --transpose, where samples are columns)"
        )
    form = format_of(file)
    if form.frame is None:
        raise ValueError(f"{file} is no table of text; expected columns with a header")
    opened = form.frame
    frame = with_keys(lambda text: opened(file, text, None), reading.form)
    return joined(frame, Samples(names, columns=own.header), file)


def _with_covariates(
    frame: Frame,
    plans: list[ColumnPlan],
    reading: Reading,
    names: Sequence[str] | None,
    notes: list[str],
) -> tuple[Frame, list[ColumnPlan], Reading]:
    """Return the frame with the columns of the covariate file beside it."""
    if reading.covar is None:
        return frame, plans, reading
    other, count = _joined(reading.covar, reading, names, frame)
    wanted = covariates_in(other, reading, notes)
    twice = [name for name in wanted if name in frame.header]
    if twice:
        raise ValueError(f"{reading.covar} and {frame.path} both have a column {twice[0]!r}")
    notes.append(f"{count} of {frame.n_rows} samples are in {reading.covar.name}")
    held = [name for name in wanted if not other.is_text(name)]
    numbers = np.column_stack([frame.numbers, *(other.values(name) for name in held)])
    slots = dict(frame.slots)
    slots |= {name: frame.numbers.shape[1] + place for place, name in enumerate(held)}
    texts = frame.texts | {name: other.texts[name] for name in wanted if other.is_text(name)}
    both = replace(
        frame, header=[*frame.header, *wanted], slots=slots, numbers=numbers, texts=texts
    )
    covariates = (*reading.covariates, *(n for n in wanted if n not in reading.covariates))
    return both, plans + described(both, wanted), replace(reading, covariates=covariates)
