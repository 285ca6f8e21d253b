"""Folds: training parts of a problem, and the score of the other rows."""

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
#: The score of levels, each a result for every output, computed by the data where the rows are.
ScoreThere = Callable[[Sequence[Sequence[Result]]], Array]


def training_part(problem: Problem, train: Rows) -> Problem:
    """Return the problem trained on the rows ``train``: all other rows get sample weight zero.

    The weights are rescaled so that their sum stays that of all rows. A row that occurs twice in
    ``train`` counts twice.
    """
    weight = problem.weight * np.bincount(train, minlength=problem.y.size)
    weight *= problem.weight.sum() / weight.sum()
    return replace(problem, weight=weight, measured=Measured())


def decisions_at(problem: Problem, predicted: Array, test: Rows) -> Array:
    """Return the predictions at the rows ``test``, plus the offsets of these rows, if any."""
    offset = known_offset(problem.loss)
    return predicted if offset is None else predicted + offset[test]


@dataclass(frozen=True, slots=True)
class HeldOutLoss:
    """The score "minus the mean held-out loss", weighted, summed over outputs.

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
        total = 0.0
        for output, problem in enumerate(self.problems):
            held_out = decisions[:, output]
            total += mean_loss(problem.loss, problem.y[test], held_out, problem.weight[test])
        return -total

    def there(self, testing: Design, test: Rows) -> ScoreThere | None:
        """Return the score that the data computes; None if predictions are computed here."""
        parts = []
        for p in self.problems:
            of_rows: dict[str, Any] = {
                "loss": loss_of_rows(p.loss, test),
                "y": p.y[test],
                "weight": p.weight[test],
            }
            parts.append(replace(p, design=testing, fit_intercept=False, **of_rows))
        summed: list[Any] = [over_sums(part) for part in parts]
        if any(there is here for there, here in zip(summed, parts, strict=True)):
            return None

        def score(levels: Sequence[Sequence[Result]]) -> Array:
            total = np.zeros(len(levels))
            for there, part, results in zip(summed, parts, zip(*levels, strict=True), strict=True):
                columns = np.unique(np.concatenate([result.columns for result in results]))
                W = np.zeros((total.size, columns.size))
                for row, result in zip(W, results, strict=True):
                    row[np.searchsorted(columns, result.columns)] = result.weights
                shifts = np.array([result.intercept for result in results])
                total -= there.loss.values_at(columns, W, shifts) / part.weight.sum()
            return total

        return score


held_out_loss = HeldOutLoss


def scored_there(score: Score, testing: Design, test: Rows) -> ScoreThere | None:
    """Return the score of levels that the data computes; None for scores of predictions."""
    return score.there(testing, test) if isinstance(score, HeldOutLoss) else None


def check_folds(folds: Sequence[Fold], problem: Problem) -> None:
    """Raise if there are no folds, or one has nothing to train or to test on."""
    if not folds:
        raise ValueError("cv gave no folds; it must give at least one (train, test) pair")
    for number, fold in enumerate(folds):
        for name, rows in zip(("training", "test"), fold, strict=True):
            if len(rows) == 0 or not problem.weight[rows].any():
                raise ValueError(
                    f"fold {number} has no {name} sample of positive weight; use fewer folds, or "
                    "a splitter that spreads the weights"
                )
