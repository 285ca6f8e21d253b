"""Fit on some rows: build the estimator, fit it, return coefficients in the units of the data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from atomlearn.cli.estimators import TrainingData, build_estimator, count_folds
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.screening import ScreenedColumns, screen_columns
from atomlearn.cli.settings import SelectionSettings
from atomlearn.cli.source import DataRoles
from atomlearn.cli.targets import Target
from atomlearn.core import (
    L1,
    L2,
    Array,
    Columns,
    Design,
    Norm,
    Result,
    Rows,
    RowSubset,
    Status,
    part_of,
    together,
)
from atomlearn.estimators.dependent_rows import fit_parameters
from atomlearn.estimators.generation import norm_of
from atomlearn.estimators.survival import Baseline
from atomlearn.estimators.units import Units, as_they_are, standardized_design, too_many
from atomlearn.maps.feature_map import FeatureMap, map_of
from atomlearn.reports.structure_displays import has_parts
from atomlearn.reports.view import in_words


@dataclass(frozen=True, kw_only=True)
class FittedSelection:
    """A fitted estimator, and its selection in the units of the data.

    model : the estimator; data : the rows it was fitted to; columns : (m,) those with a
    coefficient other than zero in some output, increasing; coefficients : (n_outputs, m);
    considered : columns that were searched and have the coefficient zero; intercepts :
    (n_outputs,); map : of the columns to inputs or curves; described : how it was fitted, as text
    and numbers; scaled_by : how features were scaled, in words; in_python : the code that builds
    the estimator; chosen : the norm and alpha that cross-validation chose, which re-fits keep;
    screened : the columns that knockoffs or stability selected before the fit.
    """

    model: Any
    data: TrainingData
    columns: Columns
    coefficients: Array
    considered: Columns
    intercepts: Array
    map: FeatureMap
    described: dict[str, Any]
    scaled_by: str
    in_python: str
    chosen: tuple[Norm, float] | None = None
    screened: ScreenedColumns | None = None
    notes: Sequence[str] = field(default=())

    @property
    def results(self) -> Sequence[Result]:
        """The result of each output, or one of all classes together."""
        results: Sequence[Result] = self.model.results_
        return results

    @property
    def together(self) -> bool:
        """Whether one fit was of all classes."""
        return self.described.get("classes") == "together"

    @property
    def gaps_on_selected(self) -> Sequence[float | None]:
        """The proved relative gap of each result over the features as selected, or None."""
        if self.described["method"] == "feature generation":
            return (self.model.selected_gap_,)
        return (None,) * len(self.results)

    @property
    def units(self) -> Columns:
        """The selected columns, or the inputs with a curve of an additive model."""
        return np.unique(self.map.term_of(self.columns))

    @property
    def terms(self) -> Columns:
        """The selected units without covariates; groups, if groups were selected."""
        roles = self.data.roles
        if roles.overlap and has_parts(self.model.parts_):
            used = [part.group for part in self.model.parts_ if part.weights.any()]
            return np.unique(np.array(used, dtype=np.int64))
        units = np.setdiff1d(self.units, roles.covariates)
        return units if self.has_curves else roles.terms(units)

    @property
    def has_curves(self) -> bool:
        """Whether the selected features are curves."""
        return self.map.unit is not None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a fit."""
        return any(result.status is Status.INTERRUPTED for result in self.results)

    def decisions(self, design: Design, rows: Rows, offset: Array | None = None) -> Array:
        """Return X_S w + b + offset for rows of the unscaled design, (n_rows, n_outputs)."""
        block = RowSubset(design, rows).gather(self.columns)
        scores = np.stack([block.predict(weights) for weights in self.coefficients], axis=1)
        return scores + self.intercepts + (0.0 if offset is None else offset[rows][:, None])


def fit_rows(
    design: Design,
    target: Target,
    rows: Rows,
    settings: SelectionSettings,
    progress: ProgressPrinter,
    roles: DataRoles,
) -> FittedSelection:
    """Select and fit on these rows."""
    own = roles.rows(rows)
    units = _units(_rows_of(design, rows, settings), settings, roles.center, own.weight)
    data = TrainingData(units.design, target, target.values[rows], own)
    screened = None
    part = data
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # Statuses and notes of the report say what these warnings say.
        if settings.controls:
            progress.say("  selecting by " + ("stability" if settings.stability else "knockoffs"))
            screened = screen_columns(data, settings)
            part, settings = _over_screened(data, settings, screened)
        model, chosen, chosen_by = _fit(part, settings, progress)
    columns, coefficients, intercepts = _coefficients(model, settings, units, screened)
    used = coefficients.any(axis=0)
    described = _described(model, settings, part, chosen, chosen_by)
    if screened:
        described |= {"selected_by": screened.words, "method": "error control"}
    own_units = settings.generates and settings.standardize
    return FittedSelection(
        model=model,
        data=data,
        columns=columns[used],
        coefficients=coefficients[:, used],
        considered=columns[~used],
        intercepts=intercepts,
        map=map_of(design),
        described=described,
        scaled_by=model.scaled_by_ if own_units else units.words,
        in_python=_in_python(model, settings, roles.center, screened),
        chosen=None if screened else chosen,
        screened=screened,
        notes=screened.notes if screened else _notes(model, described),
    )


