"""SearchEnd: where the paths of a cross-validation have gone far enough, all at one level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.data.parts import part_of
from atomlearn.core.paths.ends import End, Reached
from atomlearn.core.paths.folds import Fold, Score, decisions_at
from atomlearn.core.paths.path import PathResult
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result


class SearchEnd:
    """The end of several paths over one grid: folds and outputs of one norm.

    They end where each of them has reached its own end, or where the mean held-out score of a
    level, which is known once all paths came to it, says so.

    Parameters
    ----------
    until : End
    n_paths : int
    mean_score : callable
        Of the results at one level, one a path.
    """

    def __init__(
        self, until: End, n_paths: int, mean_score: Callable[[Sequence[Result]], float]
    ) -> None:
        begun = [until.begin_folds() for _ in range(n_paths)]
        self._reached, self._settled = [each[0] for each in begun], begun[0][1]
        self._mean_score = mean_score
        self._ended: dict[int, int] = {}
        self._at: dict[int, dict[int, Result]] = {}
        #: Place of the last level in the grid; None where there is no end yet.
        self.last: int | None = None

    def of(self, path: int) -> Reached:
        """Return what one path asks of each of its levels, in their order."""
        count = 0

        def reached(problem: Problem, result: Result) -> bool:
            nonlocal count
            level, count = count, count + 1
            if self.last is None:
                self._learn(path, level, problem, result)
            return self.last is not None and level >= self.last

        return reached

    def _learn(self, path: int, level: int, problem: Problem, result: Result) -> None:
        if path not in self._ended and self._reached[path](problem, result):
            self._ended[path] = level
        here = self._at.setdefault(level, {})
        here[path] = result
        if len(here) < len(self._reached):
            return
        # Paths ask in their order of levels: the levels before were complete before.
        del self._at[level]
        score = self._mean_score([here[number] for number in range(len(here))])
        all_ended = len(self._ended) == len(self._reached)
        if self._settled(score) or (all_ended and level >= max(self._ended.values())):
            self.last = level


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one fold: ``end`` is shared with the other folds, of which ``first`` paths come
    before those of this one; None where the grid is the end."""

    end: SearchEnd | None = None
    first: int = 0

    def last(self) -> int | None:
        """Return the place of the last level in the grid, None where it is not known yet."""
        return None if self.end is None else self.end.last

    def of(self, output: int) -> Reached | None:
        """Return what the path of an output asks of each of its levels."""
        return None if self.end is None else self.end.of(self.first + output)

    def cut(self, path: PathResult) -> PathResult:
        """Return the path up to its end: levels beyond may have been solved with others."""
        last = self.last()
        count = None if last is None else last + 1
        return replace(path, levels=path.levels[:count], results=path.results[:count])


def endings(
    until: End | None,
    problems: Sequence[Problem],
    folds: Sequence[Fold],
    score: Score,
    n_norms: int,
) -> list[Ending]:
    """Return the ending of each (norm, fold): all folds of a norm end together."""
    if until is None:
        return [Ending()] * (n_norms * len(folds))
    size, found = len(problems), []
    for _ in range(n_norms):
        end = SearchEnd(until, len(folds) * size, _MeanScore(problems, folds, score))
        found += [Ending(end, number * size) for number in range(len(folds))]
    return found


@dataclass(frozen=True, slots=True)
class _MeanScore:
    """The mean held-out score of the results at one level, by (fold, output)."""

    problems: Sequence[Problem]
    folds: Sequence[Fold]
    score: Score

    def __call__(self, results: Sequence[Result]) -> float:
        scores, paths = [], iter(results)
        for _, test in self.folds:
            rows = part_of(self.problems[0].design, rows=test)
            decisions = [
                decisions_at(problem, next(paths).predict(rows), test) for problem in self.problems
            ]
            scores.append(self.score(np.column_stack(decisions), test))
        return float(np.mean(scores))
