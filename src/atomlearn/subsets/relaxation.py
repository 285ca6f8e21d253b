"""Relaxation: the relaxed problem of a branch, solved by column generation with a proved bound."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import branch_newton
from atomlearn.core import (
    EPS,
    Array,
    CachedBlock,
    Columns,
    Deadline,
    Problem,
    Scores,
    TimeIsUp,
    Work,
    choose_master,
    counted,
    dual_part,
    free_columns,
    gauge_of,
    growth,
    is_perfect,
    is_quadratic,
    loss_at_zero,
    negative_gradient,
    objective_at,
    optimal_intercept,
    with_deadline,
)
from atomlearn.subsets.fit import ridge_fit
from atomlearn.subsets.norm import IN, OUT, BranchNorm, Choices

#: Steps of one call of the kernel; the next pass continues them.
STEPS = 10
#: Number of columns beyond which the deadline is checked after each step.
MANY = 300
#: Columns whose squared score is at least this part of the bar are re-fitted with a branch.
NEAR = 0.7
#: Steps to the minimum of a model of the loss between two passes, and halvings of one step.
WORKING = 3
HALVINGS = 8
#: Rounds of column generation of one branch, after which its bound is the best one proved.
ROUNDS = 60
#: Relative gap of the ridge fit of a subset, so that equal subsets have equal objectives.
ACCURACY = 1e-10
#: Steps of one re-fit of a branch by a master; the result need not be exact to prove a bound.
WORK = 50


@dataclass(slots=True)
class RelaxedPoint:
    """Weights on columns, and an intercept."""

    columns: Columns
    weights: Array
    intercept: float


@dataclass(slots=True)
class Bound:
    """Bounds of a branch, from its relaxed optimum and one dual point v."""

    #: Lower bound on the relaxed optimum.
    lower: float
    #: Bound of v, to which scores of columns are added; it may be negative.
    dual: float
    point: RelaxedPoint
    #: Squared scores of columns, or groups, at v.
    squares: Array
    #: Bound on the rounding of a score.
    off: float
    #: The columns in use and those that nearly are.
    near: Columns


#: A branch to be bounded: norm, weights and columns at the start, and the bound that cuts it.
Asked = tuple[BranchNorm, RelaxedPoint, Columns, float]


class Relaxation:
    """The relaxed problems of all branches, with the data and Gram matrix that they share.

    A unit is a column, or a group of columns if the norm has groups.

    Parameters
    ----------
    problem : Problem
        Under the squared k-support norm, over columns that can be listed.
    price : float
        Price of each unit, in addition to its ridge.
    accuracy : float
        Relative gap of the ridge fit of a subset.
    room : int
        Largest number of columns gathered for one branch, and kept for the next.
    """

    def __init__(
        self,
        problem: Problem,
        price: float = 0.0,
        accuracy: float = ACCURACY,
        room: float = math.inf,
    ) -> None:
        self.problem = problem
        self.level = problem.regularizer.amount
        self.price = price
        self.accuracy = accuracy
        self.room = room
        self.units = Choices(problem)
        free = free_columns(problem.loss)
        #: Whether f is quadratic, so that one Gram matrix is that of all points.
        plain = problem.loss if free is None else free.inner
        self.quadratic = is_quadratic(plain) and (free is None or free.separable)
        self._lock = threading.Lock()
        self._forget()
        self._longest = longest(problem, self.units)
        zero = np.zeros(problem.y.size)
        zero = zero + optimal_intercept(problem, zero)
        self._slope = negative_gradient(problem, zero)
        #: Curvature of f without columns, from which H is computed.
        self._curvature = problem.weight
        #: An objective that is 0 up to rounding where f fades out, as an exponential does.
        fades = not math.isfinite(plain.curvature_bounds[1])
        self._fades = 1e-3 * EPS * loss_at_zero(problem) if fades else 0.0
        #: Whether steps by H are made: f is quadratic, or bends as much elsewhere, or less.
        self._modelling = self.units.partition is None and math.isfinite(plain.curvature_bounds[1])
        if not self.quadratic:
            self._curvature = problem.loss.curvature(problem.y, zero, problem.weight)

    def _forget(self) -> None:
        """Drop all columns."""
        self._place = np.full(self.problem.design.shape[1], -1, dtype=np.int64)
        self._block = CachedBlock(self.problem.design.gather(np.zeros(0, dtype=np.int64)))
        self._pull = np.zeros(0)

    def sizes(self, point: RelaxedPoint) -> Array:
        """Return the length of the weights of each unit, (n_units,)."""
        units = self.units.of(point.columns)
        return np.sqrt(np.bincount(units, point.weights**2, minlength=self.units.count))

    def fit(self, units: Columns) -> tuple[RelaxedPoint, float, float, bool]:
        """Return the fit of units, the objective with prices, its bound, and if it is perfect."""
        fixed = np.full(self.units.count, OUT, dtype=np.int8)
        fixed[units] = IN
        columns = np.sort(self.units.columns(units))
        norm = self.norm(0, fixed).restrict(columns, self.problem.design.shape[1])
        gram = None
        if self.quadratic:
            H, _, places = self._model(columns)
            gram = H[np.ix_(places, places)]
        places = self._gathered(columns)
        block = self._block.inner.gather(places)
        with np.errstate(over="ignore", invalid="ignore"):  # trial steps of steep losses
            found = ridge_fit(self._of(norm, block), self.accuracy, gram)
        objective = found.objective + self.price * units.size
        lower = max(objective - found.certificate.gap, self.price * units.size)
        perfect = objective <= self._fades or (
            objective == found.objective and is_perfect(self.problem, found.certificate)
        )
        return RelaxedPoint(columns, found.weights, found.intercept), objective, lower, perfect

    def prediction(self, point: RelaxedPoint) -> Array:
        """Return the predictions X w + b of a point, (n_samples,)."""
        places = self._gathered(point.columns)
        linear = self._block.inner.gather(places).predict(point.weights)
        return linear + optimal_intercept(self.problem, linear, point.intercept)

    def norm(self, k: int, fixed: NDArray[np.int8]) -> BranchNorm:
        """Return the norm of the relaxed problem of a branch."""
        return BranchNorm(k, fixed, self.units.partition, self.price, self.level)

    def bounds(
        self, branches: Sequence[Asked], pool: ThreadPoolExecutor | None = None
    ) -> list[Bound | None]:
        """Return bounds of branches, from their relaxed problems.

        Each problem is solved until the branch is cut, or as exactly as is useful; they share
        passes over the data. The result is None for branches without time left; the first one is
        always begun.
        """
        if self._block.shape[1] > self.room:
            self._forget()
        steps = [self._steps(*asked) for asked in branches]
        found: dict[int, Bound | None] = {}
        answers: dict[int, Scores | None] = dict.fromkeys(range(len(steps)))

        def step(number: int) -> Array | None:
            if number and answers[number] is None and self.problem.deadline.use_step():
                found[number] = None
                return None
            try:
                # Trial steps of steep losses overflow.
                with np.errstate(over="ignore", invalid="ignore"), self.problem.deadline.kept():
                    return steps[number].send(answers[number])  # type: ignore[arg-type]
            except StopIteration as end:
                found[number] = end.value
            except TimeIsUp:
                found[number] = None
            return None

        while answers:
            duals = list((map if pool is None else pool.map)(step, answers))
            going = {i: v for i, v in zip(answers, duals, strict=True) if v is not None}
            V = np.array(list(going.values()))
            design = self.problem.design
            scores = design.scores_many(V.T) if len(V) > 1 else map(design.scores, V)
            answers = dict(zip(going, scores, strict=True))
        return [found[number] for number in range(len(steps))]

    def _steps(
        self, norm: BranchNorm, start: RelaxedPoint, near: Columns, cutoff: float
    ) -> Generator[Array, Scores, Bound]:
        """Yield dual points, receive their scores, and return the bound of a branch."""
        problem = self._of(norm, self.problem.design)
        fixed = norm.fixed
        inside = self.units.columns(np.flatnonzero(fixed == IN))
        columns = np.union1d(inside, near)
        columns = columns[fixed[self.units.of(columns)] != OUT]
        given = np.zeros(problem.design.shape[1])
        given[start.columns] = start.weights
        weights = given[columns]
        intercept = start.intercept
        paid = self.price * np.count_nonzero(fixed == IN)
        best = None
        cutoff -= paid
        for _ in range(ROUNDS):
            target = 1e-6 * abs(cutoff) if math.isfinite(cutoff) else 1e-6 * loss_at_zero(problem)
            refit = self._toward(norm, columns, weights, intercept, target)
            weights, intercept, prediction = refit
            used = np.flatnonzero(weights)
            point = RelaxedPoint(columns[used], weights[used], intercept)
            dual = negative_gradient(problem, prediction)
            squares = norm.squares((yield dual))
            sizes = self.sizes(point)
            bar = (self.level * norm.bar(sizes)) ** 2
            off = self.off(dual)
            lower = dual_value(problem, norm, prediction, dual, squares, off)
            if best is None or lower > best.dual:
                near = self.units.columns(np.flatnonzero((squares >= NEAR * bar) | (sizes > 0.0)))
                best = Bound(max(lower, 0.0), lower, point, squares, off, near)
            gauge = gauge_of(problem, point.columns, point.weights)
            objective = objective_at(problem, point.weights, prediction, gauge)
            enough = 1e-6 * abs(objective)
            if math.isfinite(cutoff):
                enough = max(enough, 0.05 * (cutoff - best.lower))
            gap = objective - lower
            if best.lower >= cutoff or gap <= enough or problem.deadline.use_step():
                break
            if columns.size > self.room:
                break
            wanted = (fixed == 0) & (squares > bar * (1.0 + 1e-9))
            wanted[self.units.of(columns)] = False
            new = np.flatnonzero(wanted)
            if not new.size and not (self.quadratic or self._modelling):
                break
            most = max(20, used.size)
            if new.size > most:
                new = new[np.argpartition(-squares[new], most)[:most]]
            columns = np.append(columns, self.units.columns(new))
            weights = np.append(weights, np.zeros(columns.size - weights.size))
        assert best is not None
        best.lower = best.lower + paid
        best.dual = best.dual + paid
        return best

    def off(self, dual: Array) -> float:
        """Return a bound on the rounding of a score, or of the rating of a group."""
        return rounded_scores(dual, self._longest)

    def _of(self, norm: BranchNorm, design: object) -> Problem:
        regularizer = replace(self.problem.regularizer, norm=norm)
        return replace(self.problem, design=design, regularizer=regularizer)  # type: ignore[arg-type]

    def _refit(
        self, norm: BranchNorm, columns: Columns, weights: Array, intercept: float, target: float
    ) -> tuple[Array, float, Array]:
        """Return weights, intercept and predictions of the relaxed problem over these columns."""
        problem = self.problem
        inner = norm.restrict(columns, problem.design.shape[1])
        if not self.quadratic or self.units.partition is not None:
            places = self._gathered(columns)
            restricted = self._of(inner, CachedBlock(self._block.inner.gather(places)))
            restricted = with_deadline(restricted, Deadline(work=Work(WORK)))
            refit = choose_master(restricted).solve(restricted, weights, intercept, target)
            return refit.weights, refit.intercept, refit.prediction
        H, pull, places = self._model(columns)
        weights = self._modelled(inner, H, pull, places, weights)
        used = np.flatnonzero(weights)
        linear = self._block.inner.gather(places[used]).predict(weights[used])
        intercept = optimal_intercept(problem, linear, intercept)
        return weights, intercept, linear + intercept

    def _modelled(
        self, inner: BranchNorm, H: Array, pull: Array, places: Columns, weights: Array
    ) -> Array:
        """Return weights nearer to argmin of 1/2 w'Hw - pull'w + the norm over these columns."""
        inside = np.flatnonzero(inner.fixed == IN)
        free = np.flatnonzero(inner.fixed == 0)
        order = np.concatenate([free, inside])
        found = weights[order]
        given = H, places[free], places[inside], pull, found
        k = inner.k
        level = self.level
        least = inner.least
        most = STEPS if free.size <= MANY else 1
        for _ in range(0, STEPS, most):
            made = branch_newton(*given, k=k, level=level, least=least, most=most)
            if made < most or self.problem.deadline.use_step():
                break
        weights = np.zeros(weights.size)
        weights[order] = found
        return weights

    def _toward(
        self, norm: BranchNorm, columns: Columns, weights: Array, intercept: float, target: float
    ) -> tuple[Array, float, Array]:
        """Return the same as ``_refit``, less exactly if f is not quadratic.

        Each step goes to the minimum of a model of f, with the slope there and one H for all
        branches, or as far as the objective decreases.
        """
        if self.quadratic or not self._modelling:
            return self._refit(norm, columns, weights, intercept, target)
        H, _, places = self._model(columns)
        H = H[np.ix_(places, places)]
        here = np.arange(columns.size)
        block = self._block.inner.gather(places)
        inner = norm.restrict(columns, self.units.count)
        problem = self._of(inner, block)
        linear = block.predict(weights)
        intercept = optimal_intercept(problem, linear, intercept)
        value = began = objective_at(problem, weights, linear + intercept)
        for _ in range(WORKING):
            slope = block.scores(negative_gradient(problem, linear + intercept)).full()
            move = self._modelled(inner, H, slope + H @ weights, here, weights) - weights
            ahead = block.predict(move)
            before = value
            for length in 0.5 ** np.arange(HALVINGS):
                there = linear + length * ahead
                b = optimal_intercept(problem, there, intercept)
                trial = objective_at(problem, weights + length * move, there + b)
                if trial < value:
                    weights = weights + length * move
                    linear = there
                    intercept = b
                    value = trial
                    break
            if not before - value > 10.0 * target:
                break
        if not value < began:
            return self._refit(norm, columns, weights, intercept, target)
        return weights, intercept, linear + intercept

    def _gathered(self, columns: Columns) -> Columns:
        """Return the places of columns in the block, to which missing columns are appended."""
        with self._lock:
            fresh = columns[self._place[columns] < 0]
            if fresh.size:
                size = self._block.shape[1]
                gathered = self.problem.design.gather(fresh)
                self._block = self._block.append(gathered)
                self._pull = np.append(self._pull, gathered.scores(self._slope).full())
                self._place[fresh] = np.arange(size, size + fresh.size)
            return self._place[columns]

    def _model(self, columns: Columns) -> tuple[Array, Array, Columns]:
        """Return H and p of f(X w) = 1/2 w'Hw - p'w + constant, and the places of columns there."""
        places = self._gathered(columns)
        problem = self.problem
        free = free_columns(problem.loss)
        with self._lock:
            kept = self._block.growing_gram(
                self._curvature, problem.fit_intercept, None if free is None else free.basis
            )
            return kept.matrix, self._pull, places


def longest(problem: Problem, units: Choices, near: Columns | None = None) -> float:
    """Return the length of the longest column of X, times the square root of the largest group.

    If columns are too many to list, only those ``near`` are measured.
    """
    design = problem.design
    used = counted(problem.weight)
    if design.listable:
        columns = np.arange(design.shape[1])
        squares = design.squared_norms(used)
    else:
        assert near is not None
        columns = near
        squares = design.gather(near).squared_norms(used)
    # Scores of columns that the design centers itself are sums over the columns before.
    lengths = np.sqrt(squares) + math.sqrt(design.shape[0]) * design.taken_off(columns)
    return float(lengths.max(initial=0.0)) * math.sqrt(units.largest)


def rounded_scores(dual: Array, longest: float) -> float:
    """Return a bound on the rounding of a score, or of the rating of a group."""
    # Twice, because v sums to 0 only up to rounding.
    return 2.0 * growth(dual.size) * float(np.linalg.norm(dual)) * longest


def dual_value(
    problem: Problem,
    norm: BranchNorm,
    prediction: Array,
    dual: Array,
    squares: Array,
    off: float,
) -> float:
    """Return the lower bound of one dual point, for scores with errors up to ``off``.

    The result is -inf if a step overflowed.
    """
    conjugate, lost = dual_part(problem, prediction, dual)
    most = norm.counted((np.sqrt(squares) + off) ** 2)
    value = (
        -conjugate - lost - most * (1.0 + growth(squares.size)) / (2.0 * problem.regularizer.amount)
    )
    return value if math.isfinite(value) else -math.inf
