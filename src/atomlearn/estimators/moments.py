"""Moments: sums over rows, from which least squares can be fitted without the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from atomlearn._support import growth
from atomlearn.core import (
    LIMITS,
    Array,
    Design,
    Problem,
    Regularizer,
    Result,
    Status,
    as_loss,
    from_moments,
    of_checked_data,
    part_of,
)


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of the p columns of X and of y, the last column.

    Attributes
    ----------
    weight : float
        Sum of the sample weights s_i.
    means : (p + 1,) ndarray
        Weighted means m.
    scatter : (p + 1, p + 1) ndarray
        sum_i s_i (z_i - m)(z_i - m)'.
    """

    weight: float
    means: Array
    scatter: Array

    @classmethod
    def none(cls, n_columns: int) -> Self:
        """Return the moments of no rows of ``n_columns`` columns; raise if these are too many."""
        size = n_columns + 1
        if size * size > LIMITS.most_dense:
            raise ValueError(
                f"partial_fit keeps sums of products of all pairs of columns; for {n_columns:,} "
                f"columns they take {8e-9 * size * size:,.1f} GB, more than the limit of "
                f"{8e-9 * LIMITS.most_dense:.1f} GB; fit to data on disk instead "
                "(`atomlearn convert`), or select columns first"
            )
        return cls(0.0, np.zeros(size), np.zeros((size, size)))

    def joined(self, design: Design, y: Array, weight: Array) -> Self:
        """Return the moments with more rows added, in dense blocks of rows.

        design, y, weight : columns, targets and sample weights of the new rows.

        References
        ----------
        T. Chan, G. Golub, R. LeVeque. Algorithms for computing the sample variance. The American
        Statistician 37 (1983) 242-247.
        """
        total = self
        all_columns = np.arange(design.shape[1])
        for batch in LIMITS.pieces(y.size, self.means.size):
            rows = np.arange(batch.start, batch.stop)
            block = part_of(design, rows=rows).gather(all_columns).dense()
            total = total._with_rows(
                np.column_stack([block, y[rows]]).astype(np.float64), weight[rows]
            )
        return total

    def _with_rows(self, Z: Array, weight: Array) -> Self:
        """Return the moments with the rows Z (m, n_columns + 1) added.

        weight : (m,) their sample weights.
        """
        added = float(weight.sum())
        if not added:
            return self
        means = weight @ Z / added
        centered = np.sqrt(weight)[:, None] * (Z - means)
        # Joined scatter = both scatters + (w1 w2 / (w1 + w2)) d d', with d the difference of the
        # means.
        total = self.weight + added
        difference = means - self.means
        scatter = self.scatter + centered.T @ centered
        scatter += (self.weight * added / total) * np.outer(difference, difference)
        return replace(
            self, weight=total, means=self.means + (added / total) * difference, scatter=scatter
        )

    def problem(self, penalty: Regularizer, fit_intercept: bool) -> tuple[Problem, float, float]:
        """Return the least-squares problem from the moments, a constant, and its rounding error.

        penalty : the regularizer. The loss of the problem plus the constant is the loss over the
        rows. The constant is a difference of sums, and loses some digits of the largest one.
        ``fit_intercept`` is whether there is an intercept.
        """
        # Sums of products of the centered columns; without an intercept, of the raw columns.
        sums = self.scatter
        if not fit_intercept:
            sums = sums + self.weight * np.outer(self.means, self.means)
        # Half the weighted sum of squares of (target - design w) is the loss minus a constant: the
        # part of y'y that no w explains.
        design, target = from_moments(sums[:-1, :-1], sums[:-1, -1])
        # The m rows of the design R have R'R / m equal to the sums. Divided by the weight of all
        # rows, the sum of squares over m becomes the mean over the rows.
        weight = np.full(target.size, 1.0 / (target.size * self.weight))
        problem = of_checked_data(design, target, weight, as_loss("squared"), penalty, False)
        constant = 0.5 * max(float(sums[-1, -1] - np.mean(target**2)), 0.0) / self.weight
        return problem, constant, growth(target.size) * float(sums[-1, -1]) / self.weight

    def completed(
        self, result: Result, constant: float, rounding: float, fit_intercept: bool
    ) -> Result:
        """Return the result with the constant and the intercept; the gap includes the rounding.

        result : the solution of ``problem``, which returned the constant and its rounding error.
        ``fit_intercept`` is whether there is an intercept.
        """
        objective = result.objective + constant
        gap = result.gap + rounding
        status = result.status
        if status is Status.CONVERGED and not gap <= result.tol * objective:
            status = Status.STALLED
        intercept = 0.0
        if fit_intercept:
            intercept = float(self.means[-1] - result.weights @ self.means[result.columns])
        return replace(result, objective=objective, gap=gap, status=status, intercept=intercept)
