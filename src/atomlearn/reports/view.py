"""View: a fitted linear or additive model over a design, without the pipelines around it.

Only this module knows the differences between our estimators and those of scikit-learn.
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
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.findings.held_out import unsearched
from atomlearn.maps.feature_map import FeatureMap, map_of


@dataclass(frozen=True)
class View:
    """A fitted linear model over a design, without pipelines and maps.

    design : the columns that coefficients belong to; columns : (m,) those in use; weights :
    (n_outputs, m); inputs : the design of the columns of X as the model sees them; offered : how
    many columns these were chosen from by a selector before the model.
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

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.weights.shape[0])

    @property
    def is_mapped(self) -> bool:
        """Whether features are products or curves of the columns."""
        return self.map.unit is not None or self.map.implicit

    @cached_property
    def terms(self) -> Rows:
        """The numbers of the features in use, increasing."""
        found: Rows = np.unique(self.map.term_of(self.columns))
        return found

    @property
    def results(self) -> Sequence[Result]:
        """The results of the fits, of an estimator of ours."""
        return results_of(self.model)

    def input(self, column: int) -> Array:
        """Return one column of the inputs as an array."""
        return dense_part(self.inputs, np.array([column]))[:, 0]

    @property
    def labels(self) -> list[str] | None:
        """The names of the classes, None for numbers."""
        return None if self.classes is None else [str(label) for label in self.classes]

    def codes_of(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the number of the class of each row; numbers as they are."""
        if self.classes is None:
            return y
        if strange := y[~np.isin(y, self.classes)].tolist():
            raise ValueError(f"y has the class {strange[0]!r}, and the model knows {self.classes}")
        return np.searchsorted(np.array(self.classes), y)


class _Typed(str):
    """A name, shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def in_words(model: Any) -> str:
    """Return an estimator or a norm as it would be typed, on one line; groups by that name."""
    try:
        parameters = model.get_params()
    except AttributeError:  # a norm of one's own
        return " ".join(repr(model).split())
    given = {
        key: _Typed("groups")
        for key, value in parameters.items()
        if key.rpartition("__")[2] == "groups" and value is not None and not isinstance(value, str)
    }
    return " ".join(repr(clone(model, safe=False).set_params(**given)).split())


def results_of(model: Any) -> Sequence[Result]:
    """Return the results of the fits of an estimator of ours, of any other nothing."""
    return model.results_ if isinstance(model, AtomicModel) else ()


def level_of(model: Any) -> float | None:
    """Return the level that a model was fitted at, None if it has none or several."""
    try:
        alpha = model.alpha_
    except AttributeError:  # not chosen by cross-validation
        alpha = getattr(model, "alpha", None)
    return None if alpha is None or np.ndim(alpha) else float(alpha)


def objective_of(model: Any) -> dict[str, Any]:
    """Return loss, form and norm of a model of ours, as ``path`` takes them; nothing of others."""
    if not results_of(model):
        return {}
    given = model.get_params(deep=False) | {"loss": model.loss}
    if isinstance(model, CrossValidatedModel):
        given["norm"] = model.norm_
        given["form"] = model.form or model.norm_.usual_form
        given["l1_ratio"] = model.l1_ratio_
    return {
        key: given[key]
        for key in ("loss", "form", "norm", "l1_ratio", "standardize")
        if key in given
    }


def names_of_columns(estimator: Any, columns: ArrayLike, names: Any = None) -> list[str]:
    """Return the names of columns, as given, as those of the data, or x0, x1, ..."""
    known = _check_feature_names_in(estimator) if names is None else names
    return [str(known[column]) for column in np.asarray(columns)]


def view_of(estimator: Any, X: Any, names: Sequence[str] | None) -> View:
    """Return the linear model that an estimator, a search or a pipeline ends with."""
    model = unsearched(estimator)
    data = X
    offered = 0
    given = list(names) if names is not None else feature_names(X)
    if hasattr(model, "steps"):
        model, front = model[-1], model[:-1]
        if len(front):
            data = front.transform(X)
            try:
                given = [str(name) for name in front.get_feature_names_out(given)]
            except (AttributeError, ValueError):
                given = None
            masks = [step.get_support() for _, step in front.steps if hasattr(step, "get_support")]
            offered = max(map(len, masks), default=0)
    if not hasattr(model, "coef_"):
        model = getattr(model, "estimator_", model)
    if not hasattr(model, "coef_"):
        raise TypeError(
            f"{type(estimator).__name__} has no coef_; report() is about linear and additive "
            "models, ours or those of sklearn.linear_model; after a selector, a pipeline that ends "
            "with one: make_pipeline(selector, LinearRegression())"
        )
    inputs = as_design(data)
    _check_n_features(model, inputs, reset=False)
    design = inputs
    terms = map_of(inputs)
    if results_of(model):
        terms = model.feature_map_
        design = model._expanded(inputs)
    columns, weights = nonzero_coefficients(model.coef_)
    every = range(inputs.shape[1])
    labels = names_of_columns(model, every, given)
    classes = tuple(model.classes_.tolist()) if is_classifier(model) else None
    offered = max(inputs.shape[1], offered)
    return View(model, inputs, design, terms, labels, columns, weights, classes, offered)


def target_names(y: Any) -> list[str]:
    """Return the names of a column or a table of targets, [] without names."""
    found: list[Any] = list(getattr(y, "columns", [getattr(y, "name", None)]))
    return found if all(str(name) == name and name.strip() for name in found) else []


def outputs_of(view: View, target: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the outputs: targets, or classes, of two the last."""
    if view.classes is not None:
        return tuple(view.labels or ())[-view.outputs :]
    if len(names) == view.outputs > 1:
        return tuple(names)
    single = view.outputs == 1
    return (target,) if single else tuple(f"{target}[{at}]" for at in range(view.outputs))
