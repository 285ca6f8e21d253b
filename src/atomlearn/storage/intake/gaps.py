"""Missing cells (gaps) of the columns of a file: each fit imputes them from its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns, Rows
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import Encoded, encode_columns, usual_value
from atomlearn.storage.intake.frame import Frame


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """The missing cells of a column of a file, whose imputed value the rows of a fit decide.

    A fit of some rows, such as a fold of cross-validation, must not use the values of other rows.

    Attributes
    ----------
    plan : ColumnPlan
        The column and its imputed value.
    places : (m,) int64
        The columns of X that are made of it.
    cells : Frame
        A table with this column, one row for each row of X.
    is_missing : (n_rows,) bool
        The rows without a value.
    """

    plan: ColumnPlan
    places: Columns
    cells: Frame
    is_missing: NDArray[np.bool_]

    def learned(self, rows: Rows) -> Gap:
        """Return the gap with the imputed value computed from the rows numbered ``rows``.

        The value is not changed if all of these rows lack one.
        """
        learned_cells = self.cells.rows(rows)
        if learned_cells.missing(self.plan.name).all():
            return self
        return replace(self, plan=replace(self.plan, fill=usual_value(learned_cells, self.plan)))

    def encoded(self) -> Array:
        """Return the entries (m,) of X, in the columns ``places``, of a row without a value."""
        row = self.cells.rows(np.flatnonzero(self.is_missing)[:1])
        return np.asarray(encode_columns(row, [self.plan]).X[0])

    def of_rows(self, rows: Rows) -> Gap:
        """Return the gap of the rows numbered ``rows``, in this order."""
        return replace(self, cells=self.cells.rows(rows), is_missing=self.is_missing[rows])


def gaps_in(frame: Frame, fixed: Sequence[ColumnPlan], encoded: Encoded) -> tuple[Gap, ...]:
    """Return the gaps that were filled in a dense X, except those whose value a schema gave.

    ``frame`` has the columns of the file. ``fixed`` are the plans (how each column is encoded)
    before imputed values were added; ``encoded`` is X with its final plans. A sparse X has no gaps.
    """
    given_values = {plan.name for plan in fixed if plan.fill is not None}
    gaps = list[Gap]()
    # Number of the first column of X that the next plan makes.
    start = 0
    for plan in encoded.plans:
        n_columns = len(plan.made()) if plan.is_used else 0
        places = np.arange(start, start + n_columns)
        start += n_columns
        if not n_columns or plan.fill is None or plan.name in given_values:
            continue
        is_missing = frame.missing(plan.name)
        if is_missing.any():
            cells = Frame(frame.path, {plan.name: frame.columns[plan.name]}, frame.n_rows)
            gaps.append(Gap(plan, places, cells, is_missing))
    return tuple(gaps) if isinstance(encoded.X, np.ndarray) else ()


def gaps_filled(X: NDArray[Any], gaps: Sequence[Gap]) -> NDArray[Any]:
    """Return a copy of X (n_rows, n_columns) with the imputed values of these gaps."""
    X = X.copy(order="K")
    for gap in gaps:
        X[np.ix_(np.flatnonzero(gap.is_missing), gap.places)] = gap.encoded()
    return X
