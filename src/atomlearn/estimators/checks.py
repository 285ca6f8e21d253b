"""Checks of the parameters and the data that users pass to estimators."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data

from atomlearn import core, papers
from atomlearn._support import (
    as_table,
    frame_to_array,
    holds_numbers,
    is_number,
    is_table,
    positive,
    whole_number,
)
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
    has_probabilities,
    is_opened,
    named_columns,
    readable,
    refuse_not_finite,
    unwrapped,
)
from atomlearn.estimators.encoded import is_finite, was_encoded
from atomlearn.maps.feature_map import map_of
from atomlearn.maps.features import features_named


class Available:
    """A method that an object has if ``check`` accepts it; else ``check`` raises its error."""

    def __init__(self, check: Callable[[Any], Any], method: Callable[..., Any]) -> None:
        """Store the check and the method; the docstring of the method is kept."""
        self.check = check
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, kind: type) -> Callable[..., Any]:
        """Return the method bound to an object, after the check; the plain function for a class.

        owner : the object, None if the attribute is read from its class ``kind``.
        """
        if owner is None:
            return self.method
        self.check(owner)
        return MethodType(self.method, owner)


def available_if(check: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: the method exists only if ``check(object)`` raises no AttributeError."""
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

    reset : whether X is the data of a fit. Then ``n_features_in_`` and ``feature_names_in_`` are
    set; otherwise they are compared. A Design (a matrix that may be on disk), a file or a folder is
    opened by ``as_design``. A table with words, dates or gaps is encoded if ``estimator.encode``,
    which sets ``encoding_``.
    """
    if reset:
        vars(estimator).pop("encoding_", None)
    encoding = table_encoding(estimator)
    # A floating-point array that needs no conversion: only its entries are checked.
    is_plain = (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.aligned
    )
    if is_plain and (reset or input_names(estimator) is None):
        _set_or_compare_shape(estimator, X, None, reset)
        design: Design = DenseDesign(X)
        refuse_not_finite(design)
        return design
    X = as_table(X)
    may_encode = reset and estimator.encode and is_table(X)
    if encoding is not None or was_encoded(X) or (may_encode and not holds_numbers(X)):
        return _encoded(estimator, X, reset)
    if is_opened(X):
        design = as_design(X)
        _set_or_compare_shape(estimator, design, feature_names(X), reset)
        return design
    checked = checked_array(estimator, X, reset=reset, accept_sparse=["csr", "csc"])
    design = as_design(checked, check_finite=False)
    if may_encode and not is_finite(design):
        return _encoded(estimator, X, reset)
    refuse_not_finite(design, X)
    return design


def encoded_rows(estimator: Any, X: Any) -> Any:
    """Return X as a design of encoded columns if the estimator encoded its table, else as it is."""
    return X if table_encoding(estimator) is None else checked_design(estimator, X, reset=False)


def table_encoding(estimator: Any) -> Any:
    """Return how the table of the fit was encoded, None if it had only numbers.

    ``estimator`` is one of this library.
    """
    return vars(estimator).get("encoding_")


def _encoded(estimator: Any, X: Any, reset: bool) -> Design:
    """Return a table, or rows that were encoded before, in the encoding of the estimator.

    reset : whether X is the data of a fit. A fit makes a new encoding and stores it in
    ``encoding_``; other rows must have the columns of the fit.
    """
    # Imported here because tables of numbers do not need the readers of words and dates.
    from atomlearn.estimators import tables

    encoding = table_encoding(estimator)
    # Rows of an encoded table, such as those of a fold: only the imputed values may change.
    if was_encoded(X):
        design: Any = unwrapped(X)
        design = design.learned_from() if reset else design.filled_by(encoding or design.encoding)
        names = [plan.name for plan in design.encoding.columns]
        _set_or_compare_shape(estimator, np.empty((1, len(names))), names, reset)
    elif reset:
        design = tables.learned_design(X)
        _set_or_compare_shape(estimator, X, feature_names(X), reset)
    else:
        if is_opened(X):
            raise ValueError(
                f"{type(estimator).__name__} was fitted to a table that it encoded, and cannot "
                f"encode a {type(X).__name__}; pass a table with the same columns"
            )
        if not is_table(X):
            _check_feature_names(estimator, X, reset=False)  # warns that X has no names
        _set_or_compare_shape(estimator, X, feature_names(X), reset)
        design = tables.encoded_as_before(encoding, X)
    if reset:
        estimator.encoding_ = design.encoding
    encoded: Design = design
    return encoded


def checked_array(estimator: Any, X: Any, **options: Any) -> Any:
    """Return X as a matrix of float32 or float64, by the checks of scikit-learn.

    Entries may still be NaN or infinite. ``options`` are arguments of ``validate_data``. Error
    messages have one line. ``estimator`` is one of this library.
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
    """Return an error message of scikit-learn in one line, without its printed array."""
    message = re.sub(r":\narray=.*?\.\n", "; ", message, flags=re.DOTALL)
    message = message.replace("Found array with", "X has").replace(
        "at least one array or dtype is required", "X has no columns; give at least 1"
    )
    return " ".join(message.split())


