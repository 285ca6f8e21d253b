"""Build the estimator, fit it to given rows, and convert its coefficients to data units."""

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
    unwrapped,
)
from atomlearn.estimators.dependent_rows import fit_parameters
from atomlearn.estimators.encoded import was_encoded
from atomlearn.estimators.file_tables import scaled_file
from atomlearn.estimators.generation import norm_of
from atomlearn.estimators.survival import Baseline
from atomlearn.estimators.units import Units, standardized_design, too_many, unscaled_units
from atomlearn.maps.feature_map import FeatureMap, map_of
from atomlearn.reports.model import baseline_keys
from atomlearn.reports.structure_displays import has_parts
from atomlearn.reports.view import in_words


@dataclass(frozen=True, kw_only=True)
class FittedSelection:
    """A fitted estimator and its selected columns, with coefficients in data units.

    ``model`` is the fitted estimator, ``data`` the training data, and ``in_python`` the Python code
    that builds the estimator. ``columns``, shape (m,), holds the increasing indices of the columns
    with a nonzero coefficient in at least one output; ``coefficients`` has shape (n_outputs, m) and
    ``intercepts`` has shape (n_outputs,). ``considered`` holds the columns that the search included
    and that ended with a zero coefficient. ``map`` is the feature map, which relates columns to
    inputs, products or curves. ``described`` holds the hyperparameters and the method of the fit,
    as text and numbers; ``scaled_by`` describes the standardization in words. ``chosen`` holds the
    settings that cross-validation chose, which refits reuse. ``screened`` holds the
    columns that knockoffs or stability selection selected before the fit, and ``notes`` holds
    sentences for the report. ``features`` are the unscaled features of all rows, with missing
    values filled as in the fit.
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
    chosen: dict[str, Any] = field(default_factory=dict)
    screened: ScreenedColumns | None = None
    notes: Sequence[str] = field(default=())
    features: Design

    @property
    def results(self) -> Sequence[Result]:
        """The solver results: one for each output, or one for a joint multiclass fit."""
        results: Sequence[Result] = self.model.results_
        return results

    @property
    def together(self) -> bool:
        """Whether a single multinomial fit covers all classes (not one-vs-rest)."""
        return self.described.get("classes") == "together"

    @property
    def gaps_on_selected(self) -> Sequence[float | None]:
        """The relative duality gap of each result over the selected features only.

        It is None for each result of an estimator that does not restrict its problem to selected
        features.
        """
        if self.described["method"] == "feature generation":
            return (self.model.selected_gap_,)
        return (None,) * len(self.results)

    @property
    def units(self) -> Columns:
        """The selected columns or, in an additive model, the inputs with a nonzero curve."""
        return np.unique(self.map.term_of(self.columns))

    @property
    def terms(self) -> Columns:
        """The selected inputs, columns or groups, without covariates.

        They are inputs if the model has curves, and groups if columns are grouped. Of groups that
        overlap the model knows which ones it uses; of others the selected columns tell.
        """
        roles = self.data.roles
        if roles.overlap and has_parts(self.model.parts_):
            selected = [part.group for part in self.model.parts_ if part.weights.any()]
            return np.unique(np.array(selected, dtype=np.int64))
        units = np.setdiff1d(self.units, roles.covariates)
        return units if self.has_curves else roles.terms(units)

    @property
    def has_curves(self) -> bool:
        """Whether the model is additive, so that each selected feature is a curve."""
        return self.map.unit is not None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended at least one of the fits."""
        return any(result.status is Status.INTERRUPTED for result in self.results)

    def decisions(self, rows: Rows, offset: Array | None = None) -> Array:
        """Return the decision values X_S w + b + offset, shape (n_rows, n_outputs).

        X_S are the selected columns of ``features`` at the row indices ``rows``, w and b
        are the coefficients and intercepts in data units, and ``offset``, shape (n_samples,), is
        indexed by ``rows`` and added to every output.
        """
        block = RowSubset(self.features, rows).gather(self.columns)
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
    """Select features and fit the model on the rows with these indices.

    ``design`` and ``target`` hold all rows. The features are standardized, screened by knockoffs or
    stability selection if ``settings`` request error control, and fitted. Coefficients are returned
    in data units. ``progress`` prints and limits the time; ``roles`` holds the weights, offset,
    groups and covariates of all rows.
    """
    # The rows of the fit, with features in the units of the fit.
    roles_of_rows = roles.rows(rows)
    units = _units(_rows_of(design, rows, settings), settings, roles.center, roles_of_rows.weight)
    data = TrainingData(units.design, target, target.values[rows], roles_of_rows)
    screened = None
    fitted_data = data
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # The statuses and notes of the report repeat the content of these warnings.
        if settings.controls:
            progress.say("  selecting by " + ("stability" if settings.stability else "knockoffs"))
            screened = screen_columns(data, settings)
            fitted_data, settings = _over_screened(data, settings, screened)
        model, chosen = _fit(fitted_data, settings, progress)
    settings = replace(settings, **chosen)
    columns, coefficients, intercepts = _coefficients(model, settings, units, screened)
    # Columns with a zero coefficient were considered and are not selected.
    is_selected = coefficients.any(axis=0)
    described = _described(model, settings, fitted_data)
    if screened:
        described |= {"selected_by": screened.words, "method": "error control"}
    standardizes_itself = settings.generates and settings.standardize
    return FittedSelection(
        model=model,
        data=data,
        columns=columns[is_selected],
        coefficients=coefficients[:, is_selected],
        considered=columns[~is_selected],
        intercepts=intercepts,
        map=map_of(design),
        described=described,
        scaled_by=model.scaled_by_ if standardizes_itself else units.words,
        in_python=_python_code(model, settings, roles.center, screened),
        chosen={} if screened else chosen,
        screened=screened,
        notes=screened.notes if screened else _notes(model, described),
        features=design,
    )


