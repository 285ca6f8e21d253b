"""Convex relaxation of a branch-and-bound node, solved by column generation with a dual bound."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import branch_newton
from atomlearn._support import EPS, Deadline, TimeIsUp, Work, counted, growth
from atomlearn.core import (
    Array,
    CachedBlock,
    Columns,
    Problem,
    Scores,
    changed,
    choose_master,
    dual_part,
    free_columns,
    gauge_of,
    is_perfect,
    is_quadratic,
    loss_at_zero,
    negative_gradient,
    objective_at,
    optimal_intercept,
)
from atomlearn.subsets.fit import ridge_fit
from atomlearn.subsets.norm import IN, OUT, BranchNorm, Choices

#: Maximum number of Newton steps of one kernel call; the next round continues them.
STEPS = 10
#: Number of columns beyond which the deadline is checked after each step.
MANY = 2000
#: Child nodes start with columns whose squared score is at least this share of the entry threshold.
NEAR = 0.95
#: Maximum number of quadratic models of the loss between two passes, and of halvings of one step.
WORKING = 3
HALVINGS = 8
#: Largest number of rounds of column generation for one node.
ROUNDS = 60
#: Relative gap of the ridge fit of a subset, so that equal subsets have equal objectives.
ACCURACY = 1e-10
#: Maximum number of steps of one restricted master problem; any dual point proves a valid bound.
WORK = 50


@dataclass(slots=True)
class RelaxedPoint:
    """A primal point: m columns, their weights (m,), and the intercept; other weights are 0."""

    columns: Columns
    weights: Array
    intercept: float


@dataclass(slots=True)
class Bound:
    """Lower bounds of a node from one dual point v of its relaxation, with the primal point."""

    #: Lower bound on the optimum of the relaxation: at least the prices of the units fixed in.
    lower: float
    #: Dual objective at v, of any sign. Fixing a unit adds a difference of squared scores to it.
    dual: float
    point: RelaxedPoint
    #: Squared scores (x_j'v)^2 of columns, or squared ratings of groups, (n_units,).
    squares: Array
    #: Bound on the rounding error of a score.
    error_of_score: float
    #: Columns with a nonzero weight or with a score near the entry threshold, for a warm start.
    near: Columns


#: A node to be bounded: norm, warm start, first columns, and the objective at which it is pruned.
NodeTask = tuple[BranchNorm, RelaxedPoint, Columns, float]


class Relaxation:
    """Solver of the convex relaxations of all nodes, and of the ridge fits of subsets.

    They share a cache of gathered columns and their Gram matrix. A unit is a column, or a group of
    columns if the norm has groups. Below f is the mean loss as a function of the predictions, and
    ``level`` the weight of the ridge. An intercept, or unpenalized columns, are minimized out of f.
    H is the Hessian of f(X w) at w = 0; for a quadratic f it is the Hessian at all w.

    Parameters
    ----------
    problem : Problem
        The loss with the squared k-support norm, over columns that can be listed.
    price : float
        Added to the objective for each selected unit (an l0 penalty).
    accuracy : float
        Relative gap of the ridge fit of a subset.
    most_columns : int
        Largest number of columns that are gathered for one node, and cached for the next ones.
    """

    def __init__(
        self,
        problem: Problem,
        price: float = 0.0,
        accuracy: float = ACCURACY,
        most_columns: float = math.inf,
    ) -> None:
        """Start with an empty cache, and compute the derivatives of f at w = 0."""
        self.problem = problem
        self.level = problem.regularizer.amount
        self.price = price
        self.accuracy = accuracy
        self.most_columns = most_columns
        self.units = Choices(problem)
        # With unpenalized columns the loss is minimized over them; ``plain`` is the loss before.
        free = free_columns(problem.loss)
        plain = problem.loss if free is None else free.inner
        #: Whether f is quadratic, so that its Hessian is the same at all points.
        self.quadratic = is_quadratic(plain) and (free is None or free.separable)
        self._lock = threading.Lock()
        self._clear_cache()
        self._largest_norm = largest_norm(problem, self.units)
        zero = np.zeros(problem.y.size)
        zero = zero + optimal_intercept(problem, zero)  # the predictions at w = 0
        self._slope = negative_gradient(problem, zero)  # at w = 0, (n_samples,)
        #: Second derivatives of f at w = 0, (n_samples,), from which the Hessian H is computed.
        self._curvature = problem.weight
        #: Objective that counts as 0 for losses whose curvature is unbounded, such as exponentials.
        unbounded = not math.isfinite(plain.curvature_bounds[1])
        self._zero_level = 1e-3 * EPS * loss_at_zero(problem) if unbounded else 0.0
        #: Whether H serves as a quadratic model of f: its curvature is bounded, without groups.
        self._has_model = self.units.partition is None and math.isfinite(plain.curvature_bounds[1])
        if not self.quadratic:
            self._curvature = problem.loss.curvature(problem.y, zero, problem.weight)

    def _clear_cache(self) -> None:
        """Empty the cache of columns: their positions in it, their values, and -grad f(X w) at 0.

        The position of a column that is not cached is -1.
        """
        self._position_of = np.full(self.problem.design.shape[1], -1, dtype=np.int64)
        self._block = CachedBlock(self.problem.design.gather(np.zeros(0, dtype=np.int64)))
        self._linear_term = np.zeros(0)

    def unit_norms(self, point: RelaxedPoint) -> Array:
        """Return the Euclidean norm of the weights of each unit at ``point``, (n_units,)."""
        units = self.units.of(point.columns)
        return np.sqrt(np.bincount(units, point.weights**2, minlength=self.units.count))

    def fit(self, units: Columns) -> tuple[RelaxedPoint, float, float, bool]:
        """Return the ridge fit of ``units``, its objective, a lower bound, and whether it is 0.

        The lower bound is the objective minus the duality gap. Both include the prices of the
        units. The bound is at least the prices, because f and the ridge are never negative. The
        last result is True if the objective, without any price, is 0 up to rounding.
        """
        # With these units fixed in and k = 0 free ones, the norm is ||w||_2 over their columns.
        fixed = np.full(self.units.count, OUT, dtype=np.int8)
        fixed[units] = IN
        columns = np.sort(self.units.columns(units))
        norm = self.norm(0, fixed).restrict(columns, self.problem.design.shape[1])
        gram = None
        if self.quadratic:
            H, _, positions = self.model(columns)
            gram = H[np.ix_(positions, positions)]
        positions = self._gathered(columns)
        block = self._block.inner.gather(positions)
        # Trial steps may overflow for losses that grow fast.
        with np.errstate(over="ignore", invalid="ignore"):
            point = ridge_fit(self._problem_with(norm, block), self.accuracy, gram)
        objective = point.objective + self.price * units.size
        lower = max(objective - point.certificate.gap, self.price * units.size)
        perfect = objective <= self._zero_level or (
            objective == point.objective and is_perfect(self.problem, point.certificate)
        )
        return RelaxedPoint(columns, point.weights, point.intercept), objective, lower, perfect

    def prediction(self, point: RelaxedPoint) -> Array:
        """Return the predictions X w + b of a point, (n_samples,), with the best intercept b."""
        positions = self._gathered(point.columns)
        linear = self._block.inner.gather(positions).predict(point.weights)
        return linear + optimal_intercept(self.problem, linear, point.intercept)

    def dense(self, columns: Columns) -> Array:
        """Return these columns of X as a dense float64 array, (n_samples, m)."""
        positions = self._gathered(columns)
        return np.asarray(self._block.inner.gather(positions).dense(), dtype=np.float64)

    def norm(self, k: int, fixed: NDArray[np.int8]) -> BranchNorm:
        """Return the norm of the relaxation of a node.

        ``k`` is the largest number of free units, and ``fixed`` (n_units,) is 1 for units that are
        in, -1 for units that are out, and 0 for free ones.
        """
        return BranchNorm(k, fixed, self.units.partition, self.price, self.level)

    def bounds(
        self, branches: Sequence[NodeTask], pool: ThreadPoolExecutor | None = None
    ) -> list[Bound | None]:
        """Return the bound of each node from its convex relaxation, None after the deadline.

        ``branches`` has the norm, the warm start, the first columns and the cutoff of each
        node. A relaxation is solved until its bound reaches the cutoff, which prunes the
        node, or until its duality gap is small. The relaxations run in lockstep and share
        each pass over the data. The first node is always solved, even after the deadline.
        ``pool`` runs the relaxations in several threads.
        """
        if self._block.shape[1] > self.most_columns:
            self._clear_cache()
        # Each solver is a generator: it yields a dual point v and receives the scores X'v.
        solvers = [self._steps(*branch) for branch in branches]
        bounds: dict[int, Bound | None] = {}
        scores_of: dict[int, Scores | None] = dict.fromkeys(range(len(solvers)))

        def advance(number: int) -> Array | None:
            """Run the solver of node ``number`` to its next dual point (n_samples,); return it.

            The solver first receives its last scores. If it ends, its bound is stored in
            ``bounds``, and the result is None. The deadline also ends the loops inside a step
            (``kept``).
            """
            # A node other than the first is not begun after the deadline.
            if number and scores_of[number] is None and self.problem.deadline.use_step():
                bounds[number] = None
                return None
            try:
                # Trial steps may overflow if the loss grows exponentially.
                with np.errstate(over="ignore", invalid="ignore"), self.problem.deadline.kept():
                    return solvers[number].send(scores_of[number])  # type: ignore[arg-type]
            except StopIteration as end:
                bounds[number] = end.value
            except TimeIsUp:
                bounds[number] = None
            return None

        # One round advances all solvers that have not ended, then computes their scores at once.
        while scores_of:
            duals = list((map if pool is None else pool.map)(advance, scores_of))
            dual_of = {i: v for i, v in zip(scores_of, duals, strict=True) if v is not None}
            V = np.array(list(dual_of.values()))
            design = self.problem.design
            scores = design.scores_many(V.T) if len(V) > 1 else map(design.scores, V)
            scores_of = dict(zip(dual_of, scores, strict=True))
        return [bounds[number] for number in range(len(solvers))]

    def _steps(
        self, norm: BranchNorm, start: RelaxedPoint, near: Columns, cutoff: float
    ) -> Generator[Array, Scores, Bound]:
        """Solve the relaxation of a node by column generation, and return its best bound.

        A round re-fits the weights of the current columns, computes a lower bound from the scores
        of all columns, and adds the columns whose scores exceed the entry threshold. The generator
        yields the dual point v (n_samples,) of each round, and receives the scores X'v.

        ``norm`` has the fixed units, ``start`` is the warm start, and ``near`` has the columns of
        the first round. At the lower bound ``cutoff`` the node is pruned, so the rounds end. Far
        below the cutoff the node is split anyway, so a larger gap is enough. Without new columns
        the rounds end, unless the re-fit makes a limited number of Newton steps: then the next
        round continues it.
        """
        problem = self._problem_with(norm, self.problem.design)
        fixed = norm.fixed
        fixed_columns = self.units.columns(np.flatnonzero(fixed == IN))
        columns = np.union1d(fixed_columns, near)
        columns = columns[fixed[self.units.of(columns)] != OUT]
        all_weights = np.zeros(problem.design.shape[1])
        all_weights[start.columns] = start.weights
        weights = all_weights[columns]
        intercept = start.intercept
        # The prices of the units fixed in are added to the bounds at the end.
        constant = self.price * np.count_nonzero(fixed == IN)
        best = None
        cutoff -= constant
        for _ in range(ROUNDS):
            target = 1e-6 * abs(cutoff) if math.isfinite(cutoff) else 1e-6 * loss_at_zero(problem)
            refit = self._refit_inexactly(norm, columns, weights, intercept, target)
            weights, intercept, prediction = refit
            support = np.flatnonzero(weights)
            point = RelaxedPoint(columns[support], weights[support], intercept)
            # The lower bound of the dual point; the best bound of all rounds is kept.
            dual = negative_gradient(problem, prediction)
            squares = norm.squares((yield dual))  # (x_j'v)^2 of all units
            unit_norms = self.unit_norms(point)
            # At the optimum a free unit of weight 0 has a squared score of at most ``threshold``.
            threshold = (self.level * norm.entry_threshold(unit_norms)) ** 2
            error = self.error_of_score(dual)
            lower = dual_value(problem, norm, prediction, dual, squares, error)
            if best is None or lower > best.dual:
                is_near = (squares >= NEAR * threshold) | (unit_norms > 0.0)
                near = self.units.columns(np.flatnonzero(is_near))
                best = Bound(max(lower, 0.0), lower, point, squares, error, near)
            # The duality gap of the relaxation, and whether it is small enough.
            gauge = gauge_of(problem, point.columns, point.weights)
            objective = objective_at(problem, point.weights, prediction, gauge)
            small_gap = 1e-6 * abs(objective)
            if math.isfinite(cutoff):
                small_gap = max(small_gap, 0.05 * (cutoff - best.lower))
            gap = objective - lower
            if best.lower >= cutoff or gap <= small_gap or problem.deadline.use_step():
                break
            if columns.size > self.most_columns:
                break
            # The free units above the entry threshold join, at most ``limit`` of them.
            is_violated = (fixed == 0) & (squares > threshold * (1.0 + 1e-9))
            is_violated[self.units.of(columns)] = False
            new = np.flatnonzero(is_violated)
            if not new.size and not (self.quadratic or self._has_model):
                break
            limit = max(20, support.size)
            if new.size > limit:
                new = new[np.argpartition(-squares[new], limit)[:limit]]
            columns = np.append(columns, self.units.columns(new))
            weights = np.append(weights, np.zeros(columns.size - weights.size))
        assert best is not None
        best.lower = best.lower + constant
        best.dual = best.dual + constant
        return best

    def error_of_score(self, dual: Array) -> float:
        """Return a bound on the rounding error of a score x_j'v, or of the rating of a group.

        ``dual`` is the dual point v (n_samples,).
        """
        return rounding_of_scores(dual, self._largest_norm)

    def _problem_with(self, norm: BranchNorm, design: object) -> Problem:
        """Return the problem with another norm and another design (or block of columns)."""
        regularizer = self.problem.regularizer.of(norm)
        return replace(self.problem, design=design, regularizer=regularizer)  # type: ignore[arg-type]

    def _refit(
        self, norm: BranchNorm, columns: Columns, weights: Array, intercept: float, target: float
    ) -> tuple[Array, float, Array]:
        """Solve the restricted master problem; return weights, intercept and predictions.

        It is the relaxation over ``columns`` (m,) only, with the norm ``norm`` of the node.
        ``weights`` (m,) and ``intercept`` are the warm start, and ``target`` is the absolute
        duality gap. The results are (m,), a float and (n_samples,). The number of steps is limited
        by WORK, because any dual point proves a valid bound.
        """
        problem = self.problem
        inner = norm.restrict(columns, problem.design.shape[1])
        if not self.quadratic or self.units.partition is not None:
            positions = self._gathered(columns)  # may replace ``_block``
            block = CachedBlock(self._block.inner.gather(positions))
            restricted = self._problem_with(inner, block)
            restricted = changed(restricted, deadline=Deadline(work=Work(WORK)))
            refit = choose_master(restricted).solve(restricted, weights, intercept, target)
            return refit.weights, refit.intercept, refit.prediction
        # For a quadratic f and single columns, the model is exact.
        H, linear_term, positions = self.model(columns)
        weights = self._newton_on_model(inner, H, linear_term, positions, weights)
        support = np.flatnonzero(weights)
        linear = self._block.inner.gather(positions[support]).predict(weights[support])
        intercept = optimal_intercept(problem, linear, intercept)
        return weights, intercept, linear + intercept

    def _newton_on_model(
        self, inner: BranchNorm, H: Array, linear_term: Array, positions: Columns, weights: Array
    ) -> Array:
        """Return weights (m,) that lower the model 1/2 w'Hw - p'w + level / 2 norm(w)^2.

        It does up to STEPS Newton steps from ``weights``. H (M, M) and p = ``linear_term`` (M,) are
        over all M cached columns. The m columns of w have the ``positions`` (m,) among these, and
        ``inner`` is the norm over the m columns.
        """
        # The kernel needs free columns first, then fixed ones, and changes ``ordered`` in place.
        fixed_units = np.flatnonzero(inner.fixed == IN)
        free = np.flatnonzero(inner.fixed == 0)
        order = np.concatenate([free, fixed_units])
        ordered = weights[order]
        arguments = H, positions[free], positions[fixed_units], linear_term, ordered
        k = inner.k
        level = self.level
        least = inner.least  # the |w_j| above which a column has its full price
        # With many columns the deadline is checked after each gradient step and Newton step.
        limit = STEPS if free.size <= MANY else 2
        for _ in range(0, STEPS, limit):
            n_steps = branch_newton(*arguments, k=k, level=level, least=least, most=limit)
            if n_steps < limit or self.problem.deadline.use_step():
                break
        weights = np.zeros(weights.size)
        weights[order] = ordered
        return weights

    def _refit_inexactly(
        self, norm: BranchNorm, columns: Columns, weights: Array, intercept: float, target: float
    ) -> tuple[Array, float, Array]:
        """Solve the restricted master problem, inexactly for non-quadratic f.

        It is the relaxation over ``columns`` (m,) only, with the norm ``norm`` of the node.
        ``weights`` (m,) and ``intercept`` are the warm start, and ``target`` is the
        absolute duality gap. The results are the weights, the intercept and the predictions
        (n_samples,).

        Each step minimizes a quadratic model of f, with the gradient at the current point
        and the Hessian H at w = 0. Backtracking then shortens the step. The steps end if one
        gains less than the requested accuracy. If no step lowers the objective, ``_refit``
        solves the problem.
        """
        if self.quadratic or not self._has_model:
            return self._refit(norm, columns, weights, intercept, target)
        H, _, positions = self.model(columns)
        H = H[np.ix_(positions, positions)]
        all_positions = np.arange(columns.size)
        block = self._block.inner.gather(positions)
        inner = norm.restrict(columns, self.units.count)
        problem = self._problem_with(inner, block)
        linear = block.predict(weights)
        intercept = optimal_intercept(problem, linear, intercept)
        value = start_value = objective_at(problem, weights, linear + intercept)
        for _ in range(WORKING):
            slope = block.scores(negative_gradient(problem, linear + intercept)).full()
            linear_term = slope + H @ weights
            model_weights = self._newton_on_model(inner, H, linear_term, all_positions, weights)
            direction = model_weights - weights
            change = block.predict(direction)
            previous = value
            # The first step length of 1, 1/2, 1/4, ... that lowers the objective is taken.
            for length in 0.5 ** np.arange(HALVINGS):
                trial_linear = linear + length * change
                b = optimal_intercept(problem, trial_linear, intercept)
                trial = objective_at(problem, weights + length * direction, trial_linear + b)
                if trial < value:
                    weights = weights + length * direction
                    linear = trial_linear
                    intercept = b
                    value = trial
                    break
            if not previous - value > 10.0 * target:
                break
        if not value < start_value:
            return self._refit(norm, columns, weights, intercept, target)
        return weights, intercept, linear + intercept

    def _gathered(self, columns: Columns) -> Columns:
        """Return the positions of ``columns`` (m,) in the cached block, (m,).

        Missing columns are gathered first; a longer block then replaces ``_block``.
        """
        with self._lock:
            fresh = columns[self._position_of[columns] < 0]
            if fresh.size:
                size = self._block.shape[1]
                gathered = self.problem.design.gather(fresh)
                self._block = self._block.append(gathered)
                self._linear_term = np.append(
                    self._linear_term, gathered.scores(self._slope).full()
                )
                self._position_of[fresh] = np.arange(size, size + fresh.size)
            return self._position_of[columns]

    def model(self, columns: Columns) -> tuple[Array, Array, Columns]:
        """Return H and p of the quadratic model f(X w) ~ 1/2 w'Hw - p'w + const, and positions.

        H (M, M) and p (M,) are over all M cached columns. The model is the second-order expansion
        of f at w = 0, with the intercept minimized out. The third result, (m,), has the positions
        of the m ``columns`` in H and p.
        """
        positions = self._gathered(columns)
        problem = self.problem
        free = free_columns(problem.loss)
        with self._lock:
            gram = self._block.growing_gram(
                self._curvature, problem.fit_intercept, None if free is None else free.basis
            )
            return gram.matrix, self._linear_term, positions


def largest_norm(problem: Problem, units: Choices, near: Columns | None = None) -> float:
    """Return the largest norm of a column of X times the square root of the largest group size.

    ``units`` has the group of each column. If there are too many columns to list, only the columns
    ``near`` are used. Samples of weight 0 are left out. ``rounding_of_scores`` multiplies the
    result into its bound on rounding errors.
    """
    design = problem.design
    is_counted = counted(problem.weight)
    if design.listable:
        columns = np.arange(design.shape[1])
        squares = design.squared_norms(is_counted)
    else:
        assert near is not None
        columns = near
        squares = design.gather(near).squared_norms(is_counted)
    # If the design centers its columns implicitly, scores are computed from uncentered columns,
    # whose norms are larger by at most this term.
    lengths = np.sqrt(squares) + math.sqrt(design.shape[0]) * design.subtracted_offsets(columns)
    return float(lengths.max(initial=0.0)) * math.sqrt(units.largest)


def rounding_of_scores(dual: Array, largest: float) -> float:
    """Return a bound on the rounding error of a score x_j'v, or of the rating of a group.

    It is 2 growth(n) ||v|| largest, with v = ``dual`` (n_samples,), ``largest`` the result of
    ``largest_norm``, and growth(n) the relative rounding error of a sum of n terms.
    """
    # The factor 2 is there because v sums to 0 only up to rounding.
    return 2.0 * growth(dual.size) * float(np.linalg.norm(dual)) * largest


def dual_value(
    problem: Problem, norm: BranchNorm, prediction: Array, dual: Array, squares: Array, error: float
) -> float:
    """Return the dual objective at v = ``dual``, a lower bound on the relaxation of a node.

    It is -f*(-v) - polar(X'v)^2 / (2 level). Here f* is the conjugate of the mean loss, polar is
    the dual norm of ``norm``, and level is the weight of the ridge. The value is lowered by bounds
    on rounding errors: ``error`` is the bound for one score. ``squares`` (n_units,) are the squared
    scores (x_j'v)^2, and v is the negative gradient of the loss at ``prediction`` (n_samples,). The
    result is -inf if a value overflowed.
    """
    conjugate, rounding = dual_part(problem, prediction, dual)  # f*(-v), bound on its error
    squared_polar = norm.squared_polar((np.sqrt(squares) + error) ** 2)
    polar_term = squared_polar * (1.0 + growth(squares.size)) / (2.0 * problem.regularizer.amount)
    value = -conjugate - rounding - polar_term
    return value if math.isfinite(value) else -math.inf