def _set_or_compare_shape(estimator: Any, X: Any, names: list[str] | None, reset: bool) -> None:
    """Set or compare the number and the names of the columns, as scikit-learn does for arrays.

    names : the names of the columns of X, or None. reset : whether X is the data of a fit, whose
    shape is stored in the estimator.
    """
    fitted_names = [*vars(estimator).get("feature_names_in_", ())]
    if not reset and names and fitted_names and names != fitted_names:
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{sorted({*names} ^ {*fitted_names}) or 'their order differs'}; give the same columns "
            "in the same order"
        )
    _check_n_features(estimator, X, reset=reset)
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)


def expanded(
    design: Design, features: Any, weight: Any = None, scales: tuple[float, float] = (1.0, 1.0)
) -> Design:
    """Return the design expanded by ``features``: columns, products, curves or surfaces.

    ``weight`` are sample weights, from which the map is made. ``scales`` are gamma and r of the
    polynomial kernel.
    """
    entry = features_named(features)
    if tuple(scales) == (1.0, 1.0):
        return entry.make(design, weight)
    if "gamma" not in entry.settings:
        raise ValueError(
            "gamma and r are those of features='polynomial' and 'cubic', got "
            f"features={features!r}; leave them at 1"
        )
    gamma, r = scales
    return entry.make(design, weight, gamma=gamma, r=r)


def norm_for(estimator: Any, norm: str | Norm, design: Design) -> Norm:
    """Return the norm over the columns of the design, with groups of column numbers.

    norm : a norm or its name. If its groups are a word, such as "inputs", the design defines these
    groups; the norm "groups" takes the groups that the design has. In lists of groups, names of
    columns are looked up among the names of the columns of the fit. ``estimator`` is one of this
    library.
    """
    has_named_groups = isinstance(norm, Groups | KSupport) and isinstance(norm.groups, str)
    if has_named_groups or norm == "groups":
        norm = _named_groups(estimator, norm, map_of(design))
    norm_object = as_norm(norm)
    names = input_names(estimator)
    return norm_object if names is None else norm_object.with_names(names)


def _named_groups(estimator: Any, norm: Any, map: Any) -> Any:
    """Return the norm with the groups of columns that its word, such as "inputs", stands for.

    norm : "groups", or a norm whose groups are a word. map : the feature map of the design; its
    groups are the columns of each curve, surface or kernel. Without such a map the groups are the
    columns of each category of the table, called "inputs". ``estimator`` is one of this library.
    """
    # The groups are those of the feature map, or else those of the table of the fit.
    columns = None if map.unit is not None else table_groups(estimator)
    unit = map.unit or ("inputs" if columns is not None else None)
    # Without any such groups, "groups" remains, and ``as_norm`` raises its error.
    if norm == "groups":
        return norm if unit is None else _named_groups(estimator, Groups(unit), map)
    if norm.groups != unit:
        raise ValueError(
            f"groups={norm.groups!r}: only an additive model, or a table with categories, has "
            "groups 'inputs', features='anova' 'terms', and multiple kernel learning 'kernels'; "
            "use features='splines' or another of those, or lists of columns"
        )
    has_map_groups = columns is None
    columns = map.column_groups() if has_map_groups else columns
    if isinstance(norm, KSupport):
        return KSupport(norm.k, columns)
    weights = norm.weights
    if has_map_groups and weights is not None:
        weights = map.weights_of_groups(weights)
    return Groups(columns, weights)


