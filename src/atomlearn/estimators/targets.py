"""Checks of the targets, weights and offsets of ``fit``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _num_samples, column_or_1d

from atomlearn._support import TINY, all_text, check_offset, finite, normalized, unmasked
from atomlearn.core import Array, Counted, Design, Fold, Loss, as_design, is_opened
from atomlearn.estimators.probabilities import for_classes
from atomlearn.estimators.units import Units
from atomlearn.maps.feature_map import map_of


@dataclass(slots=True)
class Checked:
    """The checked data of a fit.

    Attributes
    ----------
    design : Design
        X, expanded by ``features``.
    y : (n_samples,) or (n_samples, n_tasks) ndarray
        Labels or numbers, as the user passed them.
    targets : list of (n_samples,) ndarray
        The target of each output for the loss; for more than two classes there is one vector of -1
        and +1 for each class.
    weight : (n_samples,) float64
        Sample weights times class weights.
    loss : Loss
    classes : ndarray or None
        Sorted labels; None for a regression.
    codes : (n_samples,) ndarray or None
        Position of each label in ``classes``.
    offset : (n_samples, n_outputs) float64 or None
        Numbers added to the predictions.
    units : Units or None
        The standardized design of the fit, with its means and scales; None if the fit uses
        ``design`` itself.
    table : TableDesign or None
        The inputs, if they are a table with gaps.
    """

    design: Design
    y: NDArray[Any]
    targets: list[Array]
    weight: Array
    loss: Loss
    classes: NDArray[Any] | None = None
    codes: Any = None
    offset: Array | None = None
    units: Units | None = None
    table: Any = None

    @property
    def fitted_design(self) -> Design:
        """The design in the units of the fit."""
        return self.design if self.units is None else self.units.design

    def counted(self) -> tuple[Checked, Counted]:
        """Return the data with a design that counts its passes, and this design."""
        counter = Counted(self.fitted_design)
        if self.units is None:
            return replace(self, design=counter), counter
        return replace(self, units=replace(self.units, design=counter)), counter


def filled_for(data: Checked, folds: Sequence[Fold]) -> Iterator[Checked]:
    """Yield the data for each fold, with gaps filled by values imputed from its training rows.

    Nothing is yielded for data without gaps. ``folds`` are (training rows, held-out rows) of each
    fold.
    """
    for train, _ in folds if data.table is not None else ():
        inputs = data.table.learned_from(train)
        design = map_of(data.design).apply(inputs)
        units = data.units
        if units is not None:
            units = replace(units, design=units.around(design))
        yield replace(data, design=design, units=units)


def checked_targets(
    estimator: Any, inputs: Design, y: Any, weight: Array, loss: Loss, offset: Any
) -> Checked:
    """Return the data with its checked targets and offset, in the form that the loss needs.

    inputs : the columns of X. y, offset : arguments of ``fit``. weight : (n_samples,) weights.
    ``estimator`` is one of this library.
    """
    data = _targets(estimator, inputs, y, weight, loss)
    if offset is not None:
        data.offset = offset_of(offset, (inputs.shape[0], len(data.targets)))
    return data


def _targets(estimator: Any, inputs: Design, y: Any, weight: Array, loss: Loss) -> Checked:
    """Return the data with checked targets: y itself, or an array of -1 and 1 per class.

    estimator, inputs, y, weight, loss : as for ``checked_targets``. Two classes need one array, of
    the second class.
    """
    n_samples = inputs.shape[0]
    if loss.task != "classification":
        target = target_of(estimator, y, n_samples, loss)
        if loss.task == "survival" and not target["event"][weight > 0.0].any():
            raise ValueError(
                "y has no event of a sample with positive weight; give at least one event"
            )
        return Checked(
            inputs, target, list(target.T) if target.ndim > 1 else [target], weight, loss
        )
    # Classes: at least two must have rows of positive weight.
    labels, classes, codes = checked_labels(estimator, y, n_samples)
    present = np.bincount(codes, weight > 0) > 0
    if present.sum() < 2:
        where = "y" if classes.size < 2 else "y, where sample_weight is positive,"
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, but {where} has "
            f"only 1 class: {classes[present].tolist()[0]!r}"
        )
    if estimator.class_weight is not None:
        factors = class_weights(estimator.class_weight, classes, codes, weight)
        weight = normalized(weight * factors[codes], n_samples)
    positive = [1] if classes.size == 2 else range(classes.size)
    targets = [np.where(codes == code, 1.0, -1.0) for code in positive]
    return Checked(inputs, labels, targets, weight, loss, classes, codes)


def joint_loss(multi_class: Any, data: Checked) -> Loss | None:
    """Return the joint loss of several outputs; None if each output has its own problem.

    multi_class : the parameter, "ovr" or "multinomial". ``data`` is the checked data.
    """
    if data.classes is None:
        return data.loss if data.y.ndim > 1 else None
    if multi_class not in ("ovr", "multinomial"):
        raise ValueError(f"multi_class must be 'ovr' or 'multinomial', got {multi_class!r}")
    if multi_class == "ovr":
        return None
    # The loss of all classes together, None if there is no such version of the loss.
    joint_loss = for_classes(data.loss, data.classes.size)
    if joint_loss is None:
        raise ValueError(
            f"multi_class='multinomial' is the logistic loss of several classes, and loss is "
            f"{data.loss.name!r}; use loss='logistic', or multi_class='ovr'"
        )
    return joint_loss if data.classes.size > 2 else None


def offset_of(offset: Any, shape: tuple[int, int]) -> Array:
    """Return the checked offset, of shape (n_samples, n_outputs)."""
    n_samples, n_outputs = shape
    array = np.asarray(offset)
    columns = list(array.T) if array.ndim == 2 else [offset]
    if len(columns) != n_outputs:
        raise ValueError(
            f"offset must have shape {shape if n_outputs > 1 else shape[:1]}, one number for each "
            f"sample and output; got {array.shape}"
        )
    return np.column_stack([check_offset(column, n_samples) for column in columns])


def checked_labels(
    estimator: Any, y: Any, n_samples: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the label of each sample, the sorted classes, and the position of each label.

    y : (n_samples,) labels, with ``n_samples`` the number of rows of X. Raises ValueError for
    continuous numbers, with the remedy for this estimator.
    """
    target = checked_target(estimator, y, n_samples)
    if target.dtype == object and {type(label) for label in target} <= {bool, np.bool_}:
        target = target.astype(bool)
    classes, codes = class_codes(target)
    kind = classes.dtype.kind
    if (kind == "O" and not all_text(classes)) or (kind == "f" and not are_whole(finite(target))):
        remedy = "bin it for classes, or use AtomicRegressor"
        # The loss determines whether the estimator is a classifier.
        if estimator.task != "classification":
            remedy = f"use {type(estimator).__name__}(loss='squared')"
        raise ValueError(
            "Unknown label type: y has continuous numbers, or objects other than texts, and the "
            f"loss {estimator.loss!r} is for classes; {remedy}"
        )
    return target, classes, codes


