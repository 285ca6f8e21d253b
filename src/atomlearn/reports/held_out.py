"""Score a model on held-out rows, for the page about any estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    r2_score,
    recall_score,
    roc_auc_score,
    root_mean_squared_error,
)

from atomlearn.core import Array, Fold, Task, is_opened
from atomlearn.findings.held_out import (
    covariates_of,
    decisions_of,
    fitted_to,
    held_out_test,
    judged_rows,
    rows_of,
    split_of,
)
from atomlearn.reports.content import HeldOut, Score
from atomlearn.reports.data_displays import (
    ENOUGH_ROWS,
    CoverageDisplay,
    PredictionDisplay,
    curves_of_classes,
)
from atomlearn.reports.drawing import Display
from atomlearn.reports.gathered import Fits
from atomlearn.reports.survival_displays import CalibratedAtDisplay, SurvivalDisplay
from atomlearn.reports.view import View, outputs_of, view_of
from atomlearn.survival.cox import concordance
from atomlearn.survival.target import checked_survival


def held_out_of(fits: Fits, view: View, test: Any, fraction: float) -> HeldOut | None:
    """Return the verdict, scores and displays on held-out rows, or None without such rows.

    ``fits`` is the estimator with its data, ``view`` the fitted model. ``test`` is a pair (X, y) of
    rows that the estimator was not fitted to, or None; then a clone is fitted without a share
    ``fraction`` of the rows and tested on these.
    """
    X = fits.X
    y = fits.y
    if test is not None:
        fitted = fits.estimator
        test_rows = test[0]
        test_targets = np.asarray(test[1])
        is_training_row = np.zeros(len(test_targets), dtype=bool)
        n_trained = len(y)
        verdict = judged_rows(fitted, test_rows, test_targets, fits.rng)
        scores = _test_scores([fitted], [test_rows], test_targets, y, view, fits.at)
    elif fraction > 0 and not is_opened(X) and int((1 - fraction) * len(y)) > 0:
        train, held_out = split_of(fits.estimator, y, fraction, fits.rng, **fits.dependence)
        if not held_out.size or np.unique(y[train]).size < len(view.classes or ()):
            return None  # a class has too few rows to hold one out
        split = train, held_out
        with warnings.catch_warnings(action="ignore"):
            fitted, trial, verdict = held_out_test(
                fits.estimator, X, y, split, fits.rng, **fits.dependence, repeated=fits.repeated
            )
            is_training_row = trial.across(train, held_out)
            n_trained = train.size
            test_rows = rows_of(X, held_out)
            scores = _part_scores(fits, view, fitted, trial.parts(verdict, train, held_out))
    else:
        return None
    training_view = view_of(fitted, test_rows, None)
    covariates = covariate_terms(fitted, test_rows, view)
    return HeldOut.of(
        n_trained,
        is_training_row,
        np.setdiff1d(training_view.terms, covariates),
        view.terms,
        verdict=verdict,
        refitted=test is None,
        **scores,
    )


def _part_scores(fits: Fits, view: View, fitted: Any, parts: Sequence[Fold]) -> dict[str, Any]:
    """Return the scores of the test rows of ``parts``, which are those of the verdict.

    ``fitted`` is the model of a single part. ``parts`` are pairs of training and test row indices;
    each test part is scored by a model that was fitted to its training part. ``fits`` is the
    estimator with its data and ``view`` the fitted model with its inputs.
    """
    X = fits.X
    y = fits.y
    models = [fitted]
    nonempty_parts = [part for part in parts if part[1].size]
    if len(parts) > 1:
        models = [
            fitted_to(fits.estimator, X, y, train, **fits.dependence) for train, _ in nonempty_parts
        ]
    if not nonempty_parts:
        return {}
    training_targets = y[nonempty_parts[0][0]] if len(parts) == 1 else y
    tests = [test for _, test in nonempty_parts]
    test_data = [rows_of(X, test) for test in tests], y[np.concatenate(tests)]
    return _test_scores(models, *test_data, training_targets, view, fits.at)


def covariate_terms(fitted: Any, X: Any, view: View) -> list[int]:
    """Return the indices of the unpenalized covariate terms of an estimator, [] if none.

    X : the rows, for the names and the number of its columns. ``fitted`` is the fitted estimator
    and ``view`` the fitted model with its inputs.
    """
    covariates = covariates_of(fitted, X)
    return (
        [] if covariates is None else view.map.term_of(view.map.main_columns(covariates)).tolist()
    )


def _test_scores(
    models: Sequence[Any],
    rows: Sequence[Any],
    truth: NDArray[Any],
    training_targets: NDArray[Any],
    view: View,
    times: Sequence[float] = (),
) -> dict[str, Any]:
    """Return the fields ``scores``, ``confusion`` and ``displays`` of ``HeldOut``, by their names.

    ``models`` and ``rows`` hold the models and the test data of each, ``truth`` the concatenated
    test targets, and ``training_targets`` those from which the baseline is computed. Survival
    models are checked at ``times``. ``view`` is the fitted model with its inputs.
    """
    outputs = outputs_of(view, "")
    models_and_rows = [*zip(models, rows, strict=True)]
    if view.classes is None:
        task: Task = "regression" if truth.dtype.names is None else "survival"
        predictions = [
            np.asarray(model.predict(model_rows), dtype=float)
            for model, model_rows in models_and_rows
        ]
        decisions = np.concatenate(predictions).reshape(len(truth), -1)
        survival_at = None
        folds = [len(part) for part in predictions]
        with suppress(AttributeError, ValueError):  # other models, and several strata
            curves = np.concatenate(
                [
                    model.predict_survival_function(model_rows)
                    for model, model_rows in models_and_rows
                ]
            )
            survival_at = lambda time: np.array([curve(time) for curve in curves])  # noqa: E731
        arguments: dict[str, Any] = {"left": survival_at, "folds": folds, "at": times}
        return held_out_scores(task, training_targets, truth, decisions, outputs, **arguments)
    # Labels become class codes, so that all classifiers are scored in the same way.
    classes = np.array(view.classes)
    probabilities = None
    with suppress(AttributeError):  # the loss has no class probabilities
        probabilities = np.concatenate(
            [model.predict_proba(model_rows) for model, model_rows in models_and_rows]
        )
    predicted_labels = np.concatenate(
        [model.predict(model_rows) for model, model_rows in models_and_rows]
    )
    codes, training_codes, predicted_labels = (
        np.searchsorted(classes, part) for part in (truth, training_targets, predicted_labels)
    )
    decisions_of_models = [decisions_of(model, model_rows) for model, model_rows in models_and_rows]
    decisions = np.concatenate(decisions_of_models).reshape(codes.size, -1)
    folds = [len(part) for part in decisions_of_models]
    return held_out_scores(
        "classification",
        training_codes,
        codes,
        decisions,
        outputs,
        predicted_labels,
        probabilities,
        folds=folds,
    )


def held_out_scores(
    task: Task,
    trained: NDArray[Any],
    truth: NDArray[Any],
    decisions: Array,
    outputs: Sequence[str],
    called: NDArray[np.int64] | None = None,
    probabilities: Any = None,
    left: Callable[[float], Array] | None = None,
    folds: Sequence[int] = (),
    at: Sequence[float] = (),
) -> dict[str, Any]:
    """Return the scores on held-out rows and of a baseline, a confusion matrix, and displays.

    ``trained`` and ``truth`` are the targets of the training and of the held-out rows: class codes,
    numbers, or structured survival records. ``decisions``, shape (n_rows, n_outputs), holds
    decision values of a classifier, else predictions. ``called`` holds predicted class codes, or
    None for those of the largest decision value. ``probabilities``, shape (n_rows, n_classes), may
    be None. ``left`` maps a time to the predicted survival probability of each row, shape
    (n_rows,). ``folds`` are the sizes of consecutive test folds with a separate model each;
    decision values are ranked within folds. ``at`` are the times of the calibration (none: the
    median event time). ``task`` is the kind of target and ``outputs`` are the names of the outputs.
    """
    if task == "survival":
        records = checked_survival(truth)
        risk = ranks_within(decisions, folds)[:, 0]
        index = concordance(records, risk)
        score = Score("concordance", index, 0.5, "a guess", False)
        pictures: list[Display] = [SurvivalDisplay(records, risk)]
        if left is not None and records["event"].any():
            pictures.append(CalibratedAtDisplay.of(records, left, at))
        return {"scores": () if np.isnan(index) else (score,), "displays": pictures}
    if task == "regression":
        decisions = decisions.reshape(truth.shape)
        displays: list[Display] = [PredictionDisplay(truth, decisions)] if truth.ndim == 1 else []
        if truth.ndim == 1 and truth.size >= ENOUGH_ROWS and np.ptp(decisions):
            displays.append(CoverageDisplay.of_errors(truth, decisions))
        return {"scores": scores_of_numbers(trained, truth, decisions), "displays": displays}
    # Classification: the label of the largest decision, unless labels were predicted.
    n_classes = max(2, len(outputs))
    if called is None:
        called = (
            (decisions[:, 0] > 0).astype(np.int64)
            if n_classes == 2
            else np.argmax(decisions, axis=1)
        )
    decisions = ranks_within(decisions, folds)
    counts = confusion_matrix(truth, called, labels=range(n_classes))
    return {
        "scores": scores_of_classes(trained, truth, called, decisions, n_classes),
        "confusion": tuple(map(tuple, counts.tolist())),
        "displays": curves_of_classes(truth, decisions, outputs, probabilities),
    }


def ranks_within(decisions: Array, sizes: Sequence[int]) -> Array:
    """Return the decision values, converted to relative ranks within each of several folds.

    ``decisions`` has shape (n_rows, n_outputs), and ``sizes`` are the sizes of the folds. The
    values of different models are not on a common scale. Those of a single model are returned
    unchanged.
    """
    if len(sizes) < 2:
        return decisions
    folds = np.split(decisions, np.cumsum(sizes)[:-1])
    return np.vstack([rankdata(fold, axis=0) / len(fold) for fold in folds if len(fold)])


def scores_of_numbers(trained: Array, truth: Array, predicted: Array) -> tuple[Score, ...]:
    """Return the R^2 and RMSE of predictions, with the training mean as the baseline.

    ``trained`` are the training targets, ``truth`` the held-out targets, and ``predicted`` their
    predictions.
    """
    guess = np.broadcast_to(trained.mean(axis=0), truth.shape)
    pooled = partial(r2_score, multioutput="variance_weighted")
    figures = {"R²": pooled, "RMSE": root_mean_squared_error}
    if not np.ptp(truth, axis=0).any():
        del figures["R²"]  # it is not defined if all held-out values are equal
    return tuple(
        Score(
            name,
            float(metric(truth, predicted)),
            float(metric(truth, guess)),
            "always the mean",
            False,
        )
        for name, metric in figures.items()
    )


def scores_of_classes(
    trained: NDArray[np.int64],
    truth: NDArray[np.int64],
    called: NDArray[np.int64],
    decisions: Array,
    n_classes: int,
) -> tuple[Score, ...]:
    """Return classification scores, with the majority class of the training rows as baseline.

    They are the accuracy, and the AUC for two classes or the balanced accuracy for more classes.
    ``trained``, ``truth`` and ``called`` hold training, true and predicted class codes.
    ``decisions`` are the decision values (n_rows, n_outputs) and ``n_classes`` is the number of
    classes.
    """
    largest = np.full_like(truth, np.argmax(np.bincount(trained, minlength=n_classes)))
    figures = {"accuracy": accuracy_score}
    if n_classes > 2:
        figures["balanced accuracy"] = partial(
            recall_score, labels=np.unique(truth), average="macro"
        )
    guess = "always the largest class"
    scores = [
        Score(name, float(metric(truth, called)), float(metric(truth, largest)), guess, True)
        for name, metric in figures.items()
    ]
    # The AUC is not defined if all held-out rows are of one class.
    if n_classes == 2 and np.unique(truth).size == 2:
        area = float(roc_auc_score(truth, decisions[:, 0]))
        scores.append(Score("AUC", area, 0.5, "a guess", False))
    return tuple(scores)
