"""View: a fitted linear or additive model over a design, extracted from its pipeline.

Only this module depends on the differences between the estimators of atomlearn and scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import _check_feature_names_in, _check_n_features

from atomlearn.core import Array, Design, Result, Rows, as_design, dense_part, feature_names
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import encoded_rows, input_names
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.estimators.encoded import was_encoded
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.findings.held_out import best_of_search
from atomlearn.maps.feature_map import FeatureMap, map_of


@dataclass(frozen=True)
class View:
    """A fitted linear or additive model over a design, extracted from pipelines and searches.

    ``inputs`` is the design of the columns that the model was fitted to, after the transformers of
    a pipeline; ``map`` maps them to ``design``, the columns that the coefficients belong to.
    ``names`` are the names of the inputs. ``columns``, shape (m,), are the columns of ``design``
    with a nonzero coefficient, and ``weights``, shape (n_outputs, m), their coefficients.
    ``classes`` are the labels of a classifier, else None. ``offered`` is the number of columns
    before a selector in the pipeline. ``titles`` are the names of the inputs to display, such as
    those with gene symbols, or () if they are ``names``.
    """

    model: Any
    inputs: Design
    design: Design
    map: FeatureMap
    names: list[str]
    columns: Rows
    weights: Array
    classes: tuple[Any, ...] | None
    offered: int
    titles: Sequence[str] = ()

    @property
    def displayed(self) -> Sequence[str]:
        """The names of the inputs to display."""
        return self.titles or self.names

    @property
    def outputs(self) -> int:
        """The number of outputs of the model."""
        return int(self.weights.shape[0])

    @property
    def is_mapped(self) -> bool:
        """Whether the features are products or curves of the inputs."""
        return self.map.unit is not None or self.map.implicit

    @cached_property
    def terms(self) -> Rows:
        """The increasing indices of the features with a nonzero coefficient."""
        selected: Rows = np.unique(self.map.term_of(self.columns))
        return selected

    @property
    def results(self) -> Sequence[Result]:
        """The solver results of an estimator of atomlearn, () for others."""
        return results_of(self.model)

    def input(self, column: int) -> Array:
        """Return one column of the inputs as a dense array, shape (n_rows,)."""
        return dense_part(self.inputs, np.array([column]))[:, 0]

    @property
    def labels(self) -> list[str] | None:
        """The class labels as text, or None for other tasks."""
        return None if self.classes is None else [str(label) for label in self.classes]

    def codes_of(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the class code of each row of y; targets of other tasks are returned unchanged.

        Raises ValueError for a class that the model does not know.
        """
        if self.classes is None:
            return y
        if strange := y[~np.isin(y, self.classes)].tolist():
            raise ValueError(f"y has the class {strange[0]!r}, and the model knows {self.classes}")
        return np.searchsorted(np.array(self.classes), y)