def _rows_of(design: Design, rows: Rows, settings: SelectionSettings) -> Design:
    """Return the design of these rows, the design itself if they are all of its rows."""
    if rows.size == design.shape[0]:
        return design
    own = design.with_rows(rows) if settings.additive or too_many(design) else None
    return own or RowSubset(design, rows)


def _units(
    design: Design, settings: SelectionSettings, center: bool, weight: Array | None
) -> Units:
    """Return the features in the units of a fit with a norm; other estimators standardize."""
    if settings.additive:
        scaled = ", of variance 1 each" if settings.standardize else ""
        return as_they_are(design, f"a curve for each column ({settings.additive}{scaled})")
    if settings.generates or not settings.standardize:
        return as_they_are(design)
    return standardized_design(design, center, weight)


def _over_screened(
    data: TrainingData, settings: SelectionSettings, screened: ScreenedColumns
) -> tuple[TrainingData, SelectionSettings]:
    """Return the data and the settings of the ridge fit over the screened columns."""
    covariates = np.searchsorted(screened.kept, np.array(data.roles.covariates, dtype=np.int64))
    roles = replace(data.roles, covariates=tuple(covariates.tolist()))
    part = replace(data, design=part_of(data.design, columns=screened.kept), roles=roles)
    if screened.selected.size:
        return part, replace(settings, norms=(L2(),), form="squared")
    # At this alpha only the intercept and the covariates have coefficients.
    return part, replace(settings, norms=(L1(),), alpha=1e6)


def _fit(
    data: TrainingData, settings: SelectionSettings, progress: ProgressPrinter
) -> tuple[Any, tuple[Norm, float] | None, str]:
    """Return a fitted estimator, the norm and alpha that it chose, and how it chose them."""
    model = build_estimator(settings, data, progress)
    norms: Sequence[Norm] = settings.norms
    if settings.cross_validates:
        norms = norms[0].candidates(*data.design.shape)
        _announce_search(model, settings, data, progress)
    dependence = fit_parameters(model, None, **data.roles.dependence)
    try:
        model.fit(data.design, data.y, **data.fit_parameters, **dependence)
    except KeyboardInterrupt:
        if not settings.cross_validates or progress.alpha is None:
            raise
        by = "Ctrl-C, before a level was scored: the last one that was fitted"
        progress.say(f"  alpha chosen by {by}")
        alpha = progress.alpha
        model, _, _ = _fit(data, replace(settings, norms=tuple(norms[:1]), alpha=alpha), progress)
        model.results_[0].status = Status.INTERRUPTED
        return model, (norms[0], alpha), by
    if not settings.cross_validates:
        return model, None, settings.chosen_by
    if Status.INTERRUPTED in (model._searched, model.status_):
        for result in model.results_:
            result.status = Status.INTERRUPTED
    return model, (model.norm_, model.alpha_), _how_alpha_was_chosen(model, data, progress)


def _announce_search(
    model: Any, settings: SelectionSettings, data: TrainingData, progress: ProgressPrinter
) -> None:
    """Print the size of a cross-validation, and let the progress count its fits."""
    tried = settings.norms[0].candidates(*data.design.shape)
    is_open = len(tried) > 1
    n_norms = max(len(settings.norms), len(tried))
    n_folds = count_folds(data)
    fits = n_norms * model.n_alphas * n_folds * len(data.target.outputs)
    # With an open k only norms near the best are fitted: their number is not known before.
    progress.searches = 0 if is_open else fits
    progress.say(
        f"  cross-validation: {n_folds} folds, {model.n_alphas} alphas, {n_norms} norm"
        f"{'s' if n_norms > 1 else ''}{', near the best of them' if is_open else ''}"
    )


def _how_alpha_was_chosen(model: Any, data: TrainingData, progress: ProgressPrinter) -> str:
    """Return how alpha was chosen; print a line if the search ended early."""
    if model._searched.is_converged:
        return f"{count_folds(data)}-fold cross-validation on {data.y.size} rows"
    ended = "interrupted" if model._searched is Status.INTERRUPTED else "out of time"
    table = model.cv_results_
    known = np.isfinite(table["mean_test_score"])
    folds = sum(name.startswith("split") for name in table)
    best = f"alpha {model.alpha_:.3g} is the best of {known.sum()} that were tried"
    progress.say(f"  {ended}: {best}")
    return f"{folds}-fold cross-validation, {ended} after {known.sum()} of {known.size} levels"


