"""Checks of the parameters and the data that users pass to estimators."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import _check_n_features, validate_data

from atomlearn import core, papers
from atomlearn.core import (
    L2,
    Columns,
    DenseDesign,
    Design,
    Form,
    Groups,
    KSupport,
    Norm,
    Regularizer,
    Solver,
    as_compressed,
    as_design,
    as_loss,
    as_norm,
    check_free,
    feature_names,
    frame_to_array,
    has_probabilities,
    is_number,
    is_opened,
    is_table,
    named_columns,
    positive,
    readable,
    refuse_not_finite,
    whole_number,
)
from atomlearn.maps.feature_map import map_of
from atomlearn.maps.features import features_named


class Available:
    """A method that an object has if ``check`` accepts it; else ``check`` raises its error."""

    def __init__(self, check: Callable[[Any], Any], method: Callable[..., Any]) -> None:
        self.check = check
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, kind: type) -> Callable[..., Any]:
        """Return the method bound to an object, after the check."""
        if owner is None:
            return self.method
        self.check(owner)
        return MethodType(self.method, owner)


def available_if(check: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make a method available only if ``check(object)`` raises no AttributeError."""
    return partial(Available, check)


#: The solvers by the names of ``solver=``; they receive ``tol``.
SOLVERS: dict[str, Callable[[float], Solver]] = {
    "column_generation": lambda tol: core.ColumnGeneration(tol=tol),
    "atom_generation": lambda tol: core.AtomGeneration(tol=tol),
    "fista": lambda tol: papers.FISTA(),
    "kfcfw": lambda tol: papers.KFCFW(),
    "frank_wolfe": lambda tol: papers.FrankWolfe(tol=tol),
}


def checked_design(estimator: Any, X: Any, *, reset: bool) -> Design:
    """Return X as a Design, without copying float32 and float64 data.

    It sets ``n_features_in_`` and ``feature_names_in_``, or compares them if not ``reset``. A
    Design, a file or a folder is opened by ``as_design``.
    """
    # An array that needs no conversion: only its entries are checked.
    is_plain = (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.aligned
    )
    if is_plain and (reset or input_names(estimator) is None):
        _take_shape(estimator, X, None, reset)
        design: Design = DenseDesign(X)
        refuse_not_finite(design)
        return design
    if is_opened(X):
        design = as_design(X)
        _take_shape(estimator, design, feature_names(X), reset)
        return design
    checked = checked_array(estimator, X, reset=reset, accept_sparse=["csr", "csc"])
    design = as_design(checked, check_finite=False)
    refuse_not_finite(design, X)
    return design


def checked_array(estimator: Any, X: Any, **options: Any) -> Any:
    """Return X as a matrix of float32 or float64, by the checks of scikit-learn.

    Entries may still be NaN or infinite. ``options`` are arguments of ``validate_data``. Error
    messages have one line.
    """
    options = {"dtype": [np.float64, np.float32], "ensure_all_finite": False, **options}
    try:
        # Arrays of other libraries become NumPy arrays, also if scikit-learn could dispatch them.
        with config_context(array_api_dispatch=False):
            # SciPy uses the indices of other sparse formats without checking them.
            return validate_data(estimator, as_compressed(readable(X)), **options)
    except (ValueError, TypeError, OverflowError) as error:
        kind = TypeError if type(error) is TypeError else ValueError
        if not re.search(r"could not convert|too large|inhomogeneous|float\(\)", str(error)):
            raise kind(_one_line(str(error))) from error
        if is_table(X):
            frame_to_array(X[:0])  # raises an error that names the columns without numbers
        raise kind(
            f"X must hold numbers: {error}; encode categories with "
            "sklearn.preprocessing.OneHotEncoder, or leave such columns out"
        ) from error


def _one_line(message: str) -> str:
    """Return a message of scikit-learn in one line, without its printed array."""
    message = re.sub(r":\narray=.*?\.\n", "; ", message, flags=re.DOTALL)
    message = message.replace("Found array with", "X has").replace(
        "at least one array or dtype is required", "X has no columns; give at least 1"
    )
    return " ".join(message.split())


def _take_shape(estimator: Any, X: Any, names: list[str] | None, reset: bool) -> None:
    """Set or compare the number and the names of the columns, as scikit-learn does for arrays."""
    _check_n_features(estimator, X, reset=reset)
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    known = input_names(estimator)
    if names and known and names != known:
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{sorted({*names} ^ {*known}) or 'their order differs'}; give the same columns in the "
            "same order"
        )


def expanded(
    design: Design,
    features: str,
    weight: Any = None,
    scales: tuple[float, float] = (1.0, 1.0),
) -> Design:
    """Return the design expanded by ``features``: columns, products, curves or surfaces.

    ``weight`` are sample weights, from which the map is made. ``scales`` are gamma and r of the
    polynomial kernel.
    """
    kind = features_named(features)
    if tuple(scales) == (1.0, 1.0):
        return kind.make(design, weight)
    if kind.scaled is None:
        raise ValueError(
            f"gamma and r are those of features='polynomial', got features={features!r}; leave "
            "them at 1"
        )
    return kind.scaled(design, *scales)


