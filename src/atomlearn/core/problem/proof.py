"""Certificates: the duality gap at a point plus a bound on the rounding error in computing it.

The problem is min over w, b of f(X w + b) + tau/2 ||w||^2 + R(w), where R is a function of the
gauge (norm) of w. The dual vector at a point w, b is v = -f'(X w + b). The scores of the columns
are z = X'v - tau w, and the polar gauge°(z) is their dual norm. Pricing is the computation of the
scores of all columns, and of the certificate: objective and duality gap.

A gap is computed from sums of floats, which have rounding errors. A bound on these errors is added
to the gap; without it, the gap would not be a proof when large terms nearly cancel. Each bound is
``growth(n)``, the relative rounding error of a sum of n terms, times magnitudes that are cheap to
compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn._support import growth
from atomlearn.core.interfaces import EPS, Array, Columns, Norm, Scores
from atomlearn.core.interfaces.certificate import Certificate, Excess
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.losses import pieces
from atomlearn.core.losses.domain import where_weighted
from atomlearn.core.losses.free_columns import free_columns
from atomlearn.core.problem.problem import (
    Problem,
    gauge_of,
    loss_gradient,
    loss_value,
    negative_gradient,
    ridge_slope,
    with_ridge,
)
from atomlearn.core.problem.rounding import Lengths

#: Share of the objective by which a gap may be negative without an error. Gauges that are computed
#: by iteration are inexact, and points may violate bounds slightly.
UNPROVED = 1e-5


@dataclass(slots=True)
class Pricing:
    """The pricing of a point w, b: its scores z and its certificate, from one pass over the data.

    Attributes
    ----------
    norm : Norm
        Norm of the problem.
    n_features : int
        Number of columns of X.
    columns : array of int, or None
        Columns of the point; None for all of them.
    weights : array
        Coefficients of these columns.
    prediction : array (n_samples,)
        X w + b.
    scores : Scores
        z = X'v - tau w for the negative gradient v = -f'(X w + b); tau is the ridge weight.
    inner : float
        The inner product <z, w>.
    multiplier : float
        The lambda for which z is in lambda * subdifferential of the gauge at w, if w is optimal.
    certificate : Certificate
        Objective and duality gap at w, b.
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
        """Return the inactive columns among ``columns`` that violate the optimality conditions.

        A column j violates them if abs(z_j) exceeds, up to rounding, ``multiplier`` times the
        threshold that the norm has for the column.
        """
        if self.columns is not None:
            columns = columns[~np.isin(columns, self.columns)]
        if not columns.size:
            return columns
        # If all thresholds are 0, the norm does not know them, and every column may join. The same
        # holds if the multiplier is 0.
        threshold = self.norm.thresholds(self.weights, columns, self.n_features)
        if np.max(threshold) <= 0:
            return columns
        threshold = threshold * self.multiplier
        if np.max(threshold) <= 0:
            return columns
        return columns[np.abs(self.scores.at(columns)) > threshold * (1 - 1e-12)]


def prove(
    problem: Problem,
    columns: Columns | None,
    weights: Array,
    prediction: Array,
    *,
    gauge: float | None = None,
    tolerance: float = 0.0,
    lengths: Lengths | None = None,
    scores: Scores | None = None,
) -> Pricing:
    """Return the Pricing of a point: scores and certificate, from one pass over the data.

    Parameters
    ----------
    problem : Problem
    columns : array of int, or None
        Columns of the point; None for all columns, in order.
    weights : array
        Their coefficients.
    prediction : array (n_samples,)
        X w + b with the optimal intercept b.
    gauge : float, optional
        gauge(w), or an upper bound on it; see ``prove_from``.
    tolerance : float
        Relative gap that is sufficient; see ``prove_from``.
    lengths : Lengths, optional
        Euclidean norms of the columns, for the bound on rounding errors in the gap. Default: they
        are measured once for the problem.
    scores : Scores, optional
        X'v for v = ``negative_gradient(problem, prediction)``, if they are already known.
    """
    dual = negative_gradient(problem, prediction)
    scores = problem.design.scores(dual) if scores is None else scores
    price = prove_from(problem, columns, weights, prediction, dual, scores, gauge, tolerance)
    # Only columns with a weight contribute rounding errors to the predictions.
    if lengths is None:
        support = np.flatnonzero(weights)
        columns = support if columns is None else columns[support]
        weights = weights[support]
        lengths = problem.measured.of(problem.design, problem.weight, columns)
    point = (weights, prediction, dual)
    price.certificate = with_rounding(problem, price.certificate, *point, columns, lengths)
    return price


