"""All near-optimal models of a best-subset search, and proved ranges of their coefficients.

A near-optimal model is a choice of at most k columns and of any coefficients on them whose
objective F is at most a limit (the Rashomon set). For one subset they form a convex set. On it, a
linear function g'w is at least (D(t) - limit) / t for every t > 0 and every lower bound D(t) on the
minimum of F(w) + t g'w, which any dual point gives. Points inside the set show how tight this is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from atomlearn.core import (
    EPS,
    Array,
    Columns,
    Design,
    Problem,
    as_design,
    dual_part,
    free_columns,
    growth,
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
    """A set of columns (of groups) with the objective of its ridge fit."""

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
        """Return the ranges over no model at all."""
        high = np.full(size, math.inf)
        return cls(high, -high, high.copy(), -high)

    def at(self, positions: Any) -> Ranges:
        """Return the ranges at some positions."""
        ends = self.lower, self.upper, self.least, self.most
        return Ranges(*(end[positions] for end in ends))

    def divided(self, scales: Array) -> Ranges:
        """Return the ranges of the numbers divided by positive scales."""
        ends = self.lower, self.upper, self.least, self.most
        return Ranges(*(end / scales for end in ends))

    def join(self, other: Ranges, positions: Any = slice(None)) -> None:
        """Extend the ranges at positions ``positions`` by those over other models, in place."""
        self.lower[positions] = np.minimum(self.lower[positions], other.lower)
        self.upper[positions] = np.maximum(self.upper[positions], other.upper)
        self.least[positions] = np.minimum(self.least[positions], other.least)
        self.most[positions] = np.maximum(self.most[positions], other.most)


@dataclass
class NearModels:
    """The models of at most k columns with an objective of at most ``limit`` (the Rashomon set).

    The statements on columns hold for all of them: a column of ``in_all`` has a nonzero coefficient
    in each of them, a column that is in none of ``in_all``, ``in_some`` and ``undecided`` is in no
    model. The ranges are over the models of the listed subsets: over all models if ``complete``.

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
        Columns (or groups) of no listed subset that are not proved to be in none. Empty if
        ``complete``. None if they are too many to list.
    columns : (m,) int64
        Columns of X that are in a listed subset.
    n_features : int
        The number of columns of X.
    level_sets : list of LevelSet
        The models of each subset, with the training data; a pickled object has none.
    scales : (m,) float64, optional
        Standard deviations of ``columns``, by which an estimator divided them for the fit.
    around : callable, optional
        Returns the columns of new samples in the units of the fit.
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
        """Ranges of the coefficients of ``columns``, per unit of the data.

        0 is in the range of a column that some subset lacks.
        """
        ranges = Ranges.nothing(self.columns.size)
        missing = np.zeros(self.columns.size, dtype=bool)
        for level_set in self.level_sets:
            of_each = level_set.ranges(np.eye(level_set.size, level_set.positions.size), self.limit)
            ranges.join(of_each, level_set.positions)
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
        ranges = Ranges.nothing(design.shape[0])
        A = np.asarray(design.gather(self.columns).dense(), dtype=np.float64)
        for level_set in self.level_sets:
            functions = level_set.functions_of_rows(A[:, level_set.positions], design)
            ranges.join(level_set.ranges(functions.T, self.limit, level_set.problem.origin))
        return ranges

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, with the ranges of the coefficients and without the training data."""
        return vars(self) | {"coefficients": self.coefficients, "level_sets": [], "around": None}


class LevelSet:
    """The models on one subset of columns with an objective of at most a limit.

    The intercept and the unpenalized columns are columns of G = [A, Z] here, with Z the matrix of
    the unpenalized ones, and theta = (w, u) are all coefficients.

    Parameters
    ----------
    problem : Problem
        The loss, the targets, and the weight of the ridge.
    block : (n_samples, p) float64
        Columns of X, of which the subset has those at ``positions`` (m,).
    subset : Subset
        Its ridge fit.
    prices : float
        The l0 penalty that is part of its objective.
    """

    def __init__(
        self, problem: Problem, block: Array, positions: Columns, subset: Subset, prices: float
    ) -> None:
        free = free_columns(problem.loss)
        self.positions = positions
        self.prices = prices
        self.level = problem.regularizer.amount
        #: The loss as a function of A w, minimized over the intercept and the free coefficients.
        self.profiled = problem
        n = problem.y.size
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

        ``A`` (n_rows, m) are the columns of the subset.
        """
        columns = self.problem.free
        free = A[:, :0] if columns is None else np.asarray(rows.gather(columns).dense())
        ones = np.ones((A.shape[0], self._Z.shape[1] - free.shape[1]))
        return np.hstack([A, free, ones])

    def _fit(self, subset: Subset) -> None:
        """Set theta at the ridge fit, its objective without prices, and a lower bound on it."""
        point = subset.point
        A = self._block[:, self.positions]
        linear = A @ point.weights
        free = free_columns(self.profiled.loss)
        if free is None:
            u = np.full(self._Z.shape[1], optimal_intercept(self.profiled, linear, point.intercept))
        else:
            g, b = free.free_part(self.problem.y, linear, self.problem.weight)
            u = np.append(g, [b] * free.intercept)
        self.theta = np.append(point.weights, u)
        self._bound = subset.lower - self.prices
        here = self._objective(A, self.theta)
        self.objective = max(here, self._bound)

    def _objective(self, A: Array, theta: Array) -> float:
        """Return the objective without prices at theta."""
        m = A.shape[1]
        w = theta[:m]
        return loss_value(self.problem, A @ w + self._Z @ theta[m:]) + 0.5 * self.level * float(
            w @ w
        )

    def _dual(self, prediction: Array) -> Array:
        """Return the negative gradient of the loss at some predictions."""
        return -loss_gradient(self.problem, prediction)

    def _hessian(self, G: Array, prediction: Array) -> Array:
        """Return the Hessian of the loss in theta, without the ridge."""
        c, K = self.problem.loss.coupling(self.problem.y, prediction, self.problem.weight)
        pulled = K.T @ G
        return np.asarray(G.T @ (c[:, None] * G) - pulled.T @ pulled)

    def _inverse(self, G: Array, prediction: Array) -> Array:
        """Return the inverse of the Hessian of the objective at some predictions."""
        H = self._hessian(G, prediction)
        w = np.arange(self.positions.size)
        H[w, w] += self.level
        tiny = 1e-3 * EPS * max(float(np.diag(H).max(initial=0.0)), 1e-300)
        return inverse_with_ridge(H, tiny)

    def ranges(self, functions: Array, limit: float, origin: float = 0.0) -> Ranges:
        """Return the ranges of linear functions of theta, plus ``origin``.

        ``functions`` (size, N) has one function in each column.
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
            # The distance of the fit from the minimum is at most its gap, in the metric of the
            # Hessian.
            worst = 1.0 + float(np.trace(self._hessian(A, prediction))) / self.level
            above = max(limit - self._bound, 0.0) * (1.0 + 1e-9)
            gap = max(self.objective - self._bound, 0.0)
            radius = np.sqrt(variance) * (1.0 + min(100.0 * EPS * worst, 0.5))
            outer = radius * (math.sqrt(2.0 * above) + math.sqrt(2.0 * gap))
            outer += growth(G.shape[0]) * (np.abs(functions).T @ np.abs(self.theta))
            inner = np.sqrt(2.0 * slack * variance)
            ends = (center - outer, center + outer, center - inner, center + inner)
            return Ranges(*(end + origin for end in ends))
        at = [_End(self, G, inverse, g, limit) for g in functions.T]
        below = np.array([end.extreme(slack) for end in at]).T
        at = [_End(self, G, inverse, -g, limit) for g in functions.T]
        over = -np.array([end.extreme(slack) for end in at]).T
        return Ranges(below[0] + origin, over[0] + origin, below[1] + origin, over[1] + origin)


class _End:
    """The least value of a linear function g'theta over a level set of a loss with a ridge.

    Newton steps for the minimum of F(theta) + t g'theta, whose t is adapted until F at the minimum
    is the limit, give a dual point and a model for each t.
    """

    def __init__(self, among: LevelSet, G: Array, inverse: Array, g: Array, limit: float) -> None:
        self.among = among
        self.G = G
        self.inverse = inverse
        self.g = g
        self.limit = limit

    def extreme(self, slack: float) -> tuple[float, float]:
        """Return a proved lower bound on g'theta, and a value that a model of the set attains."""
        center = float(self.g @ self.among.theta)
        if not self.g.any():
            return 0.0, 0.0
        low, high = self._bound_by_ball(center), center
        for lower, inner in self._steps(slack, center):
            low = max(low, lower)
            high = min(high, inner)
            if high - low <= OPEN * (center - low):
                break
        return low - growth(self.g.size) * abs(center), high

    def _bound_by_ball(self, center: float) -> float:
        """Return the bound by strong convexity; -inf if coefficients are unpenalized."""
        level_set = self.among
        m = level_set.positions.size
        if self.g[m:].any():
            return -math.inf
        radius = math.sqrt(2.0 * max(self.limit - level_set._bound, 0.0) / level_set.level)
        gap = math.sqrt(2.0 * max(level_set.objective - level_set._bound, 0.0) / level_set.level)
        return center - (radius + gap) * float(np.linalg.norm(self.g)) * (1.0 + 1e-9)

    def _steps(self, slack: float, center: float) -> Iterator[tuple[float, float]]:
        """Return the best proved bound and an attained value, by Newton steps."""
        level_set = self.among
        A = self.G[:, : level_set.positions.size]
        theta = level_set.theta
        inverse = self.inverse
        objective = level_set.objective
        t = math.sqrt(
            2.0 * max(slack, EPS * abs(self.limit)) / max(self._variance(inverse), 1e-300)
        )
        for step in range(STEPS):
            slope = self._slope(theta, t) if step else t * self.g
            move = inverse @ slope
            before = level_set._objective(A, theta) + t * float(self.g @ theta)
            for length in 0.5 ** np.arange(HALVINGS):
                value = level_set._objective(A, theta - length * move)
                if value + t * float(self.g @ (theta - length * move)) <= before:
                    theta = theta - length * move
                    break
            value = level_set._objective(A, theta)
            prediction = self.G @ theta
            lower = self._bound(prediction, t)
            here = float(self.g @ theta)
            share = 1.0
            if value > self.limit:
                share = slack / max(value - objective, 1e-300)
            yield lower, center + min(share, 1.0) * (here - center)
            inverse = level_set._inverse(self.G, prediction)
            if float(slope @ move) > 0.01 * slack and step % 8 != 7:
                continue
            rise = value - objective
            t *= math.sqrt(min(max(slack / rise, 0.25), 4.0)) if rise > 0.0 else 2.0

    def _variance(self, inverse: Array) -> float:
        """Return g' (H^-1) g, H the Hessian of the objective."""
        return float(self.g @ inverse @ self.g)

    def _slope(self, theta: Array, t: float) -> Array:
        """Return the gradient of F + t g'theta."""
        level_set = self.among
        slope = t * self.g - self.G.T @ level_set._dual(self.G @ theta)
        m = level_set.positions.size
        slope[:m] += level_set.level * theta[:m]
        return slope

    def _bound(self, prediction: Array, t: float) -> float:
        """Return the lower bound (D(t) - limit) / t of the dual point at some predictions."""
        level_set = self.among
        problem = level_set.problem
        m = level_set.positions.size
        v, prediction, open_slope = self._feasible_dual(prediction, t)
        conjugate, rounding = dual_part(problem, prediction, v)
        scores = self.G[:, :m].T @ v - t * self.g[:m]
        error = 2.0 * growth(v.size) * float(np.linalg.norm(v))
        scores = np.abs(scores) + error * np.linalg.norm(self.G[:, :m], axis=0)
        dual = (
            -conjugate
            - rounding
            - float(scores @ scores) * (1.0 + growth(m)) / (2.0 * level_set.level)
        )
        # The residual of the condition on v is rounding error.
        dual -= 2.0 * float(np.abs(open_slope) @ (np.abs(level_set.theta[m:]) + 1.0))
        bound = (dual - self.limit) / t
        return bound if math.isfinite(bound) else -math.inf

    def _feasible_dual(self, prediction: Array, t: float) -> tuple[Array, Array, Array]:
        """Return a dual point v with Z'v = t g (Z: the free columns), predictions, and a residual.

        v is the negative gradient of the loss near the predictions. The residual Z'v - t g is
        infinite if it exceeds rounding.
        """
        level_set = self.among
        problem = level_set.problem
        Z = level_set._Z
        v = level_set._dual(prediction)
        target = t * self.g[level_set.positions.size :]
        if not target.size:
            return v, prediction, target
        if not target.any():
            # At the best intercept and free coefficients, the gradient of the loss satisfies the
            # condition.
            linear = prediction + optimal_intercept(level_set.profiled, prediction)
            v = negative_gradient(level_set.profiled, linear)
        allowed = 8.0 * growth(v.size) * np.linalg.norm(Z, axis=0) * float(np.linalg.norm(v))
        # The entries of v change in proportion to the curvatures of their rows, which keeps them
        # inside the domain of the conjugate.
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
