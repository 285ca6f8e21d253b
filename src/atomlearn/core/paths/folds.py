"""Folds: training parts of a problem, and the score of the other rows.

An output is one of several problems on the same rows, such as one class against all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Design, Rows
from atomlearn.core.losses.around import loss_of_rows, mean_loss
from atomlearn.core.losses.free_columns import known_offset
from atomlearn.core.problem.problem import Problem, over_sums
from atomlearn.core.problem.result import Result
from atomlearn.core.problem.rounding import Measured

#: Training rows and test rows.
Fold = tuple[Rows, Rows]
#: score(decisions (n_test, n_outputs), test rows) -> a number, the larger the better.
Score = Callable[[Array, Rows], float]
#: Returns the scores of several levels, each a list of the result of every output. It is for rows
#: on other machines, which compute the score.
RemoteScore = Callable[[Sequence[Sequence[Result]]], Array]


def training_part(problem: Problem, train: Rows) -> Problem:
    """Return the problem trained on the rows ``train``: all other rows get sample weight zero.

    The other weights are multiplied by a factor, so that the sum of all weights does not change. A
    row that occurs twice in ``train`` counts twice.
    """
    weight = problem.weight * np.bincount(train, minlength=problem.y.size)
    weight *= problem.weight.sum() / weight.sum()
    # ``Measured`` is a cache that depends on the weights: begin with an empty one.
    return replace(problem, weight=weight, measured=Measured())


def decisions_at(problem: Problem, predicted: Array, test: Rows) -> Array:
    """Return ``predicted``, the predictions at the rows ``test``, plus the offsets of these rows.

    The offsets are those in the loss of ``problem``, if it has any.
    """
    offset = known_offset(problem.loss)
    return predicted if offset is None else predicted + offset[test]


@dataclass(frozen=True, slots=True)
class HeldOutLoss:
    """The score "minus the mean held-out loss", weighted by sample weights, summed over outputs.

    Parameters
    ----------
    problems : sequence of Problem
        One for each output, with its loss, targets and sample weights for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> X, y = designs.as_design(np.eye(3)), np.array([3.0, 1.0, 2.0])
    >>> penalty = problem.Regularizer(norms.L1(), "penalized", 1.0)
    >>> task = problem.Problem.build(X, y, losses.Squared(), penalty)
    >>> held_out_loss([task])(np.array([[3.0], [0.0]]), np.array([0, 1]))
    -0.25
    """

    problems: Sequence[Problem]

    def __call__(self, decisions: Array, test: Rows) -> float:
        """Return the score of predictions ``decisions`` (n_test, n_outputs) at rows ``test``."""
        total = 0.0
        for output, problem in enumerate(self.problems):
            held_out = decisions[:, output]
            total += mean_loss(problem.loss, problem.y[test], held_out, problem.weight[test])
        return -total

    def remote(self, testing: Design, test: Rows) -> RemoteScore | None:
        """Return a function for the score if other machines have the rows; else None.

        testing : the design of the test rows. test : their row numbers.
        """
        # The problem of each output over the test rows. The intercept of a result is fixed.
        parts = []
        for p in self.problems:
            of_rows: dict[str, Any] = {
                "loss": loss_of_rows(p.loss, test),
                "y": p.y[test],
                "weight": p.weight[test],
            }
            parts.append(replace(p, design=testing, fit_intercept=False, **of_rows))
        # Problems whose loss sends requests to the machines; unchanged if there are none.
        summed: list[Any] = [over_sums(part) for part in parts]
        if any(remote is part for remote, part in zip(summed, parts, strict=True)):
            return None

        def score(levels: Sequence[Sequence[Result]]) -> Array:
            """Return the scores (n_levels,); ``levels`` has the results of each for all outputs.

            ``summed`` are the problems of the outputs, with losses that other machines compute.
            """
            total = np.zeros(len(levels))
            for remote, part, results in zip(summed, parts, zip(*levels, strict=True), strict=True):
                # ``results`` are those of one output at all levels: their weights W over the
                # columns that any of them uses. The machines compute the sum of losses for each row
                # of W.
                columns = np.unique(np.concatenate([result.columns for result in results]))
                W = np.zeros((total.size, columns.size))
                for row, result in zip(W, results, strict=True):
                    row[np.searchsorted(columns, result.columns)] = result.weights
                shifts = np.array([result.intercept for result in results])
                total -= remote.loss.values_at(columns, W, shifts) / part.weight.sum()
            return total

        return score


held_out_loss = HeldOutLoss


def remote_score_of(score: Score, testing: Design, test: Rows) -> RemoteScore | None:
    """Return a function for the score if other machines have the rows; else None.

    Only ``HeldOutLoss`` can be computed there. testing : the design of the test rows. test : their
    row numbers.
    """
    return score.remote(testing, test) if isinstance(score, HeldOutLoss) else None


def check_folds(folds: Sequence[Fold], problem: Problem) -> None:
    """Raise ValueError without folds, or if a part of one has no weight in ``problem``."""
    if not folds:
        raise ValueError("cv gave no folds; it must give at least one (train, test) pair")
    for number, fold in enumerate(folds):
        for name, rows in zip(("training", "test"), fold, strict=True):
            if len(rows) == 0 or not problem.weight[rows].any():
                raise ValueError(
                    f"fold {number} has no {name} sample of positive weight; use fewer folds, or "
                    "a splitter that spreads the weights"
                )
