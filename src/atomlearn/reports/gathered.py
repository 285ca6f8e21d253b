"""Gather the content of the report from a fitted model and its training data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import TINY
from atomlearn.core import Array, Result, Rows, as_loss, column_moments, dense_part, is_opened
from atomlearn.findings.held_out import at_choices, fits_of, fitted_to, rows_of, unproved
from atomlearn.findings.intervals import scale_of_loss
from atomlearn.findings.stability import StabilitySelector
from atomlearn.findings.twins import Twins, correlated_columns, twins
from atomlearn.reports.best_subset import SubsetProof
from atomlearn.reports.chromosomes import ChromosomesDisplay, Places, places_in
from atomlearn.reports.content import (
    Content,
    FitSummary,
    HeldOut,
    SelectedFeature,
    without_covariates,
)
from atomlearn.reports.data_displays import BoxesDisplay, CurveDisplay
from atomlearn.reports.drawing import MOST_NAMED, Display, FittedEstimator
from atomlearn.reports.halves import Half, band_of, curve_of, fitted_halves, shares
from atomlearn.reports.markers import markers_of
from atomlearn.reports.profile import Profile, facts_of, profiles
from atomlearn.reports.registry import validation_of
from atomlearn.reports.structure_displays import GroupsDisplay, name_of_part, selected_groups
from atomlearn.reports.suspects import imputed, suspects
from atomlearn.reports.view import View, view_of

#: Maximum number of small pictures side by side; more of them make a page slow.
MOST_PANELS = 12
#: If one unit exceeds the spread of a column's values by this number of standard deviations, the
#: column counts as narrow.
FAR = 10.0


def selected_of(view: View) -> tuple[SelectedFeature, ...]:
    """Return the selected features, sorted by their absolute standardized coefficients.

    A feature is a term of the feature map: a column, a product, or a curve. ``view`` is the fitted
    model with its inputs.
    """
    if not view.columns.size:
        return ()
    terms, term_of_column = np.unique(view.map.term_of(view.columns), return_inverse=True)
    factors = view.map.inputs_of(terms)
    is_narrow = np.zeros(terms.size, dtype=bool)
    # Without a ``unit``, a feature is one column or product; else it is a curve of several columns.
    if view.map.unit is None:
        means, deviations = column_moments(view.design, columns=view.columns)
        slopes = view.weights
        sizes = view.weights * deviations
        # One unit of a narrow column is far more than its values vary. A 0/1 column, whose variance
        # is m (1 - m) for the mean m, is never narrow.
        is_binary = np.isclose(deviations**2, means * (1.0 - means), rtol=1e-4)
        is_narrow = (FAR * deviations < 1.0) & ~is_binary
    else:
        slopes, sizes = _term_sizes(view, term_of_column, factors)
    names = view.map.term_names(terms, view.names)
    groups = {} if view.is_mapped else _groups_of(view.model)
    return tuple(
        SelectedFeature(
            rank=rank,
            name=str(names[position]),
            index=int(terms[position]),
            coefficients=tuple(slopes[:, position].tolist()),
            standardized=tuple(sizes[:, position].tolist()),
            factors=tuple(view.names[j] for j in factors[position] if j >= 0)
            if view.is_mapped
            else (),
            group=", ".join(groups.get(int(terms[position]), ())),
            is_narrow=bool(is_narrow[position]),
        )
        for rank, position in enumerate(
            np.argsort(-np.abs(sizes).max(axis=0), kind="stable"), start=1
        )
    )


def _term_sizes(view: View, term_of_column: Rows, factors: Rows) -> tuple[Array, Array]:
    """Return the slope and standardized size of each term, both (n_outputs, n_terms).

    A term is the sum of several columns, such as the basis columns of a curve. The slope is that of
    the least-squares line of a term on its input; the size is the standard deviation of the term
    over the rows, with the sign of the slope. ``term_of_column`` holds the term of each selected
    column, and ``factors``, shape (n_terms, 2), the inputs of each term. ``view`` is the fitted
    model with its inputs.
    """
    slopes, sizes = np.zeros((2, view.outputs, len(factors)))
    for index, (first, second) in enumerate(factors.tolist()):
        is_term = term_of_column == index
        values = view.weights[:, is_term] @ dense_part(view.design, view.columns[is_term]).T
        sizes[:, index] = slopes[:, index] = values.std(axis=1)
        # A term of two inputs has no slope: its size is used instead.
        if second >= 0:
            continue
        x = view.input(first)
        x = x - x.mean()
        slopes[:, index] = values @ x / max(float(x @ x), TINY)
        sizes[:, index] *= np.where(slopes[:, index] < 0, -1.0, 1.0)
    return slopes, sizes


def _groups_of(model: Any) -> dict[int, list[str]]:
    """Return a map from selected column to the names of its groups, {} for norms without groups.

    ``model`` is the fitted estimator.
    """
    names: dict[int, list[str]] = {}
    for part in selected_groups(model):
        for column in part.columns.tolist():
            names.setdefault(column, []).append(name_of_part(part))
    return names


def single_inputs(view: View, selected: Sequence[SelectedFeature]) -> dict[SelectedFeature, int]:
    """Return a map from each feature that depends on a single input to the column of the input.

    ``view`` is the fitted model with its inputs and ``selected`` are the selected features.
    """
    if not selected or view.map.unit == "kernels":
        return {}
    inputs = view.map.inputs_of([feature.index for feature in selected]).tolist()
    return {
        feature: input[0] for feature, input in zip(selected, inputs, strict=True) if input[1] < 0
    }


@dataclass(frozen=True)
class Fits:
    """An estimator with its training data, for refits to some of the rows.

    ``rng`` is the random seed, and ``dependence`` holds the arguments ``groups`` and ``order`` of
    the rows. ``repeated`` holds an index that duplicate rows share, or is None. ``n_resamples`` is
    the requested number of random halves, or None for the default number. ``at`` are the times at
    which survival models are checked.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    rng: int
    dependence: dict[str, Any]
    repeated: Rows | None = None
    n_resamples: int | None = None
    at: Sequence[float] = ()


