"""Assemble the report content and the saved model from a fitted selection.

A plan says how a column of the file is encoded as columns of X. A feature map says which features
are made of the columns of X: the columns themselves, products or curves. The units that are
selected are features, or inputs if each has a curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from atomlearn import __version__
from atomlearn.cli.fitting import FittedSelection
from atomlearn.cli.genotypes import about, alleles_of
from atomlearn.cli.scoring import ScoredSelection
from atomlearn.cli.settings import LARGE, SelectionSettings
from atomlearn.cli.source import DataRoles, Dataset
from atomlearn.core import Status, as_design, column_moments, dense_part, is_sparse
from atomlearn.findings.conditional import FeatureTests
from atomlearn.findings.enrichment import enrichment
from atomlearn.findings.intervals import Estimates
from atomlearn.findings.marginal import marginal_tests
from atomlearn.reports.content import Content, SelectedFeature, SelectedGroup
from atomlearn.reports.gathered import content_of, forbidden
from atomlearn.reports.halves import SMALL, Half, curve_of
from atomlearn.reports.model import (
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.reports.page import versions
from atomlearn.reports.registry import path_of_view
from atomlearn.reports.structure_displays import has_parts
from atomlearn.reports.view import View
from atomlearn.storage.formats.table import Schema
from atomlearn.storage.intake.kinds import is_id_name

#: Number of notes about reading the file that the report lists; further notes are only counted.
MOST_NOTES = 12
#: Maximum number of columns whose p-values the note lists.
MOST_P_VALUES = 20


def assemble_content(
    source: Dataset,
    settings: SelectionSettings,
    scored: ScoredSelection,
    seconds: float,
    halves: Sequence[Half],
    tests: FeatureTests | None,
    estimates: Iterable[Estimates] = (),
) -> Content:
    """Return the content of the report on a scored selection.

    ``source`` is the data, ``scored`` the fitted model with its scores, and ``seconds`` the time of
    all fits. ``halves`` are fits to random halves of the rows, ``tests`` the p-values of all
    columns or None, and ``estimates`` the estimates with intervals. ``settings`` are the options of
    the selection. Refits without one of the features are added if they solve the same problem as
    the fit: without sample weights, offset or covariates, and not interrupted.
    """
    fitted = scored.fitted
    target = source.target
    roles = source.roles
    data = fitted.data
    n_rows, n_columns = source.X.shape
    view = _view(source, fitted)
    # Fields of the content that only some selections have.
    extras = _grouped(source, settings, fitted) | {"considered": _considered(source, fitted)}
    extras |= _enriched(source, fitted)
    has_norm = fitted.described["method"] == "atomic norm"
    is_plain = not data.fit_parameters and not data.parameters and not fitted.interrupted
    if is_plain and has_norm and n_rows * source.map.n_columns <= SMALL:
        extras["refits"] = partial(forbidden, view, data.design, data.y, source.titles.__getitem__)
    if source.variants is not None:
        n_others = len(source.names) - len(source.variants.names)  # covariates have no position
        positions = [*source.variants.positions, *[-1] * n_others]
        extras["positions"] = [*source.variants.chromosomes, *[""] * n_others], positions
    path = None  # that of the scaled features, as the fit saw them
    if has_norm and not fitted.has_curves:
        scaled_view = replace(view, design=data.design)
        path = path_of_view(scaled_view, data.y, **data.fit_parameters, **data.parameters)
    notes = [*scored.notes, *fitted.notes, *_notes(settings, fitted, source)]
    return content_of(
        view,
        target.values,
        scored.held_out,
        target.name,
        target.outputs,
        halves,
        results=fitted.results,
        gaps=fitted.gaps_on_selected,
        free=roles.covariates,
        path=path,
        describe=_describer(source, fitted, tests, estimates),
        stability=fitted.screened.stability if fitted.screened else None,
        scan=not roles.on_disk and n_rows * n_columns <= LARGE,
        data=source.name,
        details=_details(source, settings, fitted, seconds),
        notes=(*_first_notes(source.notes), *notes),
        command=source.command,
        versions=versions(),
        chosen_first=fitted.screened is not None,
        missing=_missing(source),
        **extras,
    )


def _missing(source: Dataset) -> dict[str, int]:
    """Return the numbers of imputed values of columns, by the names that are displayed.

    ``source`` is the data that was read.
    """
    titles = dict(zip(source.names, source.titles, strict=True))
    filled = [plan for plan in source.schema.columns if plan.fill is not None]
    return {titles.get(name, name): plan.missing for plan in filled for name in plan.made()}


def _view(source: Dataset, fitted: FittedSelection) -> View:
    """Return the ``View`` of the model over all rows, which the report of any estimator uses.

    ``source`` is the data that was read and ``fitted`` the fitted selection.
    """
    X = as_design(source.X)
    map = fitted.map if fitted.has_curves else source.map
    selection = fitted.columns, fitted.coefficients
    names = source.names
    classes = source.target.classes
    titles = source.titles
    features = map.apply(source.X)
    return View(fitted.model, X, features, map, names, *selection, classes, len(names), titles)


def _considered(source: Dataset, fitted: FittedSelection) -> tuple[str, ...]:
    """Return the names of features that the search included, but with a zero coefficient.

    Columns of a category with any nonzero coefficient are left out: such a category is selected as
    a whole. (``roles.terms`` returns the categories of columns.) ``source`` is the data that was
    read and ``fitted`` the fitted selection.
    """
    roles = source.roles
    units = fitted.units
    map = fitted.map if fitted.has_curves else source.map
    zero = np.setdiff1d(map.term_of(fitted.considered), [*units, *roles.covariates])
    if not fitted.has_curves:
        selected = roles.terms(units)
        zero = np.array([j for j in zero if not np.isin(roles.terms(zero[zero == j]), selected)])
    return tuple(map.term_names(zero.astype(np.int64), source.titles)) if zero.size else ()


def test_sentence(source: Dataset, fitted: FittedSelection, tests: FeatureTests) -> str:
    """Return a sentence with the smallest p-values of selected columns and their assumption.

    ``tests`` holds the p-values of all columns; at most MOST_P_VALUES of them are listed.
    ``source`` is the data that was read and ``fitted`` the fitted selection.
    """
    statistics = tests.of_columns()
    selected = fitted.columns.tolist()
    tested = sorted((statistics[j], source.names[j]) for j in selected if j in statistics)
    entries = [f"{name} {p:.2g} (adjusted {q:.2g})" for (p, q), name in tested[:MOST_P_VALUES]]
    return f"{tests.sentences(most=0)[0]}: {'; '.join(entries) or 'no column is selected'}"


def _describer(
    source: Dataset,
    fitted: FittedSelection,
    tests: FeatureTests | None,
    estimates: Iterable[Estimates],
) -> Callable[[SelectedFeature], SelectedFeature]:
    """Return a function that adds groups, p-values, intervals and file metadata to a feature.

    ``tests`` holds the p-values of the columns or is None, and ``estimates`` are the estimates with
    intervals. ``source`` is the data that was read and ``fitted`` the fitted selection.
    """
    intervals = {column: span for item in estimates for column, span in _spans_of(item).items()}
    groups = {} if fitted.has_curves else group_names_of(source.roles, source.names)
    p_values = {} if tests is None else tests.of_columns()
    plans = source.schema.columns
    category_plans = [plan for plan in plans if plan.use == "category" and plan.reference_level]
    references = {name: plan.reference_level for plan in category_plans for name in plan.made()}
    symbols = source.schema.symbols
    map = fitted.map if fitted.has_curves else source.map
    marginal = _marginal_facts(source, fitted)

    def describe(item: SelectedFeature) -> SelectedFeature:
        """Return the feature with its groups, its p-values and intervals, and file metadata.

        Each fact is a (header, text) pair. ``item`` is the feature.
        """
        columns = [int(column) for column in map.inputs_of([item.index])[0] if column >= 0]
        facts = about(source, columns) + marginal.get(item.index, ())
        factor_names = item.factors or (item.name,)
        if any(name in symbols for name in factor_names):
            facts += (("symbol", ":".join(symbols.get(name, name) for name in factor_names)),)
        if item.name in references:
            facts += (("reference", references[item.name]),)
        if item.index in p_values:
            texts = (f"{value:.4g}" for value in p_values[item.index])
            facts += tuple(zip(("p_value", "p_adjusted"), texts, strict=True))
        facts += intervals.get(item.index, ())
        return replace(item, group=groups.get(item.index, ""), about=facts)

    return describe


def _spans_of(estimates: Estimates) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return the estimate, the ends of its interval and the p-value of each column, as text."""
    rows = np.column_stack([estimates.values, estimates.intervals])
    # Hazard, odds or mean ratios with their intervals, if the loss has such a scale.
    rows = estimates.ratios if estimates.scale else rows
    headers = ("estimate", "lower", "upper", "estimate_p")
    return {
        int(column): tuple(zip(headers, (f"{value:.6g}" for value in (*row, p)), strict=True))
        for column, row, p in zip(estimates.columns, rows, estimates.p_values, strict=True)
    }