def prove_from(
    problem: Problem,
    columns: Columns | None,
    weights: Array,
    prediction: Array,
    dual: Array,
    scores: Scores,
    gauge: float | None = None,
    tolerance: float = 0.0,
) -> Pricing:
    """Return the Pricing without a bound on rounding, from v = ``dual`` and X'v = ``scores``.

    The point has the coefficients ``weights`` on ``columns`` (None: all), and the predictions
    ``prediction`` = X w + b. ``gauge`` is gauge(w), or an upper bound such as the sum of atom
    weights. For some norms the best atom is found by a heuristic search, and the polar is known
    only by two bounds. If only the upper bound keeps the relative gap above ``tolerance``, it is
    computed again with more work.
    """
    if gauge is None:
        gauge = gauge_of(problem, columns, weights)
    # z = X'v - tau w, and the polar gauge°(z), or both bounds on it if a search finds the atoms.
    # ``excess`` is the term that constraints on coefficients add to the conjugate of R.
    norm = problem.regularizer.norm
    ridge_scores = with_ridge(problem, scores, columns, weights)
    excess = norm.excess(ridge_scores)
    bounds = norm.polar_bounds(ridge_scores) if excess is None else (excess.polar, excess.polar)
    certificate = certify(problem, weights, prediction, dual, gauge, bounds, excess)
    if certificate.leaves_open(tolerance):
        bounds = norm.polar_bounds(ridge_scores, thorough=True)
        certificate = certify(problem, weights, prediction, dual, gauge, bounds)
    # <z, w> = <v, X w> - tau ||w||^2, and <v, X w> = <v, X w + b> as v sums to zero if b is fitted.
    # The multiplier lambda, with z in lambda * subdifferential of the gauge at w, is made of it.
    inner = float(dual.dot(prediction))
    if problem.tau:
        inner -= float(weights @ ridge_slope(problem, weights))
    point = norm, problem.design.shape[1], columns, weights, prediction, ridge_scores, inner
    return Pricing(*point, problem.regularizer.multiplier(gauge, inner), certificate)


def certify(
    problem: Problem,
    weights: Array,
    prediction: Array,
    dual: Array,
    gauge: float,
    polar: tuple[float, float],
    excess: Excess | None = None,
) -> Certificate:
    """Return the certificate (objective and Fenchel duality gap) of a point w, b.

    With z = X'v - tau w, Fenchel's inequality for f and R at the dual point -v gives

        gap = f(X w + b) + f*(-v) + tau ||w||^2 + R(w) + R*(z)

    for every v with -v in the domain of f*, and with sum(v) = 0 if there is an intercept b. At
    v = -f'(X w + b) it equals <g, w> + R(w) + R*(-g) with g = -z, the gap of [V] section 2 and [L]
    section 3.

    Parameters
    ----------
    problem : Problem
        Loss f, penalty R and ridge weight tau.
    weights : array
        Coefficients w.
    prediction : array (n_samples,)
        X w + b.
    dual : array (n_samples,)
        v.
    gauge : float
        gauge(w), or an upper bound such as the sum of atom weights; then objective and gap are
        upper bounds too.
    polar : (float, float)
        A lower and an upper bound on the polar gauge°(z).
    excess : Excess, optional
        The term that constraints on coefficients add to R*; None without constraints. With
        constraints, ``polar`` is over the signs of coefficients that have no bound.
    """
    level = problem.regularizer.amount
    penalized = problem.regularizer.form == "penalized"
    squares = float(weights @ ridge_slope(problem, weights)) if problem.tau else 0.0
    smooth = loss_value(problem, prediction)
    objective = smooth + 0.5 * squares + problem.regularizer.value(gauge)
    lowest, highest = polar
    gaps = []
    # If the best atom is found by a heuristic search, the lower bound on the polar gives a second
    # gap: the one that would hold if no better atom exists.
    for bound in (highest, lowest) if lowest < highest else (highest,):
        factor = 1.0
        scaled_excess = excess
        if penalized and bound > level and not problem.tau:
            # Multiply v by ``factor``, so that gauge°(z) = level. This does not weaken the bound:
            # f* rises by at most (1 - factor) F, and R*, the supremum over gauge(w) <= F / level,
            # falls by at least as much.
            factor = level / bound
            bound = level
            scaled_excess = None if excess is None else excess.scaled(factor)
        gap = objective + 0.5 * squares + _conjugate(problem, smooth, prediction, dual, factor)
        # F >= level * gauge at the optimum, because losses are bounded below by zero.
        gap += problem.regularizer.conjugate(bound, objective / level, scaled_excess)
        # F itself bounds F - F*, as losses and norms are bounded below by zero. It also replaces a
        # gap that is NaN.
        gaps.append(min(gap, objective) if gap == gap else objective)
    gap = gaps[0]
    search_gap = max(gaps[1], 0.0) if lowest < highest else None
    terms = (weights, gauge, polar, excess)
    shortfall = max(-gap, 0.0)
    return Certificate(
        objective, max(gap, 0.0), highest, search_gap, shortfall=shortfall, terms=terms
    )