def half_fits(fits: Fits, view: View) -> list[Half]:
    """Return the selections of clones that are fitted to random halves of the rows.

    As in stability selection, no parameter is chosen again in each half. The list is empty if a
    selector precedes the model in a pipeline, if X is a design or a file instead of an array or a
    table, or if the estimator is a ``StabilitySelector``. ``fits`` is the estimator with its data
    and ``view`` the fitted model with its inputs.
    """
    # ``offered`` is the number of columns before the selector of a pipeline.
    chosen_before = view.offered > view.inputs.shape[1]
    if chosen_before or is_opened(fits.X) or isinstance(fits.estimator, StabilitySelector):
        return []

    # The clones have the parameters that a search chose, and prove nothing, which is faster.
    chosen = unproved(at_choices(fits.estimator))

    def fitted(rows: Rows) -> Half:
        """Return the selection of a clone fitted to these rows."""
        model = fitted_to(chosen, fits.X, fits.y, rows, **fits.dependence)
        half_view = view_of(model, rows_of(fits.X, rows), None)
        return Half(half_view.map, half_view.columns, half_view.weights)

    entries = view.design.shape[0] * view.design.shape[1]
    arguments = {"fits": fits_of(fits.estimator, searched=False), **fits.dependence}
    return fitted_halves(fits.y, entries, fits.rng, fitted, fits.n_resamples, **arguments)


def with_twins(
    view: View, selected: tuple[SelectedFeature, ...], refits: Callable[[], Sequence[Twins]]
) -> tuple[SelectedFeature, ...]:
    """Return the features; the largest of them with columns that could replace them.

    selected : the features in order of their size. refits : a function that returns the results of
    refits with a feature left out; it is called only if these are shown. The other replacements are
    highly correlated columns. ``view`` is the fitted model with its inputs.
    """
    single = single_inputs(view, selected[:MOST_NAMED])
    if not view.inputs.listable or not single or view.map.unit is not None:
        return selected
    words = {
        feature.index: [
            f"{view.displayed[other]} (r = {correlation:.2f})" for other, correlation in others
        ]
        for feature, others in zip(
            single, correlated_columns(view.inputs, [*single.values()]), strict=True
        )
    }
    # The results of refits follow the correlations.
    for twin in refits():
        if twin.rise is not None:
            words.setdefault(twin.feature, []).append(twin.words)
    return tuple(
        replace(feature, twins=tuple(words.get(feature.index, ()))) for feature in selected
    )