def _marginal_facts(
    source: Dataset, fitted: FittedSelection
) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return the marginal statistics of each selected variant, or product of two columns.

    They are of regressions of the target on this feature and the covariates only, as in a
    genome-wide association study. The result is {} without genotypes or selected features, with
    weights or an offset, and for curves, survival times or several outputs. ``source`` is the data
    that was read and ``fitted`` the fitted selection.
    """
    target = source.target
    roles = source.roles
    selected = np.setdiff1d(fitted.columns, roles.covariates)
    is_plain = roles.weight is None and roles.offset is None and not fitted.has_curves
    if source.variants is None or not selected.size or not is_plain:
        return {}
    if target.is_survival or len(target.outputs) > 1:
        return {}
    design = source.design()
    covariates = dense_part(design, np.array(roles.covariates, dtype=np.int64))
    y = target.values.astype(np.float64)
    tests = marginal_tests(dense_part(design, selected), covariates, y, target.classes is not None)
    headers = ("marginal_coefficient", "marginal_error", "marginal_p")
    return {
        column: tuple(zip(headers, (f"{number:.4g}" for number in test), strict=True))
        for column, test in zip(selected.tolist(), tests, strict=True)
    }


def group_names_of(roles: DataRoles, names: Sequence[str]) -> dict[int, str]:
    """Return a map from column index to the names of its groups.

    Only groups with at least two columns are included. A group without a name consists of the dummy
    columns of one categorical column, ``city=A``, ``city=B``, ..., and gets the name ``city``.
    ``roles`` are the groups and covariates of the data.
    """
    groups = roles.groups
    if groups is None:
        return {}
    if isinstance(groups, np.ndarray):
        groups = [np.flatnonzero(groups == label) for label in np.unique(groups)]
    label_of = dict[int, str]()
    for number, members in enumerate(groups):
        if members.size < 2:
            continue
        category = names[int(members[0])].partition("=")[0]
        name = roles.group_names[number] if roles.group_names else category
        for column in members.tolist():
            label_of[column] = f"{label_of[column]}, {name}" if column in label_of else name
    return label_of


def _grouped(
    source: Dataset, settings: SelectionSettings, fitted: FittedSelection
) -> dict[str, Any]:
    """Return the fields of ``Content`` about groups, or an empty dict without groups.

    ``terms`` is the pair (number of selected units, number of all units); a unit is a group, a
    category or a single column. ``groups`` lists the selected groups, the largest weight first. If
    groups overlap, the weight of a group is the norm of its latent part (a coefficient vector of
    this group only), else the norm of the sizes of its columns. ``source`` is the data that was
    read, ``settings`` are the options of the selection, and ``fitted`` is the fitted selection.
    """
    roles = source.roles
    n_columns = source.map.n_columns
    if roles.groups is None or fitted.has_curves:
        return {}
    candidates = np.setdiff1d(np.arange(n_columns), roles.covariates)
    selected = np.setdiff1d(fitted.columns, roles.covariates)
    if not roles.group_names:  # the units are categories
        return {"terms": (roles.terms(selected).size, roles.terms(candidates).size)}
    if not settings.of_groups:
        return {}
    if has_parts(fitted.model.parts_):
        weights = {part.group: part.weights for part in fitted.model.parts_}
    else:
        # The size of a column is the norm of its standardized coefficients over the outputs.
        sizes = np.zeros(n_columns)
        scales = column_moments(source.design(), columns=fitted.columns)[1]
        sizes[fitted.columns] = np.linalg.norm(fitted.coefficients * scales, axis=0)
        weights = {number: sizes[members] for number, members in enumerate(roles.groups)}
    groups = [
        SelectedGroup(
            name, members.size, int((coefficients != 0).sum()), float(np.linalg.norm(coefficients))
        )
        for number, (name, members) in enumerate(zip(roles.group_names, roles.groups, strict=True))
        if (coefficients := weights.get(number, np.zeros(1))).any()
    ]
    ungrouped = np.setdiff1d(candidates, np.concatenate([*roles.groups]))
    n_single = np.intersect1d(selected, ungrouped).size
    return {
        "terms": (len(groups) + n_single, len(roles.groups) + ungrouped.size),
        "ungrouped": (n_single, ungrouped.size),
        "groups": sorted(groups, key=lambda group: -group.weight),
        "unit": "group",
    }


def _enriched(source: Dataset, fitted: FittedSelection) -> dict[str, Any]:
    """Return the fields of ``Content`` about the enrichment of sets, or an empty dict without.

    The universe are the columns that vary, without covariates: no other one can be selected.
    ``source`` is the data that was read and ``fitted`` the fitted selection.
    """
    sets = source.sets
    if not sets:
        return {}
    names = source.names
    deviations = column_moments(as_design(source.X))[1]
    varying = np.setdiff1d(np.flatnonzero(deviations > 0), source.roles.covariates)
    units = np.intersect1d(fitted.units, varying).tolist()
    lists = {name: members.tolist() for name, members in sets.items()}
    results = enrichment(units, varying.tolist(), lists)
    labels = {unit: source.schema.symbols.get(names[unit], names[unit]) for unit in units}
    named = [replace(item, members=tuple(labels[j] for j in item.members)) for item in results]
    n_grouped = np.intersect1d(np.concatenate([*sets.values()]), varying).size
    universe = (
        f"{len(units):,} selected columns in {len(sets):,} sets; the universe is "
        f"the {varying.size:,} columns that vary, {n_grouped:,} of them in a set"
    )
    return {"enriched": named, "universe": universe}


def _first_notes(notes: Sequence[str]) -> list[str]:
    """Return the first notes about reading the file, and a count of the remaining ones."""
    n_more = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], *([f"and {n_more} more notes on reading"] if n_more > 0 else [])]


def _notes(settings: SelectionSettings, fitted: FittedSelection, source: Dataset) -> list[str]:
    """Return notes for the report: too few features, marginal p-values, or the time limit reached.

    The notes depend on the options (``settings``), the fitted model and the data (``source``).
    """
    n_features = source.map.n_columns - len(source.roles.covariates)
    notes = list[str]()
    n_requested = min(fitted.described.get("n_features", 0), n_features)
    is_fixed = settings.generates and settings.n_features != "auto"
    if is_fixed and fitted.results[0].converged and fitted.terms.size < n_requested:
        notes.append(
            f"{fitted.terms.size} of the {n_requested} features asked for have a coefficient: the "
            "optimum gives none to the others; a larger --C lets more in"
        )
    if source.variants is not None and fitted.columns.size:
        corrected_level = 0.05 / n_features
        notes.append(
            "marginal_p of selected.csv is of each feature with the covariates only, and not "
            f"corrected for the choice among {n_features:,}: compare it with {corrected_level:.1g}"
        )
        if source.map.has_pairs:
            notes.append("no score.tsv: PLINK cannot score products; use atomlearn predict")
    if any(result.status is Status.TIME_LIMIT for result in fitted.results):
        notes.append(str(Status.TIME_LIMIT).replace("raise it", "raise --time-limit"))
    return notes


def _details(
    source: Dataset, settings: SelectionSettings, fitted: FittedSelection, seconds: float
) -> tuple[tuple[str, str], ...]:
    """Return the (label, text) pairs of the details table of the report.

    They cover the data, hyperparameters, passes over the data and seconds; ``seconds`` is the time
    of all fits. ``source`` is the data that was read, ``settings`` are the options of the
    selection, and ``fitted`` is the fitted selection.
    """
    X = source.X
    storage = "dense"
    if is_sparse(X):
        storage = f"sparse, {X.nnz:,} entries ({100 * X.nnz / (X.shape[0] * X.shape[1]):.2g}%)"
    products = ".fit(designs.Polynomial.interactions(X, squares=True), y)"
    products = products if source.map.has_pairs else ""
    hyperparameters = {
        key.replace("_", " ").capitalize(): f"{value:.6g}" if type(value) is float else str(value)
        for key, value in fitted.described.items()
        if type(value) is not list and value != ""
    }
    seconds_of_fit = sum(result.seconds for result in fitted.results)
    return (
        ("Data", f"{X.shape[0]:,} rows x {X.shape[1]:,} columns, {storage}, {X.dtype}"),
        ("Fitted to", f"{fitted.data.y.size:,} rows" + source.target.event_counts),
        *hyperparameters.items(),
        ("Features while selecting", fitted.scaled_by),
        ("Passes over the data", f"{sum(result.passes for result in fitted.results):g}"),
        ("Seconds", f"{seconds_of_fit:.2f} for this fit, {seconds:.2f} for all"),
        ("Seed of the split", str(settings.seed)),
        ("In Python", fitted.in_python + products),
    )


def saved_model(source: Dataset, fitted: FittedSelection) -> SavedModel:
    """Return the model in data units, with only the columns that it reads as inputs.

    ``source`` is the data that was read and ``fitted`` the fitted selection.
    """
    schema = source.schema
    target = source.target
    map = source.map
    coefficients = fitted.coefficients
    # A curve contains its coefficients, so that it is added as it is.
    if fitted.has_curves:
        coefficients = np.ones((fitted.intercepts.size, fitted.units.size))
    # Each feature by its inputs, which are numbered in the order of the file.
    factors = [
        [int(column) for column in pair if column >= 0] for pair in map.inputs_of(fitted.units)
    ]
    inputs = sorted({factor for pair in factors for factor in pair})
    position_of = {column: position for position, column in enumerate(inputs)}
    columns = () if schema.names is None else schema.restricted_to(inputs).columns
    curves = fitted.map, fitted.columns, fitted.coefficients
    return SavedModel(
        task=target.task,
        loss=fitted.described["loss"],
        target=target.name,
        classes=target.classes,
        n_features=map.n_columns,
        n_inputs=len(source.names),
        inputs=tuple(
            ModelInput(column, source.names[column], *span)
            for column, span in zip(inputs, _spans(source, inputs), strict=True)
        ),
        features=tuple(
            ModelFeature(
                index=int(column),
                name=source.feature(int(column)),
                factors=tuple(position_of[factor] for factor in pair),
                curve=ModelCurve(*curve_of(*curves, int(column))) if fitted.has_curves else None,
            )
            for column, pair in zip(fitted.units, factors, strict=True)
        ),
        is_named=schema.names is not None,
        first_index=schema.first_index,
        coefficients=coefficients,
        intercepts=fitted.intercepts,
        certificates=tuple(
            ModelCertificate(fit.status.name, fit.objective, fit.gap, fit.relative_gap, fit.passes)
            for fit in fitted.results
        ),
        settings={**fitted.described, "rows_fitted": fitted.data.y.size} | _roles_of(schema),
        created_with=f"atomlearn {__version__}",
        columns=columns,
        alleles=alleles_of(source, inputs),
    )


def _spans(source: Dataset, columns: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the minimum and the maximum of each of these columns, () for genotypes.

    ``source`` is the data that was read.
    """
    if source.variants is not None:
        return [() for _ in columns]
    X = as_design(source.X)
    cells = (dense_part(X, np.array([column]))[:, 0] for column in columns)
    return [(float(values.min()), float(values.max())) for values in cells]


def _roles_of(schema: Schema) -> dict[str, str]:
    """Return the names of the id, offset and exposure columns, and the origin of the data.

    ``atomlearn predict`` reads these columns in new data. The id column is the one the user named,
    else an identifier, else an index. ``schema`` is the description of the columns of the file.
    """
    id_columns = [plan for plan in schema.columns if plan.use == "id"]
    id_columns += [plan for plan in schema.columns if plan.kind == "identifier"]
    id_indices = [plan for plan in schema.columns if plan.kind == "index" and is_id_name(plan.name)]
    # A column called id says more than the row names that R writes.
    id_columns += sorted(id_indices, key=lambda plan: not plan.name.lower().endswith("id"))
    roles = {"id": id_columns[0].name} if id_columns else {}
    roles |= {p.use: p.name for p in schema.columns if p.use in ("offset", "exposure", "stratum")}
    return roles | dict(schema.origin)
