"""Encode table columns as feature columns (one-hot, ordinal, dates, tf-idf) by column plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import Array, as_design
from atomlearn.storage.formats.held import room
from atomlearn.storage.formats.messages import listing, near_names, refuse_all
from atomlearn.storage.intake.cells import as_numbers
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.written import date_parts, days_of, numbers_written


def encoded_again(frame: Frame, plans: Sequence[ColumnPlan]) -> dict[str, Array]:
    """Encode new rows with the plans of a fitted model; return the columns (n_rows,) by name.

    ``frame`` has the cells of the new rows. A plan says how a column of a file is encoded, and
    which value is imputed. One ValueError has all faults: columns that are absent, and missing
    values in columns whose plan has no value to impute.
    """
    used_plans = [plan for plan in plans if plan.is_used]
    problems = list[tuple[str, str]]()
    # Absent columns; if the first column has their names, the table is transposed.
    missing = [plan.name for plan in used_plans if plan.name not in frame.columns]
    if missing:
        hint = near_names(missing[0], frame.header) if len(missing) == 1 else ""
        verb = "is no column" if len(missing) == 1 else "are no columns"
        is_transposed = not set(missing).isdisjoint(frame.columns[frame.header[0]].tolist())
        if is_transposed:
            hint = "; they are in its first column"
        fault = f"there {verb} {listing(missing)}, which the model reads{hint}"
        problems.append((fault, "--transpose" if is_transposed else ""))
    # Columns with missing values that the model cannot impute.
    gaps = [
        plan.name
        for plan in used_plans
        if plan.fill is None
        and plan.use != "words"
        and plan.name not in missing
        and frame.missing(plan.name).any()
    ]
    if gaps:
        row = int(np.flatnonzero(frame.missing(gaps[0]))[0])
        fault = (
            f"{listing(gaps)}: values are missing, the first on {frame.line(row)}, and the model "
            "has no rule for them: fill them in, or fit it with --missing median"
        )
        problems.append((fault, ""))
    refuse_all(frame.path, problems)
    if not used_plans:
        return {}
    encoded = encode_columns(frame, used_plans)
    # A design reads columns alike from dense and sparse X.
    X = as_design(encoded.X)
    return {name: X.gather(np.array([j])).dense()[:, 0] for j, name in enumerate(encoded.names)}


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Columns of numbers and their descriptions.

    Attributes
    ----------
    X : array or CSR matrix (n_rows, n_columns)
        The columns.
    names : list of str
        Their names.
    groups : array (n_columns,), optional
        Group number of each column, see ``groups_made``.
    plans : list of ColumnPlan
        Plans with all values that encoding found, as a model keeps them.
    """

    X: Any
    names: list[str]
    groups: NDArray[np.int64] | None
    plans: list[ColumnPlan]


def completed(
    frame: Frame, plans: Sequence[ColumnPlan], missing: str
) -> tuple[list[ColumnPlan], NDArray[np.bool_]]:
    """Add imputation values to the plans, and return them with a mask of the rows to keep.

    Parameters
    ----------
    frame : Frame
        The cells.
    plans : sequence of ColumnPlan
        How each column is encoded.
    missing : {"refuse", "drop", "median", "indicator"}
        "refuse" changes nothing. "drop" excludes rows with missing values. "median" imputes the
        median, or the most frequent label of a category. "indicator" in addition adds a 0/1 column
        that marks missing values.

    Returns
    -------
    plans : list of ColumnPlan
    is_kept : (n_rows,) bool
    """
    is_kept = np.ones(frame.n_rows, dtype=bool)
    completed_plans = []
    if missing == "refuse":
        return list(plans), is_kept
    for plan in plans:
        # A missing text has no words, which needs no imputation.
        if plan.is_used and plan.use != "words":
            gaps = frame.missing(plan.name)
            if missing == "drop" and gaps.any():
                is_kept &= ~gaps
            elif missing in ("median", "indicator") and plan.fill is None:
                flag = plan.flag or (missing == "indicator" and bool(gaps.any()))
                plan = replace(plan, fill=usual_value(frame, plan), flag=flag)
        completed_plans.append(plan)
    return completed_plans, is_kept


def usual_value(frame: Frame, plan: ColumnPlan) -> float | str:
    """Return the value that replaces missing ones of a column, as its plan says it is used.

    It is the median of numbers, or the most frequent label of a category, over the rows of
    ``frame``. Of equally frequent labels, the first one in sorted order is taken.
    """
    if plan.use in ("category", "ordered"):
        counts = Counter(frame.cells(plan.name)[~frame.missing(plan.name)].tolist())
        return str(max(sorted(counts), key=lambda label: counts[label]))
    values = _values(frame, plan)
    return float(np.median(values[np.isfinite(values)]))


