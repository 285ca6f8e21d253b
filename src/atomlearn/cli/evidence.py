"""What the page of a selection shows beside its table: what halves select, twins, path, places."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.cli.curves import curve_at
from atomlearn.cli.errors import CommandError
from atomlearn.cli.fitting import Fitted
from atomlearn.cli.limits import LIMITS
from atomlearn.cli.plan import Plan
from atomlearn.cli.source import Given, Source
from atomlearn.core.interfaces import Array, Rows
from atomlearn.designs import as_design
from atomlearn.findings.twins import correlated_columns, twins
from atomlearn.reports.content import HeldOut, SelectedFeature
from atomlearn.reports.evidence import Boxes, Evidence, PathOf, boxes_of
from atomlearn.reports.gathered import path_picture
from atomlearn.reports.halves import Half, halves
from atomlearn.reports.manhattan import Manhattan, manhattan_of, places_in
from atomlearn.reports.pairs import surfaces
from atomlearn.reports.structure import bars_on_page
from atomlearn.reports.style import STYLE
from atomlearn.reports.suspects import suspects


def half_fits(source: Source, plan: Plan, fit: Callable[[Rows], Fitted]) -> list[Half]:
    """Return what fits to halves of the rows select; nothing where that would take long."""
    n_rows, size = source.features.X.shape[0], source.features.n_features
    if plan.controls or _in_place(source) or n_rows < 8 or n_rows * size > LIMITS.small:
        return []

    def fitted(rows: Rows) -> Half:
        found = fit(rows)
        units = found.units.tolist()
        drawn = units if found.additive is not None else ()
        return Half(frozenset(units), {j: curve_at(found, j)[:2] for j in drawn})

    target = source.target
    y = target.values if target.codes is None else target.codes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = halves(y, LIMITS.halves, plan.seed, fitted, LIMITS.seconds_of_halves)
            return found if len(found) >= STYLE.fewest_halves else []
    except (CommandError, ValueError):  # a half without enough rows of a class, or events
        return []


def _in_place(source: Source) -> bool:
    return hasattr(source.features.X, "gather")  # opened as it is: each look is a reading


def evidence_of(
    source: Source, fitted: Fitted, held_out: HeldOut | None, selected: Sequence[SelectedFeature]
) -> Evidence:
    """Return curves of held-out rows, the level chosen, the path, pictures and warnings."""
    target, features = source.target, source.features
    found = Evidence() if held_out is None else held_out.evidence
    columns = [int(column) for column in fitted.units if column < len(features.names)]
    classes = None if target.classes is None else [str(label) for label in target.classes]
    found = replace(
        found,
        validation=fitted.validation,
        path=_path(source, fitted),
        manhattan=_along_chromosomes(source, selected),
        parts=_groups_drawn(source, fitted),
    )
    if _in_place(source):
        return found
    design = as_design(features.X)
    names = [features.names[column] for column in columns]
    warned = suspects(design, target.values, classes, columns, names)
    boxes: tuple[Boxes, ...] = ()
    if classes is not None and len(classes) <= 12 and columns and fitted.additive is None:
        first = [item.index for item in selected if item.index in set(columns)][: STYLE.most_boxes]
        order = np.argsort(first)
        block = np.asarray(design.gather(np.sort(first)).dense(), dtype=np.float64)
        values = block[:, np.argsort(order)]
        boxes = boxes_of(values, [features.names[c] for c in first], target.values, classes)
    pairs = surfaces(design, features.names, selected, _decide(source, fitted)) if len(
        fitted.coefficients) == 1 and features.interactions else ()  # fmt: skip
    return replace(found, warnings=(*found.warnings, *warned), boxes=boxes, surfaces=pairs)


def _decide(source: Source, fitted: Fitted) -> Callable[[Array], Array]:
    factors = [source.features.factors(int(column)) for column in fitted.columns]

    def decide(rows: Array) -> Array:
        products = [rows[:, list(pair)].prod(axis=1) for pair in factors]
        return np.asarray(fitted.coefficients[0] @ np.array(products))

    return decide


def _path(source: Source, fitted: Fitted) -> PathOf | None:
    """Return the coefficients around the level of a fit with a norm, of one output."""
    model, data = fitted.model, fitted.data
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    single = len(fitted.results) == 1 and fitted.settings["method"] == "atomic norm"
    if data is None or not alpha or not single or fitted.additive is not None:
        return None
    y: Any = data.y if data.target.classes is None else np.where(data.y == 1, 1.0, -1.0)
    weight = data.given.weight
    beside = {
        "sample_weight": None if weight is None else weight / weight.mean(),
        "offset": data.given.offset,
        "unpenalized": data.parameters.get("unpenalized"),
        "intercept": not data.target.is_survival,
        "norm": getattr(model, "norm_", getattr(model, "norm", "l1")),
    }
    return path_picture(
        data.design, y, fitted.settings["loss"], fitted.settings["form"], float(alpha),
        source.features.name, beside,
    )  # fmt: skip


def _along_chromosomes(source: Source, selected: Sequence[SelectedFeature]) -> Manhattan | None:
    X, names, variants = source.features.X, source.features.names, source.variants
    if source.target.is_survival or X.shape[0] * X.shape[1] > LIMITS.large:
        return None
    where = places_in(names) if variants is None else (variants.chromosomes, variants.positions)
    if where is None:
        return None
    y, classes = source.target.values, source.target.classes
    targets = y[None] if classes is None else [y == code for code in range(len(classes))]
    plain = [item for item in selected if item.index < len(names)]
    return manhattan_of(
        as_design(X), np.asarray(targets, dtype=np.float64), where[0], where[1],
        [item.index for item in plain], [item.name for item in plain],
    )  # fmt: skip


def with_twins(
    source: Source, fitted: Fitted, selected: tuple[SelectedFeature, ...]
) -> tuple[SelectedFeature, ...]:
    """Add to the largest features what could have stood for them."""
    data, X = fitted.data, source.features.X
    size = X.shape[0] * X.shape[1]
    if data is None or _in_place(source) or fitted.additive is not None or size > LIMITS.large:
        return selected
    first = [item for item in selected[: STYLE.most_twins] if item.index < X.shape[1]]
    if not first:
        return selected
    near = correlated_columns(as_design(X), [item.index for item in first])
    words = {
        item.index: [f"{source.features.names[j]} (r = {r:.2f})" for j, r in others]
        for item, others in zip(first, near, strict=True)
    }
    if _can_be_asked(source, fitted):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            asked = twins(fitted.model, data.design, data.y, most=10, correlated=0,
                          names=source.features.name)  # fmt: skip
        for twin in asked:
            if twin.rise is not None:
                words.setdefault(twin.feature, []).append(twin.words)
    return tuple(replace(item, twins=tuple(words.get(item.index, ()))) for item in selected)


def _can_be_asked(source: Source, fitted: Fitted) -> bool:
    """Whether fits without one of the features are fits like this one."""
    rows = fitted.data is not None and not fitted.data.of_rows and not fitted.data.parameters
    small = source.features.X.shape[0] * source.features.n_features <= LIMITS.small
    return rows and small and fitted.settings["method"] == "atomic norm" and not fitted.interrupted


def groups_of(given: Given) -> dict[int, str]:
    """Return the names of the groups of each column that is in one with others."""
    if given.groups is None:
        return {}
    if isinstance(given.groups, np.ndarray):
        listed = [np.flatnonzero(given.groups == label) for label in np.unique(given.groups)]
    else:
        listed = [np.asarray(group) for group in given.groups]
    found: dict[int, str] = {}
    for number, members in enumerate(listed):
        if members.size < 2:
            continue
        name = given.group_names[number] if given.group_names else f"group {number}"
        for column in members.tolist():
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def _groups_drawn(source: Source, fitted: Fitted) -> str:
    """Return a drawing of the size of the selected groups, where they are apart from each other."""
    groups = groups_of(source.given)
    if not groups or source.given.overlap or fitted.additive is not None:
        return ""
    sizes: dict[str, float] = {}
    for place, column in enumerate(fitted.columns.tolist()):
        if column in groups:
            square = float(np.sum(fitted.standardized[:, place] ** 2))
            sizes[groups[column]] = sizes.get(groups[column], 0.0) + square
    return bars_on_page(list(sizes), [value**0.5 for value in sizes.values()]) if sizes else ""
