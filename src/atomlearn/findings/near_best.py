"""Near-best models: proved ranges of each coefficient over all models close to the optimum.

For a convex model, let phi(u) be the minimum of the objective F over all models whose coefficient j
is u. It is convex, so F(w) <= limit needs a w_j between the two roots of phi(u) = limit. The lower
bound of a fit with w_j = u, above the limit, proves that no coefficient reaches u. A convex
combination of that fit with the optimum is a model whose objective is at most the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn._support import EPS, TINY, Deadline, counted, growth, positive
from atomlearn.core import (
    L1,
    Array,
    ArrayScores,
    Columns,
    ColumnSubset,
    Problem,
    Settings,
    WarmStart,
    changed,
    dense_part,
    gauge_of,
    negative_gradient,
    objective_at,
    optimal_intercept,
    restrict,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names
from atomlearn.estimators.generation import ScaledModel
from atomlearn.estimators.subsets import SubsetModel
from atomlearn.subsets.near import NearSubset, Ranges

#: Limits for one end of a range: the number of fits, and the share of the range's length that may
#: remain undecided. A fit goes beyond the estimated end by the share BEYOND, so that its bound
#: exceeds the limit.
FITS = 8
OPEN = 0.02
BEYOND = 0.004
#: Relative gap of these fits, as a share of ``within``.
ACCURACY = 0.002


@dataclass(frozen=True, slots=True)
class NearBest:
    """The range of each coefficient over all models within a share of the smallest objective.

    Attributes
    ----------
    columns : (m,) int64
        Columns whose coefficients have a range here.
    names : list of str
        Their names.
    values : (m,) float64
        Their coefficients in the fitted model.
    ranges : Ranges
        The ranges of the coefficients. ``lower`` and ``upper`` are proved: no near-best model has a
        coefficient outside. The ends ``least`` and ``most`` are attained by near-best models.
    tight : (m,) bool
        Whether the range was computed by fits. If not, it is a bound from one dual point, which may
        be much wider than the set.
    within, objective, limit : float
        The share, the smallest objective, and (1 + within) times that.
    subsets : list of NearSubset or None
        Of a best-subset model: the subsets of all near-best models, the best one first.
    complete : bool
        Whether the ranges hold for all near-best models. False only for a best-subset model whose
        ``subsets`` are not proved to be all; the ranges then hold for models of ``subsets``.
    """

    columns: Columns
    names: list[str]
    values: Array
    ranges: Ranges
    tight: Any
    within: float
    objective: float
    limit: float
    subsets: list[NearSubset] | None = None
    complete: bool = True

    @property
    def always(self) -> Columns:
        """Columns with a nonzero coefficient of one sign in every near-best model."""
        return self.columns[(self.ranges.lower > 0.0) | (self.ranges.upper < 0.0)]

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per column: name, coefficient, both ranges.

        "lower" and "upper" are proved, "attained_low" and "attained_high" attained. "always" is
        true if the coefficient has the same sign in every near-best model.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "name": self.names,
                "coefficient": self.values,
                "lower": self.ranges.lower,
                "upper": self.ranges.upper,
                "attained_low": self.ranges.least,
                "attained_high": self.ranges.most,
                "always": np.isin(self.columns, self.always),
            }
        )

    def __str__(self) -> str:
        """Return a heading and one line per column whose range was computed by fits."""
        scope = "every model" if self.complete else "every model of the listed subsets"
        lines = [
            f"{name}: from {low:.4g} to {high:.4g}"
            for name, low, high, tight in zip(
                self.names, self.ranges.lower, self.ranges.upper, self.tight, strict=True
            )
            if tight
        ]
        return "\n".join(
            [
                f"coefficients in {scope} whose objective is within {100.0 * self.within:.3g}% of "
                "the best one on these rows (this says nothing about other rows):",
                *lines,
            ]
        )


def near_best(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    within: float = 0.01,
    columns: Sequence[int] | Array | None = None,
    time_limit: float | None = None,
) -> NearBest:
    """Return the range of each coefficient over all models whose objective is near the best.

    The model is fitted already, and X, y are the data of the fit. The ranges are proved by dual
    bounds, rounding included: every coefficient vector whose objective is at most (1 + within)
    times the minimum is inside. They describe these rows and this objective. They are no confidence
    intervals, and say nothing about the truth.

    Parameters
    ----------
    model : fitted estimator
        A regression, a classifier of two classes or a survival model of convex type
        (``AtomicRegressor``, ``AtomicRegressorCV``, ...), or a ``SubsetRegressor`` or
        ``SubsetClassifier``.
    X, y : array-like
        The data of the fit.
    sample_weight : array (n_samples,), optional
        The sample weights of the fit.
    within : float, default=0.01
        Share of the smallest objective by which a near-best model may be worse. For a best-subset
        model it must be the ``within`` of the model.
    columns : sequence of int, optional
        Columns whose ranges are computed by several fits each. None: the selected ones.
        For an l1 or elastic net penalty all other columns get a wider range, from one dual point.
    time_limit : float, optional
        Seconds for these fits. The columns that are not reached keep the wider range.

    Returns
    -------
    NearBest

    Notes
    -----
    Let phi(u) be the minimum of the objective over all models with w_j = u. For an l1 penalty it is
    computed as a minimum over the other coefficients plus the penalty of u. For other norms that
    grow with each |w_j|, a lower bound on phi leaves out the part of the penalty that belongs to
    column j. Then a range may be wider than needed. The attained range shows by how much.

    References
    ----------
    L. Semenova, C. Rudin, R. Parr. On the existence of simpler machine learning models. FAccT 2022
    (the Rashomon set). R. T. Rockafellar. Convex Analysis. Princeton University Press, 1970.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import near_best
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = AtomicRegressor(alpha=10.0, standardize=True).fit(X, y)
    >>> found = near_best(model, X, y)
    >>> [found.names[j] for j in found.always]
    ['bmi', 's5']
    """
    within = positive("within", within, "share of the objective, for example 0.01")
    if isinstance(model, SubsetModel):
        return _of_subsets(model, within)
    convex = isinstance(model, AtomicModel) and not isinstance(model, ScaledModel)
    if not convex or len(model.results_) != 1:
        raise TypeError(
            "near_best needs a fitted convex model of ours with one output, such as "
            f"AtomicRegressor().fit(X, y); got {type(model).__name__}"
        )
    if model.features != "linear" or np.any(model.relax):
        raise ValueError(
            "near_best is of models of plain columns: use features='linear' and relax=0"
        )
    refitted: Any = model.without_search()
    data = refitted._checked(X, y, sample_weight)
    (problem,) = refitted._problems(data, *refitted._regularized_by())
    if not problem.design.listable:
        raise ValueError("near_best needs columns that can be listed; X has too many of them")
    deadline = Deadline.limited(time_limit)
    profile = _Profile(problem, within, model.results_[0].warm_start())
    # Other data than those of the fit show in the objective.
    former = float(model.results_[0].objective)
    if abs(profile.objective - former) > 0.01 * within * former + model.results_[0].gap:
        raise ValueError(
            f"the objective of the model is {former:.6g}, and the smallest one on these rows is "
            f"{profile.objective:.6g}; pass the X, y and sample_weight of the fit"
        )
    listed, chosen = _columns_to_fit(profile, columns)
    lower = -profile.by_one_dual_point(listed, -1.0)  # wider ranges, without fits
    upper = profile.by_one_dual_point(listed, 1.0)
    values = profile.coef[listed]
    ranges = Ranges(lower, upper, values.copy(), values.copy())
    tight = np.zeros(listed.size, dtype=bool)
    # ``upper_end`` of -w_j gives the lower end of w_j, ``upper_end`` of w_j the upper end.
    for position in np.flatnonzero(np.isin(listed, chosen)):
        if deadline.passed:
            break
        minus_lower, minus_least = profile.upper_end(
            int(listed[position]), -1.0, -float(lower[position])
        )
        proved_upper, most = profile.upper_end(int(listed[position]), 1.0, float(upper[position]))
        lower[position] = -minus_lower
        upper[position] = proved_upper
        tight[position] = True
        ranges.least[position] = -minus_least
        ranges.most[position] = most
    scales = np.ones(listed.size) if data.units is None else data.units.of(listed)[1]
    names = model.feature_map_.names(listed, input_names(model))
    objectives = within, profile.objective, profile.limit
    return NearBest(listed, names, values / scales, ranges.divided(scales), tight, *objectives)


class _Profile:
    """The minimum of the objective as a function of single coefficients, by fits with a proof.

    Parameters
    ----------
    problem : Problem
        The convex problem.
    within : float
        Share of the optimum by which near-best models may be worse.
    start : WarmStart
        A solution, at least approximately.
    """

    def __init__(self, problem: Problem, within: float, start: WarmStart) -> None:
        """Solve the problem, check that its norm is supported, and compute slopes and curvatures.

        problem, within, start : see the class.
        """
        # The penalty of the other columns must not grow when column j leaves, and no column may be
        # repeated for several groups; otherwise the bounds below do not hold.
        norm = problem.regularizer.norm
        l1 = isinstance(norm, L1)
        #: Whether the penalty is a sum over columns.
        self.separable = l1 and problem.regularizer.form == "penalized"
        if not (l1 or norm.absolute) or norm.lift(problem.design.shape[1]) is not None:
            raise TypeError(
                f"near_best needs a norm that grows with each |w_j|, such as 'l1', 'ksupport' or "
                f"disjoint groups; got {norm!r}"
            )
        self.problem = problem
        self._settings = Settings(tol=ACCURACY * min(within, 1.0))
        result = self._settings.run(problem, start)
        self.objective = result.objective
        self.limit = (1.0 + within) * result.objective
        self._start = result.warm_start()
        self.coef = np.zeros(problem.design.shape[1])
        self.coef[result.columns] = result.weights
        #: How far the objective of a near-best model may exceed the proved lower bound.
        self._allowance = self.limit - result.objective + result.gap * (1.0 + within)
        # The linear predictors of the optimum, (n,), for which slopes and curvatures are computed.
        linear = dense_part(problem.design, result.columns) @ result.weights
        self._prediction = linear + optimal_intercept(problem, linear)
        self._set_slopes()

    def _set_slopes(self) -> None:
        """Set slopes and curvatures of the objective along each column, at the optimum.

        ``_scores`` (p,) are the negative slopes of loss and ridge term, and ``_rounding`` (p,)
        bounds on their rounding errors. ``_curvatures`` (p,) are those of phi, see the module. For
        nonzero columns they are 1 / (H^-1)_jj, with H the Hessian in these columns. For other
        columns they are an upper bound, the curvature when only w_j varies.
        """
        problem = self.problem
        # Scores x_j'v of the negative gradient v, with a bound on the rounding of each sum.
        dual = negative_gradient(problem, self._prediction)
        scores = problem.design.scores(dual).full()
        self._squares = problem.design.squared_norms(counted(problem.weight))
        column_norms = np.sqrt(self._squares) + math.sqrt(
            dual.size
        ) * problem.design.subtracted_offsets(np.arange(scores.size))
        self._rounding = 2.0 * growth(dual.size) * float(np.linalg.norm(dual)) * column_norms
        self._scores = scores - problem.tau * self.coef
        nonzero = np.flatnonzero(self.coef)
        active = dense_part(problem.design, nonzero)
        # The Hessian of the loss in the predictions is diag(c) - K K', with c the curvatures of the
        # rows. K couples the rows that share a risk set or a class probability; otherwise it has no
        # columns.
        row_curvatures, coupling_factor = problem.loss.coupling(
            problem.y, self._prediction, problem.weight
        )
        # The optimal intercept follows each change of the coefficients: columns are centered.
        if problem.fit_intercept and row_curvatures.any():
            active = active - (row_curvatures @ active) / row_curvatures.sum()
        coupled = coupling_factor.T @ active
        hessian = active.T @ (row_curvatures[:, None] * active) - coupled.T @ coupled
        hessian[np.diag_indices(nonzero.size)] += problem.tau + EPS * (1.0 + np.trace(hessian))
        inverse = np.diag(np.linalg.pinv(hessian, hermitian=True)) if nonzero.size else np.zeros(0)
        self._curvatures = float(row_curvatures.max(initial=0.0)) * self._squares + problem.tau
        self._curvatures[nonzero] = 1.0 / np.maximum(inverse, TINY)

    def prices(self, sign: float) -> Array:
        """Return the l1 penalty (p,) of each column per unit of |w_j|, for w_j of this sign.

        sign : 1 or -1. ``ratings`` divides each score, here ``sign``, by the l1 weight of the
        column, so that the penalty is amount / |rating|. If w_j may not have this sign, the rating
        is 0 and the penalty infinite.
        """
        signs = ArrayScores(np.full(self.coef.size, sign))
        norm: Any = self.problem.regularizer.norm
        with np.errstate(divide="ignore"):
            return np.asarray(self.problem.regularizer.amount / np.abs(norm.ratings(signs).full()))

    def by_one_dual_point(self, columns: Columns, sign: float) -> Array:
        """Return an upper bound on sign * w_j of near-best models, for each of these columns.

        The bound follows from the dual point of the optimum, without any further fit. In e = sign *
        w_j, the objective is at least optimum - gap + slope e, plus tau / 2 (e - current)^2 with a
        ridge term of weight tau. The bound is the largest e at which this is within the limit.
        """
        problem = self.problem
        if not self.separable:
            return np.array([self._by_norm(int(j)) for j in columns])
        prices = self.prices(sign)[columns]
        scores = self._scores[columns]
        tau = problem.tau
        # Without a ridge term the dual point must be feasible: all scores are divided by the polar
        # (the dual norm of the scores) if it exceeds the weight of the penalty.
        if not tau:
            all_scores = ArrayScores(self._scores)
            excess = problem.regularizer.norm.excess(all_scores)
            norm = problem.regularizer.norm
            polar = norm.polar(all_scores) if excess is None else excess.polar
            scores = scores * min(1.0, problem.regularizer.amount / max(polar, TINY))
        slope = prices - sign * scores - self._rounding[columns]
        current = sign * self.coef[columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            # The penalty of w_j itself cannot exceed the limit.
            limits = self.limit / prices
            if tau:
                # Solve slope e + tau / 2 (e - current)^2 = allowance for e = sign * w_j >= 0.
                center = current - slope / tau
                square = center**2 - current**2 + 2.0 * self._allowance / tau
                reach = center + np.sqrt(np.maximum(square, 0.0))
                reach[square < 0.0] = 0.0
            else:
                reach = np.where(slope > 0.0, self._allowance / slope, math.inf)
        return np.maximum(np.fmin(limits, reach), 0.0) * (1.0 + 1e-9)

    def _by_norm(self, column: int) -> float:
        """Return the largest |w_j| for which the penalty of w_j by itself is at most the limit.

        column : the index j. The gauge (the norm of a coefficient of 1) enters linearly, squared or
        as a constraint, depending on the form of the penalty.
        """
        regularizer = self.problem.regularizer
        norm: Any = regularizer.norm.restrict(np.array([column]), self.coef.size)
        gauge = float(norm.value(np.ones(1)))
        if regularizer.form == "constrained":
            return regularizer.amount / gauge
        share = self.limit / regularizer.amount
        return (math.sqrt(2.0 * share) if regularizer.form == "squared" else share) / gauge

    def upper_end(self, column: int, sign: float, bound: float) -> tuple[float, float]:
        """Return a proved upper bound on sign * w_j of near-best models, and a value attained.

        column : the index j. sign : 1 for the upper end of the range, -1 for the lower end. bound :
        an upper bound that is known already. phi, see the module, is modeled as objective + slope e
        + curvature / 2 e^2 at the distance e from the optimum. Each fit is done where this model
        reaches the limit. It tightens both ends and corrects the curvature.
        """
        center = sign * float(self.coef[column])
        slack = self.limit - self.objective
        # At a nonzero coefficient phi has slope 0. At zero the penalty has a kink: the slope is the
        # price of w_j minus its score.
        slope = 0.0
        if self.separable and not center > 0.0:
            slope = max(float(self.prices(sign)[column]) - sign * float(self._scores[column]), 0.0)
            slope = slope if center == 0.0 and math.isfinite(slope) else 0.0
        curvature = max(float(self._curvatures[column]), TINY)
        proved = self._permitted(column, sign, max(bound, center))
        attained = center
        start = self._start
        for _ in range(FITS):
            # The positive root of slope e + curvature / 2 e^2 = slack, where the model reaches the
            # limit.
            reach = 2.0 * slack / (slope + math.sqrt(slope * slope + 2.0 * curvature * slack))
            move = min(reach * (1.0 + BEYOND), proved - center)
            if not move > 0.0:
                break
            lower_value, upper_value, start = self._fit(column, sign * (center + move), start)
            if lower_value > self.limit:
                # phi is convex and exceeds the limit here, so it exceeds the limit beyond, too.
                proved = min(proved, center + move)
            elif lower_value > self.objective:
                # Beyond this point, phi is above the line through the optimum and this point.
                remaining = move * (self.limit - lower_value) / (lower_value - self.objective)
                proved = min(proved, center + move + remaining)
            # The share of the way from the optimum to this fit that stays within the limit.
            share = 1.0 if upper_value <= self.limit else slack / (upper_value - self.objective)
            attained = max(attained, center + share * move)
            if proved - attained <= OPEN * (proved - center):
                break
            # The next model passes through this fit, unless the slope explains the whole rise.
            rise = lower_value - self.objective
            if rise - slope * move > 0.0:
                curvature = 2.0 * (rise - slope * move) / move**2
            else:
                curvature *= 0.25
        return proved, min(attained, proved)

    def _objective_part(self, column: int, value: float) -> float:
        """Return the part of the objective that depends only on w_j, at w_j = ``value``.

        column : the index j. The part is the ridge term, and the penalty if it is a sum over
        columns; it is infinite for a value that the norm forbids.
        """
        objective = 0.5 * self.problem.tau * value * value
        if self.separable:
            norm: Any = self.problem.regularizer.norm.restrict(np.array([column]), self.coef.size)
            objective += self.problem.regularizer.amount * float(norm.value(np.array([value])))
        return objective

    def _permitted(self, column: int, sign: float, bound: float) -> float:
        """Return ``bound`` if sign * w_j may be that large, else a number just above its maximum.

        column : the index j. Constraints such as a sign or a maximum size make larger values
        infinitely expensive; bisection finds where that begins, to a relative accuracy of 1e-9.
        """
        if math.isfinite(self._objective_part(column, sign * bound)):
            return bound
        low = max(sign * float(self.coef[column]), 0.0)
        while bound - low > 1e-9 * bound:
            middle = 0.5 * (low + bound)
            permitted = math.isfinite(self._objective_part(column, sign * middle))
            low, bound = (middle, bound) if permitted else (low, middle)
        # This is above ``bound``, which is forbidden, so that no permitted value is cut off.
        return low * (1.0 + 2e-9)

    def _fit(self, column: int, value: float, start: WarmStart) -> tuple[float, float, WarmStart]:
        """Return bounds on phi(``value``), the minimum over models with w_j = ``value``.

        column : the index j. start : the warm start of the fit. The other columns are fitted with
        ``value`` x_j in the offset. The lower bound is the dual bound of this fit, and the upper
        bound its objective. The third result is its solution, the warm start of the next fit.
        """
        problem = self.problem
        size = self.coef.size
        x_j = dense_part(problem.design, np.array([column]))[:, 0]
        # The problem without column j.
        others = np.delete(np.arange(size), column)
        reduced = restrict(problem, ColumnSubset(problem.design, others), others)
        # value * x_j is added to the offset of the loss; unpenalized columns stay free.
        reduced = changed(replace(reduced, free=None), offset=value * x_j)
        # Column numbers of the warm start, counted in the problem without column j.
        is_other = start.columns != column
        start_positions = np.searchsorted(others, start.columns[is_other])
        fit = self._settings.run(
            reduced, WarmStart(start_positions, start.weights[is_other], start.intercept)
        )
        # The solution with w_j = value, as a model of the whole problem: its objective bounds phi
        # from above.
        columns = np.append(others[fit.columns], column)
        weights = np.append(fit.weights, value)
        gauge = gauge_of(problem, columns, weights)
        linear = dense_part(problem.design, columns) @ weights
        prediction = linear + optimal_intercept(problem, linear, fit.intercept)
        upper_bound = objective_at(problem, weights, prediction, gauge)
        return (
            fit.objective - fit.gap + self._objective_part(column, value),
            upper_bound,
            WarmStart(columns, weights),
        )


def _columns_to_fit(profile: _Profile, columns: Any) -> tuple[Columns, Columns]:
    """Return the columns that get a range, and those whose range is computed by fits.

    columns : the columns that the user named, None for all with a nonzero coefficient. Unpenalized
    columns are left out. If the penalty is a sum over columns, all others get a range from one dual
    point. ``profile`` is the function phi of the problem.
    """
    problem = profile.problem
    free = np.zeros(0, dtype=np.int64) if problem.free is None else problem.free
    chosen = np.flatnonzero(profile.coef) if columns is None else np.unique(columns)
    chosen = np.setdiff1d(chosen.astype(np.int64), free)
    candidates = np.setdiff1d(np.arange(profile.coef.size), free)
    return candidates if profile.separable else chosen, chosen


def _of_subsets(model: SubsetModel, within: float) -> NearBest:
    """Return the ranges over the near-best models that the search of a best-subset model listed.

    within : the share of the objective; it must be the one of the model.
    """
    result = model.result_
    models = result.near_models
    if models is None or within != model.within:
        raise ValueError(
            f"the model listed the subsets within {model.within}; fit it with within={within}"
        )
    if models.scales is None:
        raise ValueError("near_best is of one output; the model has one for each class")
    columns = models.columns
    return NearBest(
        columns,
        model.feature_map_.names(columns, input_names(model)),
        np.ravel(model.coef_)[columns],
        models.coefficients,
        np.ones(columns.size, dtype=bool),
        within,
        result.objective,
        models.limit,
        models.subsets,
        models.complete,
    )
