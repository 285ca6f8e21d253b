"""Speculation: solve the next levels on likely columns, price all of them in one reading.

Each level has its own certificate, at its own point, so whatever the guess, what is proved is
proved. Levels whose gap closes are final; for the others the columns that matter join the pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores, WarmStart
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.guess import GUESS
from atomlearn.core.paths.kept import Held, KeptPath, KeptPoint
from atomlearn.core.paths.level import Level
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.readings import Answer, Asked, Outcome, Path
from atomlearn.core.paths.refits import Point, refit_of
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.sweep import Sweep, sweeps
from atomlearn.core.problem.free import free_part
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result, Status


def guessed(path: Speculation, zero: Scores | None, reached: Reached | None) -> Path:
    """Solve all levels of a path, in their order; yields what it asks of the data."""
    path.reached = reached
    try:
        held = path.held()
        if path.seeds and zero is None and not held.pool.size:
            answer = yield Asked([path.dual_at_zero()], None)
            assert answer is not None
            zero = answer.scores[0]
        path.seed(zero)
        path.resume(held)
        yield None
        while batch := path.known_before() or path.swept() or path.solve_next():
            answer = yield path.asked(batch)
            assert answer is not None
            path.learn(batch, answer)
            path.keep()
            yield None
    except KeyboardInterrupt:
        path.interrupted = True
    return Outcome(path.results(), path.interrupted)


class Speculation:
    """The state of one path, from its first reading of the data to its results.

    original, centered : the problem at any level, as given and less the means of its columns;
    pool, refit : the columns that may matter, and who solves a level over them; levels : all that
    are asked for, final once they have a status; share : of a level's reference, from which a
    column is likely to matter to the next; last_reference : that of the last level proved, which
    says how sure a guess is; reading : what one costs, in entries of an array in memory.
    resumed : levels of a checkpoint, which are priced but not solved again (then not
    ``refitted``); sweep : levels solved all at once. reached : is told of each final level, in
    their order, ``n_told`` so far, and says whether it ends the path; last : where other paths of
    the same search end it.
    """

    def __init__(
        self, problem: Problem, levels: Array, settings: Settings, pool: Pool, reading: float
    ) -> None:
        self.centered = problem.centered()
        self.original, self.settings, self.pool = problem, settings, pool
        deadline = problem.deadline.sooner(settings.deadline)
        self.deadline = deadline
        self.refit = refit_of(self.centered, pool, settings.gap)
        whole = replace(self.centered, deadline=deadline)
        self.levels = [Level(whole, float(level)) for level in levels]
        self.large_only = problem.regularizer.norm.asks_large and not problem.tau
        self.interrupted = False
        self.reached: Reached | None = None
        self.last: Callable[[], int | None] | None = None
        self.n_told = 0
        self.readings = 0
        self.kept = None
        if settings.checkpoint is not None:
            self.kept = KeptPath(settings.checkpoint, problem)
        self.resumed: list[Level] = []
        self.refitted = True
        self.sweep: Sweep | None = None
        self.swept_before = False
        self.share = GUESS.share
        self.reading = reading
        self.last_reference = np.inf

    @property
    def seeds(self) -> bool:
        """Whether the pool is filled by the scores at zero; else it holds all columns."""
        n_samples, n_features = self.original.design.shape
        fits = n_samples * n_features <= GUESS.whole and n_features <= GUESS.joining
        return not (fits and self.original.design.listable)

    def dual_at_zero(self) -> Array:
        """Return v at w = 0."""
        linear = np.zeros(self.centered.design.shape[0])
        return self.centered.negative_gradient(linear + self.centered.optimal_intercept(linear))

    def seed(self, zero: Scores | None) -> None:
        """Fill the pool for the first levels."""
        if not self.seeds:
            self.pool.add(np.arange(self.original.design.shape[1]))
        elif zero is not None:
            norm = self.original.regularizer.norm
            count = min(max(500, self.original.design.shape[0]), GUESS.joining)
            self.pool.add(norm.best_columns(zero, count)[: self.pool.at_once])

    def held(self) -> Held:
        """Return what is kept of the path."""
        return Held() if self.kept is None else self.kept.read()

    def resume(self, held: Held) -> None:
        """Take the points of levels that are asked for again; what was proved is proved anew."""
        self.pool.add(held.pool[: self.pool.room])
        self.pool.settle()
        if not held.points:
            return
        points, none = {point.level: point for point in held.points}, np.zeros(0)
        for level in self.levels:
            known = points.get(level.amount)
            positions = self.pool.positions(known.columns if known else none.astype(np.int64))
            if known is None or (positions < 0).any():
                continue
            offsets = self.pool.lengths.offsets[positions]
            shift = known.intercept - self.centered.origin + float(offsets @ known.weights)
            level.point = Point(positions, known.weights, shift, none, none, 0.0, np.inf)
            level.history = list(known.history)
            if known.final:
                self.resumed.append(level)

    def known_before(self) -> list[Level]:
        """Return, once, the levels with points that were kept: they are priced, not re-fitted."""
        batch, self.resumed = self.resumed, []
        self.refitted = not batch
        self.pool.settle()
        for level in batch:
            assert level.point is not None
            level.point = self.refit.resumed(level.problem, level.point)
        return batch

    def swept(self) -> list[Level]:
        """Return, once, the levels that are solved all at once; none where the data is large."""
        whole, began = self.levels[0].whole, time.monotonic()
        first = not self.swept_before and all(level.point is None for level in self.levels)
        self.swept_before = True
        if self.seeds or not (first and sweeps(whole, self.pool)):
            return []
        sweep = Sweep.of(whole, self.pool, np.array([level.amount for level in self.levels]))
        batch = self.levels[: sweep.levels.size]
        if batch:
            self.sweep, self.refitted = sweep, False
        for level, point in zip(batch, sweep.points(), strict=True):
            level.point = point
            level.seconds = (time.monotonic() - began) / len(batch)
        return batch

    def keep(self) -> None:
        """Write the last points of all levels that were priced, where there is a folder."""
        if self.kept is None:
            return
        points = []
        for level in self.levels:
            at = None if level.certificate is None else self._columns(level)
            if level.result is not None:
                at = level.result.columns, level.result.weights, level.result.intercept
            if at is None:
                continue
            amount, final = level.amount, level.status is not None
            points.append(KeptPoint(amount, *at, level.history, final))
        self.kept.write(self.pool.columns, points)

    def solve_next(self) -> list[Level]:
        """Return the next levels with their points over the pool; none where all are final."""
        self.pool.settle()
        pending = [number for number, level in enumerate(self.levels) if level.status is None]
        batch: list[Level] = []
        before = None
        # Once the time is out, one reading says of all levels what is proved.
        late = self.deadline.passed
        for number in pending if late else pending[: GUESS.levels]:
            if batch and not late and not self._goes_on(batch):
                break
            level = self.levels[number]
            began, worked = time.monotonic(), self.refit.work
            warm = level.point
            if warm is None:
                warm = before or (self.levels[number - 1].point if number else None)
            level.point = before = self.refit.solve(level.problem, warm)
            level.seconds += time.monotonic() - began
            level.work = self.refit.work - worked
            batch.append(level)
        return batch

    def _goes_on(self, batch: list[Level]) -> bool:
        """Return whether one more level is guessed: it is likely right, or wrong at little cost."""
        last = batch[-1].point
        assert last is not None
        cheap = sum(level.work for level in batch) <= self.reading
        return cheap or last.reference >= GUESS.sure * self.last_reference

    def asked(self, batch: list[Level]) -> Asked:
        """Return what the levels ask of the data."""
        points = [level.point for level in batch if level.point is not None]
        bounds = None
        if self.large_only and self.sweep is None:
            # Nothing is known of scores that are all zero: then each column would be large.
            tiny = np.finfo(np.float64).tiny
            references = np.array([point.reference for point in points])
            bounds = np.maximum(self.share * references, tiny)
        return Asked([point.dual for point in points], bounds)

    def learn(self, batch: list[Level], answer: Answer) -> None:
        """Certify the levels; what matters to the others joins the pool."""
        self.readings += 1
        if self.sweep is not None:
            sweep, self.sweep = self.sweep, None
            certificates = sweep.certificates(np.array([z.full() for z in answer.scores]))
            for level, certificate in zip(batch, certificates, strict=True):
                level.learn(certificate, self.settings.gap, answer.vectors)
            self._end()
            return
        wrong = []
        for level, scores in zip(batch, answer.scores, strict=True):
            began = time.monotonic()
            try:
                self._certify(level, scores, answer.vectors)
            except LookupError:  # no large score was there at all
                self._solve_alone(level)
            level.seconds += time.monotonic() - began
            if level.status is None:
                wrong.append(level)
        ample = self.pool.at_once >= GUESS.joining
        looks = ample and self.share < GUESS.share
        joined = self._join(batch, answer) if wrong or looks else 0
        for level in batch:
            if looks and level.status is Status.CONVERGED and level.point:
                self.last_reference = level.point.reference
        if ample and max(level.work for level in batch) > GUESS.dear * self.reading:
            self.share = GUESS.wider
        for level in wrong:
            if self.deadline.passed:
                level.status = Status.TIME_LIMIT
            elif (self.refitted and not joined) or len(level.history) >= GUESS.readings:
                self._solve_alone(level)

        self._end()

    def _end(self) -> None:
        """Ask the levels that are final, in their order, and leave out what is beyond the last."""
        if self.reached is None:
            return
        last = self.last and self.last()
        if last is not None:
            del self.levels[last + 1 :]
        for level in self.levels[self.n_told :]:
            if level.status is None:
                return
            self.n_told += 1
            problem = replace(self.original, regularizer=level.problem.regularizer)
            if self.reached(problem, self._result(level)):
                del self.levels[self.n_told :]
                return

    def _certify(self, level: Level, scores: Scores, vectors: int) -> None:
        point, problem = level.point, level.problem
        assert point is not None
        columns, lengths = self.pool.columns[point.positions], self.pool.lengths
        lengths = lengths.take(point.positions)
        certificate = problem.price(
            columns, point.weights, point.prediction, lengths=lengths, scores=scores
        ).certificate
        intercept = point.shift - float(lengths.offsets @ point.weights)
        certificate = problem.given_back(certificate, intercept, point.prediction)
        level.learn(certificate, self.settings.gap, vectors)

    def _join(self, batch: list[Level], answer: Answer) -> int:
        """Let the columns join that some level rates near its reference; return their number.

        Levels that are final vote too where re-fits are dear: they are nearest to what comes next.
        """
        if all(level.status is not None for level in self.levels):
            return 0
        norm = self.original.regularizer.norm
        found, ranks = [], []
        for level, scores in zip(batch, answer.scores, strict=True):
            point = level.point
            assert point is not None
            if level.status is Status.PERFECT_FIT or point.reference <= 0:
                continue
            shifted = level.problem.shifted(
                scores, self.pool.columns[point.positions], point.weights
            )
            columns = norm.rated(shifted, self.share * point.reference)
            found.append(columns)
            ranks.append(np.arange(columns.size))
        if not found:
            return 0
        columns, rank = np.concatenate(found), np.concatenate(ranks)
        columns = columns[np.argsort(rank, kind="stable")]
        columns = columns[self.pool.positions(columns) < 0]
        _, first = np.unique(columns, return_index=True)
        most = min(GUESS.joining, self.pool.at_once)
        return self.pool.add(columns[np.sort(first)][:most])

    def _solve_alone(self, level: Level) -> None:
        """Solve a level over the data by itself, from its point."""
        regularizer = level.problem.regularizer
        start = self._columns(level)
        warm = None if start is None else WarmStart(*start)
        result = self.settings.solve(replace(self.original, regularizer=regularizer), warm, ())
        result.passes += len(level.history)
        level.status, level.result = result.status, result
        known = level.point
        result.state = None
        if result.columns.size:
            self.pool.add(result.columns[: max(self.pool.room, 0)])
        if known is not None:
            level.point = known

    def _columns(self, level: Level) -> tuple[Columns, Array, float] | None:
        """Return columns, weights and intercept of the level as they are given back."""
        point = level.point
        if point is None:
            return None
        order = np.argsort(self.pool.columns[point.positions], kind="stable")
        positions, weights = point.positions[order], point.weights[order]
        offsets = self.pool.lengths.offsets[positions]
        intercept = point.shift - float(offsets @ weights) + self.centered.origin
        return self.pool.columns[positions], weights, intercept

    def results(self) -> list[Result]:
        """Return the results in the order of the levels; after Ctrl-C the first of them."""
        results = []
        for level in self.levels:
            if level.status is None and level.certificate is None:
                break
            results.append(self._result(level))
            if results[-1].status is Status.INTERRUPTED:
                break
        return results

    def _result(self, level: Level) -> Result:
        if level.result is not None:
            return level.result
        found, certificate = self._columns(level), level.certificate
        assert found is not None
        assert certificate is not None
        columns, weights, intercept = found
        design, norm = self.original.design, self.original.regularizer.norm
        result = Result(
            columns=columns,
            weights=weights,
            intercept=intercept,
            objective=certificate.objective,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            status=level.status or Status.INTERRUPTED,
            passes=float(len(level.history)),
            seconds=level.seconds,
            n_features=design.shape[1],
            dtype=design.dtype,
            iterations=len(level.history),
            history=level.history,
            shape=norm.matrix_shape or design.matrix_shape,
            search_gap=certificate.search_gap,
            norm=norm,
        )
        if self.original.free is None or level.point is None:
            return result
        return result.with_free(
            self.original.free, *free_part(self.centered, level.point.prediction)
        )
