"""What the page about an estimator shows, gathered from the model and the data it was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.core.data.standardized import moments_of
from atomlearn.core.interfaces import Array, Design, Rows
from atomlearn.designs import is_opened
from atomlearn.findings.stability import StabilitySelector, unsearched
from atomlearn.findings.twins import correlated_columns, twins
from atomlearn.findings.verdict import rows_of
from atomlearn.reports.content import Curve, SelectedFeature
from atomlearn.reports.evidence import MOST_LINES, PathOf, boxes_of
from atomlearn.reports.halves import Half, at_own_values, halves, shares, with_band
from atomlearn.reports.manhattan import Manhattan, manhattan_of, places_in
from atomlearn.reports.structure_displays import groups_in_use
from atomlearn.reports.style import STYLE
from atomlearn.reports.view import View, view_of


def is_mapped(view: View) -> bool:
    """Return whether features are products or curves of the columns."""
    return view.map.unit is not None or view.map.implicit


def selected_of(view: View) -> tuple[SelectedFeature, ...]:
    """Return what is in use by the size of what it adds: columns, or terms of several columns."""
    if not view.columns.size:
        return ()
    deviations = moments_of(view.design, view.columns)[1]
    terms = view.map.term_of(view.columns)
    numbers, place = np.unique(terms, return_inverse=True)
    factors = view.map.inputs_of(numbers)
    if numbers.size == view.columns.size and view.map.unit is None:
        plain, standard = view.weights, view.weights * deviations
    else:
        plain, standard = _of_terms(view, place, factors)
    names = view.map.term_names(numbers, view.names)
    size = np.abs(standard).max(axis=0)
    mapped = is_mapped(view)
    groups = _groups_of(view)
    return tuple(
        SelectedFeature(
            rank=rank,
            name=str(names[at]),
            index=int(numbers[at]),
            coefficients=tuple(plain[:, at].tolist()),
            standardized=tuple(standard[:, at].tolist()),
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
    block = np.asarray(view.design.gather(view.columns).dense(), dtype=np.float64)
    slopes, sizes = np.zeros((2, view.outputs, len(factors)))
    for at, (first, second) in enumerate(factors.tolist()):
        mine = place == at
        added = view.weights[:, mine] @ block[:, mine].T
        sizes[:, at] = slopes[:, at] = added.std(axis=1)
        if second >= 0:
            continue
        x = np.asarray(view.inputs.gather(np.array([first])).dense(), dtype=np.float64)[:, 0]
        x = x - x.mean()
        slopes[:, at] = added @ x / max(float(x @ x), np.finfo(float).tiny)
        sizes[:, at] *= np.where(slopes[:, at] < 0, -1.0, 1.0)
    return slopes, sizes


def halves_to_fit(view: View, X: Any, y: Any, asked: int | None) -> int:
    """Return how many halves of the rows are fitted; none where one may lack a class, or rows."""
    count = 20 if view.design.shape[0] * view.design.shape[1] <= STYLE.small else 0
    fewest = min([len(y) // 4, *((y == one).sum() for one in view.classes or ())])
    return 0 if is_opened(X) or fewest < 2 else count if asked is None else asked


def half_fits(
    estimator: Any, X: Any, y: Any, view: View, n_resamples: int | None, rng: int
) -> list[Half]:
    """Return what clones select from halves, for models of curves and products; else nothing."""
    count = halves_to_fit(view, X, y, n_resamples)
    if not count or not is_mapped(view):
        return []

    def fitted(rows: Rows) -> Half:
        part = view_of(clone(estimator).fit(rows_of(X, rows), y[rows]), rows_of(X, rows), None)
        terms = frozenset(np.unique(part.map.term_of(part.columns)).tolist())
        drawn = terms if part.map.unit == "inputs" and hasattr(part.model, "curve") else ()
        return Half(terms, {term: _curve(part, term) for term in drawn})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return halves(y, count, rng, fitted)


def _curve(view: View, term: int) -> tuple[Array, Array]:
    pairs = [view.model.curve(term, output) for output in range(view.outputs)]
    values = np.array([np.asarray(row, dtype=np.float64) for _, row in pairs])
    return np.asarray(pairs[0][0], dtype=np.float64), values


def along_chromosomes(
    view: View, y: NDArray[Any], selected: Sequence[SelectedFeature], positions: Any
) -> Manhattan | None:
    """Return where features lie, as given or as names tell, and how strong each is alone."""
    where = places_in(view.names)
    if positions is not None:
        where = [str(label) for label in positions[0]], np.asarray(positions[1], dtype=np.int64)
    if where is None or is_mapped(view) or y.dtype.names is not None:
        return None
    if len(where[0]) != len(where[1]) or len(where[0]) != view.inputs.shape[1]:
        raise ValueError(
            f"positions must have one chromosome and one place a column, {view.inputs.shape[1]}, "
            f"got {len(where[0])} and {len(where[1])}"
        )
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64).T)
    if view.classes is not None:
        targets = np.array([y == code for code in range(len(view.classes))], dtype=np.float64)
    indices, names = [f.index for f in selected], [f.name for f in selected]
    return manhattan_of(view.inputs, targets, *where, indices, names)


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
    view: View, X: Any, y: Any, selected: tuple[SelectedFeature, ...]
) -> tuple[SelectedFeature, ...]:
    """Add to the largest features what could have stood for them."""
    if is_mapped(view) or not view.inputs.listable or not selected:
        return selected
    first = selected[: STYLE.most_twins]
    near = correlated_columns(view.inputs, [feature.index for feature in first])
    words = {
        feature.index: [f"{view.names[j]} (r = {r:.2f})" for j, r in others]
        for feature, others in zip(first, near, strict=True)
    }
    if hasattr(view.model, "results_") and hasattr(view.model, "_problems") and X is not None:
        try:
            asked = twins(view.model, X, y, most=10, correlated=0)
        except (TypeError, ValueError, AttributeError):
            asked = []
        for twin in asked:
            if twin.rise is not None:
                words.setdefault(twin.feature, []).append(twin.words)
    return tuple(
        replace(feature, twins=tuple(words.get(feature.index, ()))) for feature in selected
    )


def with_stability(
    estimator: Any, X: Any, y: Any, selected: tuple[SelectedFeature, ...], view: View,
    n_resamples: int | None, rng: int, found: Sequence[Half],
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
            known = selector.fit(X, y).selection_probabilities_
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


def boxes(
    view: View, codes: NDArray[Any], labels: list[str] | None,
    selected: Sequence[SelectedFeature],
) -> tuple[Any, ...]:  # fmt: skip
    """Return the quantiles of the largest features in each class."""
    if labels is None or is_mapped(view) or not selected or len(labels) > 12:
        return ()
    first = selected[: STYLE.most_boxes]
    columns = np.array([feature.index for feature in first])
    order = np.argsort(columns)
    block = np.asarray(view.inputs.gather(columns[order]).dense(), dtype=float)
    values = block[:, np.argsort(order)]
    return boxes_of(values, [feature.name for feature in first], codes, labels)


def curves(
    view: View, selected: Sequence[SelectedFeature], found: Sequence[Half]
) -> tuple[Curve, ...]:
    """Return the curves of the largest inputs, with the band of those of halves of the rows."""
    if view.map.unit != "inputs" or not hasattr(view.model, "curve"):
        return ()
    made = []
    for feature in selected[: STYLE.most_curves]:
        levels, values = _curve(view, feature.index)
        column = np.asarray(view.inputs.gather(np.array([feature.index])).dense(), dtype=float)
        curve = Curve(
            feature.name,
            tuple(levels.tolist()),
            tuple(tuple(row) for row in values.tolist()),
            tuple(np.quantile(column, np.linspace(0.1, 0.9, 9)).tolist()),
            steps=levels.size <= 2 or getattr(view.model, "features", "") == "intersection",
        )
        made.append(at_own_values(with_band(curve, feature.index, found), column.ravel()))
    return tuple(made)
