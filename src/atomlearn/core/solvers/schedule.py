"""The scheduler: tasks say what they need of the data, and one reading serves all that wait.

A task is a solve, or a path of many levels. It works up to its next question, and learns from the
answer. The vectors of all tasks (levels, folds, outputs, candidate norms) share each reading.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs

from atomlearn._kernels import share_out, single_threaded_blas
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Deadline, Design, Scores
from atomlearn.core.problem.result import Result

#: Vectors of one reading.
MOST_VECTORS = 256


@dataclass(frozen=True, slots=True)
class Question:
    """vectors : each (n_samples,); bounds : (m,) for large scores only, None: all scores."""

    vectors: list[Array]
    bounds: Array | None


@dataclass(frozen=True, slots=True)
class Answer:
    """scores : those of the vectors of a question; n_vectors : vectors of the whole reading."""

    scores: Sequence[Scores]
    n_vectors: int


class Task(ABC):
    """Work on one or more levels of a problem.

    done : whether every level has its result; work : multiplications up to the next question,
    which decide how many threads are woken; results : one a level, as far as there are any.
    """

    done = False
    work = 0.0
    results: list[Result]

    @abstractmethod
    def advance(self) -> Question | None:
        """Work up to the next question; None where it read the data itself. Shares no state."""

    @abstractmethod
    def learn(self, answer: Answer | None) -> None:
        """Take the answer in; tasks do so one after the other, as they share pools and ends."""

    @abstractmethod
    def interrupt(self) -> None:
        """End with the best points so far, after Ctrl-C."""


def drive(design: Design, tasks: Sequence[Task], n_jobs: int | None = None) -> bool:
    """Run all tasks to their end; return whether Ctrl-C ended them first.

    ``n_jobs`` : number of tasks that work side by side, for those that share no readings.
    """
    waiting: dict[int, Question] = {}
    asked: dict[int, Question | None] = {}
    most = effective_n_jobs(n_jobs) if len(tasks) > 1 else 1

    try:  # the outer deadline is back after Ctrl-C, wherever that fell
        with Deadline.current().kept(), single_threaded_blas():
            while live := [number for number, task in enumerate(tasks) if not task.done]:
                ready = [number for number in live if number not in waiting]
                work = math.inf if most > 1 else sum(tasks[k].work for k in ready)

                def advance(k: int, ready: list[int] = ready) -> None:
                    asked[ready[k]] = tasks[ready[k]].advance()

                if len(ready) == 1:
                    asked[ready[0]] = tasks[ready[0]].advance()
                else:
                    share_out(advance, len(ready), work, most if most > 1 else None)
                for number in ready:
                    question = asked.pop(number)
                    if question is None:
                        tasks[number].learn(None)
                    else:
                        waiting[number] = question
                # The data is read once for as many of the waiting tasks as fit.
                served = _served(design, waiting) if waiting else []
                together = [waiting.pop(number) for number in served]
                answers = _read(design, together) if together else []
                for number, answer in zip(served, answers, strict=True):
                    tasks[number].learn(answer)
    except KeyboardInterrupt:
        for task in tasks:
            task.interrupt()
        waiting.update((k, question) for k, question in asked.items() if question is not None)
        if waiting and not any(task.results for task in tasks):
            # Points are there, and no proof of any: one reading of the data makes them count.
            served = _served(design, waiting)
            answers = _read(design, [waiting[number] for number in served])
            for number, answer in zip(served, answers, strict=True):
                tasks[number].learn(answer)
                tasks[number].interrupt()
        return True
    return False


def _served(design: Design, waiting: dict[int, Question]) -> list[int]:
    """Return the tasks that the next reading serves: all of one kind, as many as fit."""
    kinds = {asked.bounds is None for asked in waiting.values()}
    everything = True in kinds
    n_samples, n_features = design.shape
    size = max(n_samples, n_features if everything else 1)
    most = min(MOST_VECTORS, max(LIMITS.most_dense // size, 1))
    served: list[int] = []
    count = 0
    for number, asked in waiting.items():
        if (asked.bounds is None) is everything:
            count += len(asked.vectors)
            if served and count > most:
                break
            served.append(number)
    return served


def _read(design: Design, together: Sequence[Question]) -> list[Answer]:
    V = np.column_stack([v for asked in together for v in asked.vectors])
    bounds = [asked.bounds for asked in together if asked.bounds is not None]
    scores = design.scores_above(V, np.concatenate(bounds)) if bounds else design.scores_many(V)
    rest = iter(scores)
    return [Answer([next(rest) for _ in asked.vectors], V.shape[1]) for asked in together]