def forbidden(
    view: View, X: Any, y: Any, names: Callable[[int], str] | None = None
) -> Sequence[Twins]:
    """Return the increase of the objective if a refit leaves out single columns.

    X, y : the data of the fit. ``names`` maps the index of a column to its name. The list is empty
    for models without solver results, with products or curves, or that do not support it. ``view``
    is the fitted model with its inputs.
    """
    if not view.results or view.is_mapped:
        return []
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return twins(view.model, X, y, most=10, correlated=0, names=names)
    except (TypeError, ValueError, AttributeError):
        return []


def along_chromosomes(
    view: View, y: NDArray[Any], selected: Sequence[SelectedFeature], positions: Places | None
) -> ChromosomesDisplay | None:
    """Return a Manhattan plot of the correlations of features with the target, or None.

    ``y`` holds numbers or class codes. ``positions`` holds chromosomes and positions; if it is
    None, they are parsed from the names of columns. The result is None if positions are not known,
    if the target is survival times, or if the model has kernels, which belong to no single input.
    ``view`` is the fitted model with its inputs and ``selected`` are the selected features.
    """
    places = places_in(view.names) if positions is None else positions
    if places is None or view.map.unit == "kernels" or y.dtype.names is not None:
        return None
    if not len(places[0]) == len(np.asarray(places[1])) == view.inputs.shape[1]:
        raise ValueError(
            f"positions must have one chromosome and one place a column, {view.inputs.shape[1]}, "
            f"got {len(places[0])} and {len(np.asarray(places[1]))}"
        )
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64).T)
    if view.classes is not None:
        targets = np.array([y == code for code in range(len(view.classes))], dtype=np.float64)
    columns = {feature.name: column for feature, column in single_inputs(view, selected).items()}
    return ChromosomesDisplay.of(view.inputs, targets, places, columns)


def boxes_of(
    view: View, codes: NDArray[Any], selected: Sequence[SelectedFeature]
) -> list[BoxesDisplay]:
    """Return box plots of the largest features by class, [] if there are too many classes.

    ``codes``, shape (n_rows,), holds the class code of each row. ``view`` is the fitted model with
    its inputs and ``selected`` are the selected features.
    """
    boxes = list[BoxesDisplay]()
    labels = view.labels
    if labels is None or len(labels) > MOST_PANELS or view.map.unit is not None:
        return boxes
    codes_used = np.unique(codes)
    names = [labels[code] for code in codes_used]
    for feature, column in [*single_inputs(view, selected).items()][:MOST_PANELS]:
        values = view.input(column)
        boxes.append(
            BoxesDisplay(feature.shown, names, [values[codes == code] for code in codes_used])
        )
    return boxes


