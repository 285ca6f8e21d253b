"""Folds: training parts of a problem, and what scores the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from atomlearn.core.interfaces import Array, Rows
from atomlearn.core.interfaces.loss import mean_loss
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Measured

#: Training rows and test rows.
Fold = tuple[Rows, Rows]
#: score(decisions (n_test, n_outputs), test rows) -> a number, the larger the better.
Score = Callable[[Array, Rows], float]


def training_part(problem: Problem, train: Rows) -> Problem:
    """Return the problem of these rows, over all: the others have weight zero, the sum stays."""
    weight = problem.weight * np.bincount(train, minlength=problem.y.size)
    weight *= problem.weight.sum() / weight.sum()
    return replace(problem, weight=weight, measured=Measured())


def decisions_at(problem: Problem, predicted: Array, test: Rows) -> Array:
    """Return predictions at these rows with their offsets."""
    return predicted if problem.offset is None else predicted + problem.offset[test]


def held_out_loss(problems: Sequence[Problem]) -> Score:
    """Return the score "minus the mean held-out loss", weighted, summed over outputs."""

    def score(decisions: Array, test: Rows) -> float:
        total = 0.0
        for output, problem in enumerate(problems):
            held_out = decisions[:, output]
            total += mean_loss(problem.loss, problem.y[test], held_out, problem.weight[test])
        return -total

    return score


def check_folds(folds: Sequence[Fold], problem: Problem) -> None:
    """Raise where there are no folds, or one has nothing to train or to test on."""
    if not folds:
        raise ValueError("cv gave no folds; it must give at least one (train, test) pair")
    for number, fold in enumerate(folds):
        for name, rows in zip(("training", "test"), fold, strict=True):
            if len(rows) == 0 or not problem.weight[rows].any():
                raise ValueError(
                    f"fold {number} has no {name} sample of positive weight; use fewer folds, or "
                    "a splitter that spreads the weights"
                )
