"""Held-out rows: how they are chosen, and how well a model does on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from atomlearn.cli.errors import CommandError
from atomlearn.cli.targets import Target
from atomlearn.core.interfaces import Array, Rows
from atomlearn.core.losses.concordance import concordance
from atomlearn.reports.content import Score


def split(
    target: Target, fraction: float, seed: int, held: NDArray[np.bool_] | None = None
) -> tuple[Rows, Rows]:
    """Return rows to fit on and rows to hold out, increasing; classes and events keep their shares.

    A class never loses its last row to the held-out part. ``held`` : which rows a column of the
    data holds out, instead.
    """
    if held is not None:
        return np.flatnonzero(~held), np.flatnonzero(held)
    n_samples = target.values.size
    rng = np.random.default_rng(seed)
    if fraction == 0:
        return np.arange(n_samples), np.arange(0)
    codes = target.codes
    if codes is None:
        order = rng.permutation(n_samples)
        held_out = order[: min(round(fraction * n_samples), n_samples - 1)]
    else:
        parts = []
        for code in np.unique(codes):
            members = rng.permutation(np.flatnonzero(codes == code))
            parts.append(members[: min(round(fraction * members.size), members.size - 1)])
        held_out = np.concatenate(parts)
    if held_out.size == 0:
        raise CommandError(
            f"--test-fraction {fraction} of {n_samples} rows holds out none; give a larger one, "
            "more rows, or --test-fraction 0 for no held-out scores"
        )
    chosen = np.zeros(n_samples, dtype=bool)
    chosen[held_out] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def decided(target: Target, decisions: Array) -> NDArray[np.int64]:
    """Return the code of the class of each row of decisions."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.int64)
    codes: NDArray[np.int64] = np.argmax(decisions, axis=1)
    return codes


def held_out_scores(target: Target, train: Rows, test: Rows, decisions: Array) -> tuple[Score, ...]:
    """Return the scores of ``decisions`` at the test rows beside those of a guess.

    Classification: accuracy against the largest class of the training rows, and AUC (two
    classes) or balanced accuracy, the mean over classes of the share that is found.
    Regression: R^2 and RMSE against the mean of the training rows. Survival: concordance.
    """
    if target.is_survival:
        found = concordance(target.values[test], decisions[:, 0])
        return () if np.isnan(found) else (Score("concordance", found, 0.5, "a guess", False),)
    if target.classes is None:
        return _regression_scores(target.values[train], target.values[test], decisions[:, 0])
    truth = target.values[test]
    right = decided(target, decisions) == truth
    majority = int(np.argmax(target.counts(train)))
    baseline = float(np.mean(truth == majority))
    scores = [Score("accuracy", float(right.mean()), baseline, "always the largest class", True)]
    present = np.unique(truth)
    if len(target.classes) == 2:
        # AUC is not defined where only one class was held out.
        if present.size == 2:
            area = float(roc_auc_score(truth, decisions[:, 0]))
            scores.append(Score("AUC", area, 0.5, "a guess", False))
    else:
        recall = float(np.mean([right[truth == code].mean() for code in present]))
        guess = float(np.mean(present == majority))
        scores.append(Score("balanced accuracy", recall, guess, "always the largest class", True))
    return tuple(scores)


def _regression_scores(train: Array, truth: Array, predicted: Array) -> tuple[Score, ...]:
    guess = train.mean()
    error, error_of_guess = truth - predicted, truth - guess
    spread = float(((truth - truth.mean()) ** 2).sum())
    rmse = Score(
        "RMSE",
        float(np.sqrt(np.mean(error**2))),
        float(np.sqrt(np.mean(error_of_guess**2))),
        "always the mean",
        False,
    )
    if spread == 0.0:
        # R^2 is not defined where all held-out values are the same.
        return (rmse,)
    r2 = Score(
        "R²",
        1.0 - float((error**2).sum()) / spread,
        1.0 - float((error_of_guess**2).sum()) / spread,
        "always the mean",
        False,
    )
    return (r2, rmse)


def confusion(target: Target, test: Rows, decisions: Array) -> tuple[tuple[int, ...], ...]:
    """Return the counts of (true class, predicted class); empty for regression."""
    if target.classes is None:
        return ()
    n_classes = len(target.classes)
    cells = target.values[test] * n_classes + decided(target, decisions)
    counts = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)
    return tuple(tuple(row) for row in counts.tolist())
