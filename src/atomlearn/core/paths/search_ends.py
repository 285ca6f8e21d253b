"""SearchEnd: the common last level of the paths of a cross-validation, and searches cut short.

A level is the strength of the penalty. An output is one of several problems on the same rows, such
as one class against all others. ``CUT`` are the statuses of a level that Ctrl-C or a time limit
left unsolved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Design
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.paths.ends import End, Reached
from atomlearn.core.paths.folds import Fold, RemoteScore, Score, decisions_at, remote_score_of
from atomlearn.core.paths.path import PathResult
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.run import CUT


class SearchEnd:
    """The common end of the paths of one norm over one grid: a path for each fold and output.

    The paths end at the same level: when each of them has reached its own end, or when the mean
    held-out score of a level ends the search. That score is known once all paths have solved the
    level. Without ``until`` the paths end with the grid.

    Parameters
    ----------
    until : End, optional
        Condition at which paths end.
    problems : sequence of Problem
        One for each output.
    folds : sequence of (train rows, test rows)
        Row numbers of each fold.
    score : callable
        ``score(decisions, test)`` of predictions (n_test, n_outputs), larger is better.
    testing : sequence of Design
        The data of the test rows of each fold.
    """

    def __init__(
        self,
        until: End | None,
        problems: Sequence[Problem],
        folds: Sequence[Fold],
        score: Score,
        testing: Sequence[Design],
    ) -> None:
        """Create the functions that detect the end of each path; none is reached yet."""
        self._problems = problems
        self._folds = folds
        self._score = score
        self._testing = testing
        # One function for each path, and only one for the mean scores, which they share.
        begun = [until.begin_folds() for _ in folds for _ in problems] if until else []
        self._reached = [reached for reached, _ in begun]
        self._settled = [settled for _, settled in begun[:1]]
        #: By path number, the level at which the path has reached its end.
        self._ended: dict[int, int] = {}
        #: By level and path number, the results of levels that not all paths have solved yet.
        self._pending: dict[int, dict[int, Result]] = {}
        #: For each fold the test data, and its score if other machines compute it.
        self._tested: list[tuple[Design, RemoteScore | None]] = []
        #: Number of the last level in the grid; None if there is no end yet.
        self.last: int | None = None

    def reached_by(self, path: int) -> Reached | None:
        """Return the function to call at each level of the path with number ``path``, in order.

        Paths are numbered by fold, then by output. The function takes the problem and the result of
        the level, and returns True if the path ends there. None without ``until``.
        """
        if not self._reached:
            return None
        count = 0

        def reached(problem: Problem, result: Result) -> bool:
            """Return whether the next level is the last one or later.

            ``problem`` and ``result`` are those of that level.
            """
            nonlocal count
            level = count
            count = count + 1
            if self.last is None:
                self._learn(path, level, problem, result)
            return self.last is not None and level >= self.last

        return reached

    def last_level(self) -> int | None:
        """Return the number of the last level in the grid, or None if no end is reached yet."""
        return self.last

    def cut(self, path: PathResult) -> PathResult:
        """Return ``path`` up to the common end; later levels may have been solved by then."""
        return path.first(None if self.last is None else self.last + 1)

    def _learn(self, path: int, level: int, problem: Problem, result: Result) -> None:
        """Store the ``result`` of one level of one path; set ``last`` if the search ends there.

        path, level : number of the path and of its level. problem : the problem of that level. The
        search ends if all paths have reached their ends, or if the mean score of the level, known
        once all paths have solved it, ends the search.
        """
        if path not in self._ended and self._reached[path](problem, result):
            self._ended[path] = level
        by_path = self._pending.setdefault(level, {})
        by_path[path] = result
        if len(by_path) < len(self._reached):
            return  # other paths have not solved this level yet
        # Each path goes through its levels in order, so earlier levels are complete.
        del self._pending[level]
        score = self._mean_score([by_path[number] for number in range(len(by_path))])
        all_ended = len(self._ended) == len(self._reached)
        settled = self._settled[0](score)
        if settled or (all_ended and level >= max(self._ended.values())):
            self.last = level

    def _mean_score(self, results: Sequence[Result]) -> float:
        """Return the mean held-out score over folds at one level.

        ``results`` has the result of each path at the level, by fold, then by output.
        """
        scores = []
        remaining = iter(results)
        if not self._tested:
            each_fold = zip(self._testing, self._folds, strict=True)
            self._tested = [
                (rows, remote_score_of(self._score, rows, test)) for rows, (_, test) in each_fold
            ]
        for (rows, remote_score), (_, test) in zip(self._tested, self._folds, strict=True):
            of_fold = [next(remaining) for _ in self._problems]
            if remote_score is not None:  # other machines have the rows, and compute the score
                scores.append(remote_score([of_fold])[0])
                continue
            # The predictions of each output at the test rows.
            pairs = zip(self._problems, of_fold, strict=True)
            decisions = [decisions_at(problem, r.predict(rows), test) for problem, r in pairs]
            scores.append(self._score(np.column_stack(decisions), test))
        return float(np.mean(scores))


def ended_by(found: Sequence[Sequence[PathResult]]) -> Status:
    """Return why a search ended early: INTERRUPTED or TIME_LIMIT; CONVERGED if it did not.

    ``found`` has the paths of all outputs for each (norm, fold).
    """
    if any(not paths or any(path.interrupted for path in paths) for paths in found):
        return Status.INTERRUPTED
    is_cut = any(r.status in CUT for paths in found for path in paths for r in path.results)
    return Status.TIME_LIMIT if is_cut else Status.CONVERGED


def solved(paths: Sequence[PathResult]) -> tuple[PathResult, ...]:
    """Return the paths of all outputs, truncated to the levels that every output has solved.

    A search that ended before the first level was solved returns the first level unsolved.
    """
    counts = []
    for path in paths:
        # The levels before the first one that was cut short.
        is_cut = [result.status in CUT for result in path.results]
        counts.append(max(is_cut.index(True), 1) if True in is_cut else len(is_cut))
    n_levels = min(counts, default=0)
    return tuple(path.first(n_levels) for path in paths)


def padded_levels(values: NDArray[np.float64], n_levels: int) -> NDArray[np.float64]:
    """Return ``values`` with NaN appended along the last axis, up to ``n_levels`` entries.

    The last axis has one entry for each of the first levels.
    """
    shape = (*values.shape[:-1], n_levels - values.shape[-1])
    return np.concatenate([values, np.full(shape, np.nan)], axis=-1)


def known_folds(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of the folds to use after a search was cut short.

    These are the folds whose scores are all known. If there are none, they are the folds with some
    known score of the first norm. If there are none either, they are all folds. ``scores`` is
    (n_norms, n_levels, n_folds), NaN if not known.
    """
    known = np.isfinite(scores)
    whole = np.flatnonzero(known.all(axis=(0, 1)))
    begun = np.flatnonzero(known[0].any(axis=0))
    return next(some for some in (whole, begun, np.arange(known.shape[2])) if some.size)
