"""Fit on the training rows, score the held-out rows, and refit on all rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from atomlearn._support import Deadline
from atomlearn.cli.fitting import FittedSelection, fit_rows, with_baseline
from atomlearn.cli.options import CommandError
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import SelectionSettings
from atomlearn.cli.source import DataRoles, Dataset
from atomlearn.cli.targets import Target, labels_in
from atomlearn.core import (
    Array,
    Design,
    Fold,
    Rows,
    Task,
    as_design,
    as_loss,
    as_norm,
    dense_part,
    has_probabilities,
    is_sparse,
    part_of,
)
from atomlearn.estimators.dependent_rows import held_out as held_out_rows
from atomlearn.estimators.prediction_sets import drift_along, held_out_errors, score_of
from atomlearn.estimators.probabilities import log_probabilities
from atomlearn.estimators.survival import StepFunction
from atomlearn.findings.held_out import fits_of
from atomlearn.findings.trials import A_FIT, LOOSE_GAP, Trial
from atomlearn.findings.verdict import LONG_TAILED
from atomlearn.maps.additive import Additive
from atomlearn.reports.content import HeldOut
from atomlearn.reports.halves import Half, fitted_halves
from atomlearn.reports.held_out import held_out_scores
from atomlearn.reports.model import times_of
from atomlearn.reports.survival_displays import CalibratedAtDisplay
from atomlearn.reports.suspects import drifting
from atomlearn.storage.formats.messages import listing

#: Maximum number of groups (donors, say) that a note names.
MOST_OWNERS = 12


@dataclass(frozen=True)
class ScoredSelection:
    """The model that was refitted on all rows, and the scores on held-out rows.

    ``fitted`` is the model that is written. ``held_out`` holds the scores of the model that was
    fitted without the held-out rows, or is None if no rows were held out. ``notes`` are sentences
    for the report. ``interrupted`` is whether Ctrl-C ended a fit.
    """

    fitted: FittedSelection
    held_out: HeldOut | None
    notes: list[str]
    interrupted: bool


def split_rows(target: Target, fraction: float, seed: int, roles: DataRoles) -> tuple[Rows, Rows]:
    """Return the increasing indices of the training rows and of the held-out rows.

    ``fraction`` is the share of rows to hold out, 0 for none. --split-column takes precedence;
    otherwise the split is stratified by class, keeps groups of rows together, or holds out the end
    of a series. ``target`` is the target of all rows, ``seed`` the random seed, and ``roles`` are
    the weights, groups and covariates of all rows.
    """
    if roles.test_rows is not None:
        return np.flatnonzero(~roles.test_rows), np.flatnonzero(roles.test_rows)
    n_samples = target.values.size
    if fraction == 0:
        return np.arange(n_samples), np.arange(0)
    # A random split, or the end of a series; each class must be in both parts.
    codes = target.codes
    train, test = held_out_rows(n_samples, fraction, seed, codes, **roles.dependence)
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


def fit_and_score(
    source: Dataset,
    settings: SelectionSettings,
    progress: ProgressPrinter,
    test_fraction: float,
    time_limit: float | None,
    checkpoint: str | None,
) -> ScoredSelection:
    """Fit on the training rows, score the held-out rows, and refit on all rows.

    ``time_limit`` is the number of seconds for all fits together, or None; ``checkpoint`` is the
    folder that stores the solver states for resuming, or None. The refit reuses the norm and alpha,
    or C and the number of features, that cross-validation chose. If Ctrl-C interrupts the refit,
    the model of the training rows is returned. ``source`` is the data that was read, ``settings``
    are the options of the selection, ``progress`` is the printer of progress, and ``test_fraction``
    the share of rows to hold out.
    """
    target = source.target
    roles = source.roles
    overall_deadline = Deadline.after(time_limit or np.inf)
    with overall_deadline.kept():
        design_of_all_rows = design_of(source, settings)
    train, test = split_rows(target, test_fraction, settings.seed, roles)
    everything = np.arange(target.values.size)
    folder = None if checkpoint is None else Path(checkpoint)

    def fit(rows: Rows, chosen: SelectionSettings, share: float) -> FittedSelection:
        """Fit to these rows in at most this share of the remaining time.

        ``chosen`` are the settings of this fit.
        """
        deadline = Deadline.after(share * overall_deadline.left)
        fold_progress = replace(progress, deadline=deadline, checkpoint=folder, alpha=None)
        learned = source.learned(rows)
        design = design_of_all_rows if learned is source else design_of(learned, settings)
        fitted = fit_rows(design, target, rows, chosen, fold_progress, roles)
        return with_baseline(fitted, rows, roles, settings.at)

    if test.size == 0:
        progress.stage(f"fitting on all {everything.size:,} rows; no rows are held out")
        final = fit(everything, settings, 1.0)
        return ScoredSelection(final, None, [], final.interrupted)
    progress.stage(f"fitting on {train.size:,} rows; {test.size:,} are held out for the scores")
    notes = held_out_owners(source, test)
    first = fit(train, settings.for_refits(), 0.5)  # in at most half of the time
    final = first
    # The trial repeats the selection, to test whether it predicts better than chance.
    trial = _trial(source, settings, first, progress.stage)
    if not first.interrupted:
        progress.stage(f"fitting on all {everything.size:,} rows: the model that is written")
        with suppress(KeyboardInterrupt):
            final = fit(everything, replace(settings, **first.chosen), 1.0)
            final = replace(final, chosen=first.chosen)
    if final is not first and not settings.controls:
        notes += first.notes
    if interrupted := final is first or final.interrupted:
        final = first
        notes += [f"interrupted: this model was fitted to the {train.size:,} training rows only"]
    decisions = first.decisions(test, roles.offset)
    if interrupted or time_limit:
        trial = replace(trial, work=np.inf)  # too much to repeat it for the verdict
    held_out = _held_out_results(source, settings, (train, test), first, final, trial, decisions)
    # A survival model without a baseline hazard predicts no times, so it has no intervals.
    both_baselines = "baseline_times" in first.described.keys() & final.described
    if target.task == "regression" or both_baselines:
        errors, displays = _held_out_errors(source, first, test, decisions[:, 0])
        notes += displays
        final = replace(final, described=final.described | errors)
    return ScoredSelection(final, held_out, notes, interrupted)


def _held_out_errors(
    source: Dataset, training_model: FittedSelection, test: Rows, decisions: Array
) -> tuple[dict[str, Any], list[str]]:
    """Return the held-out errors that calibrate prediction intervals, and notes.

    The intervals are split conformal. ``training_model`` is the model of the training rows,
    ``test`` are the held-out row indices, and ``decisions``, shape (n_test,), are its decision
    values. For a series, a note is added if the errors drift along it. ``source`` is the data that
    was read.
    """
    target = source.target
    roles = source.roles
    risk = decisions - training_model.described.get("baseline_score", 0.0)
    weight = np.ones(test.size) if roles.weight is None else roles.weight[test]
    loss = as_loss(training_model.described["loss"])
    errors = held_out_errors(loss, target.values[test], risk, weight)
    if roles.order is None or target.task != "regression":
        return errors, []
    # ``score_of`` returns |y - mean| relative to the scale that the loss expects at this mean.
    positions_in_series = np.argsort(roles.order[test], kind="stable")
    scores = score_of(loss, loss.mean(risk), target.values[test])[positions_in_series]
    return errors, drifting(drift_along(scores))


def held_out_owners(source: Dataset, test: Rows) -> list[str]:
    """Return a note that counts and names the donors, or other owners of rows, that are held out.

    ``test`` are the indices of the held-out rows. The list is empty if rows have no owners.
    ``source`` is the data that was read.
    """
    if source.owners is None:
        return []
    name, cells = source.owners
    labels = np.array(labels_in(cells))
    held_out_labels = list(dict.fromkeys(labels[test].tolist()))
    classes = ""
    target = source.target
    if target.classes is not None:
        counts = [
            f"{len({*labels[test][target.values[test] == code].tolist()})} {label}"
            for code, label in enumerate(target.labels or ())
        ]
        classes = f" ({', '.join(counts)})"
    return [
        f"held out: {len(held_out_labels):,} of {np.unique(labels).size:,} {name}{classes}: "
        f"{listing(held_out_labels, MOST_OWNERS)}"
    ]


def design_of(source: Dataset, settings: SelectionSettings) -> Design:
    """Return the design of all rows: columns and products, or spline or kernel curves.

    ``settings`` say which. ``source`` is the data that was read.
    """
    design = source.design()
    if not settings.additive:
        return design
    return Additive(design, settings.additive, normalize=settings.standardize)


def fit_halves(source: Dataset, settings: SelectionSettings, final: FittedSelection) -> list[Half]:
    """Return selections on random halves of the rows, with the parameters chosen for all rows.

    ``final`` is the model of all rows. As in stability selection, alpha (or C) is not chosen again
    in each half. ``source`` is the data that was read and ``settings`` are the options of the
    selection.
    """
    target = source.target
    # A tolerance below 1e-3 takes longer and does not change the selection.
    loose_settings = replace(settings, **final.chosen).for_refits(1e-3)

    def fit_half(rows: Rows) -> Half:
        """Return the selection fitted to ``rows``, one half of all rows, with loose settings."""
        design = design_of(source.learned(rows), settings)
        fitted = fit_rows(
            design, target, rows, loose_settings, ProgressPrinter(quiet=True), source.roles
        )
        return Half(fitted.map, fitted.columns, fitted.coefficients)

    # The number of halves depends on the work, which is entries of X times fits. Dependent rows
    # (groups, or an order in time) stay together.
    y = target.values if target.codes is None else target.codes
    entries = target.values.size * source.map.n_columns
    arguments = {"fits": fits_of(final.model, searched=False), **source.roles.dependence}
    return fitted_halves(y, entries, settings.seed, fit_half, **arguments)


def _held_out_results(
    source: Dataset,
    settings: SelectionSettings,
    parts: Fold,
    training_model: FittedSelection,
    final_model: FittedSelection,
    trial: Trial,
    decisions: Array,
) -> HeldOut:
    """Return the verdict of the permutation test and the scores of the held-out rows.

    ``parts`` are the training and held-out row indices, ``training_model`` is the model of the
    training rows, ``final_model`` the model that is written, and ``decisions`` are the decision
    values of ``training_model`` on the held-out rows. ``trial`` can repeat the selection. If the
    verdict comes from cross-validation, the scores are of the same folds. If there are covariates
    or an offset, each score is compared with that of a model of these only. ``source`` is the data
    that was read and ``settings`` are the options of the selection.
    """
    train, test = parts
    # Held-out rows that duplicate training rows are not scored.
    is_repeated = trial.copies(*parts)
    verdict = trial.verdict(train, test, decisions)
    # The pairs (training rows, test rows) of the verdict: this split, or the folds.
    scored_parts = trial.parts(verdict, train, test)
    if verdict.n_folds:
        rows, decisions_of_rows = trial.decisions(scored_parts)
    else:
        rows = [test[~is_repeated]]
        decisions_of_rows = [decisions[~is_repeated]]
    scores = dict[str, Any]()
    if sum(part.size for part in rows):
        training_rows = train if len(scored_parts) == 1 else np.arange(source.target.values.size)
        scores = _scores(source.target, training_rows, rows, decisions_of_rows, training_model)
        # With covariates (``known``), the baseline of each score is a model of these only.
        if trial.known is not None:
            covariate_decisions = [
                _covariate_decisions(source, settings, *part, training_model)
                for part in scored_parts
            ]
            baselines = _scores(
                source.target, training_rows, rows, covariate_decisions, training_model
            )["scores"]
            name = "the covariates alone, linearly"
            scores["scores"] = tuple(
                replace(score, baseline=baseline.value, baseline_name=name)
                for score, baseline in zip(scores["scores"], baselines, strict=True)
            )
    if verdict.n_folds and "baseline_times" in training_model.described:
        # The folds have no model in common: the risks of the first model are checked.
        truth = source.target.values[test[~is_repeated]]
        survival = partial(_survival, training_model.described, decisions[~is_repeated, 0])
        if truth["event"].any():
            display = CalibratedAtDisplay.of(truth, survival, times_of(training_model.described))
            scores["displays"] = [*scores.get("displays", ()), display]
    return HeldOut.of(
        train.size,
        trial.across(train, test),
        training_model.terms,
        final_model.terms,
        refitted=final_model is not training_model,
        verdict=verdict,
        **scores,
    )


def _covariate_decisions(
    source: Dataset, options: SelectionSettings, train: Rows, test: Rows, model: FittedSelection
) -> Array:
    """Return the decision values of a model with only the covariates and offset.

    The model is fitted to the rows ``train`` and evaluated on the rows ``test``; the result has
    shape (n_test, n_outputs). ``model`` provides the loss, and ``options`` the features. ``source``
    is the data that was read.
    """
    roles = source.roles
    covariates = np.array(roles.covariates, dtype=np.int64)
    design = design_of(source.learned(train), options)
    subset = part_of(design, columns=covariates if covariates.size else np.arange(1))
    loss = model.described["loss"]
    settings = SelectionSettings(norms=(as_norm("l1"),), alpha=1e6, loss=loss, n_features=None)
    covariate_roles = replace(
        roles, covariates=tuple(range(covariates.size)), groups=None, center=False
    )
    # Covariates have no penalty. Without any, ``subset`` is one arbitrary column with a penalty,
    # whose coefficient is 0 at this alpha.
    fitted = fit_rows(
        subset, source.target, train, settings, ProgressPrinter(quiet=True), covariate_roles
    )
    return fitted.decisions(test, roles.offset)


def _scores(
    target: Target, train: Rows, rows: list[Rows], decisions: list[Array], fitted: FittedSelection
) -> dict[str, Any]:
    """Return the scores of held-out rows, with predictions on the scale of the target.

    ``train`` are the training row indices, and ``rows`` and ``decisions`` hold the row indices and
    the decision values of each test fold. ``fitted`` provides the loss and the baseline hazard. The
    result has fields of ``HeldOut`` by their names.
    """
    task = cast(Task, target.task)
    loss = as_loss(fitted.described["loss"])
    probabilities = None
    all_rows = np.concatenate(rows)
    scores = np.concatenate(decisions)
    if has_probabilities(loss):
        probabilities = np.exp(log_probabilities(loss, scores, fitted.together))
    predicted = loss.mean(scores) if task == "regression" else scores
    # Predictions, probabilities and survival functions on the scale of the target.
    values = target.values[train], target.values[all_rows]
    survival = None
    if "baseline_times" in fitted.described and len(rows) == 1:
        survival = partial(_survival, fitted.described, scores[:, 0])
    sizes = [part.size for part in rows]
    times = times_of(fitted.described)
    return held_out_scores(
        task, *values, predicted, target.outputs, None, probabilities, survival, sizes, times
    )


def _survival(described: dict[str, Any], risk: Array, time: float) -> Array:
    """Return the survival probability S(time) of rows with these risk scores.

    ``described`` holds Breslow's cumulative baseline hazard, and ``risk``, shape (n_rows,), are the
    log hazards of the rows.
    """
    hazard = StepFunction(described["baseline_times"], described["baseline_hazard"], 0.0)(time)
    return np.asarray(np.exp(-hazard * np.exp(risk - described["baseline_score"])))


def _trial(
    source: Dataset,
    settings: SelectionSettings,
    fitted: FittedSelection,
    say: Callable[[str], None],
) -> Trial:
    """Return the ``Trial`` that tests whether this selection predicts better than chance.

    The trial can repeat the selection with permuted rows or other target values. Its baseline model
    uses the covariates and the offset. ``say`` prints progress. ``source`` is the data that was
    read, ``settings`` are the options of the selection, and ``fitted`` is the fitted selection.
    """
    roles = source.roles
    target = source.target
    X = source.X
    inputs = as_design(X)
    loss = as_loss(fitted.described["loss"])
    loose_settings = settings.for_refits(LOOSE_GAP)
    covariates = np.array(roles.covariates, dtype=np.int64)
    # The columns of the baseline: covariates, the offset, and its mean on the scale of the target.
    baseline_columns = list[Array]()
    if covariates.size:
        baseline_columns.append(dense_part(inputs, np.sort(covariates)))
    if roles.offset is not None:
        baseline_columns += [roles.offset[:, None], loss.mean(roles.offset[:, None])]

    def decide(train: Rows, test: Rows, values: Any, order: Rows | None) -> Array:
        """Return the decision values on ``test`` of the selection repeated on ``train``.

        ``values`` replaces the target values if it is not None, and ``order`` permutes the rows of
        X.
        """
        permuted_target = target if values is None else replace(target, values=values)
        permuted = source if order is None else source.permuted(order)
        design = design_of(permuted.learned(train), loose_settings)
        refitted = fit_rows(
            design, permuted_target, train, loose_settings, ProgressPrinter(quiet=True), roles
        )
        return refitted.decisions(test, roles.offset)

    # The work of one selection decides whether it is repeated: infinite work means never.
    entries = X.nnz if is_sparse(X) else float(X.shape[0]) * source.map.n_columns
    return Trial(
        decide,
        cast(Task, target.task),
        target.values,
        settings.seed,
        ranks=loss.name in LONG_TAILED,
        known=np.hstack(baseline_columns) if baseline_columns else None,
        inputs=None if roles.on_disk else inputs,
        repeated=roles.repeated,
        work=np.inf if roles.on_disk else (entries + A_FIT) * fits_of(fitted.model),
        say=say,
        **roles.dependence,
    )