def class_codes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sorted classes, and the position of each of the ``labels`` (n,) among them."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"y has labels that cannot be compared ({error}); drop samples without a label, and "
            "give the others one type, for example with y.astype(str)"
        ) from error


def is_text(labels: NDArray[Any]) -> bool:
    """Return True if checked labels are texts, False if they are numbers."""
    return labels.dtype.kind in "OUST"


def are_whole(numbers: Array) -> bool:
    """Return True if these are whole numbers, small enough to be exact in float64."""
    return not (numbers % 1.0).any() and bool((np.abs(numbers) <= 2.0**53).all())


def class_weights(class_weight: Any, classes: NDArray[Any], codes: Any, weight: Array) -> Array:
    """Return a factor for each class; "balanced" gives all classes the same total weight.

    class_weight : the parameter. codes : (n,) position of each label. weight : (n,) sample weights.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weight)
        return np.asarray(weight.sum() / classes.size / np.maximum(totals, TINY))
    factors: Array = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(f"class_weight must have finite numbers >= 0, got {class_weight!r}")
    return factors


def target_of(estimator: Any, y: Any, n_samples: int, loss: Loss) -> NDArray[Any]:
    """Return the target ``y`` after its checks, (n_samples,), or (n_samples, n_tasks) for several.

    Survival times become a structured array of scikit-survival's form. ``estimator`` is one of this
    library and ``loss`` that of the fit.
    """
    if loss.task == "survival":
        return of_samples(loss.check_target(y), n_samples)
    # Some array-like objects have no np.shape.
    shape = np.asarray(y).shape if estimator.several_targets else ()
    if len(shape) == 2 and (shape[1] > 1 or estimator.has_matrix_norm):
        values = check_array(_real(y), dtype=np.float64, input_name="y", ensure_min_samples=0)
        return of_samples(values, n_samples)
    return loss.check_target(checked_target(estimator, y, n_samples))


def checked_target(estimator: Any, y: Any, n_samples: int) -> NDArray[Any]:
    """Return y as a one-dimensional array with one entry for each of ``n_samples`` samples.

    ``estimator`` is one of this library.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    shape = _real(y).shape
    remedy = f"Pass one target per sample to {type(estimator).__name__}"
    remedy += "; AtomicRegressor and AtomicRegressorCV take several"
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(f"y should be a 1d array, got an array of shape {shape} instead. {remedy}")
    try:
        # The checks of scikit-learn take a tenth of the time of a small fit.
        is_plain = type(y) is np.ndarray and y.ndim == 1
        # Targets of the array API have no length.
        target: NDArray[Any] = y if is_plain else np.asarray(column_or_1d(y, warn=True))
    except ValueError as error:
        raise ValueError(f"{error} {remedy}") from error
    return of_samples(target, n_samples)


def _real(y: Any) -> NDArray[Any]:
    """Return y as an array; raise if entries are masked or complex."""
    # Some array-like objects fail in np.iscomplexobj.
    array = np.asarray(unmasked("y", y))
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y is complex; pass y.real")
    return array


def targets_of_rows(X: Any, y: Any) -> NDArray[Any]:
    """Return y as an array with one entry, or one row of entries, for each row of X.

    Entries must not be missing. The estimator itself makes the other checks of its targets.
    """
    target = _real(y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim not in (1, 2) or not all(target.shape[1:]):
        raise ValueError(f"y must have one target for each row of X, got shape {target.shape}")
    n_rows = as_design(X).shape[0] if is_opened(X) else _num_samples(X)
    if n_rows < 2:
        raise ValueError(f"X has {n_rows} rows; give at least 2")
    of_samples(target, n_rows)
    return finite(target) if target.dtype.kind == "f" else target


def of_samples(target: NDArray[Any], n_samples: int) -> NDArray[Any]:
    """Return ``target`` unchanged; raise ValueError if it does not have ``n_samples`` entries."""
    if len(target) != n_samples:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} rows "
            f"and y has {len(target)} targets; they must describe the same samples"
        )
    return target
