"""Rounding: how far what floats say of a point can be from the truth.

A gap is made of sums of floats. Each of them is off by what its terms lost, which is no part of the
duality gap but has to be added to it, or "proved" would be a lie wherever numbers nearly cancel.
Errors of independent roundings add up like a random walk: a sum of n terms is off by about sqrt(n)
units in the last place of the sum of their magnitudes, and ``growth`` has a factor of a few over
that (the worst case, n units, never happens). Every bound below is such a growth times magnitudes
that are cheap to know.

Higham, Mary (2019), A new approach to probabilistic rounding error analysis, SIAM Journal on
Scientific Computing 41(5), doi:10.1137/18M1226312.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.losses import pieces
from atomlearn.core.losses.domain import where_weighted

if TYPE_CHECKING:
    from atomlearn.core.interfaces import Design, Loss
    from atomlearn.core.interfaces.certificate import Certificate
    from atomlearn.core.problem.problem import Problem

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Euclidean lengths of the columns of a point, (m,) each, over the samples that have weight.

    scored : of the columns of X, of which the scores are made; summed : of the columns of which the
    prediction is made, which may have offsets taken off; offsets : those offsets.
    """

    scored: Array
    summed: Array
    offsets: Array

    @classmethod
    def none(cls) -> Lengths:
        """Return those of no columns."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def take(self, positions: Columns) -> Lengths:
        """Return those of the columns at these positions."""
        return Lengths(self.scored[positions], self.summed[positions], self.offsets[positions])

    def append(self, other: Lengths) -> Lengths:
        """Return those of these columns followed by the others."""
        mine = (self.scored, self.summed, self.offsets)
        theirs = (other.scored, other.summed, other.offsets)
        return Lengths(*map(np.concatenate, zip(mine, theirs, strict=True)))


class Measured:
    """What is measured of a problem once: f(0), and lengths of columns, for solvers that keep none.

    Problems that are made of one another share it.
    """

    def __init__(self) -> None:
        self._known: tuple[Design | None, Array, Columns, Array, Array] = _nothing
        self._zero: tuple[object, object, object, float] = None, None, None, 0.0

    def loss_at_zero(self, loss: Loss, y: Array, weight: Array) -> float:
        """Return f(0) of these very parts."""
        known = self._zero
        if known[0] is not loss or known[1] is not y or known[2] is not weight:
            value = pieces.value(loss.bare, y, np.zeros(y.size), weight)
            self._zero = known = loss, y, weight, value
        return known[3]

    def of(self, problem: Problem, columns: Columns) -> Lengths:
        """Return the lengths of these columns; those that are new are gathered."""
        design, weight = problem.design, problem.weight
        # One assignment at the end: threads that measure at a time lose nothing but work.
        same = self._known[0] is design and self._known[1] is weight
        _, _, known, lengths, scored = self._known if same else _nothing
        new = np.setdiff1d(columns, known)
        if new.size:
            # Some at a time: a solver over all columns must not hold them twice.
            at_once = max(1, LIMITS.piece_entries // design.shape[0])
            parts = np.split(new, range(at_once, new.size, at_once))
            squares = [design.gather(part).squared_norms(problem.counted) for part in parts]
            more = np.sqrt(np.concatenate(squares))
            over = more + math.sqrt(design.shape[0]) * design.taken_off(new)
            order = np.argsort(known := np.append(known, new), kind="stable")
            known, lengths = known[order], np.append(lengths, more)[order]
            scored = np.append(scored, over)[order]
            self._known = design, weight, known, lengths, scored
        at = np.searchsorted(known, columns)
        return Lengths(scored[at], lengths[at], np.zeros(columns.size))


_nothing = None, np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)


def growth(count: int) -> float:
    """Return the relative error of a sum of so many terms: a few times eps * sqrt(count)."""
    return EPS * (4.0 + math.sqrt(count))


def rounding(
    problem: Problem,
    columns: Columns | None,
    weights: Array,
    prediction: Array,
    dual: Array,
    certificate: Certificate,
    lengths: Lengths | None,
) -> float:
    """Return a bound on the rounding in a gap computed at this point and dual point. O(n_samples).

    It has three parts: the sums in f(z) + f*(-v), the prediction z = X w + b itself, and the scores
    X'v. The last two need the ``lengths`` of the columns in use.
    """
    n_samples, slope = prediction.size, _length(dual)
    total = of_loss(problem, prediction, dual, certificate.objective)
    if lengths is None or not weights.any():
        return total
    # The prediction is off by no more than this; f then is by its slope, and by its curvature.
    off = growth(weights.size) * float(np.abs(weights) @ lengths.summed)
    shift = growth(weights.size) * float(np.abs(weights) @ np.abs(lengths.offsets))
    total += (
        slope * off + of_shift(problem, shift, prediction) + _curved(problem, off * off, prediction)
    )
    # Each score is off by its column's length; twice, as v sums to 0 up to rounding only.
    scores = ArrayScores(2.0 * growth(n_samples) * slope * lengths.scored)
    reach, ranges = _reach(problem, columns, scores)
    off_polar = _of_polar(problem, certificate) * reach
    if off_polar > certificate.gap and not problem.tau and ranges is None:
        # The bound on the gauge is far from what it is. A dual point that is scaled until these
        # errors do no harm needs no such bound.
        high = certificate.polar + reach
        scaled = problem.certificate(weights, prediction, dual, certificate.gauge, (high, high))
        off_polar = min(off_polar, max(scaled.gap - certificate.gap, 0.0))
    return total + off_polar + (ranges or 0.0)


def of_loss(problem: Problem, prediction: Array, dual: Array, size: float) -> float:
    """Return what rounding may hide in f(z) + f*(-v) - <-v, z>, whose terms are of this size."""
    s, at = problem.weight, where_weighted(prediction, problem.weight)
    # What has no weight is no term of any sum, however large it is.
    slope, length = _length(dual), _length(at)
    total = growth(at.size) * (size + slope * length)
    total += problem.loss.slack(problem.y, prediction, dual, s)
    # Predictions are off by a digit themselves: all that there is where the slope is 0.
    return total + _curved(problem, (EPS * length) ** 2, prediction)


def of_shift(problem: Problem, shift: float, prediction: Array | None = None) -> float:
    """Return by how much f grows where an optimal intercept is off by ``shift``.

    Its slope is zero there, so only the curvature counts: that at ``prediction`` where the loss
    has no bound on it.
    """
    return _curved(problem, shift * shift * problem.y.size, prediction)


def of_errors(problem: Problem, off: Array, prediction: Array) -> float:
    """Return by how much f grows where predictions are off by these amounts, whatever their signs.

    Errors of independent roundings: with its slopes, they add up as their squares do.
    """
    slope = problem.loss_gradient(prediction) * off
    return _length(slope) + _curved(problem, float(off @ off), prediction)


def _curved(problem: Problem, square: float, prediction: Array | None) -> float:
    """Return the second-order term of f for predictions that are off by this sum of squares."""
    loss, weight = problem.loss, problem.weight
    if not square:
        return 0.0
    if math.isfinite(loss.smoothness):
        return 0.5 * loss.smoothness * float(weight.max()) * square
    if prediction is None:
        return 0.0
    # Over a move of a few roundings the curvature does not double.
    return float(loss.curvature(problem.y, prediction, weight).max()) * square


def _reach(
    problem: Problem, columns: Columns | None, scores: ArrayScores
) -> tuple[float, float | None]:
    """Return the polar of errors of scores, and what coefficients with bounds make of them."""
    norm = problem.regularizer.norm
    if columns is not None:
        restricted = norm.restrict(columns, problem.design.shape[1])
        if restricted is None:
            return float(scores.full().max()), None
        norm = restricted
    either = [norm.excess(ArrayScores(sign * scores.full())) for sign in (1.0, -1.0)]
    bounded = [side for side in either if side is not None]
    if not bounded:
        return norm.polar(scores), None
    return max(side.polar for side in bounded), sum(side.at(0.0) for side in bounded)


def _of_polar(problem: Problem, at: Certificate) -> float:
    """Return how much R* grows with the polar: the gauge that the optimum can have."""
    regularizer = problem.regularizer
    if regularizer.form == "constrained":
        return regularizer.amount
    return (at.objective if regularizer.form == "penalized" else at.polar) / regularizer.amount


def _length(v: Array) -> float:
    return math.sqrt(float(v @ v))
