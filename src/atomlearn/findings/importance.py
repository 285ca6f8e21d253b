"""Sizes of coefficients at a cross-validated level, for whatever the target is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.paths.folds import Fold
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.dependent_rows import folds
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.findings.leave_one_out import has_formula, path_with_scores
from atomlearn.findings.settings import SETTINGS
from atomlearn.losses import as_loss


def task_of_target(y: Any, loss: str | Loss) -> str:
    """Return "classification", "regression" or "survival": by the loss, else by the target."""
    if getattr(getattr(y, "dtype", None), "names", None) is not None:
        return "survival"
    if not (isinstance(loss, str) and loss == "auto"):
        return as_loss(loss).task
    kind = type_of_target(y)
    if kind in ("binary", "multiclass") and not _is_count(np.asarray(y)):
        return "classification"
    return "regression"


def _is_count(y: NDArray[Any]) -> bool:
    """Whether so many whole numbers are a quantity rather than labels."""
    return y.dtype.kind in "iuf" and np.unique(y).size > max(20, y.size // 5)


def coefficients(
    X: Array, y: Any, norm: Norm, loss: str | Loss, n_alphas: int, cv: int | None, seed: int,
    groups: Any = None, order: Any = None,
) -> tuple[Array, float]:  # fmt: skip
    """Return the sizes of the coefficients of X, (n_columns,), and the level that was chosen.

    ``cv`` None leaves out one row at a time where there is a formula and rows are independent, else
    a fifth of them; ``groups`` and ``order`` of the rows as ``dependent_rows`` has them. Folds
    depend on rows only and levels are shared by all columns: exchanging two columns exchanges their
    sizes, and nothing else.
    """
    task = task_of_target(y, loss)
    if cv is None and groups is None and order is None:
        found = _by_one_path(X, y, norm, loss, task, n_alphas)
        if found is not None:
            return found
    n_folds, codes = max(2, min(cv or SETTINGS.n_folds, len(y))), None
    if task == "classification":
        codes = np.asarray(y)
        n_folds = int(max(2, min(n_folds, np.unique(codes, return_counts=True)[1].min())))
    cuts = folds(len(y), n_folds, seed, codes, groups, order)
    if task == "survival":
        return _of_survival(X, y, norm, cuts)
    with warnings.catch_warnings():
        # A gap that was not reached is small beside what separates two columns.
        warnings.simplefilter("ignore", UserWarning)
        for power in range(1, SETTINGS.rounds + 1):
            ratio = SETTINGS.ratio**power
            search = _search(task, norm, loss, n_alphas * power, ratio, cuts).fit(X, y)
            if search.alpha_ > float(search.alphas_[-1]):
                break
        kind = AtomicClassifier if task == "classification" else AtomicRegressor
        shared = {"form": search.form, "loss": search.loss, "tol": SETTINGS.exact_gap}
        model = kind(norm, search.alpha_, **shared).fit(X, y)
    sizes = np.abs(np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)))
    return np.sqrt(np.sum(sizes**2, axis=0)), float(search.alpha_)


def _by_one_path(
    X: Array, y: Any, norm: Norm, loss: str | Loss, task: str, n_alphas: int
) -> tuple[Array, float] | None:
    """Return sizes and level where left-out rows have a formula; None for all others."""
    target = np.asarray(y)
    if task == "classification":
        values, codes = np.unique(target, return_inverse=True)
        if values.size != 2:
            return None
        target = 2.0 * codes - 1.0
    usual = "logistic" if task == "classification" else "squared"
    the_loss = as_loss(usual if isinstance(loss, str) and loss == "auto" else loss)
    if task == "survival" or not has_formula(the_loss, norm, X.shape[1]):
        return None
    levels, results, scores = path_with_scores(
        X, target, the_loss, norm, n_alphas, SETTINGS.ratio, SETTINGS.exact_gap
    )
    best = int(np.argmin(scores))
    sizes, chosen = np.zeros(X.shape[1]), results[best]
    sizes[chosen.columns] = np.abs(chosen.weights)
    return sizes, float(levels[best]) / len(target)


def _search(
    task: str, norm: Norm, loss: str | Loss, n_alphas: int, ratio: float, cuts: Sequence[Fold]
) -> Any:
    auto = isinstance(loss, str) and loss == "auto"
    if task == "classification":
        kind: Any = AtomicClassifierCV
        loss = "logistic" if auto else loss
    else:
        kind = AtomicRegressorCV
        loss = "squared" if auto else loss
    # Levels of the squared form count twice: they weigh the square of the norm.
    form = norm.usual_form
    ratio = ratio**2 if form == "squared" else ratio
    return kind(
        norms=norm, n_alphas=n_alphas, alpha_ratio=ratio, cv=cuts, form=form, loss=loss,
        tol=SETTINGS.search_gap, selection="best",
    )  # fmt: skip


def _of_survival(X: Array, y: Any, norm: Norm, cuts: Sequence[Fold]) -> tuple[Array, float]:
    """Return the sizes of Cox's model at the level with the best held-out concordance."""
    form = norm.usual_form
    levels = np.geomspace(0.3, 0.01, SETTINGS.n_levels_of_times)
    levels = levels**2 if form == "squared" else levels
    scores = np.zeros(levels.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for place, level in enumerate(levels):
            model = AtomicSurvival(norm, float(level), form=form, tol=SETTINGS.search_gap)
            for train, test in cuts:
                scores[place] += model.fit(X[train], y[train]).score(X[test], y[test])
        alpha = float(levels[int(np.argmax(scores))])
        model = AtomicSurvival(norm, alpha, form=form, tol=SETTINGS.exact_gap).fit(X, y)
    return np.abs(np.ravel(np.asarray(model.coef_, dtype=np.float64))), alpha