def norm_on(norm: Norm, design: Design) -> Norm:
    """Return the norm for the columns of a design.

    They form a matrix with one column, unless the design or the norm has another shape.
    """
    shape: Any = design.traits.matrix_shape or norm.matrix_shape or (design.shape[1], 1)
    return norm.on(design.shape[1], shape)


def unpenalized_columns(estimator: Any, design: Design) -> Columns | None:
    """Return the columns of the design that belong to the ``unpenalized`` inputs, None if none.

    ``estimator`` is one of this library.
    """
    if estimator.unpenalized is None:
        return None
    map = map_of(design)
    inputs = unpenalized_inputs(estimator, map.n_inputs)
    return None if inputs is None else map.main_columns(inputs)


def unpenalized_inputs(estimator: Any, n_inputs: int) -> Columns | None:
    """Return the indices of the inputs that ``unpenalized`` names, None if it is None.

    n_inputs : number of inputs. If a table was encoded, they are columns of the encoded table.
    ``estimator`` is one of this library.
    """
    unpenalized = estimator.unpenalized
    encoding = table_encoding(estimator)
    if unpenalized is None:
        return None
    if encoding is not None:
        columns: Columns = encoding.columns_of(unpenalized, "unpenalized")
        return columns
    return check_free(named_columns(unpenalized, input_names(estimator), "unpenalized"), n_inputs)


def table_groups(estimator: Any) -> Columns | None:
    """Return, for each encoded column, the index of the table column that it is made of, or None.

    None if the table was not encoded, if each of its columns gave one encoded column, or if the
    model has curves or products. ``estimator`` is one of this library.
    """
    encoding = table_encoding(estimator)
    if encoding is None or estimator.features != "linear":
        return None
    sources: Columns = encoding.sources
    return sources if np.unique(sources).size < sources.size else None


def input_names(estimator: Any) -> list[str] | None:
    """Return the names of the columns of the fit, or of the encoded columns; None without names.

    ``estimator`` is one of this library.
    """
    if (encoding := table_encoding(estimator)) is not None:
        return list(encoding.names)
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else list(names)


def amount_of(estimator: Any, default: Callable[[], float] | None = None) -> float:
    """Return alpha, or the radius in the constrained form, checked.

    default : a function that returns the alpha to take if ``alpha`` is None. ``estimator`` is one
    of this library.
    """
    if estimator.form == "constrained":
        return positive("radius", estimator.radius, "bound on the gauge")
    if estimator.alpha is None and default is not None:
        return default() or 1.0
    return positive("alpha", estimator.alpha, "weight of the penalty")


def checked_l1_ratio(value: Any) -> float:
    """Return ``value``, an l1_ratio, as a float; raise if it is not a number in [0, 1]."""
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ValueError(
            f"l1_ratio must be a number from 0 to 1, got {value!r}; use 1 for the norm without "
            "squares, 0 for squares without the norm"
        )
    return float(value)


def penalty_of(norm: Norm, form: Form, amount: float, l1_ratio: float) -> tuple[Regularizer, float]:
    """Return the regularizer, and the weight tau of (tau/2) ||w||^2.

    norm : R. form : how R enters. amount : alpha, or the radius if constrained. The regularizer is
    alpha * l1_ratio * R(w), and tau is alpha * (1 - l1_ratio). For l1_ratio = 0 the regularizer is
    alpha times half the squared l2 norm.
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
    """Return the ``value`` of the parameter ``name`` as an int >= 1, or raise ValueError."""
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
    """Return the solver with this name, or the solver itself; None for "auto".

    tol : the relative gap, for solvers that are given by name.
    """
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


def checked_shares(relax: object) -> tuple[float, ...]:
    """Return the parameter ``relax`` as a tuple of shares; raise if one is not in [0, 1]."""
    if type(relax) is float and 0.0 <= relax <= 1.0:
        return (relax,)
    try:
        shares = np.atleast_1d(np.asarray(relax, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"relax must be a number in [0, 1], or a list of them: {error}") from error
    if shares.ndim != 1 or not shares.size or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(
            f"relax must be a number in [0, 1] (0: as penalized, 1: refitted), or a list of them; "
            f"got {relax!r}"
        )
    return tuple(float(share) for share in shares)
