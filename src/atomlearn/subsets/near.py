"""All near-optimal models of a best-subset search, and proved ranges of their coefficients.

A near-optimal model has at most k columns, any coefficients w on them, and an objective F(w) of at
most a limit (the Rashomon set). For one subset of columns these models form a convex set. On it, a
linear function g'w is at least (D(t) - limit) / t for every t > 0. Here D(t) is any lower bound on
the minimum of F(w) + t g'w; each dual point gives one. Points inside the set show how tight the
bounds are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from atomlearn._support import EPS, growth
from atomlearn.core import (
    Array,
    Columns,
    Design,
    Problem,
    as_design,
    dual_part,
    free_columns,
    is_quadratic,
    loss_gradient,
    loss_value,
    negative_gradient,
    optimal_intercept,
)
from atomlearn.subsets.exchange import Subset
from atomlearn.subsets.fit import inverse_with_ridge

#: Maximum number of Newton steps for one end of a range, and the share of its width that may stay
#: undecided.
STEPS = 24
OPEN = 0.01
#: Maximum number of halvings of one step.
HALVINGS = 10


@dataclass(frozen=True, slots=True)
class NearSubset:
    """A near-optimal subset: its columns (or groups), and the objective of its ridge fit."""

    columns: Columns
    objective: float


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of several numbers over a set of models.

    Attributes
    ----------
    lower, upper : (m,) float64
        Proved: no model of the set is outside.
    least, most : (m,) float64
        Attained: up to rounding there are models of the set with these values.
    """

    lower: Array
    upper: Array
    least: Array
    most: Array

    @classmethod
    def nothing(cls, size: int) -> Ranges:
        """Return the ranges of ``size`` numbers over no model: from inf to -inf.

        ``join`` extends them by the ranges over models.
        """
        high = np.full(size, math.inf)
        return cls(high, -high, high.copy(), -high)

    def at(self, positions: Any) -> Ranges:
        """Return the ranges at ``positions``, any index of NumPy."""
        ends = self.lower, self.upper, self.least, self.most
        return Ranges(*(end[positions] for end in ends))

    def divided(self, scales: Array) -> Ranges:
        """Return the ranges of the numbers divided by positive ``scales`` (m,)."""
        ends = self.lower, self.upper, self.least, self.most
        return Ranges(*(end / scales for end in ends))

    def join(self, other: Ranges, positions: Any = slice(None)) -> None:
        """Extend the ranges at ``positions`` by the ranges ``other`` over more models, in place."""
        self.lower[positions] = np.minimum(self.lower[positions], other.lower)
        self.upper[positions] = np.maximum(self.upper[positions], other.upper)
        self.least[positions] = np.minimum(self.least[positions], other.least)
        self.most[positions] = np.maximum(self.most[positions], other.most)