def content_of(
    view: View,
    y: NDArray[Any],
    held_out: HeldOut | None,
    target: str,
    outputs: tuple[str, ...],
    halves: Sequence[Half],
    *,
    results: Sequence[Result],
    gaps: Sequence[float | None],
    free: Collection[int] = (),
    positions: Places | None = None,
    path: Display | None = None,
    near: Display | None = None,
    refits: Callable[[], Sequence[Twins]] = tuple,
    describe: Callable[[SelectedFeature], SelectedFeature] = lambda item: item,
    stability: dict[int, float] | None = None,
    scan: bool = True,
    missing: Mapping[str, int] = MappingProxyType({}),
    **fields: Any,
) -> Content:
    """Return the content of the page about a model and the data it was fitted to.

    ``y`` holds class codes, numbers, or structured survival records. ``target`` and ``outputs`` are
    the names of the target and of the outputs. ``halves`` are fits to random halves of the rows.
    ``results`` has the solver result of each output, and ``gaps``, for each result, the gap on the
    selected features or None. ``positions`` are those on chromosomes, ``path`` the path display.
    ``free`` are the indices of covariates. ``near`` shows the near-best models. ``refits`` returns
    the results of refits without single features. ``describe`` adds metadata to a feature.
    ``stability`` maps features to selection frequencies, or is None. ``scan`` is whether to look
    for leakage and duplicates in the data. ``missing`` maps columns to their numbers of imputed
    values. ``fields`` holds further fields of ``Content``. ``view`` is the fitted model with its
    inputs and ``held_out`` are the scores on held-out rows, or None.
    """
    features, covariates = without_covariates([*map(describe, selected_of(view))], free)
    proof = SubsetProof.of(view, held_out is not None and held_out.refitted)
    features = (
        with_twins(view, features, (lambda: proof.twins) if proof else refits) if scan else features
    )
    selected = _with_shares(features, stability or (shares(halves) if halves else None))
    warned, questions, boxes = (
        _data_warnings(view, y, selected, target, missing) if scan else ([], [], [])
    )
    manhattan = along_chromosomes(view, y, selected, positions)
    groups = None if "groups" in fields else groups_of(view.model, selected)
    pictures = [manhattan, groups, *boxes, validation_of(FittedEstimator(view.model)), path, near]
    return Content(
        target=target,
        task="survival" if y.dtype.names else "classification" if view.labels else "regression",
        n_samples=view.inputs.shape[0],
        n_inputs=view.offered,
        n_features=(view.map.n_terms if view.is_mapped else view.offered) - len(free),
        outputs=outputs,
        selected=selected,
        covariates=covariates,
        fits=_fits_of(outputs, results, gaps),
        goal=float(view.model.tol) if results else 0.0,
        held_out=held_out,
        class_counts=_class_counts(view, y),
        markers=markers_of(view, y, selected) if view.map.unit is None else {},
        curves=curves_of(view, selected, halves, outputs),
        evidence=[picture for picture in pictures if picture is not None],
        scale=_scale_of(view),
        proof=proof,
        **_seen_data(view, y, target, selected, missing) if scan and view.inputs.listable else {},
        warnings=(
            *(held_out.warnings if held_out else ()),
            *warned,
            *imputed(_sources([*selected, *covariates]), missing, view.inputs.shape[0]),
        ),
        questions=tuple(questions),
        **fields,
    )


def _sources(features: Sequence[SelectedFeature]) -> list[str]:
    """Return the names of the columns that the features are made of, both factors of products."""
    return [name for feature in features for name in feature.factors or (feature.shown,)]


def _class_counts(view: View, y: NDArray[Any]) -> tuple[tuple[str, int], ...]:
    """Return the label and the number of rows of each class.

    ``view`` is the fitted model with its inputs.
    """
    return tuple((label, int(np.sum(y == code))) for code, label in enumerate(view.labels or ()))


def _fits_of(
    outputs: tuple[str, ...], results: Sequence[Result], gaps: Sequence[float | None]
) -> tuple[FitSummary, ...]:
    """Return a summary of each solver result, labeled with its output.

    ``outputs`` are the names of the outputs, and ``results`` has a result for each of them, or one
    for all, which is labeled "all outputs". ``gaps`` are the duality gaps of the problems with only
    the selected features, None if they were not computed.
    """
    names = outputs if len(outputs) == len(results) else ("all outputs",) * len(results)
    return tuple(map(FitSummary.of, names, results, gaps))


def _with_shares(
    selected: tuple[SelectedFeature, ...], shared: dict[int, float] | None
) -> tuple[SelectedFeature, ...]:
    """Return the features with their selection frequencies over halves, if these are known.

    shared : frequency by feature index, or None. ``selected`` are the selected features.
    """
    if shared is None:
        return selected
    return tuple(replace(feature, stability=shared.get(feature.index, 0.0)) for feature in selected)


def _scale_of(view: View) -> str:
    """Return the quantity whose logarithm the model predicts: "odds", "hazard", "mean" or "".

    ``view`` is the fitted model with its inputs.
    """
    if not view.results:
        return ""
    return scale_of_loss(as_loss(view.model.loss))


