"""Rows that no fit has seen: how a model does there, for the page about any estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from atomlearn.designs import is_opened
from atomlearn.findings.copies import known_already
from atomlearn.findings.verdict import judged, no_new_rows, rows_of
from atomlearn.reports.content import HeldOut, Score
from atomlearn.reports.evidence import Evidence, curves_of_classes
from atomlearn.reports.suspects import recurring
from atomlearn.reports.view import View, outputs_of, view_of


def held_out_of(
    estimator: Any, view: View, X: Any, y: NDArray[Any], test: Any, fraction: float, rng: int
) -> tuple[HeldOut | None, Evidence]:
    """Return the scores of rows that no fit has seen, and the curves behind them."""
    if test is not None:
        fitted, rows, truth = estimator, test[0], np.asarray(test[1])
        n_train, known = view.inputs.shape[0], np.zeros(len(truth), dtype=bool)
    elif fraction > 0 and not is_opened(X) and int((1 - fraction) * len(y)) > 0:
        fewest = min(int(np.ceil(fraction * len(y))), int((1 - fraction) * len(y)))
        counts = np.unique(y, return_counts=True)[1] if view.classes is not None else np.zeros(1)
        labels = y if counts.min() > 1 and counts.size <= fewest else None
        train, left = train_test_split(
            np.arange(len(y)), test_size=fraction, random_state=rng, stratify=labels
        )
        if view.classes is not None and np.unique(y[train]).size < len(view.classes):
            return None, Evidence()  # of so few rows of a class none can be left out
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(estimator).fit(rows_of(X, train), y[train])
        rows, truth, n_train = rows_of(X, left), y[left], train.size
        known = known_already(view.inputs, train, left)
    else:
        return None, Evidence()
    fresh = np.flatnonzero(~known)
    verdict = (
        judged(fitted, rows_of(rows, fresh), truth[fresh], rng) if fresh.size else no_new_rows()
    )
    shared: dict[str, Any] = {"n_train": int(n_train), "n_test": len(truth), "verdict": verdict}
    refit = view_of(fitted, rows, None)
    terms, of_final = (np.unique(of.map.term_of(of.columns)) for of in (refit, view))
    shared["n_selected"] = int(terms.size)
    shared["overlap"] = int(np.intersect1d(terms, of_final).size)
    shared["refitted"] = test is None
    told = Evidence(warnings=tuple(recurring(known)))
    if view.classes is None:
        return _numbers(fitted, rows, truth, y, shared), told
    held_out, evidence = _classes(fitted, rows, truth, view, shared)
    return held_out, replace(evidence, warnings=told.warnings)


def _numbers(
    fitted: Any, rows: Any, truth: NDArray[Any], y: NDArray[Any], shared: dict[str, Any]
) -> HeldOut:
    if truth.dtype.names is not None:
        return HeldOut(scores=(), **shared)
    predicted = np.asarray(fitted.predict(rows), dtype=float)
    error = truth - predicted
    guess = truth - y.mean(axis=0)
    rmse, of_guess = float(np.sqrt(np.mean(error**2))), float(np.sqrt(np.mean(guess**2)))
    scores = [Score("RMSE", rmse, of_guess, "always the mean", False)]
    spread = float(((truth - truth.mean(axis=0)) ** 2).sum())
    if spread > 0:
        value, base = 1 - float((error**2).sum()) / spread, 1 - float((guess**2).sum()) / spread
        scores.insert(0, Score("R²", value, base, "always the mean", False))
    flat = truth.ndim == 1
    return HeldOut(
        scores=tuple(scores), truth=tuple(truth.tolist()) if flat else (),
        predicted=tuple(predicted.tolist()) if flat else (), **shared,
    )  # fmt: skip


def _classes(
    fitted: Any, rows: Any, truth: NDArray[Any], view: View, shared: dict[str, Any]
) -> tuple[HeldOut, Evidence]:
    classes = np.array(view.classes)
    codes = np.searchsorted(classes, truth)
    called = np.searchsorted(classes, fitted.predict(rows))
    n_classes = classes.size
    cells = np.bincount(codes * n_classes + called, minlength=n_classes**2)
    matrix = cells.reshape(n_classes, n_classes)
    majority = float(np.bincount(codes, minlength=n_classes).max() / codes.size)
    right = float(np.mean(codes == called))
    scores = (Score("accuracy", right, majority, "always the largest class", True),)
    held_out = HeldOut(
        scores=scores, confusion=tuple(tuple(row) for row in matrix.tolist()), **shared
    )
    decide = getattr(fitted, "decision_function", None)
    told: Any = fitted.predict_proba(rows) if hasattr(fitted, "predict_proba") else None
    values = np.asarray(told if decide is None else decide(rows), dtype=np.float64)
    if decide is None and n_classes == 2:
        values = values[:, 1]
    values = values.reshape(codes.size, -1)
    labels = outputs_of(view, "")
    curves = curves_of_classes(codes, values, labels, told)
    return held_out, Evidence(
        roc=curves["roc"],
        precision_recall=curves["precision_recall"],
        calibration=curves["calibration"],
    )
