"""Readings: paths ask for the scores of vectors, and one driver reads the data for all of them.

A path is a coroutine: it yields what it asks, and is sent the scores. The vectors of all live paths
(levels, folds, outputs, candidates of norms and k) go over the data together. Once a path has
learned from its scores it yields None: what follows, up to its next question, changes nothing that
paths share, so all of them go on side by side.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import share_out
from atomlearn.core.interfaces import Array, Design, Scores
from atomlearn.core.problem.result import Result

#: Vectors of one reading, and the numbers that they, or all their scores, may take (1 GB).
MOST_VECTORS = 256
MOST_NUMBERS = 2**27
#: Products with a pool of so many columns that the next levels of a path take, at a guess.
WORK, POOLED = 16, 3000


@dataclass(frozen=True, slots=True)
class Asked:
    """vectors : each (n_samples,); bounds : (m,) for large scores only, None: all scores."""

    vectors: list[Array]
    bounds: Array | None


@dataclass(frozen=True, slots=True)
class Answer:
    """scores : of the vectors asked for; vectors : how many the reading had in all."""

    scores: Sequence[Scores]
    vectors: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """results : of the levels in their order; interrupted : whether Ctrl-C cut them short."""

    results: list[Result]
    interrupted: bool = False


#: Yields what it asks, is sent the answers, returns the results of its levels; yields None between.
Path = Generator[Asked | None, Answer | None, Outcome]


def drive(design: Design, paths: Sequence[Path]) -> list[Outcome]:
    """Return what each of the paths returns, reading the design for all of them at once.

    After Ctrl-C each path returns what it has.
    """
    driver = _Driver(design, paths)
    try:
        driver.run()
    except KeyboardInterrupt:
        for number, path in enumerate(paths):
            if number not in driver.outcomes:
                driver.outcomes[number] = _interrupted(path)
    return [driver.outcomes[number] for number in range(len(paths))]


class _Driver:
    """What each path waits for, or has returned."""

    def __init__(self, design: Design, paths: Sequence[Path]) -> None:
        self.design, self.paths = design, paths
        self.outcomes: dict[int, Outcome] = {}
        self.waiting: dict[int, Asked] = {}

    def run(self) -> None:
        for number in range(len(self.paths)):
            self.send(number, None)
        self.go_on(list(range(len(self.paths))))
        while self.waiting:
            served = _served(self.design, self.waiting)
            together = [self.waiting.pop(number) for number in served]
            for number, answer in zip(served, _read(self.design, together), strict=True):
                self.send(number, answer)
            self.go_on(served)

    def send(self, number: int, answer: Answer | None) -> None:
        """Bring a path to its next question, its end, or to where it shares nothing."""
        try:
            asked = self.paths[number].send(answer)
        except StopIteration as end:
            self.outcomes[number] = end.value
            if end.value.interrupted:
                raise KeyboardInterrupt from None
            return
        if asked is not None:
            self.waiting[number] = asked

    def go_on(self, numbers: list[int]) -> None:
        """Let paths that share nothing work, up to their next questions."""
        ready = [n for n in numbers if n not in self.waiting and n not in self.outcomes]
        n_samples, n_features = self.design.shape
        work = float(WORK * n_samples * min(n_features, POOLED) * len(ready))
        share_out(lambda k: self.send(ready[k], None), len(ready), work)


def _interrupted(path: Path) -> Outcome:
    try:
        path.throw(KeyboardInterrupt())
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    except KeyboardInterrupt:
        pass
    return Outcome([], True)


def _served(design: Design, waiting: dict[int, Asked]) -> list[int]:
    """Return the paths that the next reading serves: all of one kind, as many as fit."""
    kinds = {asked.bounds is None for asked in waiting.values()}
    everything = True in kinds
    n_samples, n_features = design.shape
    size = max(n_samples, n_features if everything else 1)
    most = min(MOST_VECTORS, max(MOST_NUMBERS // size, 1))
    served: list[int] = []
    count = 0
    for number, asked in waiting.items():
        if (asked.bounds is None) is everything:
            count += len(asked.vectors)
            if served and count > most:
                break
            served.append(number)
    return served


def _read(design: Design, together: Sequence[Asked]) -> list[Answer]:
    V = np.column_stack([v for asked in together for v in asked.vectors])
    bounds = [asked.bounds for asked in together if asked.bounds is not None]
    scores = design.scores_above(V, np.concatenate(bounds)) if bounds else design.scores_many(V)
    rest = iter(scores)
    return [Answer([next(rest) for _ in asked.vectors], V.shape[1]) for asked in together]
