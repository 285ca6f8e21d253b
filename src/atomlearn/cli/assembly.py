"""From a fit to what the files tell: the content of the report, and the saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atomlearn import __version__
from atomlearn.cli.evidence import evidence_of, group_names_of, twins_of, view_of_fit, warnings_told
from atomlearn.cli.fitting import Fitted
from atomlearn.cli.genotypes import about, alleles_of
from atomlearn.cli.plan import Plan
from atomlearn.cli.source import Dataset
from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.interfaces.certificate import Status
from atomlearn.reports.content import (
    Content,
    FitSummary,
    HeldOut,
    SelectedFeature,
    without_covariates,
)
from atomlearn.reports.gathered import curves_of, selected_of
from atomlearn.reports.halves import Half, curve_of, shares
from atomlearn.reports.model import (
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.reports.of_estimator import versions
from atomlearn.reports.view import View
from atomlearn.storage.formats.table import Schema


def content_of(
    source: Dataset,
    plan: Plan,
    fitted: Fitted,
    held_out: HeldOut | None,
    notes: list[str],
    seconds: float,
    found: Sequence[Half] = (),
) -> Content:
    """Return everything that the report tells; ``found`` : fits to halves of the rows."""
    view = view_of_fit(source, fitted)
    free = source.given.covariates
    selected, covariates = without_covariates(_selected(source, fitted, view, found), free)
    selected = twins_of(source, fitted, view, selected)
    target, X = source.target, source.features.X
    labels, counts = target.labels, tuple[tuple[str, int], ...]()
    if labels is not None:
        counts = tuple(zip(labels, target.counts().tolist(), strict=True))
    n_features = source.features.n_features - len(free)
    return Content(
        data=source.name,
        target=target.name,
        task=target.task,
        n_samples=X.shape[0],
        n_inputs=len(source.features.names),
        n_features=n_features,
        outputs=target.outputs,
        selected=selected,
        covariates=covariates,
        fits=tuple(
            FitSummary.of(label, result, gap)
            for label, result, gap in zip(
                ("all classes",) if fitted.together else target.outputs,
                fitted.results,
                fitted.gaps_on_selected or [None] * len(fitted.results),
                strict=True,
            )
        ),
        goal=plan.gap,
        held_out=held_out,
        class_counts=counts,
        target_values=target.numbers if labels is None else (),
        curves=curves_of(view, selected, found, target.outputs),
        evidence=evidence_of(source, fitted, view, selected),
        warnings=warnings_told(source, view, held_out, selected),
        details=_details(source, plan, fitted, seconds),
        notes=(*_told(source.notes), *notes, *fitted.notes, *_notes(plan, fitted, n_features)),
        command=source.command,
        versions=versions(),
        chosen_first="selected_by" in fitted.settings,
    )


def _selected(
    source: Dataset, fitted: Fitted, view: View, found: Sequence[Half]
) -> tuple[SelectedFeature, ...]:
    share = shares(found)
    groups = {} if fitted.has_curves else group_names_of(source.given, source.features.name)
    stability = fitted.stability or (
        {unit: share.get(unit, 0.0) for unit in fitted.units.tolist()} if found else {}
    )
    scaling = [None] * fitted.columns.size if fitted.scaling is None else fitted.scaling.tolist()
    of_columns = dict(zip(fitted.columns.tolist(), scaling, strict=True))
    terms, steps = fitted.map.term_of(fitted.columns), fitted.found
    first = {term: min(steps[(terms == term) & (steps > 0)], default=None) for term in fitted.units}
    return tuple(
        replace(
            item,
            scaling=None if fitted.has_curves else of_columns[item.index],
            found=first[item.index],
            stability=stability.get(item.index),
            group=groups.get(item.index, ""),
            about=about(source, item.index),
        )
        for item in selected_of(view)
    )


def _told(notes: Sequence[str], most: int = 12) -> list[str]:
    """Return what reading left out or filled in, not all of it where that is much."""
    more = len(notes) - most
    return [*notes[:most], *([f"and {more} more notes on reading"] if more > 0 else [])]


def _notes(plan: Plan, fitted: Fitted, n_features: int) -> list[str]:
    notes = []
    for result in fitted.results:
        wanted = min(fitted.settings.get("n_features", 0), n_features)
        n_selected = fitted.columns.size if fitted.together else result.columns.size
        if fitted.has_curves:
            n_selected = np.unique(fitted.map.term_of(result.columns)).size
        if plan.generates and result.converged and n_selected < wanted:
            notes.append(
                f"the optimum has only {n_selected} of the {wanted} features asked for; "
                "a larger --C or --batch lets more in"
            )
            break
    if plan.generates and len(fitted.results) > 1:
        notes.append(
            f"{len(fitted.results)} classes: {plan.n_features} features were selected for each "
            f"of them, {fitted.units.size} different ones in all"
        )
    if any(result.status is Status.TIME_LIMIT for result in fitted.results):
        notes.append(str(Status.TIME_LIMIT).replace("raise it", "raise --time-limit"))
    return notes


def _details(
    source: Dataset, plan: Plan, fitted: Fitted, seconds: float
) -> tuple[tuple[str, str], ...]:
    X, settings = source.features.X, fitted.settings
    storage = "dense"
    if is_sparse(X):
        storage = f"sparse, {X.nnz:,} entries ({100 * X.nnz / (X.shape[0] * X.shape[1]):.2g}%)"
    details = [
        ("Data", f"{X.shape[0]:,} rows x {X.shape[1]:,} columns, {storage}, {X.dtype}"),
        ("Fitted to", f"{fitted.data.y.size:,} rows" + source.target.events_told),
    ]
    if settings["method"] == "feature generation":
        details += [
            (
                "Method",
                f"feature generation: {settings['batch']} features a pass, until "
                f"{settings['n_features']} are selected",
            ),
            ("Norm", f"squared k-support norm, k = {settings['batch']}"),
            ("Weight of the loss", f"C = {settings['C']:g} on the sum over rows"),
        ]
    else:
        details += [
            ("Norm", f"{settings['norm']}, {settings['form']}"),
            ("Weight of the norm", f"alpha = {settings['alpha']:.6g} against the mean loss"),
        ]
    told = {"selected_by": "Selected by", "alpha_chosen_by": "Chosen by"}
    details += [(words, str(settings[key])) for key, words in told.items() if key in settings]
    details += [
        ("Loss", str(settings["loss"]).replace("_", " ")),
        ("Features while selecting", fitted.scaled_by),
        ("Passes over the data", f"{sum(r.passes for r in fitted.results):g}"),
        (
            "Seconds",
            f"{sum(r.seconds for r in fitted.results):.2f} for this fit, {seconds:.2f} for all",
        ),
        ("Seed of the split", str(plan.seed)),
        ("In Python", fitted.in_python + _of_products(source)),
    ]
    return tuple(details)


def _of_products(source: Dataset) -> str:
    if not source.features.interactions:
        return ""
    return ".fit(designs.Polynomial.interactions(X, squares=True), y)"


def _curve_of(fitted: Fitted, unit: int) -> ModelCurve | None:
    if not fitted.has_curves:
        return None
    return ModelCurve(*curve_of(fitted.map, fitted.columns, fitted.coefficients, unit))


def model_of(source: Dataset, fitted: Fitted) -> SavedModel:
    """Return the model in data units, with only the columns that it reads."""
    features, schema, target = source.features, source.schema, source.target
    factors = [features.factors(int(column)) for column in fitted.units]
    used = sorted({factor for pair in factors for factor in pair})
    place = {column: position for position, column in enumerate(used)}
    columns = () if schema.names is None else schema.restricted_to(used).columns
    return SavedModel(
        task=target.task,
        loss=fitted.settings["loss"],
        target=target.name,
        classes=target.classes,
        n_features=features.n_features,
        n_inputs=len(features.names),
        inputs=tuple(ModelInput(column, features.names[column]) for column in used),
        features=tuple(
            ModelFeature(
                index=int(column),
                name=features.name(int(column)),
                factors=tuple(place[factor] for factor in pair),
                curve=_curve_of(fitted, int(column)),
            )
            for column, pair in zip(fitted.units, factors, strict=True)
        ),
        is_named=schema.names is not None,
        first_index=schema.first_index,
        coefficients=fitted.coefficients
        if not fitted.has_curves
        else np.ones((len(fitted.results), fitted.units.size)),
        intercepts=fitted.intercepts,
        certificates=tuple(
            ModelCertificate(
                result.status.name,
                result.objective,
                result.gap,
                result.relative_gap,
                result.passes,
            )
            for result in fitted.results
        ),
        settings={**fitted.settings, "rows_fitted": fitted.data.y.size} | _roles_of(schema),
        created_with=f"atomlearn {__version__}",
        columns=columns,
        alleles=alleles_of(source, used),
    )


def _roles_of(schema: Schema) -> dict[str, str]:
    """Return the columns that `predict` may read too: of names of rows, and of an offset."""
    named = [plan for plan in schema.columns if plan.use == "id"]
    named += [plan for plan in schema.columns if plan.kind == "identifier"]
    found = {"id": named[0].name} if named else {}
    return found | {p.use: p.name for p in schema.columns if p.use in ("offset", "exposure")}
