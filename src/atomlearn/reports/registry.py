"""The registry of displays: how each is made from a fitted estimator.

Registered displays support ``from_estimator``. The page makes its displays with the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier

from atomlearn.core import Standardized, column_moments, path
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.estimators.subsets import SubsetModel
from atomlearn.findings.near_best import near_best
from atomlearn.reports.data_displays import CalibrationDisplay, CoverageDisplay, calibration_points
from atomlearn.reports.displays import (
    BoundsDisplay,
    CoefficientDisplay,
    ConvergenceDisplay,
    NearBestDisplay,
    PathDisplay,
    StabilityDisplay,
    ValidationDisplay,
)
from atomlearn.reports.drawing import MAKERS, MOST_NAMED, Display, FittedEstimator
from atomlearn.reports.structure_displays import GroupsDisplay, InteractionsDisplay, selected_groups
from atomlearn.reports.view import (
    View,
    level_of,
    names_of_columns,
    objective_of,
    results_of,
    target_names,
    view_of,
)

#: The alphas of a path relative to the alpha of the model, in decreasing order.
PATH_LEVELS = np.geomspace(8.0, 0.5, 16)
#: Models are near-best in the display within this share of the objective; and the time limit of the
#: display in seconds.
NEAR = 0.01
NEAR_SECONDS = 2.0
#: Number of entries of X beyond which a page does not compute this display.
LARGE = 10**7

Maker = TypeVar("Maker", bound=Callable[[FittedEstimator], Display | None])


def register(display: type[Display], needs: str) -> Callable[[Maker], Maker]:
    """Return a decorator that registers a function as the maker of a display.

    ``needs`` completes the error message if the function returns None; it follows the name of the
    estimator.
    """

    def add(make: Maker) -> Maker:
        """Register the function and return it unchanged.

        ``make`` returns a display or None.
        """
        MAKERS[display] = make, needs
        return make

    return add


@register(
    PathDisplay,
    "has no path; fit a model of ours with a level (alpha) and one output, in the form "
    "'penalized' or 'squared'",
)
def path_display(fitted: FittedEstimator) -> PathDisplay | None:
    """Fit the regularization path around the alpha of a model with one output.

    ``fitted`` is a fitted estimator with its data.
    """
    view = view_of(fitted.estimator, fitted.X, fitted.names)
    return path_of_view(view, view.codes_of(np.asarray(fitted.y)))


def path_of_view(
    view: View, y: Any, sample_weight: Any = None, **options: Any
) -> PathDisplay | None:
    """Return the regularization path around the alpha of a model, or None.

    ``y`` holds class codes, or the target of the loss; ``sample_weight`` (n,) the weights of the
    fit; ``options`` are further arguments of ``path``. The result is None if the model has several
    outputs, no alpha, or a constrained form. Coefficients are per standard deviation of the
    features. ``view`` is the fitted model with its inputs.
    """
    model = view.model
    alpha = level_of(model)
    options = objective_of(model) | options
    if not alpha or view.outputs > 1 or options.get("form", "constrained") == "constrained":
        return None
    options |= {"fit_intercept": model.fit_intercept, "sample_weight": sample_weight}
    options |= {"alphas": alpha * PATH_LEVELS, "tol": 1e-4, "max_iter": 200}
    # ``path`` takes the labels of two classes as -1 and 1.
    target = y if view.classes is None else np.where(y > 0, 1.0, -1.0)
    design = view.design
    try:
        if options.pop("standardize", False):
            center = model.fit_intercept and not design.traits.is_sparse
            design = Standardized(design, center=center, weight=sample_weight)
        result = path(design, target, **options)
    except (TypeError, ValueError):  # ``path`` does not support this model
        return None
    if not result.columns.size:
        return None
    coefs = result.coefs * column_moments(design, columns=result.columns)[1]
    order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MOST_NAMED]
    names = view.map.names(result.columns[order], view.names)
    return PathDisplay(result.alphas, coefs[:, order], names, alpha)


@register(
    ValidationDisplay,
    "was not chosen by cross-validation; fit AtomicRegressorCV or AtomicClassifierCV",
)
def validation_of(fitted: FittedEstimator) -> ValidationDisplay | None:
    """Return the scores by which a cross-validated estimator chose alpha, or None.

    ``fitted`` is a fitted estimator with its data.
    """
    model = fitted.estimator
    if not isinstance(model, CrossValidatedModel):
        return None
    # The rows of the table with the chosen norm and l1_ratio: one for each alpha.
    table = model.cv_results_
    is_chosen = [
        repr(norm) == repr(model.norm_) and ratio == model.l1_ratio_
        for norm, ratio in zip(table["param_norm"], table["param_l1_ratio"], strict=True)
    ]
    keys = ("param_alpha", "mean_test_score", "standard_error")
    alphas, mean, error = (np.asarray(table[key], dtype=np.float64)[is_chosen] for key in keys)
    return ValidationDisplay(alphas, mean, error, float(model.alpha_))


@register(ConvergenceDisplay, "has no history of gaps; fit one of ours")
def convergence_of(fitted: FittedEstimator) -> ConvergenceDisplay | None:
    """Return the duality gaps of an estimator, or of a result of ``solve``; else None.

    ``fitted`` is a fitted estimator with its data.
    """
    results = results_of(fitted.estimator) or [fitted.estimator]
    try:
        return ConvergenceDisplay([result.history for result in results])
    except AttributeError:
        return None


@register(StabilityDisplay, "knows no shares of halves; fit a StabilitySelector around it")
def stability_of(fitted: FittedEstimator) -> StabilityDisplay | None:
    """Return the largest selection frequencies of a ``StabilitySelector``, or None.

    ``fitted`` is a fitted estimator with its data.
    """
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
    """Return the largest coefficients of a fitted linear model.

    If X is given, they are per standard deviation of the columns.
    """
    model = fitted.estimator
    if fitted.X is None:
        columns, weights = nonzero_coefficients(model.coef_)
        names_of_features = names_of_columns(model, columns, fitted.names)
    else:
        view = view_of(model, fitted.X, fitted.names)
        weights = view.weights * column_moments(view.design, columns=view.columns)[1]
        names_of_features = view.map.names(view.columns, view.names)
    # The largest features, and names for the outputs if there are several.
    order = np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")[:MOST_NAMED]
    names = model.classes_ if is_classifier(model) else target_names(fitted.y)
    outputs = [str(name) for name in names]
    if len(outputs) != len(weights):
        outputs = [f"y[{number}]" for number in range(len(weights))]
    outputs = [""] if len(weights) == 1 else outputs
    return CoefficientDisplay(
        weights[:, order], [names_of_features[column] for column in order], outputs
    )


@register(
    CalibrationDisplay,
    "tells no probabilities; fit a classifier whose loss has some: AtomicClassifier()",
)
def calibration_of(fitted: FittedEstimator) -> CalibrationDisplay | None:
    """Return the calibration curves on X and y, or None without class probabilities.

    X and y should be rows that the estimator was not fitted to.
    """
    model = fitted.estimator
    try:
        probabilities = np.asarray(model.predict_proba(fitted.X))
    except AttributeError:
        return None
    classes = np.asarray(model.classes_)
    truth = np.asarray(fitted.y)
    codes = [1] if classes.size == 2 else list(range(classes.size))
    points = [
        calibration_points(truth == classes[output], probabilities[:, output]) for output in codes
    ]
    return CalibrationDisplay(points, [str(classes[output]) for output in codes])


@register(CoverageDisplay, "gives no intervals; fit a search of numbers: AtomicRegressorCV()")
def coverage_of(fitted: FittedEstimator) -> CoverageDisplay | None:
    """Return the coverage of 90% prediction intervals on X and y, or None without intervals.

    X and y should be rows that the estimator was not fitted to.
    """
    try:
        predicted, lower, upper = fitted.estimator.predict(fitted.X, interval=0.9)
    except (TypeError, ValueError):
        return None
    truth = np.asarray(fitted.y)
    return CoverageDisplay(predicted, (lower <= truth) & (truth <= upper))


@register(
    GroupsDisplay, "has selected no groups; fit a norm with groups at a level that selects some"
)
def groups_display(fitted: FittedEstimator) -> GroupsDisplay | None:
    """Return the sizes of latent parts or of the groups of the norm, or None if there are none.

    ``fitted`` is a fitted estimator with its data.
    """
    parts = selected_groups(fitted.estimator)
    return GroupsDisplay.of(parts) if parts else None


@register(
    InteractionsDisplay,
    'has no products of columns; fit one with features="interactions" whose alpha (the level) '
    "is low enough to select some",
)
def interactions_of(fitted: FittedEstimator) -> InteractionsDisplay | None:
    """Return the selected products of two columns, or None if no product was selected.

    ``fitted`` is a fitted estimator with its data.
    """
    model = fitted.estimator
    map = model.feature_map_
    columns, weights = nonzero_coefficients(model.coef_)
    if not map.has_pairs:
        return None
    pairs = map.inputs_of(map.term_of(columns))
    is_product = (pairs >= 0).sum(axis=1) == 2
    if not is_product.any():
        return None
    # With several classes, the coefficient with the largest absolute value is drawn, because the
    # sum over classes may be zero.
    largest = np.abs(weights[:, is_product]).argmax(axis=0)
    sizes = weights[:, is_product][largest, np.arange(largest.size)]
    names = np.array(names_of_columns(model, range(map.n_inputs), fitted.names), dtype=object)
    return InteractionsDisplay.of(names[pairs[is_product][:, :2]], sizes)


@register(
    NearBestDisplay,
    "has no near-best models; fit SubsetRegressor with within=0.01, or a convex model of ours with "
    "one output, and pass X and y",
)
def near_best_of(fitted: FittedEstimator) -> NearBestDisplay | None:
    """Return the ranges of the largest coefficients over all near-best models, or None.

    ``fitted`` is a fitted estimator with its data.
    """
    model = fitted.estimator
    try:
        within = float(model.within) if isinstance(model, SubsetModel) else NEAR
        models = near_best(model, fitted.X, fitted.y, within=within, time_limit=NEAR_SECONDS)
    except (TypeError, ValueError):
        return None
    # Only ranges that were computed by fits, of the largest coefficients.
    tight = np.flatnonzero(models.tight)
    order = np.argsort(-np.abs(models.values[tight]), kind="stable")[:MOST_NAMED]
    strongest = tight[order]
    ranges = models.ranges.at(strongest)
    return NearBestDisplay(
        names_of_columns(model, models.columns[strongest], fitted.names),
        models.values[strongest],
        ranges.lower,
        ranges.upper,
        ranges.least,
        ranges.most,
        np.isin(models.columns[strongest], models.always),
        within,
        models.complete,
        models.subsets is not None,
    )


def near_best_of_view(view: View, y: Any) -> NearBestDisplay | None:
    """Return the near-best models of a convex model on a page, None if that takes long.

    ``y`` are the targets as the model was fitted to them. ``view`` is the fitted model with its
    inputs.
    """
    is_slow = view.columns.size > MOST_NAMED or np.prod(view.inputs.shape) > LARGE
    if is_slow or view.is_mapped or isinstance(view.model, SubsetModel):
        return None
    return near_best_of(FittedEstimator(view.model, view.inputs, y, view.names))


@register(BoundsDisplay, "has no bounds on subsets; fit SubsetRegressor or SubsetClassifier")
def bounds_of(fitted: FittedEstimator) -> BoundsDisplay | None:
    """Return the objective and lower bound over time of a best subset model, or None.

    ``fitted`` is a fitted estimator with its data.
    """
    try:
        history = fitted.estimator.result_.history
        lines = [(record.seconds, record.objective, record.lower_bound) for record in history]
    except AttributeError:
        return None
    return BoundsDisplay(*np.transpose(lines))