def _values(frame: Frame, plan: ColumnPlan) -> Array:
    """Return the column of ``frame`` that a plan describes as floats (n_rows,); refuse text.

    The plan says how the column is used. Missing cells are NaN. Dates become days since 1970. True
    and False become 1 and 0. Numbers may be written with the unit that the plan has.
    """
    if plan.use in ("parts", "elapsed") and frame.is_text(plan.name):
        # The plan of dates says what is written first: day, month or year.
        order = plan.values[0] if plan.values else ""
        days = days_of(frame.cells(plan.name).tolist(), order)
        if days is None:
            form = f" ({order} first)" if order else ""
            raise ValueError(
                f"column {plan.name!r} of {frame.path} holds cells that are no dates{form}; write "
                "all of them as 2024-03-31"
            )
        return days
    # Text is tried in this order: True and False, plain numbers, numbers with a unit.
    if frame.is_text(plan.name):
        cells = frame.columns[plan.name]
        truths = _truths(cells.tolist())
        if truths is not None:
            return truths
        numbers = as_numbers(cells)
        if numbers.dtype != object:
            return numbers
        unit = plan.values[0] if plan.values else ""
        written = numbers_written(cells.tolist())
        if written is not None and written.unit in ("", unit) and not written.strays:
            return written.values
        # The message shows the first cell that is no number.
        rows = range(frame.n_rows)
        row = next((row for row in rows if _is_other(str(cells[row]), unit)), 0)
        kind = f"numbers of unit {unit!r}" if unit else "numbers"
        raise ValueError(
            f"column {plan.name!r} of {frame.path} held {kind} when the model was fitted; found "
            f"{cells[row]!r} on {frame.line(row)}"
        )
    return frame.columns[plan.name]


def _is_other(cell: str, unit: str) -> bool:
    """Return whether a cell is neither missing nor a number, plain or with the unit ``unit``."""
    written = numbers_written([cell])
    if written is not None and not written.strays:
        return written.unit not in ("", unit)
    return as_numbers(np.array([cell], dtype=object)).dtype == object


def _truths(cells: Sequence[str]) -> Array | None:
    """Return cells of True and False as 1 and 0; None if a cell is something else."""
    meanings = {"true": 1.0, "false": 0.0, "": np.nan}
    truths = [meanings.get(cell.lower()) for cell in cells]
    return None if None in truths else np.array(truths, dtype=np.float64)


def encode_columns(frame: Frame, plans: Sequence[ColumnPlan]) -> Encoded:
    """Return the cells of ``frame``, encoded as columns of numbers.

    ``plans`` has one plan for each column of the frame: how it is encoded, if it is used. Missing
    values are imputed; they are NaN if a plan has no value for them. X is sparse (CSR) if a plan
    makes columns of words, else dense.
    """
    used_plans = [plan for plan in plans if plan.is_used]
    is_sparse = any(plan.use == "words" for plan in used_plans)
    width = sum(len(plan.made()) for plan in used_plans if plan.use != "words")
    # A dense X is filled in place, and is in a temporary file if it is large.
    X = room((frame.n_rows, 0 if is_sparse else width))
    start = 0
    blocks = list[Any]()
    fixed_plans = list[ColumnPlan]()
    for plan in plans:
        if plan.is_used:
            columns, plan = _columns(frame, plan)
            if is_sparse:
                blocks.append(sp.csr_matrix(columns))
            else:
                X[:, start : start + columns.shape[1]] = columns
                start += columns.shape[1]
        fixed_plans.append(plan)
    names = [name for plan in fixed_plans if plan.is_used for name in plan.made()]
    if len(set(names)) < len(names):
        repeated = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"two columns of {frame.path} would both be called {repeated!r}; rename one"
        )
    return Encoded(
        sp.csr_matrix(sp.hstack(blocks)) if is_sparse else X,
        names,
        groups_made(fixed_plans),
        fixed_plans,
    )


def groups_made(plans: Sequence[ColumnPlan]) -> NDArray[np.int64] | None:
    """Return the group number of each column of X, (n_columns,), or None.

    ``plans`` say how each column of the file is encoded. Columns that are encoded from one column
    of the file are a group, so that they are selected together; but each word of a text column is a
    separate group. The result is None if each group has one column.
    """
    used_plans = [plan for plan in plans if plan.is_used]
    groups = np.repeat(
        np.arange(len(used_plans), dtype=np.int64), [len(plan.made()) for plan in used_plans]
    )
    for index, plan in enumerate(used_plans):
        if plan.use == "words":
            columns = np.flatnonzero(groups == index)
            groups[columns] = groups.max() + 1 + np.arange(columns.size)
    numbers, groups = np.unique(groups, return_inverse=True)
    return groups.astype(np.int64) if numbers.size < groups.size else None


