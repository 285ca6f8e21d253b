"""SharedLevels: solve the next levels on likely columns, price all of them in one reading.

Each level has its own certificate, at its own point, so whatever the guess, what is proved is
proved. Levels whose gap closes are final; for the others the columns that matter join the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import TINY, Array, Columns, Design, Scores, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.levels import dual_at_zero
from atomlearn.core.paths.pool import JOINING, WHOLE, Pool
from atomlearn.core.paths.refits import PoolPoint, PoolRefit
from atomlearn.core.paths.sweep import Sweep, sweeps
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    enter,
    negative_gradient,
    over_sums,
    with_amount,
    with_deadline,
    with_ridge,
)
from atomlearn.core.problem.proof import prove
from atomlearn.core.problem.result import Result
from atomlearn.core.problem.rounding import Lengths
from atomlearn.core.solvers.progress import Resumed
from atomlearn.core.solvers.run import How, Run
from atomlearn.core.solvers.schedule import Answer, Asked, Task
from atomlearn.core.solvers.solver import State, checked_warm_start

#: Levels that are solved before one reading prices all of them, at most.
AHEAD = 16
#: Share of a level's reference from which columns likely matter to the next.
SHARE = 0.6
#: Columns that join after a reading where their products are summed elsewhere, at most.
SUMMED = 200


@dataclass(slots=True, eq=False)
class Level:
    """One level on its way: its run, and its last point over the pool.

    readings : that it had a part in; alone : whether its re-fit over the pool failed; result : once
    it is final.
    """

    run: Run
    point: PoolPoint | None = None
    readings: int = 0
    alone: bool = False
    result: Result | None = None


class SharedLevels(Task):
    """The levels of one path, which share readings of the data with each other and other paths.

    Parameters
    ----------
    problem : Problem
        At any level.
    levels : (n_levels,)
        In their order.
    how : How
    gap : float
        Relative gap that is asked for.
    pool : Pool
        The columns that may matter.
    zero : Scores, optional
        At w = 0, where they are known.
    reached, last : callable, optional
        Whether a level is the last one; where other paths have ended this one, if they have.
    """

    def __init__(
        self,
        problem: Problem,
        levels: Array,
        how: How,
        gap: float,
        pool: Pool,
        zero: Scores | None = None,
        reached: Reached | None = None,
        last: Callable[[], int | None] | None = None,
    ) -> None:
        self.problem = problem
        self.pool = pool
        self.reached = reached
        self.last = last
        inner = over_sums(center_targets(problem))
        self.inner, self.lift = enter(inner, how.solver.lifts)
        n_samples, n_features = self.inner.design.shape
        fits = n_samples * n_features <= WHOLE and n_features <= JOINING
        #: Whether the pool is filled by the scores at zero; else it holds all columns.
        self.seeds = not (fits and self.inner.design.listable)
        #: What is read here; None where ``drive`` reads for all.
        self.own: Design | None = None
        #: Columns that may join after a reading; and the share of the last reference from which the
        #: guess of one more level is likely right.
        self.most = JOINING
        self.sure = 0.5 * SHARE
        if inner.design is not problem.design:  # rows are elsewhere: each column costs products
            self.own = inner.design
            self.seeds = True
            self.most = SUMMED
            self.sure = SHARE
        self.levels = [
            Level(Run(with_amount(problem, x), with_amount(self.inner, x), self.lift, how))
            for x in levels.tolist()
        ]
        self.refit = PoolRefit(pool, gap)
        self.zero = zero if zero is None or self.lift is None else self.lift.expansion.scores(zero)
        self.large_only = (
            self.lift is None and problem.regularizer.norm.asks_large and not problem.tau
        )
        #: Of the last level proved, of zero at first; 0 where the pool holds all columns.
        self.last_reference = 0.0
        self.batch: list[Level] = []
        self.answer: Answer | None = None
        self.kept: list[Resumed | None] = []
        self.sweep: Sweep | None = None
        self.begun = False
        self.n_told = 0
        n_samples, n_features = problem.design.shape
        self.work = float(AHEAD * n_samples * min(n_features, JOINING))

    # --- the task ---------------------------------------------------------------------------

    def advance(self) -> Asked | None:
        """Solve the next levels over the pool; return what is to be asked of the data."""
        if not self.begun:
            if self.levels[0].run.resumes:
                self.kept = [level.run.begin() for level in self.levels]
            known = self.zero is not None or any(self.kept)
            if known or not self.seeds:
                return None
            return self._read(Asked([dual_at_zero(self.inner)], None))
        self.batch = self._swept() or self._solved()
        return self._read(self._asked()) if self.batch else None

    def _read(self, asked: Asked) -> Asked | None:
        """Return what is asked of the data, None where it is read at once."""
        if self.own is None:
            return asked
        scores = self.own.scores_many(np.column_stack(asked.vectors))
        self.answer = Answer(scores, len(asked.vectors))
        return None

    def learn(self, answer: Answer | None) -> None:
        """Certify the levels; what matters to the others joins the pool."""
        answer = answer or self.answer
        self.answer = None
        scores = [] if answer is None else list(answer.scores)
        if self.lift is not None:
            scores = [self.lift.expansion.scores(z) for z in scores]
        if not self.begun:
            self.begun = True
            self._seed(scores[0] if scores else self.zero)
            self._resume()
            return
        if answer is not None:
            self._certified(scores, answer.vectors)
        alone = [level for level in self.levels if level.alone and level.run.status is None]
        for level in alone:
            self._solve_alone(level)
        self._end()
        if not (answer or alone) or all(level.run.status is not None for level in self.levels):
            self._finish()

    def interrupt(self) -> None:
        """End with the levels that have a point with a proof."""
        for level in self.levels:
            if level.run.status is None and level.run.best is not None:
                level.run.status = Status.INTERRUPTED
        self._finish()

    def _finish(self) -> None:
        """Take the results in their order, up to the first level without one."""
        self.done = True
        self.results = []
        for level in self.levels:
            if level.run.status is None:
                break
            self.results.append(self._result(level))
            if level.run.status is Status.INTERRUPTED:
                break

    def _seed(self, zero: Scores | None) -> None:
        if not self.seeds:
            if not self.pool.columns.size:
                self.pool.add(np.arange(self.inner.design.shape[1]))
        elif zero is not None:
            norm = self.inner.regularizer.norm
            self.last_reference = norm.reference(zero)
            if self.own is None:
                count = min(max(500, self.inner.design.shape[0]), JOINING)
                likely = norm.best_columns(zero, count)
            else:  # each of them counts, as its products with the others are formed elsewhere
                likely = norm.rated(zero, SHARE * self.last_reference)
            self.pool.add(likely[: min(self.most, self.pool.at_once)])

    def _resume(self) -> None:
        """Begin at the points that a checkpoint has kept; what was proved is proved anew."""
        for level, kept in zip(self.levels, self.kept, strict=False):
            if kept is None:
                continue
            warm = checked_warm_start(WarmStart.of_arrays(kept.arrays), level.run.inner)
            self.pool.add(warm.columns[: self.pool.room])
            positions = self.pool.positions(warm.columns)
            if (positions >= 0).all():
                none = np.zeros(0)
                # The shift follows from the point, once the pool has its columns.
                at = positions, warm.weights, warm.intercept
                level.point = PoolPoint(*at, none, none, 0.0)

    # --- points over the pool ---------------------------------------------------------------

    def _swept(self) -> list[Level]:
        """Return, once, the levels that are solved all at once; none where the data is large."""
        if self.seeds or any(level.point is not None for level in self.levels):
            return []
        self.pool.settle()
        if not sweeps(self.inner, self.pool):
            return []
        with self.levels[0].run.clocked():
            amounts = np.array([level.run.inner.regularizer.amount for level in self.levels])
            sweep = Sweep.of(self.inner, self.pool, amounts)
        batch = self.levels[: sweep.levels.size]
        for level, point in zip(batch, sweep.points(), strict=True):
            self._begin(level)
            level.point = point
        if batch:
            self.sweep = sweep
        return batch

    def _solved(self) -> list[Level]:
        """Return the next levels with their points over the pool; none where all are final."""
        self.pool.settle()
        pending = [number for number, level in enumerate(self.levels) if level.run.status is None]
        batch: list[Level] = []
        before = None
        # Once the time is out, one reading says of all levels what is proved; so it is with points
        # that a checkpoint has kept.
        known = any(level.point is not None and not level.readings for level in self.levels)
        all_at_once = known or self.problem.deadline.passed
        for number in pending if all_at_once else pending[:AHEAD]:
            unsure = before is not None and before.reference < self.sure * self.last_reference
            if unsure and not all_at_once:
                break
            level = self.levels[number]
            self._begin(level)
            warm = level.point
            if warm is None:
                warm = before or (self.levels[number - 1].point if number else None)
            try:
                with level.run.clocked():
                    own = level.point is not None
                    before = self.refit.solve(
                        with_deadline(level.run.inner, level.run.deadline), warm, own
                    )
                    level.point = before
            except FloatingPointError:  # a step beyond the floats
                level.alone = True
                break
            batch.append(level)
        return batch

    def _begin(self, level: Level) -> None:
        """Tell the observers of a level that it begins, unless they were asked where to go on."""
        if level.point is None and not level.readings and not level.run.resumes:
            level.run.begin()

    def _asked(self) -> Asked:
        """Return what the levels ask of the data."""
        points = [level.point for level in self.batch if level.point is not None]
        bounds = None
        if self.large_only and self.sweep is None:
            # Nothing is known of scores that are all zero: then each column would be large.
            references = np.array([point.reference for point in points])
            bounds = np.maximum(SHARE * references, TINY)
        self.inner.design.row_access.foresee(
            [point.prediction for point in points if point.dual is None]
        )
        duals = [
            negative_gradient(self.inner, point.prediction) if point.dual is None else point.dual
            for point in points
        ]
        return Asked(duals, bounds)

    # --- what a reading tells ---------------------------------------------------------------

    def _certified(self, scores: list[Scores], vectors: int) -> None:
        """Certify each level at its point; what is still missing joins the pool."""
        batch = self.batch
        if self.sweep is not None:
            certificates = self.sweep.certificates(np.array([z.full() for z in scores]))
            self.sweep = None
            for level, certificate in zip(batch, certificates, strict=True):
                self._seen(level, certificate, vectors)
                if level.run.status is not None:
                    self._result(level)
            return
        for level, z in zip(batch, scores, strict=True):
            point, columns, lengths = self._at(level)
            with level.run.clocked():
                try:
                    price = prove(
                        level.run.inner,
                        columns,
                        point.weights,
                        point.prediction,
                        lengths=lengths,
                        scores=z,
                    )
                except LookupError:  # no large score was there at all
                    self._solve_alone(level)
                    continue
                self._seen(level, price.certificate, vectors)
        wrong = [level for level in batch if level.run.status is None]
        for level in batch:
            if level.run.status is Status.CONVERGED and level.point:
                self.last_reference = level.point.reference
        joined = self._join(batch, scores)
        for level in wrong:
            if not joined and level.readings > 1:
                self._solve_alone(level)
        for level in batch:
            if level.run.status is not None:
                self._result(level)

    def _at(self, level: Level) -> tuple[PoolPoint, Columns, Lengths]:
        point = level.point
        assert point is not None
        return point, self.pool.columns[point.positions], self.pool.lengths.take(point.positions)

    def _seen(self, level: Level, certificate: Certificate, vectors: int) -> None:
        """Let the run of a level see its point with the certificate."""
        point, columns, lengths = self._at(level)
        intercept = point.shift - float(lengths.offsets @ point.weights)
        state = State(
            columns, point.weights, intercept, point.prediction, certificate, level.readings
        )
        level.readings += 1
        level.run.seen(state, level.readings, vectors)

    def _join(self, batch: list[Level], found_scores: list[Scores]) -> int:
        """Let the columns join that some level rates near its reference; return their number.

        Levels that are final vote too: they are near what comes next.
        """
        if all(level.run.status is not None for level in self.levels):
            return 0
        norm = self.inner.regularizer.norm
        found = []
        ranks = []
        for level, scores in zip(batch, found_scores, strict=True):
            point, columns, _ = self._at(level)
            if level.run.status is Status.PERFECT_FIT or point.reference <= 0:
                continue
            shifted = with_ridge(level.run.inner, scores, columns, point.weights)
            rated = norm.rated(shifted, SHARE * point.reference)
            found.append(rated)
            ranks.append(np.arange(rated.size))
        if not found:
            return 0
        columns = np.concatenate(found)
        rank = np.concatenate(ranks)
        columns = columns[np.argsort(rank, kind="stable")]
        columns = columns[self.pool.positions(columns) < 0]
        _, first = np.unique(columns, return_index=True)
        return self.pool.add(columns[np.sort(first)][: min(self.most, self.pool.at_once)])

    def _solve_alone(self, level: Level) -> None:
        """Solve a level by steps of its own, from its point: the pool does not close its gap."""
        start = None
        if level.readings:
            point, columns, lengths = self._at(level)
            intercept = point.shift - float(lengths.offsets @ point.weights)
            start = WarmStart(columns, point.weights, intercept)
        counted = Counted.of(self.problem.design)
        for _ in level.run.steps(start, counted, float(level.readings)):
            pass
        result = self._result(level)
        found = result.columns if result.lifted is None else result.lifted[0]
        self.pool.add(found[: max(self.pool.room, 0)])

    def _end(self) -> None:
        """Ask the levels that are final, in their order, and leave out what is beyond the last."""
        last = self.last and self.last()
        if last is not None:
            del self.levels[last + 1 :]
        if self.reached is None:
            return
        for level in self.levels[self.n_told :]:
            if level.run.status is None:
                return
            self.n_told += 1
            if self.reached(level.run.problem, self._result(level)):
                del self.levels[self.n_told :]
                return

    def _result(self, level: Level) -> Result:
        if level.result is None:
            level.result = level.run.result()
            level.result.state = None
        return level.result
