"""Sizes of coefficients at a cross-validated level, for whatever the target is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.paths.ends import NoImprovement
from atomlearn.estimators.cross_validated import (
    AtomicClassifierCV,
    AtomicRegressorCV,
    AtomicSurvivalCV,
)
from atomlearn.estimators.dependent_rows import folds
from atomlearn.findings.leave_one_out import has_formula, path_with_scores
from atomlearn.findings.settings import SETTINGS
from atomlearn.losses import as_loss
from atomlearn.survival.cox import Cox

#: The search and the usual loss of each task.
SEARCHES = {
    "classification": (AtomicClassifierCV, "logistic"),
    "regression": (AtomicRegressorCV, "squared"),
    "survival": (AtomicSurvivalCV, "cox"),
}


def loss_for(y: NDArray[Any], loss: str | Loss) -> Loss:
    """Return the loss, for "auto" the usual one of such a target."""
    if not (isinstance(loss, str) and loss == "auto"):
        return as_loss(loss)
    task = "regression"
    if y.dtype.names is not None:
        task = "survival"
    elif type_of_target(y) in ("binary", "multiclass") and not _is_count(y):
        task = "classification"
    return as_loss(SEARCHES[task][1])


def _is_count(y: NDArray[Any]) -> bool:
    """Whether so many whole numbers are a quantity rather than labels."""
    return y.dtype.kind in "iuf" and np.unique(y).size > max(20, y.size // 5)


def coefficients(
    X: Array,
    y: NDArray[Any],
    norm: Norm,
    loss: str | Loss,
    n_alphas: int,
    cv: int | None,
    seed: int,
    groups: Any = None,
    order: Any = None,
) -> tuple[Array, float]:
    """Return the sizes of the coefficients of X, (n_columns,), and the level that was chosen.

    ``cv`` None leaves out one row at a time where there is a formula and rows are independent, else
    a fifth of them; ``groups`` and ``order`` of the rows as ``dependent_rows`` has them. Folds
    depend on rows only and levels are shared by all columns: exchanging two columns exchanges their
    sizes, and nothing else.
    """
    found = loss_for(y, loss)
    classes, codes = None, None
    if found.task == "classification":
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    independent = cv is None and groups is None and order is None
    one_output = classes is None or classes.size == 2
    if independent and one_output and has_formula(found, norm, X.shape[1]):
        target: Any = y if codes is None else 2.0 * codes - 1.0
        return _by_one_path(X, target, norm, found, n_alphas)
    n_folds = max(2, min(cv or 5, len(y)))
    if classes is not None:
        n_folds = max(2, min(n_folds, int(counts.min())))
    cuts = folds(len(y), n_folds, seed, codes, groups, order)
    kind: Any = SEARCHES[found.task][0]
    own = {"ties": found.ties} if isinstance(found, Cox) else {"loss": found}
    # Levels of the squared form count twice: they weigh the square of the norm.
    ratio = SETTINGS.ratio ** (4 if norm.usual_form == "squared" else 2)
    with warnings.catch_warnings():
        # A gap that was not reached is small beside what separates two columns.
        warnings.simplefilter("ignore", UserWarning)
        search = kind(
            norms=norm,
            n_alphas=2 * n_alphas,
            alpha_ratio=ratio,
            cv=cuts,
            form=norm.usual_form,
            until=NoImprovement(),
            **own,
        ).fit(X, y)
    sizes = np.atleast_2d(np.asarray(search.coef_, dtype=np.float64))
    return np.sqrt(np.sum(sizes**2, axis=0)), float(search.alpha_)


def _by_one_path(
    X: Array, target: Array, norm: Norm, loss: Loss, n_alphas: int
) -> tuple[Array, float]:
    """Return sizes and level by what each solution predicts for rows left out one at a time."""
    levels, results, scores = path_with_scores(X, target, loss, norm, n_alphas, SETTINGS.ratio)
    best = int(np.argmin(scores))
    sizes, chosen = np.zeros(X.shape[1]), results[best]
    sizes[chosen.columns] = np.abs(chosen.weights)
    return sizes, float(levels[best]) / len(target)
