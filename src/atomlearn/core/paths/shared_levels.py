"""SharedLevels: a regularization path by screening, with one pass over X for several levels.

As in sequential strong rules, the next levels are solved over a pool of columns that are likely to
be active, and one pass over X then computes the certificates of all these levels. Each level has
its own certificate, so that a wrong guess of the columns costs time, not correctness. A level is
final once its gap is small enough; for the others, columns with large scores join the pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import TINY, Array, Columns, Design, Scores, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.masters.choose import choose_master
from atomlearn.core.masters.master import block_of
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.levels import dual_at_zero
from atomlearn.core.paths.pool import JOINING, WHOLE, Point, Pool
from atomlearn.core.paths.sweep import Sweep, can_sweep
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    enter,
    negative_gradient,
    negligible_objective,
    objective_at,
    optimal_intercept,
    over_sums,
    restrict,
    shrink_inside,
    with_amount,
    with_deadline,
    with_ridge,
)
from atomlearn.core.problem.proof import prove
from atomlearn.core.problem.result import Result
from atomlearn.core.problem.rounding import Lengths
from atomlearn.core.solvers.progress import Resumed
from atomlearn.core.solvers.run import Run, RunSettings
from atomlearn.core.solvers.schedule import Answer, Question, Task
from atomlearn.core.solvers.solver import State, checked_warm_start

#: Maximum number of levels that are solved before one pass over X certifies all of them.
AHEAD = 16
#: A column joins the pool if its rating is at least this fraction of the level's reference, the
#: rating of the columns in use at the optimum; such columns are likely active at the next level.
SHARE = 0.6
#: Maximum number of columns that join after a pass if the rows are on other machines.
SUMMED = 200


class Level(Run):
    """The run of one level of the path, with its last point over the pool.

    Attributes
    ----------
    point : Point, optional
    readings : int
        Readings of X that priced a point of the level.
    own_steps : bool
        Whether its re-fit over the pool failed, so that a solver has to make its steps.
    """

    point: Point | None = None
    readings = 0
    own_steps = False
    _result: Result | None = None

    def begin_once(self) -> None:
        """Call the observers at the begin, unless they were called to resume the level."""
        if self.point is None and not self.readings and not self.resumes:
            self.begin()

    def result(self) -> Result:
        """Return the result of a final level, without the solver's state."""
        if self._result is None:
            self._result = super().result()
            self._result.state = None
        return self._result