def certificate_of(
    problem: Problem,
    weights: Array,
    prediction: Array,
    dual: Array,
    gauge: float,
    polar: tuple[float, float],
) -> Certificate:
    """Return the certificate of a point with a bound on its rounding errors; see ``certify``.

    The ridge term and the bound are those of ``weights`` on all columns.
    """
    exact = certify(problem, weights, prediction, dual, gauge, polar)
    return with_rounding(problem, exact, weights, prediction, dual)


def dual_part(problem: Problem, prediction: Array, dual: Array) -> tuple[float, float]:
    """Return the conjugate f*(-v) at v = ``dual``, and a bound on its rounding error.

    ``prediction`` (n_samples,) is a point at which -v is the gradient of the loss f of ``problem``.
    """
    smooth = loss_value(problem, prediction)
    conjugate = _conjugate(problem, smooth, prediction, dual, 1.0)
    return conjugate, lost_in_loss(problem, prediction, dual, abs(smooth) + abs(conjugate))


def _conjugate(problem: Problem, value: float, prediction: Array, v: Array, factor: float) -> float:
    """Return f*(u) for u = -factor * v; raise ValueError if it violates Fenchel's inequality.

    ``problem`` gives the loss f, and ``value`` is f(z) at z = ``prediction``; the inequality is
    f(z) + f*(u) >= <u, z>. A loss of the user's own may have a wrong conjugate.
    """
    loss = problem.loss
    y = problem.y
    weight = problem.weight
    # A loss that couples all samples (Cox) may know only a bound along the gradient.
    if loss.coupled == 0:
        conjugate = loss.conjugate_along(y, prediction, -v, weight, factor)
    else:
        conjugate = pieces.conjugate(loss, y, v, weight, -factor)
    inner = -factor * float(v.dot(prediction))
    deficit = inner - value - conjugate
    rounding = growth(v.size) * (abs(value) + abs(inner))
    # ``rounding`` is cheap to compute. The larger bound of ``lost_in_loss`` is computed only if the
    # deficit exceeds ``rounding``.
    size = abs(value) + abs(conjugate)
    if deficit > rounding and deficit > 4.0 * lost_in_loss(problem, prediction, v, size):
        raise ValueError(
            f"the loss {loss.name!r} proves nothing: its value f(z) = {value:.6g} and "
            f"conjugate f*(u) = {conjugate:.6g} add up to less than <u, z> = {inner:.6g}, for "
            f"u = {factor:.6g} times the gradient; check conjugate(y, u, weight), which "
            "must be the supremum of <u, z> - value(y, z, weight) over z"
        )
    return conjugate


def with_rounding(
    problem: Problem,
    certificate: Certificate,
    weights: Array,
    prediction: Array,
    dual: Array,
    columns: Columns | None = None,
    lengths: Lengths | None = None,
) -> Certificate:
    """Return the certificate with ``rounding_bound`` added to its gap.

    The arguments are those of ``rounding_bound``: the ``weights`` of ``columns`` at a point of
    ``problem``, its ``prediction``, the ``dual`` vector, and the ``lengths`` of the columns. Raises
    ValueError if the gap was negative by more than rounding errors can explain: then the norm's
    methods ``value`` and ``polar`` are not dual to each other.
    """
    slack = rounding_bound(problem, certificate, weights, prediction, dual, columns, lengths)
    # Gauges that are computed by iteration may be off by the share UNPROVED.
    if certificate.shortfall > slack + UNPROVED * abs(certificate.objective):
        raise ValueError(
            f"the norm {problem.regularizer.norm!r} proves nothing: its value(w) and polar(z) "
            f"make the duality gap {-certificate.shortfall:.3g}, below zero by more than "
            f"rounding, which is {slack:.3g}; check that <z, w> <= value(w) * polar(z) for "
            "all w and z"
        )
    # A negative gap is due to rounding, even if the bound on rounding is smaller.
    return certificate.widened(max(slack, certificate.shortfall))


