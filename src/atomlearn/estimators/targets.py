"""What ``fit`` is given, checked: one problem an output, whatever the task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from atomlearn.core.interfaces import Array, Design, Loss
from atomlearn.core.interfaces.numbers import unmasked
from atomlearn.core.problem.checks import check_offset, check_weight
from atomlearn.estimators.checks import checked_design, checked_loss, expanded


@dataclass(frozen=True, slots=True)
class Checked:
    """The data of a fit.

    design : what ``features`` makes of X; y : (n_samples,) what was given, labels or numbers;
    targets : of each output the same as the loss takes it, for more than two classes one vector of
    -1 and +1 a class; weight : (n_samples,) with sum 1, those of classes included; classes :
    sorted labels, and codes : (n_samples,) their positions in it, None for a regression; offset :
    (n_samples, n_outputs) what is added to the predictions.
    """

    design: Design
    y: NDArray[Any]
    targets: list[Array]
    weight: Array
    loss: Loss
    classes: NDArray[Any] | None = None
    codes: NDArray[np.int64] | None = None
    offset: Array | None = None

    def with_offset(self, offset: Any) -> Checked:
        """Return the data with numbers added to predictions: one a sample, or one an output too."""
        if offset is None:
            return self
        return replace(self, offset=offset_of(offset, (self.y.shape[0], len(self.targets))))


def offset_of(offset: Any, shape: tuple[int, int]) -> Array:
    """Return an offset of predictions of this shape (n_samples, n_outputs), or what is wrong."""
    n_samples, n_outputs = shape
    given = np.asarray(offset)
    columns = list(given.T) if given.ndim == 2 else [offset]
    if len(columns) != n_outputs:
        raise ValueError(
            f"offset must have shape {shape if n_outputs > 1 else shape[:1]}, one number a sample "
            f"and output; got {given.shape}"
        )
    return np.column_stack([check_offset(column, n_samples) for column in columns])


def checked_regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Checked:
    """Return the data of a regression, or say what is wrong with X, y or the weights."""
    inputs = checked_design(estimator, X, reset=True)
    loss = checked_loss(estimator.loss, "regression")
    target = loss.check_target(checked_target(estimator, y, inputs.shape[0]))
    weight = normalized(check_weight(sample_weight, inputs.shape[0]))
    design = expanded(inputs, estimator.features, weight=weight)
    return Checked(design, target, [target], weight, loss)


def checked_classification(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> Checked:
    """Return the data of a classification, or say what is wrong with X, y or the weights."""
    inputs = checked_design(estimator, X, reset=True)
    target = checked_labels(estimator, y, inputs.shape[0])
    weight = unlabeled = normalized(check_weight(sample_weight, inputs.shape[0]))
    classes, codes = encoded(estimator, target, weight)
    if class_weight is not None:
        weight = weight * class_weights(class_weight, classes, codes, weight)[codes]
    # Labels do not decide what the curves of an input look like: nor do their weights.
    design = expanded(inputs, estimator.features, weight=unlabeled)
    loss = checked_loss(estimator.loss, "classification")
    targets = signs(classes.size, codes)
    return Checked(design, target, targets, normalized(weight), loss, classes, codes)


def checked_labels(estimator: Any, y: Any, n_samples: int) -> NDArray[Any]:
    """Return y as labels that can be sorted, one a sample, or say what is wrong with them."""
    try:
        target = checked_target(estimator, y, n_samples)
        if target.dtype == object and {type(label) for label in target} <= {bool, np.bool_}:
            target = target.astype(bool)
        check_classification_targets(target)
    except TypeError as error:
        raise ValueError(
            f"y holds labels that cannot be compared ({error}); drop samples without a label, and "
            "give the others one type, for example with y.astype(str)"
        ) from error
    return target


def signs(n_classes: int, codes: NDArray[np.int64]) -> list[Array]:
    """Return one vector of -1 and +1 an output: one for two classes, else one a class."""
    positive = [1] if n_classes == 2 else range(n_classes)
    return [np.where(codes == code, 1.0, -1.0) for code in positive]


def class_weights(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[np.int64], weight: Array
) -> Array:
    """Return one factor a class; "balanced" gives every class the same total weight."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(codes, weights=weight, minlength=classes.size)
        factors = np.zeros(classes.size)
        np.divide(weight.sum() / classes.size, total, out=factors, where=total > 0)
        return factors
    found: Array = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"class_weight must hold finite numbers >= 0, got {class_weight!r}")
    return found


def checked_target(estimator: Any, y: Any, n_samples: int) -> NDArray[Any]:
    """Return y as a one-dimensional array without NaN, of one entry a sample."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    plain = type(y) is np.ndarray and y.dtype == np.float64 and y.shape == (n_samples,)
    if plain and np.isfinite(y).all():
        return np.asarray(y)
    # Not np.iscomplexobj, which what is merely like an array may refuse.
    if np.asarray(y).dtype.kind == "c":
        raise ValueError("Complex data not supported: y is complex; pass y.real")
    unmasked("y", y)
    try:
        target: NDArray[Any] = column_or_1d(y, warn=True)
    except ValueError as error:
        raise ValueError(f"{error} Pass one target per sample") from error
    try:
        assert_all_finite(target, input_name="y")
    except ValueError as error:
        raise ValueError(f"{error} Drop those samples, or fill their targets in") from error
    return of_samples(target, n_samples)


def of_samples(target: NDArray[Any], n_samples: int) -> NDArray[Any]:
    """Return the targets, refused where they are not as many as the samples."""
    if len(target) != n_samples:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} rows "
            f"and y has {len(target)} targets; they must describe the same samples"
        )
    return target


def encoded(
    estimator: Any, target: NDArray[Any], weight: Array
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return sorted labels and the position of each target in them; two must carry weight."""
    classes, codes = np.unique(target, return_inverse=True)
    present = np.unique(codes[weight > 0])
    if present.size < 2:
        where = "y" if classes.size < 2 else "y, where sample_weight is positive,"
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, but {where} holds "
            f"only 1 class: {classes[present].tolist()[0]!r}"
        )
    return classes, codes


def normalized(weight: Array) -> Array:
    """Return s_i / sum s, which make the sum over samples a mean, without overflow."""
    largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        raise ValueError(
            "sample_weight is zero for every sample (class_weight included); give at least one "
            "sample a weight > 0"
        )
    weight = weight / largest
    result: Array = weight / weight.sum()
    return result