def _filled(frame: Frame, plan: ColumnPlan) -> Array:
    """Return the column of ``frame`` that a plan describes as floats (n_rows,), imputed.

    The plan says how the column is used, and which value replaces missing ones. They stay NaN if
    the plan has no value.
    """
    values = _values(frame, plan)
    return values if plan.fill is None else np.where(np.isfinite(values), values, float(plan.fill))


def _columns(frame: Frame, plan: ColumnPlan) -> tuple[Any, ColumnPlan]:
    """Return the columns (n_rows, m) that a plan makes of its column, and the completed plan.

    A plan says how a column of ``frame`` is encoded. The result has a plan with values that are
    learned from ``frame``, such as the first date or the words.
    """
    if plan.use == "words":
        return _words(frame, plan)
    if plan.use == "category":
        columns = _indicators(frame, plan)
    elif plan.use == "ordered":
        numbers = {label: float(index) for index, label in enumerate(plan.values)}
        columns = [np.array([numbers.get(cell, np.nan) for cell in _labels(frame, plan)])]
    elif plan.use == "parts":
        columns = date_parts(_filled(frame, plan))
    elif plan.use == "elapsed":
        # Days are counted from the first date of the rows that the model was fitted to.
        days = _filled(frame, plan)
        start = plan.numbers[0] if plan.numbers else float(np.nanmin(_values(frame, plan)))
        plan = replace(plan, numbers=(start,))
        columns = [days - start]
    else:
        columns = [_filled(frame, plan)]
    if plan.flag:
        columns.append(frame.missing(plan.name).astype(np.float64))
    return np.stack(columns, axis=1), plan


def _labels(frame: Frame, plan: ColumnPlan) -> list[str]:
    """Return the label of each row of ``frame`` for the plan of a category; refuse unknown labels.

    The plan has the known labels. A missing cell has the imputed label of the plan, or "" if it has
    none.
    """
    cells = frame.cells(plan.name).copy()
    gaps = frame.missing(plan.name)
    if plan.values == ("False", "True") and not frame.is_text(plan.name):
        # Text files have the words True and False; other formats have a boolean type.
        cells = np.array([{"1": "True", "0": "False"}.get(cell, cell) for cell in cells])
        cells = cells.astype(object)
    if plan.fill is not None:
        cells[gaps] = plan.fill
    levels = set(plan.values)
    labels = [str(cell) for cell in cells.tolist()]
    for row, cell in enumerate(labels if not levels.issuperset(labels) else ()):
        if cell not in levels and not (gaps[row] and plan.fill is None):
            listed = ", ".join(map(repr, plan.values[:6])) + (", ..." if len(levels) > 6 else "")
            raise ValueError(
                f"column {plan.name!r} of {frame.path} holds {cell!r} on {frame.line(row)}, which "
                f"did not occur when the model was fitted; known are {listed}. Leave such rows "
                "out, write one of these instead, or fit the model again with rows that have it"
            )
    return labels


def _indicators(frame: Frame, plan: ColumnPlan) -> list[Array]:
    """Return the 0/1 columns (n_rows,) of a category of ``frame``, for the labels of its plan.

    The reference level has no column. Missing cells are NaN, or 0 in all columns if the plan marks
    them in another column (``flag``).
    """
    labels = np.array(_labels(frame, plan), dtype=object)
    gaps = frame.missing(plan.name)
    columns = [np.asarray(labels == value, dtype=np.float64) for value in plan.shown()]
    if plan.flag:
        # The flag is a separate value: a missing cell has none of the labels.
        for column in columns:
            column[gaps] = 0.0
    elif plan.fill is None:
        for column in columns:
            column[gaps] = np.nan
    return columns


def _words(frame: Frame, plan: ColumnPlan) -> tuple[Any, ColumnPlan]:
    """Return sparse tf-idf columns of the words of each cell, and the plan with its words.

    ``plan`` describes the column of text in ``frame``. The rows have norm 1, as scikit-learn's
    TfidfVectorizer makes them. If the plan has words already, their stored inverse document
    frequencies are used.
    """
    # Imported here because importing it takes longer than reading most files.
    from sklearn.feature_extraction.text import TfidfVectorizer

    cells = frame.cells(plan.name)
    if plan.values:
        vectorizer = TfidfVectorizer(vocabulary=plan.values)
        vectorizer.idf_ = np.array(plan.numbers)
        return vectorizer.transform(cells), plan
    try:
        vectorizer = TfidfVectorizer(min_df=2)
        columns = vectorizer.fit_transform(cells)
    except ValueError as error:
        message = f"no word of column {plan.name!r} of {frame.path} comes in two rows"
        raise ValueError(message) from error
    words = tuple(vectorizer.get_feature_names_out().tolist())
    return columns, replace(plan, values=words, numbers=tuple(vectorizer.idf_.tolist()))
