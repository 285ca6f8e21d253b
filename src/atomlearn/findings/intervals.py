"""Estimates: confidence intervals of coefficients, with the assumptions under which they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from atomlearn.core import Array, Columns

#: The name of each way of estimating, and the condition without which its intervals say nothing.
CONDITIONS = {
    "named": "for columns named before the data was seen, if few columns have an effect, effects "
    "are linear, and {rows} are independent, of any spread (the corrected lasso was chosen on the "
    "same rows)",
    "carved": "given that part of the rows selected these columns with these signs, for linear "
    "effects among these columns only, if {rows} are independent, of any spread",
    "split": "for linear effects among these columns only, which other rows selected, if {rows} "
    "are independent, of any spread",
    "exact": "given that all rows select exactly these columns, which is proved, for linear "
    "effects among these columns only, if {rows} are independent with normal errors of one spread, "
    "which was estimated or given",
    "quadratic": "given that all rows select exactly these columns, for linear effects among these "
    "columns only, if {rows} are independent and the likelihood is quadratic around the fit, as it "
    "is for many rows",
}


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of coefficients, per unit of the data, and what their intervals are intervals of.

    columns : (m,) named, or selected on a part of the rows; penalized : (m,) as the model has them,
    pulled towards zero; values : (m,) not pulled; intervals : (m, 2); p_values : (m,) of "no
    effect"; confidence : of the intervals; how : "named", "carved", "split", "exact", or
    "quadratic" ("exact" of counts and classes); groups : the columns that were named together, and
    group_p_values : of "none of them has an effect"; by_group : whether errors are of groups of
    rows, not of rows. ``condition`` is the sentence that belongs to
    the intervals. ``wrong_signs`` : the maximum number of values with the wrong sign.

    References
    ----------
    S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6 (1979) 65-70.
    """

    columns: Columns
    penalized: Array
    values: Array
    intervals: Array
    p_values: Array
    confidence: float
    how: Literal["named", "carved", "split", "exact", "quadratic"]
    groups: tuple[Columns, ...] = ()
    group_p_values: Array | None = None
    by_group: bool = False

    @property
    def condition(self) -> str:
        """What must hold for the intervals to cover as often as they say."""
        return CONDITIONS[self.how].format(rows="groups of rows" if self.by_group else "rows")

    @property
    def wrong_signs(self) -> int:
        """Upper confidence bound on the number of values with the wrong sign (or effect zero).

        It is the number of hypotheses that Holm's method does not reject, valid under any
        dependence of the p-values.
        """
        size = self.p_values.size
        told = np.sort(self.p_values) * np.arange(size, 0, -1) <= 1 - self.confidence
        return size - int(np.argmin(np.append(told, False)))

    def sentences(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a sentence for each column that holds estimate, interval, and condition.

        The last one is of all signs together.
        """
        rows = zip(self.columns, self.values, *self.intervals.T, strict=True)
        signs = (
            f"with {self.confidence:.0%} confidence at most {self.wrong_signs} of these "
            f"{self.columns.size} effects are zero or have the other sign, {self.condition}"
        )
        return (*(
            f"effect of {f'column {j}' if names is None else names[j]}: {value:.4g}, with a "
            f"{self.confidence:.0%} interval from {low:.4g} to {high:.4g}"
            f"{'' if np.isfinite(high - low) else ' (the data set no bound to that side)'} "
            f"{self.condition}"
            for j, value, low, high in rows
        ), signs)  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.sentences())