def _rows_of(design: Design, rows: Rows, settings: SelectionSettings) -> Design:
    """Return the design restricted to these rows, or the design itself if it has no other rows.

    Curves and very many products stay a design of the same class, which has the feature map. Other
    designs are wrapped. ``settings`` are the options of the selection.
    """
    if rows.size == design.shape[0]:
        return design
    same_class = design.with_rows(rows) if settings.additive or too_many(design) else None
    return same_class or RowSubset(design, rows)


def _units(
    design: Design, settings: SelectionSettings, center: bool, weight: Array | None
) -> Units:
    """Return the design in the units of the fit, with the means and scales to convert back.

    Fits with a norm get standardized features if ``settings.standardize``. Curves of an additive
    model and feature generators, which standardize internally, get the features unchanged.
    ``center`` is whether to subtract means; ``weight`` holds the sample weights or is None.
    """
    if settings.additive:
        scaled = ", of variance 1 each" if settings.standardize else ""
        return unscaled_units(design, f"a curve for each column ({settings.additive}{scaled})")
    if settings.generates or not settings.standardize:
        return unscaled_units(design)
    units = standardized_design(design, center, weight)
    return scaled_file(unwrapped(design), units) if was_encoded(design) else units


def _over_screened(
    data: TrainingData, settings: SelectionSettings, screened: ScreenedColumns
) -> tuple[TrainingData, SelectionSettings]:
    """Return the data and settings of the ridge fit on the screened columns.

    ``data`` and ``settings`` are those of all columns. If screening selected no column, the
    settings fit only the intercept and the covariates.
    """
    # Covariates are numbered among the kept columns, which increase.
    covariates = np.searchsorted(screened.kept, np.array(data.roles.covariates, dtype=np.int64))
    roles = replace(data.roles, covariates=tuple(covariates.tolist()))
    restricted = replace(data, design=part_of(data.design, columns=screened.kept), roles=roles)
    if screened.selected.size:
        return restricted, replace(settings, norms=(L2(),), form="squared")
    # At this alpha every penalized coefficient is zero: only the intercept and the unpenalized
    # covariates remain.
    return restricted, replace(settings, norms=(L1(),), alpha=1e6)


def _fit(
    data: TrainingData, settings: SelectionSettings, progress: ProgressPrinter
) -> tuple[Any, dict[str, Any]]:
    """Return a fitted estimator, and the settings that cross-validation chose, by name.

    After Ctrl-C during cross-validation, the model is refitted at the last alpha that finished.
    ``data`` are the rows of the fit and ``progress`` is the printer of progress.
    """
    # Candidate norms, and the number of fits that progress will count.
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
        how = "Ctrl-C, before a level was scored: the last one that was fitted"
        progress.say(f"  alpha chosen by {how}")
        alpha = progress.alpha
        parameters: dict[str, Any] = {"norms": tuple(norms[:1]), "alpha": alpha, "chosen_by": how}
        model, _ = _fit(data, replace(settings, **parameters), progress)
        model.results_[0].status = Status.INTERRUPTED
        return model, parameters
    if settings.generates:
        return model, _chosen_in_generation(model, settings, data)
    if not settings.cross_validates:
        return model, {}
    # ``_searched`` says how the search over alphas ended, ``status_`` how the last fit ended.
    if Status.INTERRUPTED in (model._searched, model.status_):
        for result in model.results_:
            result.status = Status.INTERRUPTED
    chosen_by = _how_alpha_was_chosen(model, data, progress)
    return model, {"norms": (model.norm_,), "alpha": model.alpha_, "chosen_by": chosen_by}


