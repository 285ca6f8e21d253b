"""What the page of a selection shows beside its table: what halves select, twins, path, places."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from atomlearn.cli.fitting import Fitted
from atomlearn.cli.plan import LIMITS, Plan
from atomlearn.cli.source import Dataset, Given
from atomlearn.core.interfaces import Rows
from atomlearn.designs import as_design
from atomlearn.findings.twins import Twins, twins
from atomlearn.reports.chromosomes import ChromosomesDisplay
from atomlearn.reports.content import HeldOut, SelectedFeature
from atomlearn.reports.displays import PathDisplay, ValidationDisplay
from atomlearn.reports.drawing import MOST_NAMED, Display
from atomlearn.reports.gathered import (
    along_chromosomes,
    pictures_of,
    warnings_of,
    with_twins,
)
from atomlearn.reports.halves import FEWEST_HALVES, Half, fitted_halves
from atomlearn.reports.structure_displays import GroupsDisplay
from atomlearn.reports.view import View, level_of, objective_of


def fits_to_halves(source: Dataset, plan: Plan, fit: Callable[[Rows], Fitted]) -> list[Half]:
    """Return what fits to halves of the rows select; nothing where that would take long."""
    target, given = source.target, source.given
    if plan.controls or given.on_disk or _entries(source) > LIMITS.small:
        return []

    def fitted(rows: Rows) -> Half:
        found = fit(rows)
        return Half(found.map, found.columns, found.coefficients)

    y, count = target.values if target.codes is None else target.codes, 2 * FEWEST_HALVES
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = LIMITS.seconds_of_halves
            found = fitted_halves(y, count, plan.seed, fitted, seconds, **given.dependence)
    except ValueError:  # a half without enough rows of a class, or events
        return []
    return found if len(found) >= FEWEST_HALVES else []


def _entries(source: Dataset) -> int:
    """Return how many numbers the features are."""
    return int(source.features.X.shape[0] * source.features.n_features)


def view_of_fit(source: Dataset, fitted: Fitted) -> View:
    """Return the model over all rows, as pages about estimators have it."""
    features = source.features
    map = fitted.map if fitted.has_curves else features.map
    return View(
        None,
        as_design(features.X),
        map.apply(features.X),
        map,
        features.names,
        fitted.columns,
        fitted.coefficients,
        source.target.classes,
        len(features.names),
    )


def evidence_of(
    source: Dataset, fitted: Fitted, view: View, selected: Sequence[SelectedFeature]
) -> list[Display]:
    """Return pictures of the data, the level chosen, the path."""
    target = source.target
    found: list[Display | None] = [
        _along_chromosomes(source, view, selected),
        _groups_drawn(source, selected),
        ValidationDisplay.of_estimator(fitted.model),
        _path(source, fitted),
    ]
    if not source.given.on_disk:
        found += pictures_of(view, target.values, selected)
    return [display for display in found if display is not None]


def warnings_told(
    source: Dataset, view: View, held_out: HeldOut | None, selected: Sequence[SelectedFeature]
) -> tuple[str, ...]:
    """Return warnings about held-out rows and about the data."""
    first, target = () if held_out is None else held_out.warnings, source.target
    if source.given.on_disk:
        return tuple(first)
    return (*first, *warnings_of(view, target.values, selected, target.name))


def _path(source: Dataset, fitted: Fitted) -> PathDisplay | None:
    """Return the coefficients around the level of a fit with a norm, of one output."""
    data, alpha = fitted.data, level_of(fitted.model)
    single = len(fitted.results) == 1 and fitted.settings["method"] == "atomic norm"
    if not alpha or not single or fitted.has_curves:
        return None
    weight = data.given.weight
    return PathDisplay.around(
        data.design,
        data.y if data.target.classes is None else np.where(data.y == 1, 1.0, -1.0),
        alpha,
        source.features.name,
        loss=fitted.settings["loss"],
        form=fitted.settings["form"],
        norm=objective_of(fitted.model)["norm"],
        sample_weight=None if weight is None else weight / weight.mean(),
        offset=data.given.offset,
        unpenalized=data.parameters.get("unpenalized"),
        intercept=not data.target.is_survival,
    )


def _along_chromosomes(
    source: Dataset, view: View, selected: Sequence[SelectedFeature]
) -> ChromosomesDisplay | None:
    X, variants = source.features.X, source.variants
    if X.shape[0] * X.shape[1] > LIMITS.large:
        return None
    if variants is None:
        return along_chromosomes(view, source.target.values, selected, None)
    more = X.shape[1] - len(variants.names)  # covariates lie nowhere
    where = [*variants.chromosomes, *[""] * more], [*variants.positions, *[-1] * more]
    return along_chromosomes(view, source.target.values, selected, where)


def twins_of(
    source: Dataset, fitted: Fitted, view: View, selected: tuple[SelectedFeature, ...]
) -> tuple[SelectedFeature, ...]:
    """Add to the largest features what could have stood for them."""
    data, X = fitted.data, source.features.X
    if source.given.on_disk or X.shape[0] * X.shape[1] > LIMITS.large:
        return selected

    def asked() -> Sequence[Twins]:
        # Fits without one of the features must be fits like this one.
        plain = not data.of_rows and not data.parameters and not fitted.interrupted
        if (
            not plain
            or _entries(source) > LIMITS.small
            or fitted.settings["method"] != "atomic norm"
        ):
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return twins(
                fitted.model, data.design, data.y, most=10, correlated=0, names=source.features.name
            )

    return with_twins(view, selected, asked)


def group_names_of(given: Given, name_of: Callable[[int], str]) -> dict[int, str]:
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
        column_of_the_table = name_of(int(members[0])).partition("=")[0]
        name = given.group_names[number] if given.group_names else column_of_the_table
        for column in members.tolist():
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def _groups_drawn(source: Dataset, selected: Sequence[SelectedFeature]) -> GroupsDisplay | None:
    """Return the sizes of the selected groups, where these do not overlap."""
    squares: dict[str, float] = {}
    for feature in selected:
        if feature.group:
            square = float(np.sum(np.square(feature.standardized)))
            squares[feature.group] = squares.get(feature.group, 0.0) + square
    if not squares or source.given.overlap:
        return None
    names = sorted(squares, key=squares.__getitem__, reverse=True)[:MOST_NAMED]
    return GroupsDisplay(np.sqrt([squares[name] for name in names]), names)
