"""Objective: what a problem says of a point: its value, its slope, and how near the optimum it is.

A gap is made of sums of floats. Each of them is off by what its terms lost, which is no part of the
duality gap but has to be added to it, or "proved" would be a lie wherever numbers nearly cancel.
Each bound on what was lost is a ``growth`` (see ``rounding``) times magnitudes cheap to know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from atomlearn.core.data.scores import ShiftedScores
from atomlearn.core.interfaces import EPS, Array, Columns, Design, Loss, Norm, Scores
from atomlearn.core.interfaces.certificate import Certificate, Excess
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.losses import pieces
from atomlearn.core.losses.domain import where_weighted
from atomlearn.core.losses.shift import optimal_shift, without_surplus
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import Lengths, Measured, growth

#: Share of a gap that gauges found by iteration, and points taken as within bounds, may take off.
UNPROVED = 1e-5


@dataclass(slots=True)
class Pricing:
    """A point with its scores and the certificate of this very point.

    columns, weights : the point, ``columns`` None for all of them, of ``n_features``; prediction :
    X w + b; scores : z = X'v - tau w at the dual point -v; inner : <z, w>; multiplier : the lambda
    with z in lambda * subdifferential of gauge at w, if w is optimal.
    """

    norm: Norm
    n_features: int
    columns: Columns | None
    weights: Array
    prediction: Array
    scores: Scores
    inner: float
    multiplier: float
    certificate: Certificate

    def entering(self, columns: Columns) -> Columns:
        """Return those of these columns that the point does not have and would let in."""
        if self.columns is not None:
            columns = columns[~np.isin(columns, self.columns)]
        if not columns.size:
            return columns
        threshold = self.norm.thresholds(self.weights, columns, self.n_features)
        if np.max(threshold) <= 0 or np.max(threshold := threshold * self.multiplier) <= 0:
            return columns
        return columns[np.abs(self.scores.at(columns)) > threshold * (1 - 1e-12)]


@dataclass(frozen=True)
class Objective:
    """F(w, b) = f(X w + b) + (tau/2) ||w||^2 + R(w): the part of a Problem that prices points."""

    loss: Loss
    design: Design
    y: Array
    weight: Array
    regularizer: Regularizer
    tau: float = 0.0
    fit_intercept: bool = False
    metric: Array | None = None
    measured: Measured = field(default_factory=Measured, compare=False, repr=False)

    # --- values -----------------------------------------------------------------------------

    def objective(self, weights: Array, prediction: Array, gauge: float | None = None) -> float:
        """Return F at a point whose predictions (intercept included) are given."""
        gauge = self.regularizer.norm.value(weights) if gauge is None else gauge
        smooth = self.loss_value(prediction)
        if self.tau:
            smooth += 0.5 * float(weights @ self.ridge_slope(weights))
        return smooth + self.regularizer.value(gauge)

    def ridge_slope(self, weights: Array) -> Array:
        """Return the gradient of the ridge term, tau w or tau M w."""
        return self.tau * (weights if self.metric is None else self.metric @ weights)

    def loss_value(self, linear: Array, shift: float = 0.0) -> float:
        """Return f(linear + shift), without further arrays of n_samples numbers."""
        return pieces.value(self.loss, self.y, linear, self.weight, shift)

    def loss_gradient(self, linear: Array, shift: float = 0.0) -> Array:
        """Return f'(linear + shift), (n_samples,); in ``out`` where it is given."""
        return pieces.gradient(self.loss, self.y, linear, self.weight, shift)

    @property
    def negligible(self) -> float:
        """Objective that rounding cannot tell from 0: that of residuals of a few eps times y.

        Of labels a thousandth of eps: they are told apart without fail, and losses only fade out.
        """
        least = 1e-3 * EPS if self.loss.task == "classification" else 64.0 * EPS**2
        return least * self.loss_at_zero()

    def is_perfect(self, certificate: Certificate) -> bool:
        """Return whether the objective is 0 up to rounding: so is, then, what is left of the gap.

        It may be more than negligible where what floats lose is more, as where columns are far from
        zero, but is then that of residuals of 1e-12 times y.
        """
        lost = min(certificate.rounding, EPS**1.5 * self.loss_at_zero())
        return bool(certificate.objective <= max(self.negligible, lost))

    def loss_at_zero(self) -> float:
        """Return f(0), the scale of what is negligible, without what is free."""
        return self.measured.loss_at_zero(self.loss, self.y, self.weight)

    def inside(self, columns: Columns | None, weights: Array) -> Array:
        """Return the weights of a point, shrunk into the ball where the form has one."""
        if self.regularizer.form != "constrained" or not weights.size:
            return weights
        return self.regularizer.inside(weights, self.gauge(columns, weights))

    def gauge(self, columns: Columns | None, weights: Array) -> float:
        """Return the gauge of the point with these weights on ``columns`` (None: all of them)."""
        norm = self.regularizer.norm
        n_features = self.design.shape[1]
        if columns is not None:
            restricted = norm.restrict(columns, n_features)
            if restricted is not None:
                return restricted.value(weights)
            dense = np.zeros(n_features)
            dense[columns] = weights
            weights = dense
        return norm.value(weights)

    def negative_gradient(self, prediction: Array) -> Array:
        """Return v = -f'(z), with sum(v) = 0 where there is an intercept.

        At the optimal intercept the sum vanishes but for rounding. What is left is taken off the
        side that outweighs the other: entries only shrink towards 0, so -v stays in the domain of
        f* and is a feasible dual point, which makes the gap a bound whatever b is.
        """
        v = self.loss_gradient(prediction)
        np.negative(v, out=v)
        return without_surplus(v) if self.fit_intercept else v

    def optimal_intercept(self, linear: Array, start: float = 0.0) -> float:
        """Return argmin_b f(linear + b) by safeguarded Newton steps, O(n_samples) each.

        The certificate needs b to be optimal: its derivative vanishes to rounding. Where the
        minimum lies at infinity (one class only) b stops where the loss has no slope left.
        """
        if not self.fit_intercept:
            return 0.0
        return optimal_shift(self.loss, self.y, self.weight, linear, start)

    def shifted(self, scores: Scores, columns: Columns | None, weights: Array) -> Scores:
        """Return the scores of the whole smooth part: X'v - tau w."""
        if not self.tau or not weights.size:
            return scores
        slope = self.ridge_slope(weights)
        if columns is None:
            columns = np.flatnonzero(slope)
            slope = slope[columns]
        return ShiftedScores(scores, columns, slope)

    # --- how near the optimum a point is ----------------------------------------------------

    def price(
        self,
        columns: Columns | None,
        weights: Array,
        prediction: Array,
        *,
        gauge: float | None = None,
        tolerance: float = 0.0,
        lengths: Lengths | None = None,
        scores: Scores | None = None,
    ) -> Pricing:
        """Return the scores at a point and its certificate: one pass over the data.

        ``columns`` None means all columns, in order; ``prediction`` is X w + b with the optimal b;
        ``gauge``, ``tolerance`` : see ``priced``. The gap holds what rounding may have hidden, for
        which ``lengths`` of columns are measured, once, where none are given. ``scores`` : those of
        ``negative_gradient(prediction)``, where they were formed together with others'.
        """
        v = self.negative_gradient(prediction)
        scores = self.design.scores(v) if scores is None else scores
        price = self.priced(columns, weights, prediction, v, scores, gauge, tolerance)
        if lengths is None:
            used = np.flatnonzero(weights)
            columns = used if columns is None else columns[used]
            weights = weights[used]
            lengths = self.measured.of(self.design, self.weight, columns)
        at = (weights, prediction, v)
        price.certificate = self.rounded(price.certificate, *at, columns, lengths)
        return price

    def priced(
        self,
        columns: Columns | None,
        weights: Array,
        prediction: Array,
        dual: Array,
        scores: Scores,
        gauge: float | None = None,
        tolerance: float = 0.0,
    ) -> Pricing:
        """Return the pricing, but for rounding, from v = ``dual`` and X'v = ``scores``.

        ``gauge`` : gauge(w), or an upper bound such as the sum of atom weights. Where the oracle of
        the norm is a search that finds nothing beyond ``tolerance`` (relative), the bound from
        above on the polar is worth more work.
        """
        if gauge is None:
            gauge = self.gauge(columns, weights)
        norm = self.regularizer.norm
        shifted = self.shifted(scores, columns, weights)
        excess = norm.excess(shifted)
        bounds = norm.polar_bounds(shifted) if excess is None else (excess.polar, excess.polar)
        certificate = self.certificate(weights, prediction, dual, gauge, bounds, excess)
        if certificate.leaves_open(tolerance):
            bounds = norm.polar_bounds(shifted, thorough=True)
            certificate = self.certificate(weights, prediction, dual, gauge, bounds)
        # The intercept has no part in <z, w>, as v sums to zero where there is one.
        inner = float(dual.dot(prediction))
        if self.tau:
            inner -= float(weights @ self.ridge_slope(weights))
        point = norm, self.design.shape[1], columns, weights, prediction, shifted, inner
        return Pricing(*point, self.regularizer.multiplier(gauge, inner), certificate)

    def certificate(
        self,
        weights: Array,
        prediction: Array,
        dual: Array,
        gauge: float,
        polar: tuple[float, float],
        excess: Excess | None = None,
    ) -> Certificate:
        """Return objective and gap of this very point from bounds on the polar of its scores.

        With z = X'v - tau w, Fenchel's inequality for f and R at the dual point -v gives
        gap = f(X w + b) + f*(-v) + tau ||w||^2 + R(w) + R*(z), for every v = ``dual`` in the
        domain with sum(v) = 0 where b is free. At v = -f'(X w + b) it is the
        <g, w> + R(w) + R*(-g) of PAPERS ([V] section 2, [L] section 3). ``gauge`` is gauge(w), or
        an upper bound such as the sum of atom weights, which makes objective and gap bounds.
        ``polar`` : lower and upper bound on gauge°(z); ``excess`` : of bounds on coefficients,
        with which polars are those of the sides that have none.
        """
        level = self.regularizer.amount
        penalized = self.regularizer.form == "penalized"
        square = float(weights @ self.ridge_slope(weights)) if self.tau else 0.0
        smooth = self.loss_value(prediction)
        objective = smooth + 0.5 * square + self.regularizer.value(gauge)
        low, high = polar
        gaps = []
        # Where the best atom is only searched for, the gap it would give is told apart.
        for bound in (high, low) if low < high else (high,):
            factor = 1.0
            over = excess
            if penalized and bound > level and not self.tau:
                # -v scaled into gauge°(z) <= level is no worse: by a share less of v f* rises by at
                # most that share of F, and R* over gauge(w) <= F / level falls by no less.
                factor = level / bound
                bound = level
                over = None if excess is None else excess.scaled(factor)
            gap = objective + 0.5 * square + self._conjugate(smooth, prediction, dual, factor)
            # F >= level * gauge at the optimum, because losses are bounded below by zero.
            gap += self.regularizer.conjugate(bound, objective / level, over)
            # F itself bounds F - F*, as losses and norms are bounded below by zero.
            gaps.append(min(gap, objective) if gap == gap else objective)
        gap = gaps[0]
        searched = max(gaps[1], 0.0) if low < high else None
        terms = (weights, gauge, polar, excess)
        short = max(-gap, 0.0)
        return Certificate(objective, max(gap, 0.0), high, searched, shortfall=short, terms=terms)

    def dual_part(self, prediction: Array, dual: Array) -> tuple[float, float]:
        """Return f*(-v) at v = ``dual``, and what rounding may have hidden in it."""
        smooth = self.loss_value(prediction)
        found = self._conjugate(smooth, prediction, dual, 1.0)
        return found, self._lost_in_loss(prediction, dual, abs(smooth) + abs(found))

    def _conjugate(self, value: float, prediction: Array, v: Array, factor: float) -> float:
        """Return f*(-factor v), or raise where f(z) + f*(u) < <u, z>, which no conjugate allows."""
        loss = self.loss
        y = self.y
        s = self.weight
        if loss.coupled == 0:
            found = loss.conjugate_along(y, prediction, -v, s, factor)
        else:
            found = pieces.conjugate(loss, y, v, s, -factor)
        inner = -factor * float(v.dot(prediction))
        short = inner - value - found
        least = growth(v.size) * (abs(value) + abs(inner))
        size = abs(value) + abs(found)
        if short > least and short > 4.0 * self._lost_in_loss(prediction, v, size):
            raise ValueError(
                f"the loss {loss.name!r} proves nothing: its value f(z) = {value:.6g} and "
                f"conjugate f*(u) = {found:.6g} add up to less than <u, z> = {inner:.6g}, for "
                f"u = {factor:.6g} times the gradient; check conjugate(y, u, weight), which "
                "must be the supremum of <u, z> - value(y, z, weight) over z"
            )
        return found

    # --- rounding ---------------------------------------------------------------------------

    def rounded(
        self,
        certificate: Certificate,
        weights: Array,
        prediction: Array,
        dual: Array,
        columns: Columns | None = None,
        lengths: Lengths | None = None,
    ) -> Certificate:
        """Return the certificate of this point with what rounding may have hidden in its gap."""
        slack = self.lost(certificate, weights, prediction, dual, columns, lengths)
        if certificate.shortfall > slack + UNPROVED * abs(certificate.objective):
            raise ValueError(
                f"the norm {self.regularizer.norm!r} proves nothing: its value(w) and polar(z) "
                f"make the duality gap {-certificate.shortfall:.3g}, below zero by more than "
                f"rounding, which is {slack:.3g}; check that <z, w> <= value(w) * polar(z) for "
                "all w and z"
            )
        # What was below zero was lost in rounding, whatever the bound on it says.
        return certificate.widened(max(slack, certificate.shortfall))

    def lost(
        self,
        certificate: Certificate,
        weights: Array,
        prediction: Array,
        dual: Array,
        columns: Columns | None,
        lengths: Lengths | None,
    ) -> float:
        """Return a bound on the rounding in a gap: of sums in f(z) + f*(-v), of X w + b, of X'v.

        The last two need the ``lengths`` of the columns in use. O(n_samples).
        """
        total = self._lost_in_loss(prediction, dual, certificate.objective)
        if lengths is None or not weights.any():
            return total
        slope, count = self.steepness(prediction, dual)
        form = self.regularizer.form
        amount = self.regularizer.amount
        # The prediction is off by no more than this; f then is by its slope, and by its curvature.
        sizes = np.abs(weights)
        each = growth(weights.size)
        off = each * float(sizes.dot(lengths.summed))
        shift = each * float(sizes.dot(np.abs(lengths.offsets)))
        square = off * off + shift * shift * self.y.size
        total += slope * off + self.curved(square, prediction)
        # Each score is off by its column's length; twice, as v sums to 0 up to rounding only.
        scores = ArrayScores(2.0 * growth(count) * slope * lengths.scored)
        reach, ranges = self._reach(columns, scores)
        # How much R* grows with the polar: the gauge that the optimum can have.
        size = certificate.polar if form == "squared" else certificate.objective
        off_polar = reach * (amount if form == "constrained" else size / amount)
        scales = form == "penalized" and not self.tau and ranges is None
        if scales and off_polar > certificate.gap:
            # The bound on the gauge is far from what it is. A dual point that is scaled until these
            # errors do no harm needs no such bound.
            high = certificate.polar + reach
            scaled = self.certificate(weights, prediction, dual, certificate.gauge, (high, high))
            off_polar = min(off_polar, max(scaled.gap - certificate.gap, 0.0))
        return total + off_polar + (ranges or 0.0)

    def steepness(self, prediction: Array, dual: Array) -> tuple[float, int]:
        """Return the length of the slopes v, and how many there are."""
        return math.sqrt(dual.dot(dual)), dual.size

    def _lost_in_loss(self, prediction: Array, dual: Array, size: float) -> float:
        """Return what rounding may hide in f(z) + f*(-v) - <-v, z>, of terms of this size."""
        at = where_weighted(prediction, self.weight)
        square = float(at.dot(at))
        total = growth(at.size) * (size + math.sqrt(dual.dot(dual)) * math.sqrt(square))
        total += self.loss.slack(self.y, prediction, dual, self.weight)
        # Predictions are off by a digit themselves: all that there is where the slope is 0.
        return total + self.curved(EPS**2 * square, prediction)

    def curved(self, square: float, prediction: Array | None = None) -> float:
        """Return the second-order term of f for predictions that are off by this sum of squares.

        That at ``prediction`` where the loss has no bound on its curvature.
        """
        if not square:
            return 0.0
        if math.isfinite(self.loss.smoothness):
            return 0.5 * self.loss.smoothness * float(self.weight.max()) * square
        if prediction is None:
            return 0.0
        # Over a move of a few roundings the curvature does not double.
        return float(self.loss.curvature(self.y, prediction, self.weight).max()) * square

    def _reach(self, columns: Columns | None, scores: ArrayScores) -> tuple[float, float | None]:
        """Return the polar of errors of scores, and what coefficients with bounds make of them."""
        norm = self.regularizer.norm
        if columns is not None:
            restricted = norm.restrict(columns, self.design.shape[1])
            if restricted is None:
                return float(scores.full().max()), None
            norm = restricted
        above = norm.excess(scores)
        below = norm.excess(ArrayScores(-scores.full()))
        if above is None or below is None:
            return norm.polar(scores), None
        return max(above.polar, below.polar), above.at(0.0) + below.at(0.0)