def _chosen_in_generation(
    model: Any, settings: SelectionSettings, data: TrainingData
) -> dict[str, Any]:
    """Return the number of features and C that cross-validation chose, {} if it chose nothing.

    ``model`` is a fitted feature generator or best-subset estimator. ``settings`` are the options
    of the selection and ``data`` the rows of the fit.
    """
    if settings.best_subset:
        return {"n_features": model.n_selected_} if settings.n_features == "auto" else {}
    if not model.C_choice_:
        return {}
    # The first C of the selection, and C of the coefficients.
    selection_Cs = model.size_choice_.chosen[1]
    parameters = {"n_features": model.n_wanted_, "C": (selection_Cs[0], model.C_)}
    n_folds = model.C_choice_.scores.shape[-1]
    how_chosen = f"{n_folds}-fold cross-validation on {data.y.size} rows"
    if model.C_choice_.cut:
        how_chosen += ", which ended early"
    return parameters | {"chosen_by": how_chosen if n_folds else ""}


def _announce_search(
    model: Any, settings: SelectionSettings, data: TrainingData, progress: ProgressPrinter
) -> None:
    """Print the size of the cross-validation grid, and set the fits that progress counts.

    ``model`` is the fitted estimator, ``settings`` are the options of the selection, and ``data``
    the rows of the fit.
    """
    norm_family = settings.norms[0].candidates(*data.design.shape)
    has_free_k = len(norm_family) > 1
    n_norms = max(len(settings.norms), len(norm_family))
    n_folds = count_folds(data)
    n_fits = n_norms * model.n_alphas * n_folds * len(data.target.outputs)
    # If k is not fixed, only norms near the best one are fitted, and their number is not known in
    # advance.
    progress.searches = 0 if has_free_k else n_fits
    progress.say(
        f"  cross-validation: {n_folds} folds, {model.n_alphas} alphas, {n_norms} norm"
        f"{'s' if n_norms > 1 else ''}{', near the best of them' if has_free_k else ''}"
    )


def _how_alpha_was_chosen(model: Any, data: TrainingData, progress: ProgressPrinter) -> str:
    """Return how cross-validation chose alpha, in words.

    If the search ended early, by Ctrl-C or the time limit, also print a line that says so.
    ``model`` is the fitted estimator, ``data`` are the rows of the fit, and ``progress`` is the
    printer of progress.
    """
    if model._searched.is_converged:
        return f"{count_folds(data)}-fold cross-validation on {data.y.size} rows"
    ended = "interrupted" if model._searched is Status.INTERRUPTED else "out of time"
    table = model.cv_results_
    is_scored = np.isfinite(table["mean_test_score"])
    folds = sum(name.startswith("split") for name in table)
    words = f"alpha {model.alpha_:.3g} is the best of {is_scored.sum()} that were tried"
    progress.say(f"  {ended}: {words}")
    return (
        f"{folds}-fold cross-validation, {ended} after {is_scored.sum()} of {is_scored.size} levels"
    )


def _coefficients(
    model: Any, settings: SelectionSettings, units: Units, screened: ScreenedColumns | None
) -> tuple[Columns, Array, Array]:
    """Return the columns, coefficients and intercepts of a fitted model in data units.

    ``units`` are the means and scales of the features, ``screened`` the columns of the fit or None.
    The shapes are (m,), (n_outputs, m) and (n_outputs,). Coefficients of the standardized features
    are divided by the scales, and the intercepts absorb the means. Some coefficients may be zero.
    ``settings`` are the options of the selection.
    """
    results = model.results_
    scales_itself = settings.generates  # these estimators standardize internally
    # With several outputs, the coefficients of these estimators are in data units already.
    if scales_itself and np.ndim(model.intercept_) and np.size(model.intercept_) > 1:
        columns = model.moments_[0]
        return columns, np.asarray(model.coef_)[:, columns], model.intercept_
    selected = np.zeros(0, dtype=np.int64)
    if scales_itself and not settings.additive:  # an additive model selects inputs, not columns
        selected = np.sort(model.selected_)
    columns, weights = together(results, selected)
    # The fit saw the screened columns only: back to columns of the data.
    if screened is not None:
        columns = screened.kept[columns]
    means, scales = units.of(columns)
    if scales_itself and settings.standardize:
        selected_columns, selection_means, selection_scales = model.moments_
        positions = np.searchsorted(columns, selected_columns)
        means[positions] = selection_means
        scales[positions] = selection_scales
    # w'(x - means) / scales + b = (w / scales)'x + (b - (w / scales)'means)
    coefficients = weights / scales
    intercepts = np.array([result.intercept for result in results]) - coefficients @ means
    return columns, coefficients, intercepts