def rounding_bound(
    problem: Problem,
    certificate: Certificate,
    weights: Array,
    prediction: Array,
    dual: Array,
    columns: Columns | None,
    lengths: Lengths | None,
) -> float:
    """Return a bound on the rounding error of a duality gap, in O(n_samples) time.

    The bound is a sum of three: the effects of errors in the sums f(z) + f*(-v), in the predictions
    z = X w + b, and in the scores X'v. They are for the point of ``certificate`` in ``problem``.

    Parameters
    ----------
    problem : Problem
    certificate : Certificate
        Objective, gap and polar as they were computed.
    weights : array
        Coefficients w of ``columns``.
    prediction : array (n_samples,)
        z.
    dual : array (n_samples,)
        v.
    columns : array of int, or None
        None: all columns.
    lengths : Lengths, or None
        Euclidean norms of these columns. Without them only the first error is included.
    """
    total = lost_in_loss(problem, prediction, dual, certificate.objective)
    if lengths is None or not weights.any():
        return total
    # If the rows are on other machines, these machines measure the columns and the slope ||v||.
    slope = math.sqrt(dual.dot(dual))
    count = dual.size
    if columns is not None:
        design = problem.design
        remote = design.row_access.over_rows(design, columns, prediction)
        if remote is not None:
            column_norms, slope, count = remote
            lengths = Lengths(column_norms, column_norms, np.zeros(column_norms.size))
    form = problem.regularizer.form
    amount = problem.regularizer.amount
    # A sum of m terms has the relative error growth(m). ``error`` bounds the length of the error of
    # X w, and ``shift`` the error of the constant that centers columns. They change f by its slope
    # and its curvature.
    sizes = np.abs(weights)
    relative_error = growth(weights.size)
    error = relative_error * float(sizes.dot(lengths.summed))
    shift = relative_error * float(sizes.dot(np.abs(lengths.offsets)))
    square = error * error + shift * shift * problem.y.size
    total += slope * error + curved(problem, square, prediction)
    # The error of the score x_j'v is at most growth(n) ||x_j|| ||v||. It is doubled, as the scores
    # of centered columns assume sum(v) = 0, which holds only up to rounding.
    scores = ArrayScores(2.0 * growth(count) * slope * lengths.scored)
    # ``box_error`` is the error due to bounds on the coefficients; None if there are no bounds.
    polar_error, box_error = polar_of_errors(problem, columns, scores)
    # The derivative of R* with respect to the polar bounds the gauge of the optimum: the radius, or
    # polar / level for the squared form, or F / level for the penalized form.
    size = certificate.polar if form == "squared" else certificate.objective
    conjugate_error = polar_error * (amount if form == "constrained" else size / amount)
    can_scale = form == "penalized" and not problem.tau and box_error is None
    if can_scale and conjugate_error > certificate.gap:
        # F / level may be a loose bound on the gauge. The gap for a polar that is larger by its
        # error may rise by less: there, the dual point is scaled so that R* = 0.
        upper_polar = certificate.polar + polar_error
        scaled = certify(
            problem, weights, prediction, dual, certificate.gauge, (upper_polar, upper_polar)
        )
        conjugate_error = min(conjugate_error, max(scaled.gap - certificate.gap, 0.0))
    return total + conjugate_error + (box_error or 0.0)


def lost_in_loss(
    problem: Problem, prediction: Array, dual: Array, size: float, square: float = 0.0
) -> float:
    """Return a bound on the rounding error of f(z) + f*(-v) - <-v, z>.

    f is the loss of ``problem``, z = ``prediction`` and v = ``dual``, (n_samples,) each. ``size``
    is |f(z)| + |f*(-v)|. ``square`` is the sum of squares of errors of z, beyond the rounding of z
    itself.
    """
    # Samples of weight 0 do not count.
    predictions = where_weighted(prediction, problem.weight)
    length = float(predictions.dot(predictions))
    total = growth(predictions.size) * (size + math.sqrt(dual.dot(dual)) * math.sqrt(length))
    total += problem.loss.slack(problem.y, prediction, dual, problem.weight)
    # The predictions have rounding errors, which count even if the slope is 0.
    return total + curved(problem, EPS**2 * length + square, prediction)


