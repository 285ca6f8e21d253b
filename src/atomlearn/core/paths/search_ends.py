"""SearchEnd: the common last level of the paths of a cross-validation, and searches cut short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Design
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.paths.ends import End, Reached
from atomlearn.core.paths.folds import Fold, Score, ScoreThere, decisions_at, scored_there
from atomlearn.core.paths.path import PathResult
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.run import CUT


class SearchEnd:
    """The end of several paths over one grid: folds of one norm, and the outputs of each fold.

    The paths end at one level: when each of them has reached its end, or when the mean held-out
    score of a level ends the search. That score is known once all paths have solved the level.
    Without ``until`` the paths end with the grid.
    """

    def __init__(
        self,
        until: End | None,
        problems: Sequence[Problem],
        folds: Sequence[Fold],
        score: Score,
        testing: Sequence[Design],
    ) -> None:
        self._problems = problems
        self._folds = folds
        self._score = score
        #: The test rows of each fold.
        self._testing = testing
        begun = [until.begin_folds() for _ in folds for _ in problems] if until else []
        self._reached = [reached for reached, _ in begun]
        self._settled = [settled for _, settled in begun[:1]]
        self._ended: dict[int, int] = {}
        self._at: dict[int, dict[int, Result]] = {}
        self._tested: list[tuple[Design, ScoreThere | None]] = []
        #: Number of the last level in the grid; None if there is no end yet.
        self.last: int | None = None

    def of(self, path: int) -> Reached | None:
        """Return the function to call with each level of a path, in order; None without an end."""
        if not self._reached:
            return None
        count = 0

        def reached(problem: Problem, result: Result) -> bool:
            nonlocal count
            level = count
            count = count + 1
            if self.last is None:
                self._learn(path, level, problem, result)
            return self.last is not None and level >= self.last

        return reached

    def place(self) -> int | None:
        """Return the number of the last level in the grid, or None if no end is reached yet."""
        return self.last

    def cut(self, path: PathResult) -> PathResult:
        """Return the path up to its end: later levels may have been solved with others."""
        return path.first(None if self.last is None else self.last + 1)

    def _learn(self, path: int, level: int, problem: Problem, result: Result) -> None:
        if path not in self._ended and self._reached[path](problem, result):
            self._ended[path] = level
        here = self._at.setdefault(level, {})
        here[path] = result
        if len(here) < len(self._reached):
            return
        # Each path goes through its levels in order, so earlier levels are complete.
        del self._at[level]
        score = self._mean_score([here[number] for number in range(len(here))])
        all_ended = len(self._ended) == len(self._reached)
        settled = self._settled[0](score)
        if settled or (all_ended and level >= max(self._ended.values())):
            self.last = level

    def _mean_score(self, results: Sequence[Result]) -> float:
        """Return the mean held-out score of the results at one level."""
        scores = []
        paths = iter(results)
        if not self._tested:
            each = zip(self._testing, self._folds, strict=True)
            self._tested = [(rows, scored_there(self._score, rows, fold[1])) for rows, fold in each]
        for (rows, there), (_, test) in zip(self._tested, self._folds, strict=True):
            of_fold = [next(paths) for _ in self._problems]
            if there is not None:
                scores.append(there([of_fold])[0])
                continue
            pairs = zip(self._problems, of_fold, strict=True)
            decisions = [decisions_at(problem, r.predict(rows), test) for problem, r in pairs]
            scores.append(self._score(np.column_stack(decisions), test))
        return float(np.mean(scores))


def ended_by(found: Sequence[Sequence[PathResult]]) -> Status:
    """Return why a search of these paths ended early; CONVERGED if it did not."""
    if any(not paths or any(path.interrupted for path in paths) for paths in found):
        return Status.INTERRUPTED
    cut = any(r.status in CUT for paths in found for path in paths for r in path.results)
    return Status.TIME_LIMIT if cut else Status.CONVERGED


def solved(paths: Sequence[PathResult]) -> tuple[PathResult, ...]:
    """Return the paths of all outputs, truncated to the levels that every output has solved.

    A search that ended before the first level was solved returns the first level unsolved.
    """
    counts = []
    for path in paths:
        cut = [result.status in CUT for result in path.results]
        counts.append(max(cut.index(True), 1) if True in cut else len(cut))
    n_levels = min(counts, default=0)
    return tuple(path.first(n_levels) for path in paths)


def padded_levels(values: NDArray[np.float64], n_levels: int) -> NDArray[np.float64]:
    """Return numbers of the first levels (last axis), with NaN for the other levels."""
    shape = (*values.shape[:-1], n_levels - values.shape[-1])
    return np.concatenate([values, np.full(shape, np.nan)], axis=-1)


def known_folds(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the folds that count: those with all scores, else those with some, else all.

    ``scores`` : (n_norms, n_levels, n_folds), NaN if not known.
    """
    known = np.isfinite(scores)
    whole = np.flatnonzero(known.all(axis=(0, 1)))
    begun = np.flatnonzero(known[0].any(axis=0))
    return next(some for some in (whole, begun, np.arange(known.shape[2])) if some.size)