def _described(model: Any, settings: SelectionSettings, data: TrainingData) -> dict[str, Any]:
    """Return the method and hyperparameters of the fit, as text and numbers.

    ``settings`` have the values that cross-validation chose. ``model`` is the fitted estimator and
    ``data`` are the rows of the fit.
    """
    loss = settings.loss_for(data.target.task)
    entries: dict[str, Any]
    if not settings.generates:
        norm = (
            in_words(settings.norms[0]).replace(", groups=None", "").replace(", weights=None", "")
        )
        entries = {"method": "atomic norm", "norm": norm, "form": settings.form}
        entries |= {"alpha": settings.alpha, "loss": loss}
        return entries | ({"alpha_chosen_by": settings.chosen_by} if settings.chosen_by else {})
    # Methods without a norm: best subset, or feature generation.
    if settings.best_subset:
        entries = {"method": "best subset", "n_features": model.n_selected_, "l2": model.l2_}
        entries |= {"loss": loss, "branches": model.result_.nodes}
    else:
        batch = norm_of(model, data.design)[0].k
        entries = {"method": "feature generation", "n_features": int(model.n_wanted_)}
        entries |= {"batch": batch, "C": model.C_, "loss": loss}
        entries |= {"C_chosen_by": settings.chosen_by} if settings.chosen_by else {}
    return entries | ({"classes": "together"} if len(data.target.outputs) > 1 else {})


def _notes(model: Any, described: dict[str, Any]) -> Sequence[str]:
    """Return a note if Ctrl-C interrupted the cross-validation of C, else an empty sequence.

    ``model`` is the fitted estimator and ``described`` are the hyperparameters of the fit.
    """
    if described["method"] != "feature generation" or not model.C_choice_:
        return ()
    if not model.C_choice_.cut:
        return ()
    values = f"{model.n_wanted_} features, C = {model.C_:g}"
    return (f"interrupted: {values}, of the values that were tried",)


def _python_code(
    model: Any, settings: SelectionSettings, center: bool, screened: ScreenedColumns | None
) -> str:
    """Return Python code that builds the estimator, with its scaler and selector.

    Observers and the time limit are left out. ``center`` is whether the scaler subtracts means.
    ``model`` is the fitted estimator, ``settings`` are the options of the selection, and
    ``screened`` the columns that were selected before the fit, or None.
    """
    parameters = model.get_params(deep=False) | {"observers": None, "time_limit": None}
    code = in_words(type(model)(**parameters))
    if screened:
        code = f"{screened.selector}, {code}"
    if settings.additive:
        expansion = f"Additive(X, {settings.additive!r}, normalize={settings.standardize})"
        return f"{code}.fit(designs.{expansion}, y)"
    if settings.generates or not settings.standardize:
        return f"make_pipeline({code})" if screened else code
    scaler = "StandardScaler()" if center else "StandardScaler(with_mean=False)"
    return f"make_pipeline({scaler}, {code})"


def with_baseline(
    fitted: FittedSelection, rows: Rows, roles: DataRoles, check_times: Sequence[float] = ()
) -> FittedSelection:
    """Return a survival model with Breslow's baseline hazard, and any other model unchanged.

    The intercept of a survival model is set to zero, so that its scores are X w. The baseline
    hazard is that of a row with the mean score, because exp(X w) may overflow if the columns are
    far from zero: the cumulative hazard of a row is baseline_hazard * exp(score - baseline_score),
    at each of baseline_times. Each stratum has its own. ``check_times`` are the times whose risks
    are predicted by default. ``fitted`` is the fitted selection, ``rows`` are the indices of the
    rows of the fit, and ``roles`` the weights, groups and covariates of all rows.
    """
    target = fitted.data.target
    if not target.is_survival:
        return fitted
    y = fitted.data.y
    weight = np.ones(rows.size) if roles.weight is None else roles.weight[rows]
    # Risks relative to their weighted mean, so that exp does not overflow.
    risk = fitted.decisions(rows, roles.offset)[:, 0] - fitted.intercepts[0]
    center = float(np.average(risk, weights=weight))
    described = fitted.described | {
        "baseline_score": center,
        "followed_until": float(y["time"].max()),
    }
    if check_times:
        described["at"] = ",".join(f"{time:g}" for time in check_times)
    if target.events is not None:
        described["other_events"] = ", ".join(target.events.others)
    for code in np.unique(y["stratum"]).tolist():
        is_stratum = y["stratum"] == code
        baseline = Baseline.of(y[is_stratum], risk[is_stratum] - center, weight[is_stratum])
        if np.isfinite(baseline.cumulative).all():
            times, hazard = baseline_keys(target.strata[code] if target.strata else None)
            described[times] = baseline.times.tolist()
            described[hazard] = baseline.cumulative.tolist()
    return replace(fitted, intercepts=np.zeros(1), described=described)
