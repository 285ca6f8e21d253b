"""Estimates: confidence intervals of coefficients, with the assumptions under which they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student

from atomlearn.core import Array, Columns, Loss, has_link, has_probabilities

#: The name of each method, and the assumption that its intervals need.
CONDITIONS = {
    "named": "for columns named before the data was seen, if few columns have an effect, effects "
    "are linear, and {rows} are independent, of any spread (the corrected lasso was chosen on the "
    "same rows)",
    "unpenalized": "if the model has all columns with an effect, effects are linear, and {rows} "
    "are independent, of any spread",
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


def scale_of_loss(loss: Loss) -> str:
    """Return the quantity whose logarithm is predicted: "odds", "hazard", "mean" or ""."""
    if loss.task == "survival" or has_probabilities(loss):
        return "hazard" if loss.task == "survival" else "odds"
    return "mean" if loss.task == "regression" and has_link(loss) else ""


def t_intervals(values: Array, errors: Array, degrees: float, confidence: float) -> Array:
    """Return (m, 4): values, lower and upper ends of Student t intervals, two-sided p-values.

    errors : (m,) standard errors. degrees : degrees of freedom. ``confidence`` is the coverage of
    the intervals.
    """
    width = float(student.isf((1 - confidence) / 2, degrees)) * errors
    p_values = 2 * student.sf(np.abs(values) / errors, degrees)
    return np.column_stack([values, values - width, values + width, p_values])


def widened(variance: Any, degrees: float, confidence: float) -> Any:
    """Return a variance scaled so that normal intervals have the width of Student t intervals.

    The factor is (t quantile / normal quantile)^2. It accounts for the error of an estimated
    variance in methods that are derived for a known one. variance : estimated variances, a number
    or an array. degrees : their degrees of freedom. confidence : coverage of the intervals.
    """
    side = (1 - confidence) / 2
    return variance * float(student.isf(side, degrees) / normal.isf(side)) ** 2


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of coefficients in the units of the data, with confidence intervals.

    Attributes
    ----------
    columns : (m,) int64
        Columns that were named, or selected on a part of the rows.
    penalized : (m,) float64
        Coefficients of the penalized model, shrunken.
    values : (m,) float64
        Estimates, not shrunken.
    intervals : (m, 2) float64
    p_values : (m,) float64
        Of the hypothesis of no effect.
    confidence : float
        Level of the intervals.
    how : str
        "named", "unpenalized" (named in a model without a penalty), "carved", "split", "exact", or
        "quadratic" ("exact" for counts and classes).
    groups : tuple[Columns, ...]
        Columns that were named together.
    group_p_values : ndarray, optional
        Of the hypothesis that none of them has an effect.
    by_group : bool
        Whether standard errors are clustered by groups of rows.
    scale : str
        The quantity that exp(value) multiplies, such as "hazard" or "odds", "" if effects are
        added.
    condition : str
        The assumptions of the intervals.
    wrong_signs : int
        Upper bound on the number of values with the wrong sign.
    ratios : (m, 3) float64
        exp of value and interval.

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
    how: Literal["named", "unpenalized", "carved", "split", "exact", "quadratic"]
    groups: tuple[Columns, ...] = ()
    group_p_values: Array | None = None
    by_group: bool = False
    scale: str = ""

    @property
    def condition(self) -> str:
        """The assumptions under which the intervals have their nominal coverage."""
        words = CONDITIONS[self.how].format(rows="groups of rows" if self.by_group else "rows")
        if self.scale == "hazard":
            words = words.replace(", of any spread", ", and hazards are proportional")
        return words

    @property
    def ratios(self) -> Array:
        """Hazard, odds or mean ratios for an increase by one unit: value, lower and upper end."""
        if not self.scale:
            raise ValueError("effects on a mean are differences, not ratios: see values, intervals")
        return np.exp(np.column_stack([self.values, self.intervals]))

    @property
    def wrong_signs(self) -> int:
        """Upper confidence bound on the number of values with the wrong sign (or effect zero).

        It is the number of hypotheses that Holm's method does not reject, valid under any
        dependence of the p-values.
        """
        size = self.p_values.size
        # Holm's method rejects the smallest p-values, up to the first that exceeds its limit.
        rejected = np.sort(self.p_values) * np.arange(size, 0, -1) <= 1 - self.confidence
        return size - int(np.argmin(np.append(rejected, False)))

    def sentences(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a sentence for each column that holds estimate, interval, and condition.

        names : the names of all columns, by which columns are called; None: their indices. The last
        sentence is about all signs together.
        """
        numbers = np.column_stack([self.values, self.intervals])
        quantity = "effect"
        if self.scale:
            quantity = f"{self.scale} ratio"
            numbers = self.ratios
        rows = zip(self.columns, *numbers.T, strict=True)
        signs = (
            f"with {self.confidence:.0%} confidence at most {self.wrong_signs} of these "
            f"{self.columns.size} effects are zero or have the other sign, {self.condition}"
        )
        return (*(
            f"{quantity} of {f'column {j}' if names is None else names[j]}: {value:.4g}, with a "
            f"{self.confidence:.0%} interval from {low:.4g} to {high:.4g}"
            f"{'' if np.isfinite(high - low) else ' (the data set no bound to that side)'} "
            f"{self.condition}"
            for j, value, low, high in rows
        ), signs)  # fmt: skip

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(self.sentences())
