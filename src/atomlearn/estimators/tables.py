"""Tables with words, categories, dates and gaps as designs of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import (
    as_frame,
    holds_numbers,
    is_table,
    library_of,
    narrowest,
    number_types,
)
from atomlearn.core import (
    Columns,
    DenseDesign,
    Rows,
    as_design,
    check_free,
    check_shape,
    named_columns,
    refuse_entry,
)
from atomlearn.estimators.encoded import EncodedDesign, is_finite
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.encode import encode_columns
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import DOUBT, as_asked, described
from atomlearn.storage.intake.typed import frame_of


@dataclass(frozen=True, slots=True, eq=False)
class TableEncoding:
    """How the columns of a table became columns of numbers.

    Attributes
    ----------
    columns : tuple of ColumnPlan
        One for each column of the table: its use, labels, reference level and imputed value.
    dtype : dtype
        Type of the numbers.
    n_rows : int
        Number of rows in which gaps were counted.
    """

    columns: tuple[ColumnPlan, ...]
    dtype: np.dtype[Any]
    n_rows: int

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns, such as "stage=4"."""
        return [name for plan in self.columns for name in plan.made()]

    @property
    def sources(self) -> Columns:
        """The number of the column of the table from which each encoded column is made."""
        widths = [len(plan.made()) for plan in self.columns]
        return np.repeat(np.arange(len(self.columns), dtype=np.int64), widths)

    @property
    def imputed(self) -> dict[str, float]:
        """The share of imputed values of each column that had gaps."""
        return {plan.name: plan.missing / self.n_rows for plan in self.columns if plan.missing}

    def columns_of(self, columns: Any, owner: str) -> Columns:
        """Return the encoded columns that are made of some columns of the table.

        columns : indices, names or a mask. owner : the name of the parameter, for error messages.
        """
        names = [plan.name for plan in self.columns]
        numbers = check_free(named_columns(columns, names, owner), len(names))
        return np.flatnonzero(np.isin(self.sources, numbers))

    def described(self, column: int) -> str:
        """Return the unit or the reference level of an encoded column, "" if it has none."""
        plan = self.columns[int(self.sources[column])]
        if plan.use == "elapsed":
            first = date.fromordinal(date(1970, 1, 1).toordinal() + int(plan.numbers[0]))
            return f"days since {first}"
        if plan.use == "category":
            return f"against {plan.name}={plan.reference_level}"
        return plan.values[0] if plan.values else plan.why

    def filled(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Return encoded columns with the imputed values in place of NaN.

        raw : (n_rows, n_encoded_columns).
        """
        is_missing = np.isnan(raw)
        if not is_missing.any():
            return raw
        values = raw.copy(order="K")
        for plan, positions in self._plans_and_columns():
            for position, name in zip(positions, plan.made(), strict=True):
                values[is_missing[:, position], position] = _encoded_fill(plan, name)
        return values

    def learned(self, raw: NDArray[Any]) -> TableEncoding:
        """Return the same encoding, with imputed values and counts of gaps from these encoded rows.

        raw : (n_rows, n_encoded_columns), with NaN in gaps. Labels and names do not change.
        """
        plans = list(self.columns)
        for number, (plan, positions) in enumerate(self._plans_and_columns()):
            if not positions.size:
                continue
            plan_columns = raw[:, positions]
            observed = plan_columns[~np.isnan(plan_columns).any(axis=1)]
            if len(observed):
                n_missing = len(raw) - len(observed)
                plans[number] = replace(plan, fill=_fill(plan, observed), missing=n_missing)
        return replace(self, columns=tuple(plans), n_rows=len(raw))

    def _plans_and_columns(self) -> list[tuple[ColumnPlan, Columns]]:
        """Return the plans, each with the numbers of its encoded columns."""
        sources = self.sources
        return [(plan, np.flatnonzero(sources == k)) for k, plan in enumerate(self.columns)]


def _fill(plan: ColumnPlan, known: NDArray[Any]) -> float | str:
    """Return the imputed value of a column: the median, or the most frequent label.

    known : (n_known, k) the encoded rows without gaps; a category has k indicator columns. ``plan``
    is how the column was encoded.
    """
    # The reference level has no column of its own. Dates are days since ``numbers[0]``, the first.
    if plan.use == "category":
        counts = known.sum(axis=0)
        labels = [plan.reference_level, *plan.shown()]
        return labels[int(np.argmax([len(known) - counts.sum(), *counts]))]
    return float(np.median(known)) + (plan.numbers[0] if plan.use == "elapsed" else 0.0)


def _encoded_fill(plan: ColumnPlan, name: str) -> float:
    """Return the imputed value of an encoded column, which is called ``name``.

    ``plan`` is how the column was encoded.
    """
    if plan.use == "category":
        return float(name == f"{plan.name}={plan.fill}")
    return float(plan.fill or 0.0) - (plan.numbers[0] if plan.use == "elapsed" else 0.0)


class TableDesign(EncodedDesign, DenseDesign):
    """The encoded columns of a table, with a record of its gaps.

    Parameters
    ----------
    raw : (n_rows, n_columns) array
        The encoded columns, NaN in gaps.
    encoding : TableEncoding
        It has the values that fill the gaps.
    """

    encoding: TableEncoding

    def __init__(self, raw: NDArray[Any], encoding: TableEncoding) -> None:
        """Store the encoded columns, and make the design of them with filled gaps."""
        super().__init__(encoding.filled(raw))
        self.raw = raw
        self.encoding = encoding

    def filled_by(self, encoding: TableEncoding) -> TableDesign:
        """Return the same rows with gaps filled by another encoding of the same columns."""
        if self.raw is self._X:
            return self
        filled = TableDesign(self.raw, encoding)
        return filled if self._rows is None else filled.with_rows(self._rows)

    def learned_from(self, rows: Rows | None = None) -> TableDesign:
        """Return this design with its gaps filled by values that are imputed from some rows.

        rows : numbers of these rows of this design; None: all of them.
        """
        if self.raw is self._X:
            return self
        rows_of_design = self.raw if self._rows is None else self.raw[self._rows]
        return self.filled_by(
            self.encoding.learned(rows_of_design if rows is None else rows_of_design[rows])
        )


def learned_design(X: Any) -> TableDesign:
    """Return a table as columns of numbers, by a new encoding that is learned from it.

    X : a data frame. One error names all columns that cannot become numbers. Gaps are filled by the
    median of a column, or by its most frequent label.
    """
    # ``table`` has the types and the declared categories of the columns, and ``frame`` their cells
    # as NumPy arrays. Cells of dates are numbers of days since 1970 there, so that differences of
    # dates can be taken.
    table = as_frame(X)
    frame = frame_of(X, as_days=True)
    check_shape((frame.n_rows, len(frame.header)), X)
    types = number_types(table)
    columns = zip(frame.header, table.iter_columns(), strict=True)
    # Each column gets a plan: a number, days since a date, or an indicator per label.
    plans = [_plan(frame, name, column) for name, column in columns]
    _refuse(frame, plans)
    doubtful = [plan.name for plan in plans if DOUBT in plan.why]
    if doubtful:
        message = f"dates of {listing(doubtful)} are read as {DOUBT}; pass columns of dates"
        warnings.warn(message, UserWarning, stacklevel=5)
    # Encoded columns have the narrowest type of numbers that holds all of them.
    encoded = encode_columns(frame, plans)
    if not encoded.names:
        raise ValueError("no column of the table has two values; give columns that vary")
    dtype = narrowest(kind for kind in types if kind is not None)
    raw = encoded.X.astype(dtype, copy=False)
    # The plans have no imputed values yet, so that ``raw`` is NaN in gaps. ``learned`` adds these
    # values to the plans, and counts the gaps.
    encoding = TableEncoding(tuple(encoded.plans), dtype, frame.n_rows).learned(raw)
    return TableDesign(raw, encoding)


def table_as_numbers(X: Any) -> TableDesign | None:
    """Return X as numbers if it is a table with words, dates or gaps; None for other data."""
    if not is_table(X) or (holds_numbers(X) and is_finite(as_design(X, check_finite=False))):
        return None
    return learned_design(X)


def encoded_as_before(encoding: TableEncoding, X: Any) -> TableDesign:
    """Return new rows as numbers, in a known encoding.

    X : a data frame, or an array with the same columns. A label that did not occur in the fit
    counts as a missing value, with a warning that names it. A warning also names columns with gaps
    that had none in the fit.
    """
    if not is_table(X):
        rows = np.asarray(X)
        X = {plan.name: rows[:, k] for k, plan in enumerate(encoding.columns)}
    frame = frame_of(X, as_days=True)  # dates as days since 1970, as in the fit
    plans = [plan for plan in encoding.columns if plan.is_used]
    _refuse_infinite(frame, plans)
    gaps = [plan.name for plan in plans if not plan.missing and frame.missing(plan.name).any()]
    if gaps:
        message = f"{listing(gaps)}: values are missing that were not in the fit; they are imputed"
        warnings.warn(message, UserWarning, stacklevel=5)
    labels = {plan.name: _known_labels(frame, plan) for plan in plans if plan.use == "category"}
    frame = replace(frame, columns=frame.columns | labels)
    # Without imputed values the encoder leaves NaN in gaps, which ``TableDesign`` fills.
    encoded = encode_columns(frame, [replace(plan, fill=None) for plan in plans])
    return TableDesign(encoded.X.astype(encoding.dtype, copy=False), encoding)


def _plan(frame: Frame, name: str, column: Any) -> ColumnPlan:
    """Return the plan of a column of the table: its use, labels and number of gaps.

    frame : the table as cells. name : the name of the column. column : the same column in narwhals,
    which has its type. Categories have a column for each label but the first; dates become days
    since the first one.
    """
    import narwhals.stable.v2 as nw

    if not frame.is_text(name):
        plan = ColumnPlan(name, missing=int(frame.missing(name).sum()))
        if column.dtype in (nw.Date, nw.Datetime):
            return replace(plan, kind="date", use="elapsed")
        return replace(plan, why="days") if column.dtype == nw.Duration else plan
    # Labels: the declared categories, or those that occur in the cells.
    levels = _declared_levels(column)
    if levels:
        plan = ColumnPlan(name, "category", "category", levels, distinct=len(levels))
        # The table is refused if a column has too many labels.
        if len(levels) > INTAKE.many_values:
            plan = replace(plan, kind="text", use="leave out")
    else:
        [plan] = as_asked(described(frame, [name]), frame, dates="elapsed")
    if plan.use in ("category", "ordered"):
        return replace(plan, kind="category", use="category", reference=plan.values[0])
    return plan


def _declared_levels(column: Any) -> tuple[str, ...]:
    """Return the labels of a categorical column in their order, () if there are none.

    Categories of polars have no order; an Enum has.
    """
    import narwhals.stable.v2 as nw

    levels: Sequence[Any] = ()
    if column.dtype == nw.Enum:
        levels = column.dtype.categories
    elif column.dtype == nw.Categorical and library_of(column.to_native()) != "polars":
        levels = column.cat.get_categories().to_list()
    return tuple(map(str, levels))


def _known_labels(frame: Frame, plan: ColumnPlan) -> NDArray[Any]:
    """Return the cells of a category, with unknown labels as missing values and a warning.

    plan : the plan of the column in the fit. ``frame`` are the cells of the table.
    """
    # Booleans are numbers 0 and 1 in the cells.
    if not frame.is_text(plan.name) and plan.values == ("False", "True"):
        return frame.columns[plan.name]
    cells = frame.cells(plan.name)
    unknown = {cell for cell in set(cells.tolist()) if cell and cell not in plan.values}
    if not unknown:
        return cells
    is_unknown = np.array([cell in unknown for cell in cells.tolist()])
    warnings.warn(
        f"column {plan.name!r} holds {listing(sorted(unknown))} in {is_unknown.sum()} rows, which "
        f"did not occur in the fit; they count as missing, that is as {plan.fill!r}. Known are "
        f"{listing(plan.values)}",
        UserWarning,
        stacklevel=6,
    )
    return np.where(is_unknown, "", cells)


def _refuse(frame: Frame, plans: Sequence[ColumnPlan]) -> None:
    """Raise one error with all columns that cannot become numbers, if there are any.

    ``frame`` are the cells of the table and ``plans`` the encoding plans of its columns.
    """
    _refuse_infinite(frame, plans)
    faults = {}
    for plan in plans:
        if plan.use == "leave out" and plan.kind != "constant":
            count = f"{plan.distinct} different labels in {frame.n_rows} rows"
            faults[plan.name] = plan.why if plan.kind == "mixed" else count
        elif plan.missing == frame.n_rows and plan.is_used:
            faults[plan.name] = "no value in any row"
    if faults:
        listed = ", ".join(f"{name!r} ({reason})" for name, reason in [*faults.items()][:4])
        remainder = f" and {len(faults) - 4} more" if len(faults) > 4 else ""
        raise ValueError(
            f"the table has columns that cannot become numbers: {listed}{remainder}; leave them "
            f"out, as by X.drop(columns={[*faults][:4]}), group their labels, or encode them "
            "before, as by sklearn.preprocessing.TargetEncoder"
        )


def _refuse_infinite(frame: Frame, plans: Sequence[ColumnPlan]) -> None:
    """Raise ValueError for the first infinite number of a column; these are not imputed.

    ``frame`` are the cells of the table and ``plans`` the encoding plans of its columns.
    """
    for number, plan in enumerate(plans):
        if not frame.is_text(plan.name):
            rows = np.flatnonzero(np.isinf(frame.columns[plan.name]))
            if rows.size:
                refuse_entry(np.inf, int(rows[0]), number, frame.header)