class _Typed(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        """Return the string without quotes."""
        return str(self)


def in_words(model: Any) -> str:
    """Return the repr of an estimator or a norm on one line.

    An explicit list of groups is abbreviated to the name ``groups``.
    """
    try:
        parameters = model.get_params()
    except AttributeError:  # a norm defined by the user
        return " ".join(repr(model).split())
    replacements = {
        key: _Typed("groups")
        for key, value in parameters.items()
        if key.rpartition("__")[2] == "groups" and value is not None and not isinstance(value, str)
    }
    return " ".join(repr(clone(model, safe=False).set_params(**replacements)).split())


def results_of(model: Any) -> Sequence[Result]:
    """Return the solver results of an estimator of atomlearn, () for any other estimator."""
    return model.results_ if isinstance(model, AtomicModel) else ()


def level_of(model: Any) -> float | None:
    """Return the regularization strength alpha of a fitted model, None if it has no single one."""
    try:
        alpha = model.alpha_
    except AttributeError:  # not chosen by cross-validation
        alpha = getattr(model, "alpha", None)
    return None if alpha is None or np.ndim(alpha) else float(alpha)


def objective_of(model: Any) -> dict[str, Any]:
    """Return the loss, form, norm and standardization of a model of atomlearn.

    They are arguments of ``path``. The result is {} for other models.
    """
    if not results_of(model):
        return {}
    parameters = model.get_params(deep=False) | {"loss": model.loss}
    if isinstance(model, CrossValidatedModel):
        parameters["norm"] = model.norm_
        parameters["form"] = model.form or model.norm_.usual_form
        parameters["l1_ratio"] = model.l1_ratio_
    return {
        key: parameters[key]
        for key in ("loss", "form", "norm", "l1_ratio", "standardize")
        if key in parameters
    }


def names_of_columns(estimator: Any, columns: ArrayLike, names: Any = None) -> list[str]:
    """Return the names of columns with these indices.

    They are taken from ``names``, else from the training data of the estimator, else x0, x1, ...
    """
    names_known = input_names(estimator) if names is None else names
    names_known = _check_feature_names_in(estimator) if names_known is None else names_known
    return [str(names_known[column]) for column in np.asarray(columns)]


def view_of(estimator: Any, X: Any, names: Sequence[str] | None) -> View:
    """Return the ``View`` of the linear model inside an estimator, a search or a pipeline.

    A pipeline must end with the model; X is transformed by the steps before it. ``names`` are the
    names of the columns of X, or None.
    """
    model = best_of_search(estimator)
    data = X
    offered = 0
    names_of_inputs = list(names) if names is not None else feature_names(X)
    # In a pipeline the model is the last step, and its columns come out of the first steps.
    if hasattr(model, "steps"):
        model, first_steps = model[-1], model[:-1]
        if len(first_steps):
            data = first_steps.transform(X)
            try:
                names_of_inputs = [
                    str(name) for name in first_steps.get_feature_names_out(names_of_inputs)
                ]
            except (AttributeError, ValueError):
                names_of_inputs = None
            masks = [
                step.get_support() for _, step in first_steps.steps if hasattr(step, "get_support")
            ]
            offered = max(map(len, masks), default=0)
    # A selector such as StabilitySelector has its model in ``estimator_``.
    if not hasattr(model, "coef_"):
        model = getattr(model, "estimator_", model)
    if not hasattr(model, "coef_"):
        raise TypeError(
            f"{type(estimator).__name__} has no coef_; report() is about linear and additive "
            "models, ours or those of sklearn.linear_model; after a selector, a pipeline that ends "
            "with one: make_pipeline(selector, LinearRegression())"
        )
    # A table is encoded as numbers in the same way as in the fit.
    inputs = as_design(encoded_rows(model, data))
    if was_encoded(inputs):
        names_of_inputs = inputs.names
    else:
        _check_n_features(model, inputs, reset=False)
    design = inputs
    feature_map = map_of(inputs)
    # An estimator of atomlearn may have made products or curves of its inputs.
    if results_of(model):
        feature_map = model.feature_map_
        design = model._expanded(inputs)
    columns, weights = nonzero_coefficients(model.coef_)
    all_columns = range(inputs.shape[1])
    labels = names_of_columns(model, all_columns, names_of_inputs)
    classes = tuple(model.classes_.tolist()) if is_classifier(model) else None
    offered = max(inputs.shape[1], offered)
    return View(model, inputs, design, feature_map, labels, columns, weights, classes, offered)


def target_names(y: Any) -> list[str]:
    """Return the names of the targets in a pandas Series or DataFrame, [] without names."""
    names: list[Any] = list(getattr(y, "columns", [getattr(y, "name", None)]))
    return names if all(str(name) == name and name.strip() for name in names) else []


def outputs_of(view: View, target: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the outputs: of the targets, or of the classes.

    For two classes it is the name of the second class only. ``names`` are the names of several
    targets; ``target`` names a single target. ``view`` is the fitted model with its inputs.
    """
    if view.classes is not None:
        return tuple(view.labels or ())[-view.outputs :]
    if len(names) == view.outputs > 1:
        return tuple(names)
    has_one = view.outputs == 1
    return (target,) if has_one else tuple(f"{target}[{output}]" for output in range(view.outputs))
