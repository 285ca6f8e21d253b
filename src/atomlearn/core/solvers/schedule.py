"""The scheduler: tasks request scores X'v, and one pass over the data serves all open requests.

A task is a solve, or a path of many levels (regularization strengths). It computes until its next
request, called a question, and continues with the answer. The vectors v of all tasks (levels,
folds, outputs, candidate norms) are batched, so that they share each pass over the data.
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

#: Maximum number of vectors that share one pass over the data.
MOST_VECTORS = 256


@dataclass(frozen=True, slots=True)
class Question:
    """A request for the scores X'v of some vectors.

    Attributes
    ----------
    vectors : list of (n_samples,)
    bounds : (n_vectors,), optional
        Only scores beyond these bounds are needed; None: all scores.
    """

    vectors: list[Array]
    bounds: Array | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The scores of the vectors of a question.

    Attributes
    ----------
    scores : sequence of Scores
    n_vectors : int
        Number of vectors that shared the pass, including those of other tasks.
    """

    scores: Sequence[Scores]
    n_vectors: int


class Task(ABC):
    """Work on one or more levels of a problem.

    Attributes
    ----------
    done : bool
        Whether every level has its result.
    work : float
        Number of multiplications up to the next question, from which the number of threads is
        chosen.
    results : list of Result
        The results of the levels that are solved.
    """

    done = False
    work = 0.0
    results: list[Result]

    @abstractmethod
    def advance(self) -> Question | None:
        """Compute until the next question and return it; None if the task has no question."""

    @abstractmethod
    def learn(self, answer: Answer | None) -> None:
        """Continue with ``answer``, None if ``advance`` requested nothing.

        Tasks share sets of columns, so this method of two tasks is never called in parallel.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """End the task after Ctrl-C; its results are the best points so far."""


def drive(design: Design, tasks: Sequence[Task], n_jobs: int | None = None) -> bool:
    """Run all tasks until they are done; return True if Ctrl-C interrupted them.

    The loop has two stages. First all tasks without an open question compute until their next one.
    Then one pass over ``design``, the data, answers as many open questions as the limits allow; the
    others wait for the next pass. ``n_jobs`` is the number of tasks that run in parallel threads,
    for tasks that share no passes over the data.
    """
    waiting: dict[int, Question] = {}
    questions: dict[int, Question | None] = {}
    n_workers = effective_n_jobs(n_jobs) if len(tasks) > 1 else 1

    try:
        # Tasks set deadlines (time limits) for their thread; ``kept`` restores this one at the end.
        with Deadline.current().kept(), single_threaded_blas():
            while live := [number for number, task in enumerate(tasks) if not task.done]:
                # Stage 1: advance the tasks that have no open question. ``share_out`` uses several
                # threads if ``work``, a number of multiplications, is large enough.
                ready = [number for number in live if number not in waiting]
                work = math.inf if n_workers > 1 else sum(tasks[k].work for k in ready)

                def advance(k: int, ready: list[int] = ready) -> None:
                    """Advance the task numbered ``ready[k]``, and store its question."""
                    questions[ready[k]] = tasks[ready[k]].advance()

                if len(ready) == 1:
                    questions[ready[0]] = tasks[ready[0]].advance()
                else:
                    share_out(advance, len(ready), work, n_workers if n_workers > 1 else None)
                for number in ready:
                    question = questions.pop(number)
                    if question is None:
                        tasks[number].learn(None)
                    else:
                        waiting[number] = question
                # Stage 2: one pass over the data answers as many questions as the limits allow.
                served = _served(design, waiting) if waiting else []
                answered = [waiting.pop(number) for number in served]
                answers = _read(design, answered) if answered else []
                for number, answer in zip(served, answers, strict=True):
                    tasks[number].learn(answer)
    except KeyboardInterrupt:
        for task in tasks:
            task.interrupt()
        # Questions of stage 1 that Ctrl-C kept from being queued.
        waiting.update((k, question) for k, question in questions.items() if question is not None)
        if waiting and not any(task.results for task in tasks):
            # No task has a certified point yet: one more pass certifies the points of some tasks.
            served = _served(design, waiting)
            answers = _read(design, [waiting[number] for number in served])
            for number, answer in zip(served, answers, strict=True):
                tasks[number].learn(answer)
                tasks[number].interrupt()
        return True
    return False


def _served(design: Design, waiting: dict[int, Question]) -> list[int]:
    """Return the numbers of the tasks that the next pass over the data serves.

    ``waiting`` maps the number of a task to its open request, and ``design`` is the data. Requests
    for all scores and for large scores only are not mixed; those for all scores come first. One
    pass serves as many requests as its limits on the number and the memory of vectors allow; the
    others wait.
    """
    all_scores = any(question.bounds is None for question in waiting.values())
    # Each vector needs memory for its samples, and for all scores if these are requested.
    # ``most_dense`` is the maximum number of entries of a dense array.
    n_samples, n_features = design.shape
    size = max(n_samples, n_features if all_scores else 1)
    limit = min(MOST_VECTORS, max(LIMITS.most_dense // size, 1))
    served: list[int] = []
    count = 0
    for number, question in waiting.items():
        if (question.bounds is None) is all_scores:
            count += len(question.vectors)
            if served and count > limit:
                break
            served.append(number)
    return served


def _read(design: Design, questions: Sequence[Question]) -> list[Answer]:
    """Return the answers to ``questions``, all of one kind, by one pass over ``design``.

    The kinds are requests for all scores, and requests for scores beyond bounds only.
    """
    vectors = np.array([v for question in questions for v in question.vectors]).T
    bounds = [question.bounds for question in questions if question.bounds is not None]
    scores = (
        design.scores_above(vectors, np.concatenate(bounds))
        if bounds
        else design.scores_many(vectors)
    )
    # The scores come in the order of the vectors: hand each question as many as it has vectors.
    remaining = iter(scores)
    count = vectors.shape[1]
    return [Answer([next(remaining) for _ in each.vectors], count) for each in questions]