def norm_for(estimator: Any, norm: str | Norm, design: Design) -> Norm:
    """Return the norm over the columns of the design, with groups of column numbers.

    Named groups, such as "inputs", are groups of the design. The norm "groups" uses the groups
    that the design has.
    """
    map = map_of(design)
    if norm == "groups" and map.unit is not None:
        norm = Groups(map.unit)
    if isinstance(norm, Groups | KSupport) and isinstance(norm.groups, str):
        if norm.groups != map.unit:
            raise ValueError(
                f"groups={norm.groups!r}: only an additive model has groups 'inputs', "
                "features='anova' 'terms', and multiple kernel learning 'kernels'; use "
                "features='splines' or another of those, or lists of columns"
            )
        if isinstance(norm, KSupport):
            norm = KSupport(norm.k, map.column_groups())
        else:
            weights = None if norm.weights is None else map.weights_of_groups(norm.weights)
            norm = Groups(map.column_groups(), weights)
    found = as_norm(norm)
    names = input_names(estimator)
    return found if names is None else found.with_names(names)


def norm_on(norm: Norm, design: Design) -> Norm:
    """Return the norm for the columns of a design.

    They form a matrix with one column, unless the design or the norm has another shape.
    """
    shape: Any = design.traits.matrix_shape or norm.matrix_shape or (design.shape[1], 1)
    return norm.on(design.shape[1], shape)


def unpenalized_columns(estimator: Any, design: Design) -> Columns | None:
    """Return the columns of the design that belong to the ``unpenalized`` inputs."""
    if estimator.unpenalized is None:
        return None
    given = named_columns(estimator.unpenalized, input_names(estimator), "unpenalized")
    map = map_of(design)
    return map.main_columns(check_free(given, map.n_inputs))


def input_names(estimator: Any) -> list[str] | None:
    """Return the names of the columns of the fit, if they had names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


def amount_of(estimator: Any, default: Callable[[], float] | None = None) -> float:
    """Return alpha (``default()`` if it is None), or radius in the constrained form."""
    if estimator.form == "constrained":
        return positive("radius", estimator.radius, "bound on the gauge")
    if estimator.alpha is None and default is not None:
        return default() or 1.0
    return positive("alpha", estimator.alpha, "weight of the penalty")


def checked_l1_ratio(value: Any) -> float:
    """Return l1_ratio as a float, or raise if it is not a number in [0, 1]."""
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ValueError(
            f"l1_ratio must be a number from 0 to 1, got {value!r}; use 1 for the norm without "
            "squares, 0 for squares without the norm"
        )
    return float(value)


def penalty_of(norm: Norm, form: Form, amount: float, l1_ratio: float) -> tuple[Regularizer, float]:
    """Return the regularizer, and the weight tau of (tau/2) ||w||^2.

    They are alpha * l1_ratio * R(w) and alpha * (1 - l1_ratio). For l1_ratio = 0 the regularizer is
    the square of the l2 norm.
    """
    if l1_ratio == 1.0:
        return Regularizer(norm, form, amount), 0.0
    if form == "constrained":
        raise ValueError(
            f"form='constrained' needs l1_ratio=1, got l1_ratio={l1_ratio}: a bound on the norm "
            "has no alpha; use form='penalized' or form='squared'"
        )
    if l1_ratio == 0.0:
        return Regularizer(L2(), "squared", amount), 0.0
    return Regularizer(norm, form, amount * l1_ratio), amount * (1.0 - l1_ratio)


def whole(name: str, value: Any) -> int:
    """Return a parameter as an int >= 1, or raise with the remedy."""
    return whole_number("the estimator", name, value)


def loss_task(estimator: Any) -> str:
    """Return the task of the estimator's loss, or "" if there is no such loss."""
    try:
        return as_loss(estimator.loss).task
    except (TypeError, ValueError):
        return ""


def check_probabilities(estimator: Any) -> bool:
    """Return True if the loss of the estimator gives probabilities, or raise AttributeError."""
    loss = estimator.loss
    if loss_task(estimator) == "classification" and has_probabilities(as_loss(loss)):
        return True
    raise AttributeError(
        f"{type(estimator).__name__}(loss={loss!r}) has no probabilities; use loss='logistic', or "
        "decision_function, or sklearn.calibration.CalibratedClassifierCV around it"
    )


def as_solver(solver: str | Solver, tol: float) -> Solver | None:
    """Return the solver of a name, or the given solver; None for "auto"."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return None
    try:
        return SOLVERS[solver](tol)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"solver must be 'auto' or one of {sorted(SOLVERS)}, or a Solver such as "
            f"solvers.ColumnGeneration(); got {solver!r}"
        ) from error
