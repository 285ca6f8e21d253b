"""SharedLevels: a regularization path by screening, with one pass over X for several levels.

A level is a strength of the penalty. As in sequential strong rules, the next levels are solved over
a pool of columns that are likely to be active, and one pass over X then computes the certificates
of all these levels. Each level has its own certificate, so that a wrong guess of the columns costs
time, not correctness. A level is final once its gap is small enough; for the others, columns with
large scores join the pool.

A norm rates columns by their scores (l1: the rating of column j is |x_j'v|). At an optimum all
columns in use have about the same rating, the reference of the level, and no column is rated much
higher. So columns with ratings near the reference are likely to be active at the next level.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import TINY, Array, Columns, Design, Scores, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.paths.ahead import can_solve_ahead, solved_ahead
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.levels import dual_at_zero
from atomlearn.core.paths.pool import JOINING, WHOLE, Level, Point, Pool
from atomlearn.core.paths.refits import Refits
from atomlearn.core.paths.sweep import Sweep, can_sweep
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    changed,
    enter,
    negative_gradient,
    over_sums,
    with_ridge,
)
from atomlearn.core.problem.proof import prove
from atomlearn.core.problem.rounding import Lengths
from atomlearn.core.solvers.progress import Resumed
from atomlearn.core.solvers.run import RunSettings
from atomlearn.core.solvers.schedule import Answer, Question, Task
from atomlearn.core.solvers.solver import State, checked_warm_start

#: Maximum number of levels that are solved before one pass over X certifies all of them.
AHEAD = 16
#: A column joins the pool if its rating is at least this fraction of the reference of a level: the
#: rating of the columns in use at the optimum. It is then likely to be active at the next level.
SHARE = 0.6
#: The shares that are tried in turn while more columns want to join than may.
SHARES = (SHARE, 0.7, 0.8, 0.9, 1.0)
#: Maximum number of columns that join after a pass if the rows are on other machines.
SUMMED = 200


class SharedLevels(Task):
    """The levels of one path, which share readings of X with each other and with other paths.

    It is a ``Task``, which ``drive`` runs until ``done``. First ``drive`` calls ``advance``, which
    returns dual vectors V as a ``Question``. Then it reads X once for the scores X'V of all tasks,
    and passes the scores to ``learn``. At the end the solutions are in ``results``.

    ``inner`` is the problem that is solved, with centered targets. For a lifted norm it is over the
    lifted coordinates (columns repeated for each group), to which ``lift`` maps scores. ``batch``
    has the levels that are solved but not certified yet.

    Parameters
    ----------
    problem : Problem
        The problem to solve; the level in it does not matter.
    levels : (n_levels,)
        Strengths of the penalty (or radii), the most regularized first.
    settings : RunSettings
        Solver, stopping rules and observers of the run of each level.
    gap : float
        Relative duality gap to prove.
    pool : Pool
        Collects the columns that are likely active.
    zero : Scores, optional
        Scores at w = 0 if they are known.
    reached : callable, optional
        Returns whether a level is the last one, from its problem and result.
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
        """Prepare the levels; nothing is read or solved yet."""
        self.problem = problem
        self.pool = pool
        self.gap = gap
        self.reached = reached
        self.last = last
        inner = over_sums(center_targets(problem))
        #: The design if its rows are on other machines, which this task reads itself; else None.
        self.remote: Design | None = None
        if inner.design is not problem.design:
            self.remote = inner.design
        self.inner, self.lift = enter(inner, settings.solver.lifts)
        n_samples, n_features = self.inner.design.shape
        fits = n_samples * n_features <= WHOLE and n_features <= JOINING
        #: Whether the pool holds all columns; else the scores at zero fill it.
        self.whole = fits and self.inner.design.listable and self.remote is None
        self.amounts = levels
        self.settings = settings
        self.refits = Refits(pool, gap, self.whole)
        #: Rating of the columns in use at the last proved level, or at w = 0; 0 if ``whole``.
        self.last_reference = 0.0
        #: Share of its reference that a column had to be rated to join the pool the last time.
        self.share = SHARE
        self.batch: list[Level] = []
        #: Scores that ``learn`` has to use in place of those of a reading by ``drive``.
        self.answer = None if zero is None else Answer([zero], 1)
        self.resumed: list[Resumed | None] = []
        self.sweep: Sweep | None = None
        self.swept = False
        self.begun = False
        self.n_checked = 0
        n_samples, n_features = problem.design.shape
        self.work = float(AHEAD * n_samples * min(n_features, JOINING))

    @cached_property
    def levels(self) -> list[Level]:
        """The runs of the levels, created on first use; a ``Sweep`` may make them unnecessary."""
        problem = self.problem
        return [
            Level(
                changed(problem, amount=level),
                changed(self.inner, amount=level),
                self.lift,
                self.settings,
            )
            for level in self.amounts.tolist()
        ]

    def advance(self) -> Question | None:
        """Solve the next levels over the pool; return the question to the data.

        The question requests the scores X'v of the dual vectors v of these levels. It is None if no
        scores are needed. It is also None if the rows are on other machines: this method then
        requests the scores from them, and stores them in ``answer``.
        """
        if self.begun and self._sweep_all():
            assert self.sweep is not None
            question: Question | None = Question(self.sweep.vectors(), None)
        elif self.begun:
            self.batch = self._solved()
            question = self._question() if self.batch else None
        else:
            question = self._first_question()
        if question is None or self.remote is None:
            return question
        scores = self.remote.scores_many(np.column_stack(question.vectors))
        self.answer = Answer(scores, len(question.vectors))
        return None

    def learn(self, answer: Answer | None) -> None:
        """Certify the solved levels; columns with large scores join the pool for the others.

        ``answer`` has the scores of each vector of the question. If it is None, the stored answer
        of this task is used, if any. A level whose re-fit over the pool failed is solved by steps
        of its solver.
        """
        answer = answer or self.answer
        self.answer = None
        scores = [] if answer is None else list(answer.scores)
        if self.lift is not None:
            scores = [self.lift.expansion.scores(z) for z in scores]
        if not self.begun:  # The first answer has the scores at w = 0.
            self.begun = True
            self._fill(scores[0] if scores else None)
            return
        if answer is not None:
            self._certify(scores, answer.n_vectors)
        if self.done:
            return
        by_steps = [level for level in self.levels if level.needs_steps and level.status is None]
        for level in by_steps:
            self._make_steps(level)
        self._cut()
        if not (answer or by_steps) or all(level.status for level in self.levels):
            self._finish()

    def interrupt(self) -> None:
        """End now: keep the levels whose best point has a proved gap, as INTERRUPTED."""
        for level in self.levels:
            if level.status is None and level.best is not None:
                level.status = Status.INTERRUPTED
        self._finish()

    def _finish(self) -> None:
        """Set ``results`` to those of the levels in order, up to the first level without one."""
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
        if self.settings.observers and self.levels[0].resumes:
            self.resumed = [level.begin() for level in self.levels]
        if self.whole or self.answer is not None or any(self.resumed):
            return None
        return Question([dual_at_zero(self.inner)], None)

    def _fill(self, zero: Scores | None) -> None:
        """Add the first columns to the pool, and load the points that a checkpoint stored.

        ``zero`` are the scores at w = 0, or None. All columns are added if the pool may hold them
        (``whole``), else those with the best scores. A level starts at its stored point only if the
        pool has room for all columns of the point.
        """
        n_samples, n_features = self.inner.design.shape
        norm = self.inner.regularizer.norm
        if self.whole and not self.pool.columns.size:
            self.pool.add(np.arange(n_features))
        elif not self.whole and zero is not None:
            self.last_reference = norm.reference(zero)
            if self.remote is None:
                likely = norm.best_columns(zero, min(max(500, n_samples), JOINING))
            else:  # each column costs products with all others
                likely = norm.rated(zero, SHARE * self.last_reference)
            self._add(likely)
        for number, kept in enumerate(self.resumed):
            if kept is None:
                continue
            level = self.levels[number]
            warm = checked_warm_start(WarmStart.of_arrays(kept.arrays), level.inner)
            self.pool.add(warm.columns[: self.pool.room])
            positions = self.pool.positions(warm.columns)
            if (positions >= 0).all():
                # The re-fit finds shift and prediction, once the pool has the columns.
                level.point = Point(positions, warm.weights, warm.intercept, np.zeros(0))

    def _add(self, columns: Columns) -> int:
        """Add the first ``_most_joining`` of ``columns`` to the pool; return how many are new."""
        return self.pool.add(columns[: self._most_joining])

    @property
    def _most_joining(self) -> int:
        """Maximum number of columns that may join the pool after one reading of X."""
        most = self.pool.most_joining if self.remote is None else SUMMED
        return min(most, self.pool.most_at_once)

    def _sweep_all(self) -> bool:
        """Solve all levels at once by ``Sweep``, which is tried only once; return whether it did.

        It applies to small data whose columns are all in the pool.
        """
        if self.swept or not self.whole or any(kept is not None for kept in self.resumed):
            return False
        self.swept = True
        self.pool.settle()
        if not can_sweep(self.inner, self.pool, self.amounts.size):
            return False
        # Half of the gap is left to rounding.
        sweep = Sweep(self.inner, self.pool, self.amounts, 0.5 * self.gap)
        if sweep.levels.size:
            self.sweep = sweep
        return self.sweep is not None

    def _certify_sweep(
        self, scores: list[Scores], n_vectors: int
    ) -> list[Certificate | None] | None:
        """Return the certificates (objective and gap) of the swept levels, which become the batch.

        ``scores`` has the scores of the dual vector of each level, ``n_vectors`` the number of
        vectors that shared the reading. If the certificates prove all levels, and nothing observes
        or ends the runs, the results are made from them directly, and None is returned.
        """
        sweep = self.sweep
        assert sweep is not None
        self.sweep = None
        certificates = sweep.certificates(np.array([z.full() for z in scores]))
        plain = self.settings.plain and self.lift is None
        if plain and self.reached is None and self.last is None:
            self.results = sweep.results(certificates, self.gap, n_vectors)
            if len(self.results) == self.amounts.size:
                self.done = True
                return None
        self.batch = self.levels[: sweep.levels.size]
        for level, point in zip(self.batch, sweep.points(), strict=True):
            level.begin_once()
            level.point = point
        return [*certificates]

    def _solved(self) -> list[Level]:
        """Solve the next open levels over the pool, and return them; [] if all are final.

        An open level has no status yet. Each level starts at the solution of the level before it.
        If possible, all levels are solved together, or all new levels by one call of their master.
        """
        self.pool.settle()
        open_levels = [k for k, level in enumerate(self.levels) if level.status is None]
        # One reading of X certifies all points that a checkpoint kept.
        kept = [k for k in open_levels if self.levels[k].point and not self.levels[k].readings]
        # After the deadline the points of all open levels are certified as they are.
        if self.problem.deadline.passed:
            kept = open_levels
        numbers = kept or open_levels[:AHEAD]
        if not kept and (batch := self._solved_together(numbers)):
            return batch
        batch = []
        before: Point | None = None
        ahead = {} if kept else self._solved_by_master(numbers)
        for number in numbers:
            level = self.levels[number]
            level.begin_once()
            start = level.point or before or (self.levels[number - 1].point if number else None)
            try:
                with level.clocked():
                    before = ahead.get(number) or self.refits.refitted(level, start)
            except FloatingPointError:  # a step beyond the floats
                level.needs_steps = True
                break
            level.point = before
            self.refits.remember(level, before)
            batch.append(level)
            if not kept and before.reference < self._sure_reference(before):
                break  # the columns of one more level are likely not in the pool
        return batch

    def _sure_reference(self, point: Point) -> float:
        """Return the smallest reference at which the pool likely has the columns of the next level.

        ``point`` is the solution of the level before. Columns joined the pool if their rating was
        at least ``share`` times the last proved reference. So for a reference below this, columns
        may be missing. The limit is halved if solving one more level is cheap compared with a
        reading of X: the Hessian over the columns in use then has fewer entries than the scores of
        a batch of levels.
        """
        few = max(AHEAD * self.inner.design.shape[1], LIMITS.piece_entries)
        half = point.positions.size**2 < few and self.remote is None
        return (0.5 if half else 1.0) * self.share * self.last_reference

    def _solved_together(self, numbers: list[int]) -> list[Level]:
        """Return levels that ``solved_ahead`` solves by products of matrices for all of them.

        ``numbers`` are the indices of open levels. The first one starts at its last point, or at
        that of the level before. The result is [] if the method does not apply, if a checkpoint
        resumes one of the levels, or if the rows are on other machines, where the problem over the
        pool has a design of its own.
        """
        if not numbers or any(self.levels[k].resumes for k in numbers):
            return []
        first = self.levels[numbers[0]]
        whole = self.refits.over_pool(first)
        block = self.refits.block
        if whole.design is not block or not can_solve_ahead(whole, block):
            return []
        start = first.point or (self.levels[numbers[0] - 1].point if numbers[0] else None)
        amounts = np.array([self.levels[k].inner.regularizer.amount for k in numbers])
        with first.clocked():
            points = solved_ahead(whole, block, amounts, start, 0.5 * self.gap)
        batch = [self.levels[k] for k in numbers[: len(points)]]
        for level, point in zip(batch, points, strict=True):
            level.begin_once()
            level.point = point
        return batch

    def _solved_by_master(self, numbers: list[int]) -> dict[int, Point]:
        """Return the points of new levels by level number, from their master in one call.

        ``numbers`` are the indices of open levels. Those without a point are new. Levels that the
        master does not solve in this way are missing in the result.
        """
        fresh = [number for number in numbers if self.levels[number].point is None]
        if not fresh:
            return {}
        levels = [self.levels[number] for number in fresh]
        with levels[0].clocked():
            points = self.refits.ahead(
                levels, self.levels[fresh[0] - 1].point if fresh[0] else None
            )
        return dict(zip(fresh, points, strict=False))

    def _question(self) -> Question:
        """Return the request for the scores X'v of the dual vectors v of this batch of levels.

        If the norm needs only large scores, the request has a bound for each vector: smaller scores
        do not have to be returned.
        """
        points = [level.point for level in self.batch if level.point is not None]
        bounds = None
        large_only = self.lift is None and self.inner.regularizer.norm.scores_for_ratings == "large"
        if large_only and not (self.inner.tau or self.whole):
            # A bound of 0 would ask for every column.
            references = np.array([point.reference for point in points])
            bounds = np.maximum(SHARE * references, TINY)
        unknown = [point.prediction for point in points if point.dual is None]
        self.inner.design.row_access.prefetch(unknown)
        duals = [
            negative_gradient(self.inner, point.prediction) if point.dual is None else point.dual
            for point in points
        ]
        return Question(duals, bounds)

    def _certify(self, scores: list[Scores], n_vectors: int) -> None:
        """Certify each level of the batch, and add columns with large scores to the pool.

        ``scores`` has the scores of each level of the batch, ``n_vectors`` the number of vectors
        that shared the reading. A level that the pool cannot prove is solved by steps of its
        solver.
        """
        certificates: list[Certificate | None] | None = [None] * len(self.batch)
        if self.sweep is not None:
            certificates = self._certify_sweep(scores, n_vectors)
        if certificates is None:
            return
        batch = self.batch
        for level, z, certificate in zip(batch, scores, certificates, strict=True):
            point = level.point
            assert point is not None
            start, lengths = self._start(point)
            arrays = start.columns, point.weights, point.prediction  # the point, for ``prove``
            with level.clocked():
                try:
                    if certificate is None:
                        price = prove(level.inner, *arrays, lengths=lengths, scores=z)
                        certificate = price.certificate
                except LookupError:  # no score is as large as the request's bound
                    self._make_steps(level)
                    continue
                state = State(*arrays[:2], start.intercept, arrays[2], certificate, level.readings)
                level.readings += 1
                level.add_iterate(state, level.readings, n_vectors)
        missed = [level for level in batch if level.status is None]
        for level in batch:
            if level.status is Status.CONVERGED and level.point:
                self.last_reference = level.point.reference
        joined = self._join(scores)
        # Without new columns, another re-fit over the pool would not close the gap of a level.
        for level in missed:
            if not joined and level.readings > 1:
                self._make_steps(level)
        for level in batch:
            if level.status is not None:
                level.result()  # Cached, so that the level may drop the state of its solver.

    def _start(self, point: Point) -> tuple[WarmStart, Lengths]:
        """Return a point of the pool over the columns of X, and the lengths of these columns.

        The pool's columns are centered. So the intercept over the columns of X is the shift of
        ``point`` minus the offsets of the columns times their weights.
        """
        lengths = self.pool.lengths.take(point.positions)
        intercept = point.shift - float(lengths.offsets @ point.weights)
        return WarmStart(self.pool.columns[point.positions], point.weights, intercept), lengths

    def _join(self, found_scores: list[Scores]) -> int:
        """Add the columns that some level rates near its reference; return how many are new.

        ``found_scores`` has the scores of each level of the batch. Levels that are already final
        count as well, since the next levels need similar columns. A rating must be at least a share
        of the reference of the level. If too many columns have such a rating, larger shares are
        tried (see ``SHARES``). The columns that pass the largest tried share are added first, then
        those that pass only the smallest one.
        """
        if all(level.status for level in self.levels):
            return 0
        by_share: list[Columns] = []
        for self.share in SHARES:
            by_share.append(self._rated_near(found_scores, self.share))
            if by_share[-1].size <= self._most_joining:
                break
        columns = np.append(by_share[-1], by_share[0][~np.isin(by_share[0], by_share[-1])])
        return self._add(columns)

    def _rated_near(self, found_scores: list[Scores], share: float) -> Columns:
        """Return the columns outside the pool that some level rates ``share`` of its reference.

        ``found_scores`` has the scores of each level of the batch. The result begins with the best
        rated column of each level, then the second best of each, and so on, without repeats.
        """
        norm = self.inner.regularizer.norm
        by_level = [np.zeros(0, dtype=np.int64)]
        for level, scores in zip(self.batch, found_scores, strict=True):
            point = level.point
            if point is None or point.reference <= 0 or level.status is Status.PERFECT_FIT:
                continue
            columns = self.pool.columns[point.positions]
            shifted = with_ridge(level.inner, scores, columns, point.weights)
            by_level.append(norm.rated(shifted, share * point.reference))
        columns = np.concatenate(by_level)
        ranks = np.concatenate([np.arange(rated.size) for rated in by_level])
        columns = columns[np.argsort(ranks, kind="stable")]
        columns = columns[self.pool.positions(columns) < 0]
        _, first = np.unique(columns, return_index=True)
        return columns[np.sort(first)]

    def _make_steps(self, level: Level) -> None:
        """Solve ``level`` by steps of its solver.

        This is for levels that re-fits over the pool cannot solve or prove. The steps start at the
        last point of the level. The columns of the result are added to the pool.
        """
        start = None
        if level.readings and level.point is not None:
            start, _ = self._start(level.point)
        counted = Counted.of(self.problem.design)
        for _ in level.steps(start, counted, float(level.readings)):
            pass
        result = level.result()
        used = result.columns if result.lifted is None else result.lifted[0]
        self.pool.add(used[: max(self.pool.room, 0)])

    def _cut(self) -> None:
        """Drop the levels after the one at which ``reached`` or ``last`` ends the path early.

        ``reached`` is called once for each final level, in the order of the levels; ``n_checked``
        counts its calls.
        """
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