@dataclass
class NearModels:
    """The models of at most k columns with an objective of at most ``limit`` (the Rashomon set).

    The statements on columns hold for all these models, listed or not. A column of ``in_all`` has a
    nonzero coefficient in each of them. A column that is in none of ``in_all``, ``in_some`` and
    ``undecided`` is in no model. The ranges are over the models of the listed subsets, which are
    all models if ``complete``.

    Attributes
    ----------
    subsets : list of NearSubset
        The subsets with such a model, the best one first.
    complete : bool
        Whether it is proved that no subset is missing.
    limit : float
        (1 + within) times the objective of the best subset.
    in_all : (m,) int64
        Columns (or groups) that are proved to be in all of these models.
    in_some : (m,) int64
        Columns (or groups) of a listed subset that are not in ``in_all``.
    undecided : (m,) int64 or None
        Columns (or groups) that are in no listed subset, but may be in one that is not listed.
        Empty if ``complete``. None if they are too many to list.
    columns : (m,) int64
        Columns of X that are in a listed subset.
    n_features : int
        The number of columns of X.
    level_sets : list of LevelSet
        The models of each subset, with the training data; a pickled object has none.
    scales : (m,) float64, optional
        Standard deviations of ``columns``, by which an estimator divided them for the fit.
    around : callable, optional
        Centers and scales the design of new samples as the columns were for the fit. None: the
        new samples are used as they are.
    """

    subsets: list[NearSubset]
    complete: bool
    limit: float
    in_all: Columns
    in_some: Columns
    undecided: Columns | None
    columns: Columns
    n_features: int
    level_sets: list[LevelSet] = field(repr=False)
    scales: Array | None = None
    around: Callable[[Any], Design] | None = field(default=None, repr=False)

    @cached_property
    def coefficients(self) -> Ranges:
        """Ranges of the coefficients of ``columns``, in the units of the data.

        The coefficient of a column is 0 in the models of subsets without the column.
        """
        ranges = Ranges.nothing(self.columns.size)
        missing = np.zeros(self.columns.size, dtype=bool)
        for level_set in self.level_sets:
            # The unit vectors are the linear functions that return single coefficients.
            unit_vectors = np.eye(level_set.size, level_set.positions.size)
            ranges.join(level_set.ranges(unit_vectors, self.limit), level_set.positions)
            missing |= ~np.isin(np.arange(self.columns.size), level_set.positions)
        zero = np.zeros(np.count_nonzero(missing))
        ranges.join(Ranges(zero, zero, zero, zero), missing)
        return ranges if self.scales is None else ranges.divided(self.scales)

    def predictions(self, X: object) -> Ranges:
        """Return the ranges of the predictions X w + b for new samples.

        Parameters
        ----------
        X : array, sparse matrix or Design, shape (n_samples, n_features_in)
            New samples; the training samples give the ranges of the fitted values.

        Returns
        -------
        Ranges
            Of shape (n_samples,), before any link function, without offsets.
        """
        if not self.level_sets:
            raise ValueError(
                "predictions needs the training data, and a pickled result has none of it; call "
                "findings.near_best(model, X, y).predictions(X_new)"
            )
        design = as_design(X)
        if design.shape[1] != self.n_features:
            raise ValueError(
                f"X has {design.shape[1]} columns, and the models have {self.n_features} "
                "coefficients; give the columns of the fit, in the same order (for several targets "
                "there are no ranges of predictions)"
            )
        if self.around is not None:
            design = self.around(design)
        # A prediction is a linear function of the coefficients; its range is over all subsets.
        # ``A`` has the columns of all listed subsets. Each level set takes its own from it, and the
        # unpenalized columns from ``design``.
        ranges = Ranges.nothing(design.shape[0])
        A = np.asarray(design.gather(self.columns).dense(), dtype=np.float64)
        for level_set in self.level_sets:
            functions = level_set.functions_of_rows(A[:, level_set.positions], design)
            # ``origin`` was subtracted from the targets before the fit, so it is added here.
            ranges.join(level_set.ranges(functions.T, self.limit, level_set.problem.origin))
        return ranges

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, with the ranges of the coefficients and without the training data."""
        return vars(self) | {"coefficients": self.coefficients, "level_sets": [], "around": None}


class LevelSet:
    """The models on one subset of columns with an objective of at most a limit.

    Here all coefficients are theta = (w, u), and the predictions are G theta with G = [A, Z]. A has
    the m columns of the subset and w their coefficients. Z has the unpenalized columns, and a
    column of ones for the intercept; u are their coefficients.

    Parameters
    ----------
    problem : Problem
        The loss, the targets, and the weight of the ridge.
    block : (n_samples, p) float64
        Columns of X. The subset has the columns at ``positions`` (m,) of them.
    subset : Subset
        Its ridge fit.
    prices : float
        The l0 penalty that is part of its objective.

    Attributes
    ----------
    theta : (size,) float64
        The coefficients of the ridge fit.
    objective : float
        The objective f(G theta) + level / 2 ||w||^2 of the ridge fit, without the prices. f is the
        loss, and level the weight of the ridge.
    """

    def __init__(
        self, problem: Problem, block: Array, positions: Columns, subset: Subset, prices: float
    ) -> None:
        """Separate the unpenalized columns from the loss, and compute theta at the fit."""
        free = free_columns(problem.loss)
        self.positions = positions
        self.prices = prices
        self.level = problem.regularizer.amount
        #: The loss as a function of A w, minimized over the intercept and the free coefficients.
        self.profiled = problem
        n = problem.y.size
        # In ``self.problem`` the intercept and the free coefficients are not minimized out: its
        # loss is a function of G theta.
        if free is None:
            self.problem = problem
            self._Z = np.ones((n, int(problem.fit_intercept)))
        else:
            self.problem = replace(problem, loss=free.inner)
            Z: Any = free.columns.toarray() if free.is_sparse else free.columns
            self._Z = np.hstack([np.asarray(Z), np.ones((n, int(free.intercept)))])
        self.problem = replace(self.problem, fit_intercept=False)
        self._block = block
        self._quadratic = is_quadratic(self.problem.loss)
        self._fit(subset)

    @property
    def size(self) -> int:
        """The number of coefficients theta."""
        return self.positions.size + self._Z.shape[1]

    def functions_of_rows(self, A: Array, rows: Design) -> Array:
        """Return the predictions of new rows as linear functions of theta, (n_rows, size).

        ``A`` (n_rows, m) has the columns of the subset. ``rows`` has all columns of the new rows,
        of which the unpenalized ones are used.
        """
        # Z has the unpenalized columns, then a column of ones if there is an intercept.
        columns = self.problem.free
        free = A[:, :0] if columns is None else np.asarray(rows.gather(columns).dense())
        ones = np.ones((A.shape[0], self._Z.shape[1] - free.shape[1]))
        return np.hstack([A, free, ones])

    def _fit(self, subset: Subset) -> None:
        """Set ``theta``, ``objective`` and its lower bound ``_bound`` from the fit of ``subset``.

        The fit has only the weights of the subset. So the intercept and the coefficients u of the
        unpenalized columns are computed here.
        """
        point = subset.point
        A = self._block[:, self.positions]
        linear = A @ point.weights
        free = free_columns(self.profiled.loss)
        if free is None:
            u = np.full(self._Z.shape[1], optimal_intercept(self.profiled, linear, point.intercept))
        else:
            coefficients, b = free.free_part(self.problem.y, linear, self.problem.weight)
            # The intercept is the last entry of u, if there is one.
            u = np.append(coefficients, [b] * free.intercept)
        self.theta = np.append(point.weights, u)
        self._bound = subset.lower - self.prices
        self.objective = max(self._objective(A, self.theta), self._bound)

    def _objective(self, A: Array, theta: Array) -> float:
        """Return f(A w + Z u) + level / 2 ||w||^2 at theta = (w, u): no prices are added."""
        m = A.shape[1]
        w = theta[:m]
        return loss_value(self.problem, A @ w + self._Z @ theta[m:]) + 0.5 * self.level * float(
            w @ w
        )

    def _dual(self, prediction: Array) -> Array:
        """Return the negative gradient of the loss f at ``prediction``, (n_samples,)."""
        return -loss_gradient(self.problem, prediction)

    def _hessian(self, G: Array, prediction: Array) -> Array:
        """Return the Hessian G'(C - K K')G of the loss at ``prediction``, without the ridge.

        C - K K' is the Hessian of the loss in the predictions. C is the diagonal matrix of c, and K
        has no columns if no sample interacts with another one.
        """
        c, K = self.problem.loss.coupling(self.problem.y, prediction, self.problem.weight)
        KtG = K.T @ G
        return np.asarray(G.T @ (c[:, None] * G) - KtG.T @ KtG)

    def _inverse(self, G: Array, prediction: Array) -> Array:
        """Return the inverse of the Hessian of the objective at ``prediction``, (size, size).

        G has the columns of all coefficients. The ridge is added to the entries of w only,
        and a tiny multiple of I to all entries, so that the inverse exists.
        """
        H = self._hessian(G, prediction)
        penalized = np.arange(self.positions.size)
        H[penalized, penalized] += self.level
        tiny = 1e-3 * EPS * max(float(np.diag(H).max(initial=0.0)), 1e-300)
        return inverse_with_ridge(H, tiny)

    def ranges(self, functions: Array, limit: float, origin: float = 0.0) -> Ranges:
        """Return the ranges of linear functions of theta over the models, plus ``origin``.

        ``functions`` (size, N) has one function g in each column. ``limit`` bounds the objective
        with the prices. For a quadratic loss the models are an ellipsoid around the fit: g'theta
        ranges over g'theta_fit +- sqrt(2 (limit - objective) g'H^-1 g), with H the Hessian of the
        objective. For other losses ``_End`` computes each end of a range.
        """
        limit = limit - self.prices
        if functions.shape[1] == 0:
            return Ranges.nothing(0)
        A = self._block[:, self.positions]
        G = np.hstack([A, self._Z])
        prediction = G @ self.theta
        inverse = self._inverse(G, prediction)
        center = functions.T @ self.theta
        variance = np.maximum((functions * (inverse @ functions)).sum(axis=0), 0.0)
        slack = max(limit - self.objective, 0.0)
        if self._quadratic:
            # The proved range is wider than the formula. It is measured from the lower bound, not
            # from the objective of the fit. It is also extended by the distance of the fit from the
            # minimum (at most sqrt(2 gap) in the metric of H), and by rounding: ``condition``
            # bounds the condition number of H.
            condition = 1.0 + float(np.trace(self._hessian(A, prediction))) / self.level
            rise = max(limit - self._bound, 0.0) * (1.0 + 1e-9)
            gap = max(self.objective - self._bound, 0.0)
            radius = np.sqrt(variance) * (1.0 + min(100.0 * EPS * condition, 0.5))
            outer = radius * (math.sqrt(2.0 * rise) + math.sqrt(2.0 * gap))
            outer += growth(G.shape[0]) * (np.abs(functions).T @ np.abs(self.theta))
            # The attained range is given by the formula of the docstring.
            inner = np.sqrt(2.0 * slack * variance)
            ends = (center - outer, center + outer, center - inner, center + inner)
            return Ranges(*(end + origin for end in ends))
        # The largest value of g'theta is minus the least value of -g'theta. Each end is a pair:
        # the proved value and the attained one.
        searches = [_End(self, G, inverse, g, limit) for g in functions.T]
        lower, least = np.array([search.extreme(slack) for search in searches]).T
        searches = [_End(self, G, inverse, -g, limit) for g in functions.T]
        upper, most = -np.array([search.extreme(slack) for search in searches]).T
        return Ranges(lower + origin, upper + origin, least + origin, most + origin)


class _End:
    """The least value of a linear function g'theta over a level set F(theta) <= limit.

    F is the loss with the ridge. Newton steps minimize F(theta) + t g'theta, and t > 0 is adapted
    until F at the minimizer equals the limit. Each step yields a dual point, which proves a lower
    bound, and a theta in the level set, whose g'theta is an attained value.

    Parameters
    ----------
    level_set : LevelSet
        The models on one subset of columns.
    G : (n_samples, size) float64
        The columns of the subset, the unpenalized columns and the ones.
    inverse : (size, size) float64
        The inverse Hessian of F at the ridge fit.
    g : (size,) float64
        The linear function.
    limit : float
        Largest value of F.
    """

    def __init__(
        self, level_set: LevelSet, G: Array, inverse: Array, g: Array, limit: float
    ) -> None:
        self.level_set = level_set
        self.G = G
        self.inverse = inverse
        self.g = g
        self.limit = limit

    def extreme(self, slack: float) -> tuple[float, float]:
        """Return a proved lower bound on g'theta, and the smallest attained value.

        ``slack`` is the limit minus the objective of the ridge fit, at least 0.
        """
        center = float(self.g @ self.level_set.theta)
        if not self.g.any():
            return 0.0, 0.0
        low, high = self._bound_by_ball(center), center
        for proved, attained in self._steps(slack, center):
            low = max(low, proved)
            high = min(high, attained)
            if high - low <= OPEN * (center - low):
                break
        return low - growth(self.g.size) * abs(center), high

    def _bound_by_ball(self, center: float) -> float:
        """Return the lower bound on g'theta by strong convexity; ``center`` is g'theta at the fit.

        By the ridge, F(theta) exceeds its minimum by at least level / 2 times the squared distance
        of w from the w of the minimizer. So the level set is in a ball around the minimizer, with
        the radius sqrt(2 (limit - bound) / level); bound is a lower bound on the minimum. The
        result is -inf if g has a nonzero entry for u, the unpenalized coefficients.
        """
        level_set = self.level_set
        m = level_set.positions.size
        if self.g[m:].any():
            return -math.inf
        # The fit is within ``distance`` of the minimizer.
        radius = math.sqrt(2.0 * max(self.limit - level_set._bound, 0.0) / level_set.level)
        gap = max(level_set.objective - level_set._bound, 0.0)
        distance = math.sqrt(2.0 * gap / level_set.level)
        return center - (radius + distance) * float(np.linalg.norm(self.g)) * (1.0 + 1e-9)

    def _steps(self, slack: float, center: float) -> Iterator[tuple[float, float]]:
        """Yield a proved lower bound on g'theta and an attained value, after each Newton step.

        ``slack`` is the limit minus the objective of the fit, ``center`` is g'theta at the fit.
        """
        level_set = self.level_set
        A = self.G[:, : level_set.positions.size]
        theta = level_set.theta
        inverse = self.inverse
        objective = level_set.objective
        # The first t is exact for a quadratic F, where F rises by t^2 / 2 g'H^-1 g.
        t = math.sqrt(
            2.0 * max(slack, EPS * abs(self.limit)) / max(self._variance(inverse), 1e-300)
        )
        for step in range(STEPS):
            # A Newton step for F + t g'theta, shortened until the value does not increase. At the
            # fit the gradient of F is 0.
            slope = self._slope(theta, t) if step else t * self.g
            direction = inverse @ slope
            start_value = level_set._objective(A, theta) + t * float(self.g @ theta)
            for length in 0.5 ** np.arange(HALVINGS):
                value = level_set._objective(A, theta - length * direction)
                if value + t * float(self.g @ (theta - length * direction)) <= start_value:
                    theta = theta - length * direction
                    break
            value = level_set._objective(A, theta)
            prediction = self.G @ theta
            proved = self._bound(prediction, t)
            reached = float(self.g @ theta)
            # If theta is outside the level set, this share of the way from the fit to theta is
            # inside, because F is convex.
            share = 1.0
            if value > self.limit:
                share = slack / max(value - objective, 1e-300)
            yield proved, center + min(share, 1.0) * (reached - center)
            inverse = level_set._inverse(self.G, prediction)
            # t changes only after the steps for this t have nearly converged, or after eight steps.
            if float(slope @ direction) > 0.01 * slack and step % 8 != 7:
                continue
            # The rise of F grows about as t^2, and it should become ``slack``.
            rise = value - objective
            t *= math.sqrt(min(max(slack / rise, 0.25), 4.0)) if rise > 0.0 else 2.0

    def _variance(self, inverse: Array) -> float:
        """Return g'H^-1 g, with ``inverse`` = H^-1 and H the Hessian of F."""
        return float(self.g @ inverse @ self.g)

    def _slope(self, theta: Array, t: float) -> Array:
        """Return the gradient of F(theta) + t g'theta in theta, (size,)."""
        level_set = self.level_set
        slope = t * self.g - self.G.T @ level_set._dual(self.G @ theta)
        m = level_set.positions.size
        slope[:m] += level_set.level * theta[:m]
        return slope

    def _bound(self, prediction: Array, t: float) -> float:
        """Return the lower bound (D(t) - limit) / t on g'theta, with v the dual point.

        D(t) = -f*(-v) - ||A'v - t g_w||^2 / (2 level). Here f* is the conjugate of the loss, A has
        the columns of the subset, and g_w has the entries of g for their coefficients w. v is near
        the negative gradient at ``prediction``. D(t) is lowered by bounds on rounding errors.
        """
        level_set = self.level_set
        problem = level_set.problem
        m = level_set.positions.size
        v, prediction, residual = self._feasible_dual(prediction, t)
        conjugate, rounding = dual_part(problem, prediction, v)
        scores = self.G[:, :m].T @ v - t * self.g[:m]
        error = 2.0 * growth(v.size) * float(np.linalg.norm(v))
        scores = np.abs(scores) + error * np.linalg.norm(self.G[:, :m], axis=0)
        dual = (
            -conjugate
            - rounding
            - float(scores @ scores) * (1.0 + growth(m)) / (2.0 * level_set.level)
        )
        # v satisfies the condition of the unpenalized columns only up to rounding. The effect of
        # the residual is bounded for coefficients of up to twice those of the fit, plus 2.
        dual -= 2.0 * float(np.abs(residual) @ (np.abs(level_set.theta[m:]) + 1.0))
        bound = (dual - self.limit) / t
        return bound if math.isfinite(bound) else -math.inf

    def _feasible_dual(self, prediction: Array, t: float) -> tuple[Array, Array, Array]:
        """Return a dual point v with Z'v = t g_u, the predictions, and the residual Z'v - t g_u.

        Z has the unpenalized columns, and g_u are the entries of g for them. v is near the negative
        gradient of the loss at ``prediction``, which is returned unchanged. The residual is
        infinite if it exceeds a bound on rounding errors.
        """
        level_set = self.level_set
        problem = level_set.problem
        Z = level_set._Z
        v = level_set._dual(prediction)
        target = t * self.g[level_set.positions.size :]
        if not target.size:
            return v, prediction, target
        if not target.any():
            # With g_u = 0 the condition is Z'v = 0. The negative gradient of the loss satisfies it
            # at the best intercept and unpenalized coefficients.
            linear = prediction + optimal_intercept(level_set.profiled, prediction)
            v = negative_gradient(level_set.profiled, linear)
        allowed = 8.0 * growth(v.size) * np.linalg.norm(Z, axis=0) * float(np.linalg.norm(v))
        # v is corrected by the least change that solves Z'v = t g_u. The first metric is that of
        # the curvatures c of the rows, which keeps v inside the domain of the conjugate. The second
        # one is that of the weights. Each correction is repeated once, against rounding.
        c, _ = problem.loss.coupling(problem.y, prediction, problem.weight)
        for metric in (c, problem.weight):
            for _ in range(2):
                residual = Z.T @ v - target
                if np.all(np.abs(residual) <= allowed):
                    return v, prediction, residual
                H = Z.T @ (metric[:, None] * Z)
                v = v - metric * (Z @ np.linalg.lstsq(H, residual, rcond=1e-12)[0])
        residual = Z.T @ v - target
        if not np.all(np.abs(residual) <= allowed):
            residual = np.full(target.size, math.inf)
        return v, prediction, residual