def curved(problem: Problem, square: float, prediction: Array | None = None) -> float:
    """Return the second-order term of f for errors e of the predictions, ||e||^2 = ``square``.

    The term is half the largest curvature (second derivative) of the loss of ``problem``, times
    ``square``. If the curvature is unbounded, it is evaluated at ``prediction`` (n_samples,).
    Without a ``prediction``, the term is then 0.
    """
    if math.isfinite(problem.loss.curvature_bounds[1]):
        return 0.5 * problem.loss.curvature_bounds[1] * float(problem.weight.max()) * square
    if prediction is None or not square:
        return 0.0
    # A change of a few roundings at most doubles the curvature.
    return float(problem.loss.curvature(problem.y, prediction, problem.weight).max()) * square


def polar_of_errors(
    problem: Problem, columns: Columns | None, scores: ArrayScores
) -> tuple[float, float | None]:
    """Return the polar (dual norm) of score errors, and their effect through bounds on w.

    ``scores`` are bounds on the errors of the scores of ``columns`` (None: all columns) in
    ``problem``. The second value is the sum of error times width over the coefficients with a bound
    at distance width from 0. It is None if the norm has no such bounds.
    """
    norm = problem.regularizer.norm
    if columns is not None:
        restricted = norm.restrict(columns, problem.design.shape[1])
        if restricted is None:
            # The polar of the errors at ``columns``, with no error at the other columns.
            errors = np.zeros(problem.design.shape[1])
            errors[columns] = scores.full()
            return norm.polar_of_sizes(ArrayScores(errors)), None
        norm = restricted
    # Bounds treat the two signs of a coefficient differently, and errors may have either sign.
    upper = norm.excess(scores)
    lower = norm.excess(ArrayScores(-scores.full()))
    if upper is None or lower is None:
        return norm.polar_of_sizes(scores), None
    if upper.moves_scores:
        # Linear constraints have multipliers, which reduce the scores. At the same multipliers,
        # errors of the scores change only the polar of the reduced scores.
        return norm.polar_of_sizes(scores), 0.0
    return max(upper.polar, lower.polar), upper.at(0.0) + lower.at(0.0)


def as_reported(
    problem: Problem, certificate: Certificate, intercept: float, prediction: Array
) -> Certificate:
    """Return the certificate for the intercept and free coefficients that a Result reports.

    ``intercept`` and ``prediction`` (n_samples,) are those of the point in ``problem``, whose
    targets are centered. A Result adds ``problem.origin`` back to the intercept. This rounds the
    intercept, which may raise the objective. Gap and objective are increased by a bound on it.
    """
    if free_columns(problem.loss) is not None:
        return certificate.widened(0.0, raised_by_floats(problem, prediction))
    return certificate.widened(0.0, raised_by_origin(problem, intercept))


def raised_by_origin(problem: Problem, intercept: Any) -> Any:
    """Return a bound on the increase of f by rounding the sum of ``intercept`` and the origin.

    It has the shape of ``intercept``, an array or a number. See ``as_reported``.
    """
    # ``shift`` is the change of the intercept by rounding. The slope of f is zero at the optimal
    # intercept, so only the curvature counts. A loss with kinks has slopes of at most its weights.
    shift = ((intercept + problem.origin) - problem.origin) - intercept
    if problem.loss.smoothed(1.0) is not None:
        return abs(shift) * float(problem.weight.sum())
    return curved(problem, shift * shift * problem.y.size)


def raised_by_floats(problem: Problem, prediction: Array) -> float:
    """Return a bound on the increase of f by rounding the free coefficients g and intercept b.

    g and b are optimal at the point of ``problem`` with predictions ``prediction``. The bound
    includes the rounding error of the sum Z g + b, for Z the unpenalized columns. Otherwise a fit
    that is perfect only in floating point could be reported as perfect.
    """
    free: Any = free_columns(problem.loss)
    y = problem.y
    weight = problem.weight
    coefficients, intercept = free.free_part(y, prediction, weight)
    # A Result adds the origin, which rounds the intercept.
    intercept = (intercept + problem.origin) - problem.origin
    # The loss at the rounded coefficients, and a bound on the error of each prediction.
    value = free.inner.value(y, prediction + (free.columns @ coefficients + intercept), weight)
    error = growth(coefficients.size + 1) * (
        abs(free.columns) @ np.abs(coefficients) + abs(intercept)
    )
    # Independent rounding errors are multiplied by the slopes; their sum is bounded by the root of
    # the sum of squares.
    change = float(np.linalg.norm(loss_gradient(problem, prediction) * error))
    change += curved(problem, float(error @ error), prediction)
    return float(max(value - loss_value(problem, prediction), 0.0)) + change
