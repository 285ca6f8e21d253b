"""Rows that no fit has seen: how a model does there, for the page about any estimator."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from atomlearn.core.interfaces import Array
from atomlearn.designs import is_opened
from atomlearn.estimators.dependent_rows import fit_parameters
from atomlearn.findings.held_out import (
    covariates_of,
    decisions_of,
    judged_rows,
    rows_of,
    split_of,
    trial_of,
)
from atomlearn.reports.content import HeldOut, Score
from atomlearn.reports.evidence import Evidence, curves_of_classes
from atomlearn.reports.suspects import recurring
from atomlearn.reports.view import View, outputs_of, view_of


def held_out_of(
    estimator: Any, view: View, X: Any, y: NDArray[Any], test: Any, fraction: float, rng: int,
    groups: Any = None, order: Any = None,
) -> tuple[HeldOut | None, Evidence]:  # fmt: skip
    """Return the scores of rows that no fit has seen, and the curves behind them."""
    if test is not None:
        fitted, rows, truth, trained = estimator, test[0], np.asarray(test[1]), y
        n_train, known = view.inputs.shape[0], np.zeros(len(truth), dtype=bool)
        verdict = judged_rows(fitted, rows, truth, rng)
    elif fraction > 0 and not is_opened(X) and int((1 - fraction) * len(y)) > 0:
        train, left = split_of(estimator, y, fraction, rng, groups, order)
        if not left.size or np.unique(y[train]).size < len(view.classes or ()):
            return None, Evidence()  # of so few rows of a class none can be left out
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = fit_parameters(estimator, train, groups, order)
            fitted = clone(estimator).fit(rows_of(X, train), y[train], **own)
        seconds = time.process_time() - began
        rows, truth, trained, n_train = rows_of(X, left), y[left], y[train], train.size
        trial = trial_of(fitted, X, y, rng, groups, order)
        known = trial.copies(train, left)
        decisions = decisions_of(fitted, rows, trial.known is not None)
        verdict = trial.verdict(train, left, decisions, seconds)
    else:
        return None, Evidence()
    shared: dict[str, Any] = {"n_train": int(n_train), "n_test": len(truth), "verdict": verdict}
    refit = view_of(fitted, rows, None)
    free = covariate_terms(fitted, rows, view)
    terms, of_final = (np.setdiff1d(of.map.term_of(of.columns), free) for of in (refit, view))
    shared["n_selected"] = int(terms.size)
    shared["overlap"] = int(np.intersect1d(terms, of_final).size)
    shared["refitted"] = test is None
    told = Evidence(warnings=tuple(recurring(known)))
    if view.classes is None:
        return _numbers(fitted, rows, truth, trained, shared), told
    held_out, evidence = _classes(fitted, rows, truth, trained, view, shared)
    return held_out, replace(evidence, warnings=told.warnings)


def covariate_terms(fitted: Any, X: Any, view: View) -> list[int]:
    """Return the numbers of the terms that every model of this estimator has."""
    given = covariates_of(fitted, X)
    return [] if given is None else view.map.term_of(view.map.main_columns(given)).tolist()


def _numbers(
    fitted: Any, rows: Any, truth: NDArray[Any], trained: NDArray[Any], shared: dict[str, Any]
) -> HeldOut:
    if truth.dtype.names is not None:
        return HeldOut(scores=(), **shared)
    predicted = np.asarray(fitted.predict(rows), dtype=float)
    flat = truth.ndim == 1
    return HeldOut(
        scores=scores_of_numbers(trained, truth, predicted),
        truth=tuple(truth.tolist()) if flat else (),
        predicted=tuple(predicted.tolist()) if flat else (), **shared,
    )  # fmt: skip


def scores_of_numbers(trained: Array, truth: Array, predicted: Array) -> tuple[Score, ...]:
    """Return R^2 and RMSE of predictions beside those of the mean of the training rows."""
    error, guess = truth - predicted, truth - trained.mean(axis=0)
    spread = float(((truth - truth.mean(axis=0)) ** 2).sum())
    ours, base = (float(np.sqrt(np.mean(each**2))) for each in (error, guess))
    rmse = Score("RMSE", ours, base, "always the mean", False)
    if spread == 0.0:
        # R^2 is not defined where all held-out values are the same.
        return (rmse,)
    ours, base = (1.0 - float((each**2).sum()) / spread for each in (error, guess))
    return (Score("R²", ours, base, "always the mean", False), rmse)


def scores_of_classes(
    trained: NDArray[np.int64], truth: NDArray[np.int64], called: NDArray[np.int64],
    decisions: Array, n_classes: int,
) -> tuple[Score, ...]:  # fmt: skip
    """Return scores beside those of the largest class of the training rows, all of them by codes.

    Accuracy, and AUC (two classes) or balanced accuracy, the mean over classes of the share that
    is found.
    """
    right, majority = called == truth, int(np.argmax(np.bincount(trained, minlength=n_classes)))
    guess, baseline = "always the largest class", float(np.mean(truth == majority))
    scores = [Score("accuracy", float(right.mean()), baseline, guess, True)]
    present = np.unique(truth)
    if n_classes > 2:
        recall = float(np.mean([right[truth == code].mean() for code in present]))
        baseline = float(np.mean(present == majority))
        scores.append(Score("balanced accuracy", recall, baseline, guess, True))
    elif present.size == 2:  # AUC is not defined where only one class was held out
        area = float(roc_auc_score(truth, decisions[:, 0]))
        scores.append(Score("AUC", area, 0.5, "a guess", False))
    return tuple(scores)


def confusion_of(
    truth: NDArray[np.int64], called: NDArray[np.int64], n_classes: int
) -> tuple[tuple[int, ...], ...]:
    """Return the counts of (true class, predicted class)."""
    counts = np.bincount(truth * n_classes + called, minlength=n_classes**2)
    return tuple(tuple(row) for row in counts.reshape(n_classes, n_classes).tolist())


def _classes(
    fitted: Any, rows: Any, truth: NDArray[Any], trained: NDArray[Any], view: View,
    shared: dict[str, Any],
) -> tuple[HeldOut, Evidence]:  # fmt: skip
    classes = np.array(view.classes)
    codes, known = np.searchsorted(classes, truth), np.searchsorted(classes, trained)
    called = np.searchsorted(classes, fitted.predict(rows))
    decide = getattr(fitted, "decision_function", None)
    told: Any = fitted.predict_proba(rows) if hasattr(fitted, "predict_proba") else None
    values = np.asarray(told if decide is None else decide(rows), dtype=np.float64)
    if decide is None and classes.size == 2:
        values = values[:, 1]
    values = values.reshape(codes.size, -1)
    held_out = HeldOut(
        scores=scores_of_classes(known, codes, called, values, classes.size),
        confusion=confusion_of(codes, called, classes.size), **shared,
    )  # fmt: skip
    return held_out, curves_of_classes(codes, values, outputs_of(view, ""), told)
