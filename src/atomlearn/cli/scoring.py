"""Held-out rows: how they are chosen, and how well a model does on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.options import CommandError
from atomlearn.cli.source import Given
from atomlearn.cli.targets import Target
from atomlearn.core.interfaces import Array, Rows
from atomlearn.estimators.dependent_rows import held_out
from atomlearn.reports.content import Score
from atomlearn.reports.held_out import confusion_of, scores_of_classes, scores_of_numbers
from atomlearn.survival.cox import concordance


def split(target: Target, fraction: float, seed: int, given: Given) -> tuple[Rows, Rows]:
    """Return rows to fit on and rows to hold out, increasing, or those that a column holds out."""
    if given.test_rows is not None:
        return np.flatnonzero(~given.test_rows), np.flatnonzero(given.test_rows)
    n_samples = target.values.size
    if fraction == 0:
        return np.arange(n_samples), np.arange(0)
    codes = target.codes
    train, test = held_out(n_samples, fraction, seed, codes, **given.dependence)
    if test.size == 0:
        raise CommandError(
            f"--test-fraction {fraction} of {n_samples} rows holds out none, for each class keeps "
            "a row, or a group of rows; give a larger one, more rows, or --test-fraction 0 for no "
            "held-out scores"
        )
    if codes is not None and np.unique(codes[train]).size < np.unique(codes).size:
        raise CommandError(
            "a class is in the end of the series only, which is held out; give a smaller "
            "--test-fraction, or leave --order out"
        )
    return train, test


def decided(target: Target, decisions: Array) -> NDArray[np.int64]:
    """Return the code of the class of each row of decisions."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.int64)
    codes: NDArray[np.int64] = np.argmax(decisions, axis=1)
    return codes


def held_out_scores(target: Target, train: Rows, test: Rows, decisions: Array) -> tuple[Score, ...]:
    """Return the scores of ``decisions`` at the test rows beside those of a guess.

    Those of ``reports.held_out`` for classes and numbers; concordance for survival.
    """
    trained, truth = target.values[train], target.values[test]
    if target.is_survival:
        found = concordance(truth, decisions[:, 0])
        return () if np.isnan(found) else (Score("concordance", found, 0.5, "a guess", False),)
    if target.classes is None:
        return scores_of_numbers(trained, truth, decisions[:, 0])
    called = decided(target, decisions)
    return scores_of_classes(trained, truth, called, decisions, len(target.classes))


def confusion(target: Target, test: Rows, decisions: Array) -> tuple[tuple[int, ...], ...]:
    """Return the counts of (true class, predicted class); empty for regression."""
    if target.classes is None:
        return ()
    return confusion_of(target.values[test], decided(target, decisions), len(target.classes))
