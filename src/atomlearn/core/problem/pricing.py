"""Pricing: what one pass over the data tells of a point, asked once and used by everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.problem.result import Certificate

if TYPE_CHECKING:
    from atomlearn.core.problem.problem import Problem


@dataclass(slots=True)
class Pricing:
    """A point with its scores and the certificate of this very point.

    columns, weights : the point, ``columns`` None for all of them; prediction : X w + b;
    dual : v = -f'(X w + b), the dual point is -v; scores : z = X'v - tau w, those of the whole
    smooth part; gauge : gauge(w), or an upper bound such as the sum of atom weights.
    """

    problem: Problem
    columns: Columns | None
    weights: Array
    prediction: Array
    dual: Array
    scores: Scores
    gauge: float
    certificate: Certificate

    @property
    def inner(self) -> float:
        """<z, w>; the intercept has no part in it, as v sums to zero where there is one."""
        inner = float(self.dual @ self.prediction)
        if self.problem.tau:
            inner -= float(self.weights @ self.problem.ridge_slope(self.weights))
        return inner

    @property
    def multiplier(self) -> float:
        """The lambda with z in lambda * subdifferential of gauge at w, if w is optimal."""
        return self.problem.regularizer.multiplier(self.gauge, self.inner)

    def entering(self, columns: Columns) -> Columns:
        """Return those of these columns that the point does not have and would let in."""
        if self.columns is not None:
            columns = columns[~np.isin(columns, self.columns)]
        if not columns.size:
            return columns
        norm, n_features = self.problem.regularizer.norm, self.problem.design.shape[1]
        threshold = norm.thresholds(self.weights, columns, n_features)
        if np.max(threshold) <= 0 or np.max(threshold := threshold * self.multiplier) <= 0:
            return columns
        return columns[np.abs(self.scores.at(columns)) > threshold * (1 - 1e-12)]


def priced(
    problem: Problem,
    columns: Columns | None,
    weights: Array,
    prediction: Array,
    dual: Array,
    scores: Scores,
    *,
    gauge: float | None = None,
    tolerance: float = 0.0,
) -> Pricing:
    """Return the pricing from v = ``dual`` and X'v = ``scores`` of whoever has them already.

    Where the oracle of the norm is a search that finds nothing beyond ``tolerance`` (relative),
    the bound from above on the polar is worth more work.
    """
    if gauge is None:
        gauge = problem.gauge(columns, weights)
    norm, shifted = problem.regularizer.norm, problem.shifted(scores, columns, weights)
    excess = norm.excess(shifted)
    bounds = norm.polar_bounds(shifted) if excess is None else (excess.polar, excess.polar)
    certificate = problem.certificate(weights, prediction, dual, gauge, bounds, excess)
    if certificate.leaves_open(tolerance):
        bounds = norm.polar_bounds(shifted, thorough=True)
        certificate = problem.certificate(weights, prediction, dual, gauge, bounds)
    return Pricing(problem, columns, weights, prediction, dual, shifted, gauge, certificate)