def _seen_data(
    view: View,
    y: NDArray[Any],
    target: str,
    selected: Sequence[SelectedFeature],
    missing: Mapping[str, int],
) -> dict[str, Any]:
    """Return the overview fields ``columns`` and ``rows`` of ``Content``.

    The profiles are of a numeric target, the selected columns, and further columns. target : the
    name of the target; missing : number of imputed values by column. ``view`` is the fitted model
    with its inputs.
    """
    first = np.array([*single_inputs(view, selected).values()], dtype=np.int64)
    columns = profiles(view.inputs, view.displayed, first, missing)
    if view.classes is None and y.ndim == 1 and y.dtype.names is None:
        columns.insert(0, Profile.of(target, y.astype(np.float64), 0))
    return {"columns": columns, "rows": facts_of(view.inputs, missing)}


def _data_warnings(
    view: View,
    y: NDArray[Any],
    selected: Sequence[SelectedFeature],
    target: str,
    missing: Mapping[str, int],
) -> tuple[list[str], list[str], list[BoxesDisplay]]:
    """Return data warnings, questions to the reader, and box plots of features by class.

    y : numbers or class codes. target : its name. missing : number of imputed values by column.
    ``view`` is the fitted model with its inputs and ``selected`` are the selected features.
    """
    columns = [*single_inputs(view, selected).values()]
    warnings_and_questions = suspects(
        view.inputs, y, view.labels, columns, view.displayed, target, missing
    )
    return *warnings_and_questions, boxes_of(view, y, selected)


def groups_of(model: Any, selected: Sequence[SelectedFeature]) -> GroupsDisplay | None:
    """Return the display of the sizes of the selected groups, or None with fewer than two.

    If each feature is in one group, a size is the l2 norm of the standardized coefficients;
    otherwise it is that of the latent parts, or of the groups of the norm. ``model`` is the fitted
    estimator.
    """
    squares: dict[str, float] = {}
    for feature in selected:
        if feature.group:
            square = float(np.sum(np.square(feature.standardized)))
            squares[feature.group] = squares.get(feature.group, 0.0) + square
    if len(squares) > 1 and not any(", " in name for name in squares):
        names = sorted(squares, key=squares.__getitem__, reverse=True)[:MOST_NAMED]
        return GroupsDisplay(np.sqrt([squares[name] for name in names]), names)
    groups = selected_groups(model)
    return GroupsDisplay.of(groups) if len(groups) > 1 else None


def curves_of(
    view: View, selected: Sequence[SelectedFeature], halves: Sequence[Half], outputs: Sequence[str]
) -> list[CurveDisplay]:
    """Return the curves of the largest inputs of an additive model, with uncertainty bands.

    A band holds the middle 80% of the curves of the random halves ``halves``. ``view`` is the
    fitted model with its inputs, ``selected`` are the selected features, and ``outputs`` the names
    of the outputs.
    """
    if view.map.unit != "inputs":
        return []
    curves = []
    for feature in selected[:MOST_PANELS]:
        levels, values = curve_of(view.map, view.columns, view.weights, feature.index)
        column = view.input(feature.index)
        distinct = np.unique(column)
        if distinct.size <= 2:  # a binary or constant input gets a step function at its values
            values = np.array([np.interp(distinct, levels, row) for row in values])
            levels = distinct
        low, high = band_of(feature.index, levels, view.outputs, halves)
        curves.append(
            CurveDisplay(
                feature.shown,
                levels,
                values,
                np.quantile(column, np.linspace(0.1, 0.9, 9)) if distinct.size > 2 else (),
                steps=levels.size <= 2 or view.map.is_steps,
                low=low,
                high=high,
                outputs=outputs,
            )
        )
    # All curves share one scale of the y axis, so that their sizes can be compared.
    arrays = [part for curve in curves for part in (curve.values, curve.low, curve.high)]
    values = np.concatenate([[0.0], *(part.ravel() for part in arrays if part is not None)])
    margin = 0.06 * np.ptp(values) or 1.0
    scale = (float(values.min() - margin), float(values.max() + margin))
    return [replace(curve, scale=scale) for curve in curves]
