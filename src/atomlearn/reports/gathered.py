"""What the page about an estimator shows, gathered from the model and the data it was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from atomlearn.core.data.standardized import moments_of
from atomlearn.core.interfaces import Array, Columns, Design, Rows
from atomlearn.designs import is_opened
from atomlearn.estimators.dependent_rows import fit_parameters
from atomlearn.findings.held_out import rows_of, unsearched
from atomlearn.findings.stability import StabilitySelector
from atomlearn.findings.twins import Twins, correlated_columns, twins
from atomlearn.maps.feature_map import FeatureMap
from atomlearn.reports.content import Curve, SelectedFeature
from atomlearn.reports.evidence import MOST_LINES, Evidence, PathOf, boxes_of
from atomlearn.reports.halves import Half, at_own_values, halves, shares, with_band
from atomlearn.reports.manhattan import Manhattan, manhattan_of, places_in
from atomlearn.reports.pairs import surfaces_of
from atomlearn.reports.structure_displays import groups_in_use
from atomlearn.reports.style import STYLE
from atomlearn.reports.sums import adding_up
from atomlearn.reports.suspects import suspects
from atomlearn.reports.view import View, view_of


def is_mapped(view: View) -> bool:
    """Return whether features are products or curves of the columns."""
    return view.map.unit is not None or view.map.implicit


def selected_of(view: View) -> tuple[SelectedFeature, ...]:
    """Return what is in use by the size of what it adds: columns, or terms of several columns."""
    if not view.columns.size:
        return ()
    terms = view.map.term_of(view.columns)
    numbers, place = np.unique(terms, return_inverse=True)
    factors = view.map.inputs_of(numbers)
    if view.map.unit is None:
        slopes, sizes = view.weights, view.weights * moments_of(view.design, view.columns)[1]
    else:
        slopes, sizes = _of_terms(view, place, factors)
    names = view.map.term_names(numbers, view.names)
    size = np.abs(sizes).max(axis=0)
    mapped = is_mapped(view)
    groups = _groups_of(view)
    return tuple(
        SelectedFeature(
            rank=rank,
            name=str(names[at]),
            index=int(numbers[at]),
            coefficients=tuple(slopes[:, at].tolist()),
            standardized=tuple(sizes[:, at].tolist()),
            scaling=None,
            found=None,
            factors=tuple(view.names[j] for j in factors[at] if j >= 0) if mapped else (),
            group=groups.get(int(numbers[at]), ""),
        )
        for rank, at in enumerate(np.argsort(-size, kind="stable"), start=1)
    )


def _of_terms(view: View, place: Rows, factors: Rows) -> tuple[Array, Array]:
    """Return slopes and sizes of terms of several columns, (n_outputs, n_terms).

    Slope : of the line nearest to what a term adds, where it is of one input; size : the standard
    deviation over the rows of what it adds, with the sign of the slope.
    """
    slopes, sizes = np.zeros((2, view.outputs, len(factors)))
    for at, (first, second) in enumerate(factors.tolist()):
        mine = place == at
        added = view.weights[:, mine] @ _dense(view.design, view.columns[mine]).T
        sizes[:, at] = slopes[:, at] = added.std(axis=1)
        if second >= 0:
            continue
        x = _dense(view.inputs, [first])[:, 0]
        x = x - x.mean()
        slopes[:, at] = added @ x / max(float(x @ x), np.finfo(float).tiny)
        sizes[:, at] *= np.where(slopes[:, at] < 0, -1.0, 1.0)
    return slopes, sizes


def _dense(design: Design, columns: ArrayLike) -> Array:
    """Return columns, in any order, as an array."""
    increasing, place = np.unique(np.asarray(columns, dtype=np.int64), return_inverse=True)
    return np.asarray(design.gather(increasing).dense(), dtype=np.float64)[:, place]


def alone(
    view: View, selected: Sequence[SelectedFeature]
) -> tuple[list[SelectedFeature], list[int]]:
    """Return the features that are of one column of the data each, and those columns."""
    if not selected or view.map.unit == "kernels":
        return [], []
    inputs = view.map.inputs_of([feature.index for feature in selected]).tolist()
    kept = [(f, i) for f, (i, j) in zip(selected, inputs, strict=True) if j < 0]
    return [feature for feature, _ in kept], [column for _, column in kept]


def halves_to_fit(view: View, X: Any, y: Any, asked: int | None) -> int:
    """Return how many halves of the rows are fitted; none where one may lack a class, or rows."""
    count = 20 if view.design.shape[0] * view.design.shape[1] <= STYLE.small else 0
    fewest = min([len(y) // 4, *((y == one).sum() for one in view.classes or ())])
    return 0 if is_opened(X) or fewest < 2 else count if asked is None else asked


def half_fits(
    estimator: Any, X: Any, y: Any, view: View, n_resamples: int | None, rng: int,
    dependence: dict[str, Any],
) -> list[Half]:  # fmt: skip
    """Return what clones select from halves, for models of curves and products; else nothing."""
    count = halves_to_fit(view, X, y, n_resamples)
    if not count or not is_mapped(view):
        return []

    def fitted(rows: Rows) -> Half:
        own = fit_parameters(estimator, rows, **dependence)
        model = clone(estimator).fit(rows_of(X, rows), y[rows], **own)
        part = view_of(model, rows_of(X, rows), None)
        return half_of(part.map, part.columns, part.weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return halves(y, count, rng, fitted, **dependence)


def half_of(map: FeatureMap, columns: Columns, weights: Array) -> Half:
    """Return what a model of columns of a map selects, with its curves."""
    terms = np.unique(map.term_of(columns)).tolist()
    drawn = terms if map.unit == "inputs" else ()
    return Half(frozenset(terms), {j: curve_of(map, columns, weights, j) for j in drawn})


def curve_of(map: FeatureMap, columns: Columns, weights: Array, j: int) -> tuple[Array, Array]:
    """Return the levels of input j, and the curve of each output at them; ``weights`` of columns.

    All columns of a map of curves are few enough for one vector of them.
    """
    full = np.zeros((len(weights), map.n_columns))
    full[:, columns] = weights
    pairs = [map.curve(j, row) for row in full]
    values = np.array([np.asarray(row, dtype=np.float64) for _, row in pairs])
    return np.asarray(pairs[0][0], dtype=np.float64), values


def along_chromosomes(
    view: View, y: NDArray[Any], selected: Sequence[SelectedFeature], positions: Any
) -> Manhattan | None:
    """Return where features lie, as given or as names tell, and how strong each is alone."""
    where = places_in(view.names)
    if positions is not None:
        where = [str(label) for label in positions[0]], np.asarray(positions[1], dtype=np.int64)
    if where is None or view.map.unit == "kernels" or y.dtype.names is not None:
        return None
    if len(where[0]) != len(where[1]) or len(where[0]) != view.inputs.shape[1]:
        raise ValueError(
            f"positions must have one chromosome and one place a column, {view.inputs.shape[1]}, "
            f"got {len(where[0])} and {len(where[1])}"
        )
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64).T)
    if view.classes is not None:
        targets = np.array([y == code for code in range(len(view.classes))], dtype=np.float64)
    features, columns = alone(view, selected)
    return manhattan_of(view.inputs, targets, *where, columns, [f.name for f in features])


def _groups_of(view: View) -> dict[int, str]:
    """Return the group of each column in use, where the norm of the model has groups."""
    parts = getattr(view.model, "parts_", None)
    if not parts or isinstance(parts[0], (list, type(None))):
        names, places = groups_in_use(view.model, view.columns)
        if not names or is_mapped(view):
            return {}
        return {column: names[at] for column, at in zip(view.columns.tolist(), places, strict=True)}
    found: dict[int, str] = {}
    for part in parts:
        for column in part.columns.tolist():
            name = part.name or f"group {part.group}"
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def with_twins(
    view: View, selected: tuple[SelectedFeature, ...], asked: Callable[[], Sequence[Twins]]
) -> tuple[SelectedFeature, ...]:
    """Add to the largest features what could have stood for them; ``asked`` : by forbidding."""
    first, columns = alone(view, selected[: STYLE.most_twins])
    if not view.inputs.listable or not first or view.map.unit is not None:
        return selected
    words = {
        feature.index: [f"{view.names[j]} (r = {r:.2f})" for j, r in others]
        for feature, others in zip(first, correlated_columns(view.inputs, columns), strict=True)
    }
    for twin in asked():
        if twin.rise is not None:
            words.setdefault(twin.feature, []).append(twin.words)
    return tuple(
        replace(feature, twins=tuple(words.get(feature.index, ()))) for feature in selected
    )


def forbidden(view: View, X: Any, y: Any) -> Sequence[Twins]:
    """Return what forbidding single columns of a model of ours costs, nothing of other models."""
    ours = hasattr(view.model, "results_") and hasattr(view.model, "_problems")
    if not ours or X is None or is_mapped(view):
        return []
    try:
        return twins(view.model, X, y, most=10, correlated=0)
    except (TypeError, ValueError, AttributeError):
        return []


def with_stability(
    estimator: Any, X: Any, y: Any, selected: tuple[SelectedFeature, ...], view: View,
    n_resamples: int | None, rng: int, found: Sequence[Half], dependence: dict[str, Any],
) -> tuple[SelectedFeature, ...]:  # fmt: skip
    """Add the share of halves of the rows that select each feature; ``found`` : where known."""
    if found:
        share = shares(found)
        return tuple(replace(item, stability=share.get(item.index, 0.0)) for item in selected)
    known = getattr(estimator, "selection_probabilities_", None)
    if known is None:
        count = halves_to_fit(view, X, y, n_resamples)
        if count == 0 or is_mapped(view) or hasattr(unsearched(estimator), "steps"):
            return selected
        selector = StabilitySelector(clone(estimator), count, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = selector.fit(X, y, **dependence).selection_probabilities_
    if len(known) != view.inputs.shape[1]:
        return selected
    return tuple(replace(item, stability=float(known[item.index])) for item in selected)


def path_around(view: View, y: NDArray[Any]) -> PathOf | None:
    """Return the coefficients along levels around the fitted one, of linear models of ours."""
    model = view.model
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if not hasattr(model, "results_") or view.outputs > 1 or is_mapped(view) or not alpha:
        return None
    if not hasattr(model, "loss") or getattr(model, "form", "") == "constrained":
        return None
    norm = getattr(model, "norm_", getattr(model, "norm", "l1"))
    target = y if view.classes is None else np.where(y == view.classes[-1], 1.0, -1.0)
    beside = {"norm": norm, "intercept": model.fit_intercept}
    return path_picture(view.inputs, target, model.loss, model.form, float(alpha),
                        view.names.__getitem__, beside)  # fmt: skip


def path_picture(
    X: Design, y: Any, loss: Any, form: Any, alpha: float, name: Callable[[int], str],
    beside: dict[str, Any],
) -> PathOf | None:  # fmt: skip
    """Return the coefficients at levels around alpha; ``beside`` : what else ``path`` takes."""
    from atomlearn.paths import path

    levels = alpha * len(y) * np.geomspace(8.0, 0.5, 16)
    try:
        found = path(X, y, loss=loss, form=form, levels=levels, gap=1e-4, max_iter=200, **beside)
    except (TypeError, ValueError):
        return None
    columns, coefs = found.columns, found.coefs
    if not columns.size:
        return None
    coefs = coefs * moments_of(X, columns)[1]
    order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MOST_LINES]
    return PathOf(
        tuple((found.levels / len(y)).tolist()),
        tuple(name(int(columns[at])) for at in order),
        tuple(tuple(coefs[:, at].tolist()) for at in order),
        alpha,
    )


def seen_in(
    view: View, codes: NDArray[Any], labels: list[str] | None,
    selected: Sequence[SelectedFeature], evidence: Evidence, target: str,
) -> Evidence:  # fmt: skip
    """Add what the data show: features in each class, what pairs add together, and warnings."""
    features, columns = alone(view, selected)
    names, boxes = [feature.name for feature in features], evidence.boxes
    if labels is not None and len(labels) <= 12 and columns and view.map.unit is None:
        first = slice(STYLE.most_boxes)
        boxes = boxes_of(_dense(view.inputs, columns[first]), names[first], codes, labels)
    told = suspects(view.inputs, codes, labels, columns, names)
    if labels is None:
        told = (*adding_up(view.inputs, codes, columns, view.names, target), *told)
    return replace(
        evidence, boxes=boxes, surfaces=surfaces_of(view, selected),
        warnings=(*evidence.warnings, *told),
    )  # fmt: skip


def curves(
    view: View, selected: Sequence[SelectedFeature], found: Sequence[Half]
) -> tuple[Curve, ...]:
    """Return the curves of the largest inputs, with the band of those of halves of the rows."""
    if view.map.unit != "inputs":
        return ()
    made = []
    for feature in selected[: STYLE.most_curves]:
        levels, values = curve_of(view.map, view.columns, view.weights, feature.index)
        column = _dense(view.inputs, [feature.index])[:, 0]
        curve = Curve(
            feature.name,
            tuple(levels.tolist()),
            tuple(tuple(row) for row in values.tolist()),
            tuple(np.quantile(column, np.linspace(0.1, 0.9, 9)).tolist()),
            steps=levels.size <= 2 or getattr(view.map, "is_thermometer", False),
        )
        made.append(at_own_values(with_band(curve, feature.index, found), column))
    return tuple(made)
