"""From a fit to what the files tell: the content of the report, and the saved model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from atomlearn import __version__
from atomlearn.cli.fitting import Fitted
from atomlearn.cli.genotypes import about, alleles_of
from atomlearn.cli.plan import LARGE, Plan
from atomlearn.cli.source import Dataset, Given
from atomlearn.core import Status, as_design, is_sparse, moments_of
from atomlearn.findings.conditional import FeatureTests
from atomlearn.reports.content import Content, HeldOut, SelectedFeature, SelectedGroup
from atomlearn.reports.displays import PathDisplay
from atomlearn.reports.gathered import content_of, forbidden
from atomlearn.reports.halves import SMALL, Half, curve_of
from atomlearn.reports.model import (
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.reports.of_estimator import versions
from atomlearn.reports.structure_displays import has_parts
from atomlearn.reports.view import View
from atomlearn.storage.formats.table import Schema


def content_of_fit(
    source: Dataset,
    plan: Plan,
    fitted: Fitted,
    held_out: HeldOut | None,
    notes: list[str],
    seconds: float,
    halves: Sequence[Half] = (),
    tests: FeatureTests | None = None,
) -> Content:
    """Return everything that the report tells; ``halves`` : fits to halves of the rows."""
    target = source.target
    given = source.given
    data = fitted.data
    X = source.X
    names = source.names
    view = _view(source, fitted)
    more: dict[str, Any] = {}
    # Fits without one of the features must be fits like this one.
    plain = not data.of_rows and not data.parameters and not fitted.interrupted
    entries = X.shape[0] * source.map.n_columns
    if plain and entries <= SMALL and fitted.settings["method"] == "atomic norm":
        more["asked"] = partial(forbidden, view, data.design, data.y, names.__getitem__)
    if source.variants is not None:
        lone = len(names) - len(source.variants.names)  # covariates lie nowhere
        places = [*source.variants.positions, *[-1] * lone]
        more["positions"] = [*source.variants.chromosomes, *[""] * lone], places
    path = None
    if fitted.settings["method"] == "atomic norm" and not fitted.has_curves:
        scaled = replace(view, design=data.design)
        path = PathDisplay.of_view(scaled, data.y, **data.of_rows, **data.parameters)
    more |= _terms(source, plan, fitted) | {"considered": _considered(source, fitted)}
    return content_of(
        view,
        target.values,
        held_out,
        target.name,
        target.outputs,
        halves,
        results=fitted.results,
        gaps=fitted.gaps_on_selected or [None] * len(fitted.results),
        free=given.covariates,
        path=path,
        known=_known(source, fitted, tests),
        stability=fitted.stability,
        looks=not given.on_disk and X.shape[0] * X.shape[1] <= LARGE,
        data=source.name,
        details=_details(source, plan, fitted, seconds),
        notes=(*_told(source.notes), *notes, *fitted.notes, *_notes(plan, fitted, source)),
        command=source.command,
        versions=versions(),
        chosen_first="selected_by" in fitted.settings,
        missing={n: plan.missing for plan in source.schema.columns for n in plan.made()},
        **more,
    )


def _view(source: Dataset, fitted: Fitted) -> View:
    """Return the model over all rows, as pages about estimators have it."""
    X = as_design(source.X)
    map = fitted.map if fitted.has_curves else source.map
    found = (fitted.columns, fitted.coefficients)
    names = source.names
    classes = source.target.classes
    return View(fitted.model, X, map.apply(source.X), map, names, *found, classes, len(names))


def _considered(source: Dataset, fitted: Fitted) -> tuple[str, ...]:
    """Return the names of features that the search took up, and that have no coefficient."""
    given = source.given
    units = fitted.units
    map = fitted.map if fitted.has_curves else source.map
    zero = np.setdiff1d(map.term_of(fitted.considered), [*units, *given.covariates])
    if not fitted.has_curves:  # a category with a coefficient is selected as a whole
        used = given.terms(units)
        zero = np.array([j for j in zero if not np.isin(given.terms(zero[zero == j]), used)])
    return tuple(map.term_names(zero.astype(np.int64), source.names)) if zero.size else ()


def tested(source: Dataset, fitted: Fitted, tests: FeatureTests) -> str:
    """Return one sentence with the p-values of selected columns, the least ones, and what for."""
    found = tests.of_columns()
    used = sorted((found[j], source.names[j]) for j in fitted.columns.tolist() if j in found)
    told = [f"{name} {p:.2g} (adjusted {rate:.2g})" for (p, rate), name in used[:20]]
    return f"{tests.sentences(most=0)[0]}: {'; '.join(told) or 'no column is selected'}"


def _known(
    source: Dataset, fitted: Fitted, tests: FeatureTests | None
) -> Callable[[SelectedFeature], SelectedFeature]:
    """Return what adds to a feature its groups, its p-value and what the file knows of it."""
    groups = {} if fitted.has_curves else group_names_of(source.given, source.names)
    values = {} if tests is None else tests.of_columns()

    def known(item: SelectedFeature) -> SelectedFeature:
        told = about(source, item.index)
        if item.index in values:
            heads = ("p_value", "p_adjusted")
            texts = (f"{value:.4g}" for value in values[item.index])
            told += tuple(zip(heads, texts, strict=True))
        return replace(item, group=groups.get(item.index, ""), about=told)

    return known


def group_names_of(given: Given, names: Sequence[str]) -> dict[int, str]:
    """Return the names of the groups of each column that is in one with others.

    Without names of its own a group is what was made of one column of a table: ``city=A``, ...
    """
    if given.groups is None:
        return {}
    groups = given.groups
    listed = groups
    if isinstance(groups, np.ndarray):
        listed = [np.flatnonzero(groups == label) for label in np.unique(groups)]
    found: dict[int, str] = {}
    for number, members in enumerate(listed):
        if members.size < 2:
            continue
        column_of_the_table = names[int(members[0])].partition("=")[0]
        name = given.group_names[number] if given.group_names else column_of_the_table
        for column in members.tolist():
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def _terms(source: Dataset, plan: Plan, fitted: Fitted) -> dict[str, Any]:
    """Return how many units were selected of how many, where columns make up units; and groups."""
    given = source.given
    free = source.given.covariates
    n_columns = source.map.n_columns
    if given.groups is None or fitted.has_curves:
        return {}
    every = np.setdiff1d(np.arange(n_columns), free)
    used = np.setdiff1d(fitted.columns, free)
    if not given.group_names:  # categories, a unit each
        return {"terms": (given.terms(used).size, given.terms(every).size)}
    if not plan.of_groups:
        return {}
    if has_parts(fitted.model.parts_):  # a column may be of several groups
        weights = {part.group: part.weights for part in fitted.model.parts_}
    else:
        sizes = np.zeros(n_columns)
        scales = moments_of(source.design(), fitted.columns)[1]
        sizes[fitted.columns] = np.linalg.norm(fitted.coefficients * scales, axis=0)
        weights = {number: sizes[members] for number, members in enumerate(given.groups)}
    groups = [
        SelectedGroup(name, members.size, int((mine != 0).sum()), float(np.linalg.norm(mine)))
        for number, (name, members) in enumerate(zip(given.group_names, given.groups, strict=True))
        if (mine := weights.get(number, np.zeros(1))).any()
    ]
    lone = np.setdiff1d(every, np.concatenate([*given.groups]))
    return {
        "terms": (len(groups) + np.intersect1d(used, lone).size, len(given.groups) + lone.size),
        "groups": sorted(groups, key=lambda group: -group.weight),
        "unit": "group",
    }


def _told(notes: Sequence[str], most: int = 12) -> list[str]:
    """Return what reading left out or filled in, not all of it where that is much."""
    more = len(notes) - most
    return [*notes[:most], *([f"and {more} more notes on reading"] if more > 0 else [])]


def _notes(plan: Plan, fitted: Fitted, source: Dataset) -> list[str]:
    n_features = source.map.n_columns - len(source.given.covariates)
    notes = list[str]()
    wanted = min(fitted.settings.get("n_features", 0), n_features)
    fewer = plan.n_features != "auto" and fitted.results[0].converged
    if plan.generates and fewer and fitted.terms.size < wanted:
        notes.append(
            f"{fitted.terms.size} of the {wanted} features asked for have a coefficient: the "
            "optimum gives none to the others; a larger --C lets more in"
        )
    if any(result.status is Status.TIME_LIMIT for result in fitted.results):
        notes.append(str(Status.TIME_LIMIT).replace("raise it", "raise --time-limit"))
    return notes


def _details(
    source: Dataset, plan: Plan, fitted: Fitted, seconds: float
) -> tuple[tuple[str, str], ...]:
    X = source.X
    settings = fitted.settings
    storage = "dense"
    if is_sparse(X):
        storage = f"sparse, {X.nnz:,} entries ({100 * X.nnz / (X.shape[0] * X.shape[1]):.2g}%)"
    products = ".fit(designs.Polynomial.interactions(X, squares=True), y)"
    products = products if source.map.has_pairs else ""
    told = {key.replace("_", " ").capitalize(): value for key, value in settings.items()}
    told = {
        key: f"{value:.6g}" if isinstance(value, float) else str(value)
        for key, value in told.items()
        if not isinstance(value, list)
    }
    return (
        ("Data", f"{X.shape[0]:,} rows x {X.shape[1]:,} columns, {storage}, {X.dtype}"),
        ("Fitted to", f"{fitted.data.y.size:,} rows" + source.target.events_told),
        *told.items(),
        ("Features while selecting", fitted.scaled_by),
        ("Passes over the data", f"{sum(r.passes for r in fitted.results):g}"),
        (
            "Seconds",
            f"{sum(r.seconds for r in fitted.results):.2f} for this fit, {seconds:.2f} for all",
        ),
        ("Seed of the split", str(plan.seed)),
        ("In Python", fitted.in_python + products),
    )


def model_of(source: Dataset, fitted: Fitted) -> SavedModel:
    """Return the model in data units, with only the columns that it reads."""
    schema = source.schema
    target = source.target
    map = source.map
    coefficients = fitted.coefficients
    if fitted.has_curves:
        coefficients = np.ones((fitted.intercepts.size, fitted.units.size))
    factors = [[int(at) for at in pair if at >= 0] for pair in map.inputs_of(fitted.units)]
    used = sorted({factor for pair in factors for factor in pair})
    place = {column: position for position, column in enumerate(used)}
    columns = () if schema.names is None else schema.restricted_to(used).columns
    curves = fitted.map, fitted.columns, fitted.coefficients
    return SavedModel(
        task=target.task,
        loss=fitted.settings["loss"],
        target=target.name,
        classes=target.classes,
        n_features=map.n_columns,
        n_inputs=len(source.names),
        inputs=tuple(ModelInput(column, source.names[column]) for column in used),
        features=tuple(
            ModelFeature(
                index=int(column),
                name=source.feature(int(column)),
                factors=tuple(place[factor] for factor in pair),
                curve=ModelCurve(*curve_of(*curves, int(column))) if fitted.has_curves else None,
            )
            for column, pair in zip(fitted.units, factors, strict=True)
        ),
        is_named=schema.names is not None,
        first_index=schema.first_index,
        coefficients=coefficients,
        intercepts=fitted.intercepts,
        certificates=tuple(
            ModelCertificate(r.status.name, r.objective, r.gap, r.relative_gap, r.passes)
            for r in fitted.results
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
    found |= {p.use: p.name for p in schema.columns if p.use in ("offset", "exposure")}
    return found | dict(schema.origin)