def _coefficients(
    model: Any, settings: SelectionSettings, units: Units, screened: ScreenedColumns | None
) -> tuple[Columns, Array, Array]:
    """Return columns, their coefficients and intercepts in data units; some may be zero."""
    results = model.results_
    own = settings.generates  # such estimators standardize by themselves
    if own and np.ndim(model.intercept_) and np.size(model.intercept_) > 1:
        columns = model.moments_[0]
        return columns, np.asarray(model.coef_)[:, columns], model.intercept_
    selected = np.zeros(0, dtype=np.int64)
    if own and not settings.additive:  # an additive model selects inputs, not columns
        selected = np.sort(model.selected_)
    columns, weights = together(results, selected)
    if screened is not None:
        columns = screened.kept[columns]
    means, scales = units.of(columns)
    if own and settings.standardize:
        scaled, own_means, own_scales = model.moments_
        places = np.searchsorted(columns, scaled)
        means[places] = own_means
        scales[places] = own_scales
    coefficients = weights / scales
    intercepts = np.array([result.intercept for result in results]) - coefficients @ means
    return columns, coefficients, intercepts


def _described(
    model: Any,
    settings: SelectionSettings,
    data: TrainingData,
    chosen: tuple[Norm, float] | None,
    chosen_by: str,
) -> dict[str, Any]:
    """Return how the model was fitted, as text and numbers."""
    loss = settings.loss_for(data.target.task)
    found: dict[str, Any]
    if not settings.generates:
        norm, alpha = chosen or (settings.norms[0], settings.alpha)
        words = in_words(norm).replace(", groups=None", "").replace(", weights=None", "")
        found = {"method": "atomic norm", "norm": words, "form": settings.form}
        found |= {"alpha": alpha, "loss": loss}
        return found | ({"alpha_chosen_by": chosen_by} if chosen_by else {})
    if settings.best_subset:
        found = {"method": "best subset", "n_features": model.n_selected_, "l2": model.l2_}
        found |= {"loss": loss, "branches": model.result_.nodes}
    else:
        batch = norm_of(model, data.design)[0].k
        found = {"method": "feature generation", "n_features": int(model.n_wanted_)}
        found |= {"batch": batch, "C": model.C_, "loss": loss}
    return found | ({"classes": "together"} if len(data.target.outputs) > 1 else {})


def _notes(model: Any, described: dict[str, Any]) -> Sequence[str]:
    """Return a note on a choice of C that was interrupted."""
    if described["method"] != "feature generation" or not model.C_choice_:
        return ()
    if not model.C_choice_.cut:
        return ()
    found = f"{model.n_wanted_} features, C = {model.C_:g}"
    return (f"interrupted: {found}, of the values that were tried",)


def _in_python(
    model: Any, settings: SelectionSettings, center: bool, screened: ScreenedColumns | None
) -> str:
    """Return the Python code of the estimator, without observers."""
    given = model.get_params(deep=False) | {"observers": None, "time_limit": None}
    shown = in_words(type(model)(**given))
    if screened:
        shown = f"{screened.selector}, {shown}"
    if settings.additive:
        made = f"Additive(X, {settings.additive!r}, normalize={settings.standardize})"
        return f"{shown}.fit(designs.{made}, y)"
    if settings.generates or not settings.standardize:
        return f"make_pipeline({shown})" if screened else shown
    scaler = "StandardScaler()" if center else "StandardScaler(with_mean=False)"
    return f"make_pipeline({scaler}, {shown})"


def with_baseline(
    fitted: FittedSelection, design: Design, rows: Rows, roles: DataRoles
) -> FittedSelection:
    """Return a survival model with Breslow's baseline hazard, any other model unchanged.

    Scores are X w as in Python, and the hazard is of scores less those of the means: exp(X w) may
    overflow if columns are far from zero. The cumulative hazard of a row is
    baseline_hazard * exp(score - baseline_score).
    """
    if not fitted.data.target.is_survival:
        return fitted
    weight = np.ones(rows.size) if roles.weight is None else roles.weight[rows]
    risk = fitted.decisions(design, rows, roles.offset)[:, 0]
    described = dict(fitted.described)
    with np.errstate(over="ignore"):
        baseline = Baseline.of(fitted.data.y, risk, weight)
    # With several strata each has its own hazard.
    single = np.unique(fitted.data.y["stratum"]).size == 1
    if single and np.isfinite(baseline.cumulative).all():
        described["baseline_times"] = baseline.times.tolist()
        described["baseline_hazard"] = baseline.cumulative.tolist()
        described["baseline_score"] = -float(fitted.intercepts[0])
    return replace(fitted, intercepts=np.zeros(1), described=described)