class SharedLevels(Task):
    """The levels of one path, which share readings of X with each other and with other paths.

    Parameters
    ----------
    problem : Problem
        At any level.
    levels : (n_levels,)
        In their order.
    settings : RunSettings
    gap : float
        Relative gap to prove.
    pool : Pool
        Columns that may matter.
    zero : Scores, optional
        Scores at w = 0 if they are known.
    reached : callable, optional
        Returns whether a level is the last one.
    last : callable, optional
        Returns the number of the level at which other paths have ended this one, or None.
    """

    def __init__(
        self,
        problem: Problem,
        levels: Array,
        settings: RunSettings,
        gap: float,
        pool: Pool,
        zero: Scores | None = None,
        reached: Reached | None = None,
        last: Callable[[], int | None] | None = None,
    ) -> None:
        self.problem = problem
        self.pool = pool
        self.gap = gap
        self.reached = reached
        self.last = last
        inner = over_sums(center_targets(problem))
        #: The design of rows that are elsewhere, which this task reads itself; else None.
        self.elsewhere: Design | None = None
        if inner.design is not problem.design:
            self.elsewhere = inner.design
        self.inner, self.lift = enter(inner, settings.solver.lifts)
        n_samples, n_features = self.inner.design.shape
        fits = n_samples * n_features <= WHOLE and n_features <= JOINING
        #: Whether the pool holds all columns; else the scores at zero fill it.
        self.whole = fits and self.inner.design.listable and self.elsewhere is None
        self.levels = [
            Level(with_amount(problem, level), with_amount(self.inner, level), self.lift, settings)
            for level in levels.tolist()
        ]
        #: The columns of the pool with what their masters keep.
        self.block = CachedBlock(pool.block)
        #: That of the last proved level, of zero at first; 0 if the pool holds all columns.
        self.last_reference = 0.0
        self.batch: list[Level] = []
        #: Scores that ``learn`` has to use in place of those of a reading by ``drive``.
        self.answer = None if zero is None else Answer([zero], 1)
        self.resumed: list[Resumed | None] = []
        self.sweep: Sweep | None = None
        self.begun = False
        self.n_checked = 0
        n_samples, n_features = problem.design.shape
        self.work = float(AHEAD * n_samples * min(n_features, JOINING))

    def advance(self) -> Question | None:
        """Solve the next levels over the pool; return the question to the data."""
        if self.begun:
            self.batch = self._swept() or self._solved()
            question = self._question() if self.batch else None
        else:
            question = self._first_question()
        if question is None or self.elsewhere is None:
            return question
        scores = self.elsewhere.scores_many(np.column_stack(question.vectors))
        self.answer = Answer(scores, len(question.vectors))
        return None

    def learn(self, answer: Answer | None) -> None:
        """Certify the levels; the columns that matter to the others join the pool."""
        answer = answer or self.answer
        self.answer = None
        scores = [] if answer is None else list(answer.scores)
        if self.lift is not None:
            scores = [self.lift.expansion.scores(z) for z in scores]
        if not self.begun:
            self.begun = True
            self._fill(scores[0] if scores else None)
            return
        if answer is not None:
            self._certify(scores, answer.n_vectors)
        by_steps = [level for level in self.levels if level.own_steps and level.status is None]
        for level in by_steps:
            self._make_steps(level)
        self._cut()
        if not (answer or by_steps) or all(level.status for level in self.levels):
            self._finish()

    def interrupt(self) -> None:
        """End with the levels that have a point with a proof."""
        for level in self.levels:
            if level.status is None and level.best is not None:
                level.status = Status.INTERRUPTED
        self._finish()

    def _finish(self) -> None:
        """Take the results in their order, up to the first level without one."""
        self.done = True
        self.results = []
        for level in self.levels:
            if level.status is None:
                break
            self.results.append(level.result())
            if level.status is Status.INTERRUPTED:
                break

    def _first_question(self) -> Question | None:
        """Return the question for the scores at zero; None if they are known or not needed."""
        if self.levels[0].resumes:
            self.resumed = [level.begin() for level in self.levels]
        if self.whole or self.answer is not None or any(self.resumed):
            return None
        return Question([dual_at_zero(self.inner)], None)

    def _fill(self, zero: Scores | None) -> None:
        """Let the first columns join the pool, and take up the points that a checkpoint kept."""
        n_samples, n_features = self.inner.design.shape
        norm = self.inner.regularizer.norm
        if self.whole and not self.pool.columns.size:
            self.pool.add(np.arange(n_features))
        elif not self.whole and zero is not None:
            self.last_reference = norm.reference(zero)
            if self.elsewhere is None:
                likely = norm.best_columns(zero, min(max(500, n_samples), JOINING))
            else:  # each column costs products with all others
                likely = norm.rated(zero, SHARE * self.last_reference)
            self._add(likely)
        for level, kept in zip(self.levels, self.resumed, strict=False):
            if kept is None:
                continue
            warm = checked_warm_start(WarmStart.of_arrays(kept.arrays), level.inner)
            self.pool.add(warm.columns[: self.pool.room])
            positions = self.pool.positions(warm.columns)
            if (positions >= 0).all():
                # The re-fit finds shift and prediction, once the pool has the columns.
                level.point = Point(positions, warm.weights, warm.intercept, np.zeros(0))

    def _add(self, columns: Columns) -> int:
        """Let the first of these columns join the pool; return how many are new."""
        most = JOINING if self.elsewhere is None else SUMMED
        return self.pool.add(columns[: min(most, self.pool.at_once)])

    def _swept(self) -> list[Level]:
        """Solve all levels at once by ``Sweep``; return those solved, [] if it does not apply."""
        if not self.whole or any(level.point is not None for level in self.levels):
            return []
        self.pool.settle()
        if not can_sweep(self.inner, self.pool):
            return []
        with self.levels[0].clocked():
            amounts = np.array([level.inner.regularizer.amount for level in self.levels])
            sweep = Sweep(self.inner, self.pool, amounts)
        batch = self.levels[: sweep.levels.size]
        for level, point in zip(batch, sweep.points(), strict=True):
            level.begin_once()
            level.point = point
        if batch:
            self.sweep = sweep
        return batch

    def _solved(self) -> list[Level]:
        """Solve the next open levels over the pool, and return them; [] if all are final."""
        self.pool.settle()
        open_levels = [k for k, level in enumerate(self.levels) if level.status is None]
        # Once the time is out, one reading proves the gaps of all levels. The same reading serves
        # all points that a checkpoint kept.
        kept = any(level.point is not None and not level.readings for level in self.levels)
        all_at_once = kept or self.problem.deadline.passed
        sure = (0.5 if self.elsewhere is None else 1.0) * SHARE * self.last_reference
        batch: list[Level] = []
        before: Point | None = None
        for number in open_levels if all_at_once else open_levels[:AHEAD]:
            if before is not None and before.reference < sure and not all_at_once:
                break  # the columns of one more level are likely not in the pool
            level = self.levels[number]
            level.begin_once()
            start = level.point or before or (self.levels[number - 1].point if number else None)
            try:
                with level.clocked():
                    before = self._refitted(level, start)
                    level.point = before
            except FloatingPointError:  # a step beyond the floats
                level.own_steps = True
                break
            batch.append(level)
        return batch

    def _refitted(self, level: Level, start: Point | None) -> Point:
        """Return the solution of a level over the pool, warm-started from the point ``start``."""
        problem = with_deadline(level.inner, level.deadline)
        columns = self.pool.columns
        if self.block.shape[1] < columns.size:
            self.block = self.block.grown(self.pool.block)
        weights = np.zeros(columns.size)
        shift = 0.0
        if start is not None:
            weights[start.positions] = start.weights
            shift = start.shift
        weights = shrink_inside(problem, columns, weights)
        whole = restrict(problem, self.block, columns)
        guess = None
        if level.point is None and not problem.deadline.passed:
            guess = choose_master(whole).guess(whole, weights, shift)
        if guess is not None:
            weights, shift, _ = guess
        prediction = block_of(whole).predict(weights)
        shift = optimal_intercept(problem, prediction, shift)
        prediction = prediction + shift
        if guess is None:
            # Half of the gap is left to the columns that are not in the pool.
            weights, shift, prediction = minimized(
                whole, weights, shift, prediction, 0.5 * self.gap
            )
        dual = negative_gradient(whole, prediction)
        scores = with_ridge(whole, whole.design.scores(dual), None, weights)
        reference = whole.regularizer.norm.reference(scores)
        used = np.flatnonzero(weights)
        point = Point(used, weights[used], shift, prediction, dual, reference)
        if whole.design is not self.block:  # its predictions are not those of the samples
            point.prediction = self.block.predict(weights)
            point.dual = None
        return point

    def _question(self) -> Question:
        """Return the request for the scores X'v of the dual vectors v of this batch of levels."""
        points = [level.point for level in self.batch if level.point is not None]
        bounds = None
        large_only = self.lift is None and self.inner.regularizer.norm.scores_for_ratings == "large"
        if large_only and not self.inner.tau and self.sweep is None:
            # A bound of 0 would ask for every column.
            references = np.array([point.reference for point in points])
            bounds = np.maximum(SHARE * references, TINY)
        unknown = [point.prediction for point in points if point.dual is None]
        self.inner.design.row_access.foresee(unknown)
        duals = [
            negative_gradient(self.inner, point.prediction) if point.dual is None else point.dual
            for point in points
        ]
        return Question(duals, bounds)

    def _certify(self, scores: list[Scores], n_vectors: int) -> None:
        """Certify each level of the batch; let columns with large scores join the pool."""
        batch = self.batch
        known: list[Certificate | None] = [None] * len(batch)
        if self.sweep is not None:
            known = [*self.sweep.certificates(np.array([z.full() for z in scores]))]
            self.sweep = None
        for level, z, certificate in zip(batch, scores, known, strict=True):
            point = level.point
            assert point is not None
            start, lengths = self._start(point)
            at = start.columns, point.weights, point.prediction
            with level.clocked():
                try:
                    if certificate is None:
                        price = prove(level.inner, *at, lengths=lengths, scores=z)
                        certificate = price.certificate
                except LookupError:  # there is no large score at all
                    self._make_steps(level)
                    continue
                state = State(*at[:2], start.intercept, at[2], certificate, level.readings)
                level.readings += 1
                level.seen(state, level.readings, n_vectors)
        missed = [level for level in batch if level.status is None]
        for level in batch:
            if level.status is Status.CONVERGED and level.point:
                self.last_reference = level.point.reference
        joined = self._join(scores)
        for level in missed:
            if not joined and level.readings > 1:
                self._make_steps(level)
        for level in batch:
            if level.status is not None:
                level.result()

    def _start(self, point: Point) -> tuple[WarmStart, Lengths]:
        """Return a point over the columns of X, and the lengths of these columns."""
        lengths = self.pool.lengths.take(point.positions)
        intercept = point.shift - float(lengths.offsets @ point.weights)
        return WarmStart(self.pool.columns[point.positions], point.weights, intercept), lengths

    def _join(self, found_scores: list[Scores]) -> int:
        """Let the columns join that some level rates near its reference; return their number.

        Final levels have a vote too: they are near the next ones.
        """
        if all(level.status for level in self.levels):
            return 0
        norm = self.inner.regularizer.norm
        found = [np.zeros(0, dtype=np.int64)]
        for level, scores in zip(self.batch, found_scores, strict=True):
            point = level.point
            if point is None or point.reference <= 0 or level.status is Status.PERFECT_FIT:
                continue
            columns = self.pool.columns[point.positions]
            shifted = with_ridge(level.inner, scores, columns, point.weights)
            found.append(norm.rated(shifted, SHARE * point.reference))
        columns = np.concatenate(found)
        ranks = np.concatenate([np.arange(rated.size) for rated in found])
        columns = columns[np.argsort(ranks, kind="stable")]
        columns = columns[self.pool.positions(columns) < 0]
        _, first = np.unique(columns, return_index=True)
        return self._add(columns[np.sort(first)])

    def _make_steps(self, level: Level) -> None:
        """Solve a level by steps of the solver, from its point: the pool does not close its gap."""
        start = None
        if level.readings and level.point is not None:
            start, _ = self._start(level.point)
        counted = Counted.of(self.problem.design)
        for _ in level.steps(start, counted, float(level.readings)):
            pass
        result = level.result()
        found = result.columns if result.lifted is None else result.lifted[0]
        self.pool.add(found[: max(self.pool.room, 0)])

    def _cut(self) -> None:
        """Drop the levels after the one at which ``reached`` or ``last`` ends the path early."""
        last = self.last and self.last()
        if last is not None:
            del self.levels[last + 1 :]
        if self.reached is None:
            return
        for level in self.levels[self.n_checked :]:
            if level.status is None:
                return
            self.n_checked += 1
            if self.reached(level.problem, level.result()):
                del self.levels[self.n_checked :]
                return


def minimized(
    problem: Problem, weights: Array, shift: float, prediction: Array, tolerance: float
) -> tuple[Array, float, Array]:
    """Solve a restricted problem to the relative gap ``tolerance``, from a warm start.

    ``shift`` is the intercept over centered columns, and ``prediction`` is A w + shift for the
    pool's columns A. Return the new weights, shift and prediction.
    """
    objective = objective_at(problem, weights, prediction)
    before = math.inf
    while not problem.deadline.passed:
        enough = max(tolerance * objective, negligible_objective(problem))
        refit = choose_master(problem).solve(problem, weights, shift, enough)
        weights = refit.weights
        shift = refit.intercept
        prediction = refit.prediction
        # The target falls with the objective; rounding may keep the gap above it.
        if refit.gap <= tolerance * refit.objective or refit.gap > 0.5 * before:
            break
        before = refit.gap
        objective = refit.objective
    return weights, shift, prediction
