"""Readings: paths ask for the scores of vectors, and one driver reads the data for all of them.

A path is a coroutine: it yields what it asks, and is sent the scores. The vectors of all live paths
(levels, folds, outputs, candidates of norms and k) go over the data together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Design, Scores
from atomlearn.core.problem.result import Result

Array = NDArray[np.float64]

#: Vectors of one reading, and the numbers that they, or all their scores, may take (1 GB).
MOST_VECTORS = 256
MOST_NUMBERS = 2**27


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


#: Yields what it asks, is sent the answers, returns the results of its levels.
Path = Generator[Asked, Answer, Outcome]


def drive(design: Design, paths: Sequence[Path]) -> list[Outcome]:
    """Return what each of the paths returns, reading the design for all of them at once.

    After Ctrl-C each path returns what it has.
    """
    outcomes: dict[int, Outcome] = {}
    waiting: dict[int, Asked] = {}

    def forward(number: int, answer: Answer | None) -> None:
        path = paths[number]
        try:
            waiting[number] = next(path) if answer is None else path.send(answer)
        except StopIteration as end:
            waiting.pop(number, None)
            outcomes[number] = end.value
            if outcomes[number].interrupted:
                raise KeyboardInterrupt from None

    try:
        for number in range(len(paths)):
            forward(number, None)
        while waiting:
            served = _served(design, waiting)
            together = [waiting[number] for number in served]
            for number, answer in zip(served, _read(design, together), strict=True):
                forward(number, answer)
    except KeyboardInterrupt:
        for number, path in enumerate(paths):
            if number not in outcomes:
                outcomes[number] = _interrupted(path)
    return [outcomes[number] for number in range(len(paths))]


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
    answers, start = [], 0
    for asked in together:
        end = start + len(asked.vectors)
        answers.append(Answer(scores[start:end], V.shape[1]))
        start = end
    return answers
