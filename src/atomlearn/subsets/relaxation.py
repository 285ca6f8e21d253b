"""Relaxation: what a branch is relaxed to, solved by column generation with a proved bound."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace

import numpy as np

from atomlearn._kernels import branch_newton
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.masters.choose import choose_master
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import counted, growth
from atomlearn.subsets.norm import IN, OUT, BranchNorm

#: Steps of one call of the kernel: what a pass then leaves open is gone on with.
STEPS = 10
#: Columns whose squared score is this part of what would let them in are re-fitted with a branch.
NEAR = 0.7
#: Rounds of column generation of one branch: its bound is then the best that was proved.
ROUNDS = 60


@dataclass(slots=True)
class Point:
    """Weights, none of them 0, on columns, with the predictions X w + b."""

    columns: Columns
    weights: Array
    intercept: float
    prediction: Array


@dataclass(slots=True)
class Bound:
    """What is known of a branch: its relaxed optimum is ``lower`` at least.

    dual : the bound of one dual point v, which scores of columns add to; -inf where it is below 0;
    squares : (n_units,) squared scores of columns, or groups, at the dual point of ``lower``; off :
    what rounding may have made of a score; near : the columns in use and those that nearly are.
    """

    lower: float
    dual: float
    point: Point
    squares: Array
    off: float
    near: Columns


class Relaxation:
    """The relaxed problems of all branches, and what they share: data and Gram matrix of columns.

    A unit is a column, or a group of columns where the norm has groups.

    Parameters
    ----------
    problem : Problem
        Under the squared k-support norm, over columns that can be listed.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.level = problem, problem.regularizer.amount
        n_features, norm = problem.design.shape[1], problem.regularizer.norm
        assert isinstance(norm, KSupport)
        self.partition = None if norm.groups is None else norm.partition(n_features)
        self.n_units = n_features if self.partition is None else self.partition.n_groups
        loss, free = problem.loss, problem.loss.free
        #: Whether f is quadratic, so that one Gram matrix is that of all points.
        plain = loss if free is None else free.inner
        self.quadratic = plain.is_quadratic and (free is None or free.separable)
        self._lock = threading.Lock()
        self._place = np.full(n_features, -1, dtype=np.int64)
        self._block = CachedBlock(problem.design.gather(np.zeros(0, dtype=np.int64)))
        self._pull = np.zeros(0)
        norms = problem.design.squared_norms(counted(problem.weight))
        self._longest = math.sqrt(float(norms.max(initial=0.0)))
        zero = np.zeros(problem.y.size)
        self._slope = problem.negative_gradient(zero + problem.optimal_intercept(zero))

    def units_of(self, columns: Columns) -> Columns:
        """Return the unit of each column."""
        return columns if self.partition is None else self.partition.labels[columns]

    def members(self, units: Columns) -> Columns:
        """Return the columns of units."""
        return units if self.partition is None else self.partition.members(units)

    def sizes(self, point: Point) -> Array:
        """Return the length of the weights of each unit, (n_units,)."""
        units = self.units_of(point.columns)
        return np.sqrt(np.bincount(units, point.weights**2, minlength=self.n_units))

    def fit(self, units: Columns) -> tuple[Point, float, float]:
        """Return the ridge fit of these units, with its objective and a bound on it from below."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._fit(units)

    def _fit(self, units: Columns) -> tuple[Point, float, float]:
        fixed = np.full(self.n_units, OUT, dtype=np.int8)
        fixed[units] = IN
        columns = np.sort(self.members(units))
        norm = BranchNorm(0, fixed, self.partition)
        weights, intercept = np.zeros(columns.size), 0.0
        target = 1e-10 * self.problem.loss_at_zero()
        weights, intercept, linear = self._refit(norm, columns, weights, intercept, target)
        point = Point(columns, weights, intercept, linear)
        inner = norm.restrict(columns, self.problem.design.shape[1])
        block = self._block.inner.gather(self._place[columns])
        price = self._of(inner, block).price(None, weights, point.prediction)
        objective = price.certificate.objective
        return point, objective, objective - price.certificate.gap

    def bound(self, norm: BranchNorm, start: Point, near: Columns, cutoff: float) -> Bound:
        """Solve the relaxed problem of a branch until it is cut, or as exactly as it is of use.

        start, near : weights of the branch before, and the columns to begin with.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # trial steps of steep losses
            return self._bound(norm, start, near, cutoff)

    def _bound(self, norm: BranchNorm, start: Point, near: Columns, cutoff: float) -> Bound:
        problem, fixed = self._of(norm, self.problem.design), norm.fixed
        inside = self.members(np.flatnonzero(fixed == IN))
        columns = np.union1d(inside, near)
        columns = columns[fixed[self.units_of(columns)] != OUT]
        given = np.zeros(problem.design.shape[1])
        given[start.columns] = start.weights
        weights, intercept = given[columns], start.intercept
        best = None
        for _ in range(ROUNDS):
            target = 1e-6 * abs(cutoff) if math.isfinite(cutoff) else 1e-6 * problem.loss_at_zero()
            refit = self._refit(norm, columns, weights, intercept, target)
            weights, intercept, prediction = refit
            used = np.flatnonzero(weights)
            point = Point(columns[used], weights[used], intercept, prediction)
            price = problem.price(point.columns, point.weights, prediction)
            proved = price.certificate
            squares, sizes = norm.squares(price.scores), self.sizes(point)
            bar = (self.level * norm.bar(sizes)) ** 2
            # Where a step has left the floats nothing is proved.
            lower = proved.objective - proved.gap
            lower = lower if math.isfinite(lower) else -math.inf
            if best is None or lower > best.lower:
                near = self.members(np.flatnonzero((squares >= NEAR * bar) | (sizes > 0.0)))
                slope = float(np.linalg.norm(problem.negative_gradient(prediction)))
                off = 4.0 * growth(prediction.size) * slope * self._longest
                best = Bound(lower, dual_value(proved), point, squares, off, near)
            enough = 1e-6 * abs(proved.objective)
            if math.isfinite(cutoff):
                enough = max(enough, 0.05 * (cutoff - best.lower))
            if best.lower >= cutoff or proved.gap <= enough or problem.deadline.passed:
                break
            wanted = (fixed == 0) & (squares > bar * (1.0 + 1e-9))
            wanted[self.units_of(columns)] = False
            new = np.flatnonzero(wanted)
            if not new.size and not self.quadratic:
                break
            most = max(20, used.size)
            if new.size > most:
                new = new[np.argpartition(-squares[new], most)[:most]]
            columns = np.append(columns, self.members(new))
            weights = np.append(weights, np.zeros(columns.size - weights.size))
        assert best is not None
        return best

    def _of(self, norm: BranchNorm, design: object) -> Problem:
        regularizer = replace(self.problem.regularizer, norm=norm)
        return replace(self.problem, design=design, regularizer=regularizer)  # type: ignore[arg-type]

    def _refit(
        self, norm: BranchNorm, columns: Columns, weights: Array, intercept: float, target: float
    ) -> tuple[Array, float, Array]:
        """Return weights, intercept and predictions of the relaxed problem over these columns."""
        problem = self.problem
        inner = norm.restrict(columns, problem.design.shape[1])
        if not self.quadratic or self.partition is not None:
            places = self._gathered(columns)
            restricted = self._of(inner, CachedBlock(self._block.inner.gather(places)))
            refit = choose_master(restricted).solve(restricted, weights, intercept, target)
            return refit.weights, refit.intercept, refit.prediction
        H, pull, places = self._model(columns)
        inside, free = np.flatnonzero(inner.fixed == IN), np.flatnonzero(inner.fixed == 0)
        order = np.concatenate([free, inside])
        found = weights[order]
        given = H, places[free], places[inside], pull, found
        branch_newton(*given, k=norm.k, level=self.level, most=STEPS)
        weights = np.zeros(weights.size)
        weights[order] = found
        used = np.flatnonzero(weights)
        linear = self._block.inner.gather(places[used]).dot(weights[used])
        intercept = problem.optimal_intercept(linear, intercept)
        return weights, intercept, linear + intercept

    def _gathered(self, columns: Columns) -> Columns:
        """Return the places of columns in the kept block, which those join that are not there."""
        with self._lock:
            fresh = columns[self._place[columns] < 0]
            if fresh.size:
                size, gathered = self._block.shape[1], self.problem.design.gather(fresh)
                self._block = self._block.append(gathered)
                self._pull = np.append(self._pull, gathered.transpose_dot(self._slope))
                self._place[fresh] = np.arange(size, size + fresh.size)
            return self._place[columns]

    def _model(self, columns: Columns) -> tuple[Array, Array, Columns]:
        """Return H and p of f(X w) = 1/2 w'Hw - p'w + constant, and the places of columns there."""
        places, problem = self._gathered(columns), self.problem
        free = problem.loss.free
        with self._lock:
            kept = self._block.growing_gram(
                problem.weight, problem.fit_intercept, None if free is None else free.basis
            )
            return kept.matrix, self._pull, places


def dual_value(certificate: Certificate) -> float:
    """Return the bound that the dual point itself proves, rounding taken off.

    Where it is below 0, the certificate says that objectives are not: no scores add to that.
    """
    of_dual = certificate.gap - certificate.rounding < certificate.objective
    return certificate.objective - certificate.gap if of_dual else -math.inf
