"""Pricing: what one pass over the data tells of a point, and its certificate by a dual point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.problem.rounding import growth, of_loss

if TYPE_CHECKING:
    from atomlearn.core.interfaces.excess import Excess
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
    certificate = certificate_of(problem, weights, prediction, dual, gauge, bounds, excess)
    if certificate.leaves_open(tolerance):
        bounds = norm.polar_bounds(shifted, thorough=True)
        certificate = certificate_of(problem, weights, prediction, dual, gauge, bounds, None)
    return Pricing(problem, columns, weights, prediction, dual, shifted, gauge, certificate)


def certificate_of(
    problem: Problem,
    weights: Array,
    prediction: Array,
    v: Array,
    gauge: float,
    polar: tuple[float, float],
    excess: Excess | None,
) -> Certificate:
    """Return the certificate of ``Problem.certificate``, from which no gap differs by its formula.

    The gap is that at the dual point -v, or at it scaled into feasibility, whichever is less.
    """
    square = float(weights @ problem.ridge_slope(weights)) if problem.tau else 0.0
    smooth = problem.loss_value(prediction)
    objective = smooth + 0.5 * square + problem.regularizer.value(gauge)
    conjugate = _conjugate(problem, smooth, prediction, v, 1.0)
    level = problem.regularizer.amount
    scales = not problem.tau and problem.regularizer.form == "penalized"

    def gap(polar: float) -> float:
        # F >= level * gauge at the optimum, because losses are bounded below by zero.
        found = objective + 0.5 * square + conjugate
        found += problem.regularizer.conjugate(polar, objective / level, excess)
        if scales and polar > level:
            # The classical alternative: the dual point scaled into gauge°(z) <= level.
            factor = level / polar
            feasible = objective + _conjugate(problem, smooth, prediction, v, factor)
            if excess is not None:
                feasible += excess.scaled(factor).at(level)
            found = min(found, feasible)
        # F itself bounds F - F*, as losses and norms are bounded below by zero.
        return min(found, objective) if found == found else objective

    low, high = polar
    found = gap(high)
    # Where the best atom is only searched for, the gap it would give is told apart.
    searched = max(gap(low), 0.0) if low < high else None
    terms = weights, gauge, polar, excess
    return Certificate(
        objective, max(found, 0.0), high, searched, shortfall=max(-found, 0.0), terms=terms
    )


def _conjugate(problem: Problem, value: float, prediction: Array, v: Array, factor: float) -> float:
    """Return f*(-factor v), or raise where f(z) + f*(u) < <u, z>, which no conjugate allows."""
    found = problem.loss_conjugate(v, -factor, prediction)
    inner = -factor * float(v @ prediction)
    short = inner - value - found
    if short > growth(v.size) * (abs(value) + abs(inner)):
        lost = of_loss(problem, prediction, v, abs(value) + abs(found))
        if short > 4.0 * lost:
            name = problem.loss.name
            raise ValueError(
                f"the loss {name!r} proves nothing: its value f(z) = {value:.6g} and conjugate "
                f"f*(u) = {found:.6g} add up to less than <u, z> = {inner:.6g}, for u = "
                f"{factor:.6g} times the gradient; check conjugate(y, u, weight), which must be "
                "the supremum of <u, z> - value(y, z, weight) over z"
            )
    return found
