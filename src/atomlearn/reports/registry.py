"""Registry of displays: how each is made from a fitted estimator.

A display that is registered here has ``from_estimator``. A page makes its displays by the same
functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier

from atomlearn.core import Standardized, moments_of, nonzero_coefficients, path
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.reports.data_displays import (
    CalibrationDisplay,
    CoverageDisplay,
    calibration_points,
)
from atomlearn.reports.displays import (
    BoundsDisplay,
    CoefficientDisplay,
    ConvergenceDisplay,
    PathDisplay,
    StabilityDisplay,
    ValidationDisplay,
)
from atomlearn.reports.drawing import MAKERS, MOST_NAMED, Display, FittedEstimator
from atomlearn.reports.structure_displays import (
    GroupsDisplay,
    InteractionsDisplay,
    selected_groups,
)
from atomlearn.reports.view import (
    View,
    level_of,
    names_of_columns,
    objective_of,
    results_of,
    target_names,
    view_of,
)

#: The levels of a path relative to the level of the model, the largest first.
PATH_LEVELS = np.geomspace(8.0, 0.5, 16)

Maker = TypeVar("Maker", bound=Callable[[FittedEstimator], Display | None])


def register(display: type[Display], needs: str) -> Callable[[Maker], Maker]:
    """Register a function that makes a display; ``needs`` : why it may return None."""

    def add(make: Maker) -> Maker:
        MAKERS[display] = make, needs
        return make

    return add


@register(
    PathDisplay,
    "has no path; fit a model of ours with a level (alpha) and one output, in the form "
    "'penalized' or 'squared'",
)
def path_display(fitted: FittedEstimator) -> PathDisplay | None:
    """Fit the path around the level of a model with one output."""
    view = view_of(fitted.estimator, fitted.X, fitted.names)
    return path_of_view(view, view.codes_of(np.asarray(fitted.y)))


def path_of_view(
    view: View, y: Any, sample_weight: Any = None, **options: Any
) -> PathDisplay | None:
    """Return the path around the level of a model, per standard deviation; None without a path.

    y : codes of classes, or the target of the loss; options : further parameters of ``path``.
    """
    model = view.model
    alpha = level_of(model)
    options = objective_of(model) | options
    if not alpha or view.outputs > 1 or options.get("form", "constrained") == "constrained":
        return None
    options |= {"fit_intercept": model.fit_intercept, "sample_weight": sample_weight}
    options |= {"alphas": alpha * PATH_LEVELS, "tol": 1e-4, "max_iter": 200}
    target = y if view.classes is None else np.where(y > 0, 1.0, -1.0)
    design = view.design
    try:
        if options.pop("standardize", False):
            center = model.fit_intercept and not design.traits.is_sparse
            design = Standardized(design, center=center, weight=sample_weight)
        found = path(design, target, **options)
    except (TypeError, ValueError):  # this model is not one of a path
        return None
    if not found.columns.size:
        return None
    coefs = found.coefs * moments_of(design, found.columns)[1]
    order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MOST_NAMED]
    names = view.map.names(found.columns[order], view.names)
    return PathDisplay(found.alphas, coefs[:, order], names, alpha)


@register(
    ValidationDisplay,
    "was not chosen by cross-validation; fit AtomicRegressorCV or AtomicClassifierCV",
)
def validation_of(fitted: FittedEstimator) -> ValidationDisplay | None:
    """Return the held-out scores that a cross-validated estimator chose its level by."""
    model = fitted.estimator
    if not isinstance(model, CrossValidatedModel):
        return None
    table = model.cv_results_
    own = [
        repr(norm) == repr(model.norm_) and ratio == model.l1_ratio_
        for norm, ratio in zip(table["param_norm"], table["param_l1_ratio"], strict=True)
    ]
    keys = ("param_alpha", "mean_test_score", "standard_error")
    levels, mean, error = (np.asarray(table[key], dtype=np.float64)[own] for key in keys)
    return ValidationDisplay(levels, mean, error, float(model.alpha_))


@register(ConvergenceDisplay, "has no history of gaps; fit one of ours")
def convergence_of(fitted: FittedEstimator) -> ConvergenceDisplay | None:
    """Return the history of an estimator, or of a result of ``solve``."""
    results = results_of(fitted.estimator) or [fitted.estimator]
    try:
        return ConvergenceDisplay([result.history for result in results])
    except AttributeError:
        return None


@register(StabilityDisplay, "knows no shares of halves; fit a StabilitySelector around it")
def stability_of(fitted: FittedEstimator) -> StabilityDisplay | None:
    """Return the largest probabilities of a fitted ``StabilitySelector``."""
    selector = fitted.estimator
    try:
        shares = np.asarray(selector.selection_probabilities_)
    except AttributeError:
        return None
    order = np.argsort(-shares, kind="stable")[:MOST_NAMED]
    names = names_of_columns(selector, order, fitted.names)
    return StabilityDisplay(shares[order], float(selector.threshold), names)


@register(CoefficientDisplay, "has no coefficients; fit a linear model")
def coefficients_of(fitted: FittedEstimator) -> CoefficientDisplay:
    """Return the coefficients of a fitted linear model; with X per standard deviation."""
    model = fitted.estimator
    if fitted.X is None:
        columns, weights = nonzero_coefficients(model.coef_)
        known = names_of_columns(model, columns, fitted.names)
    else:
        view = view_of(model, fitted.X, fitted.names)
        weights = view.weights * moments_of(view.design, view.columns)[1]
        known = view.map.names(view.columns, view.names)
    order = np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")[:MOST_NAMED]
    given = model.classes_ if is_classifier(model) else target_names(fitted.y)
    outputs = [str(name) for name in given]
    if len(outputs) != len(weights):
        outputs = [f"y[{number}]" for number in range(len(weights))]
    outputs = [""] if len(weights) == 1 else outputs
    return CoefficientDisplay(weights[:, order], [known[at] for at in order], outputs)


@register(
    CalibrationDisplay,
    "tells no probabilities; fit a classifier whose loss has some: AtomicClassifier()",
)
def calibration_of(fitted: FittedEstimator) -> CalibrationDisplay | None:
    """Return the calibration on these rows, which the estimator was not fitted to."""
    model = fitted.estimator
    try:
        probabilities = np.asarray(model.predict_proba(fitted.X))
    except AttributeError:
        return None
    classes = np.asarray(model.classes_)
    truth = np.asarray(fitted.y)
    drawn = [1] if classes.size == 2 else list(range(classes.size))
    points = [calibration_points(truth == classes[at], probabilities[:, at]) for at in drawn]
    return CalibrationDisplay(points, [str(classes[at]) for at in drawn])


@register(CoverageDisplay, "gives no intervals; fit a search of numbers: AtomicRegressorCV()")
def coverage_of(fitted: FittedEstimator) -> CoverageDisplay | None:
    """Return the coverage on these rows, which the estimator was not fitted to."""
    try:
        predicted, low, high = fitted.estimator.predict(fitted.X, interval=0.9)
    except (TypeError, ValueError):
        return None
    truth = np.asarray(fitted.y)
    return CoverageDisplay(predicted, (low <= truth) & (truth <= high))


@register(
    GroupsDisplay, "has selected no groups; fit a norm with groups at a level that selects some"
)
def groups_display(fitted: FittedEstimator) -> GroupsDisplay | None:
    """Return the latent parts of a fitted model, or the groups of its norm."""
    parts = selected_groups(fitted.estimator)
    return GroupsDisplay.of(parts) if parts else None


@register(
    InteractionsDisplay,
    'has no products of columns; fit one with features="interactions" whose alpha (the level) '
    "is low enough to select some",
)
def interactions_of(fitted: FittedEstimator) -> InteractionsDisplay | None:
    """Return the selected products of a model with ``features="interactions"`` or similar."""
    model = fitted.estimator
    map = model.feature_map_
    columns, weights = nonzero_coefficients(model.coef_)
    if not map.has_pairs:
        return None
    pairs = map.inputs_of(map.term_of(columns))
    two = pairs[:, 1] >= 0
    if not two.any():
        return None
    # With several classes the largest coefficient: their sum may be zero.
    largest = np.abs(weights[:, two]).argmax(axis=0)
    sizes = weights[:, two][largest, np.arange(largest.size)]
    known = np.array(names_of_columns(model, range(map.n_inputs), fitted.names), dtype=object)
    return InteractionsDisplay.of(known[pairs[two]], sizes)


@register(BoundsDisplay, "has no bounds on subsets; fit SubsetRegressor or SubsetClassifier")
def bounds_of(fitted: FittedEstimator) -> BoundsDisplay | None:
    """Return both bounds of a model of the best subset."""
    try:
        history = fitted.estimator.result_.history
        lines = [(record.seconds, record.objective, record.lower_bound) for record in history]
    except AttributeError:
        return None
    return BoundsDisplay(*np.transpose(lines))
