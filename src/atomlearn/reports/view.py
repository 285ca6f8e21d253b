"""View: a fitted linear or additive model over a design, without the pipelines around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import _check_n_features

from atomlearn.core.data.coefficients import nonzero_coefficients
from atomlearn.core.interfaces import Array, Design, Rows
from atomlearn.designs import as_design, feature_names
from atomlearn.findings.held_out import unsearched
from atomlearn.maps.feature_map import FeatureMap, map_of


@dataclass(frozen=True, slots=True)
class View:
    """A fitted linear model over a design: what the page is about, without pipelines and maps.

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
        return int(self.weights.shape[0])


def view_of(estimator: Any, X: Any, names: Sequence[str] | None) -> View:
    # What a search of scikit-learn found.
    model, data = unsearched(estimator), X
    masks: list[Any] = []
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
    if not hasattr(model, "coef_"):
        model = getattr(model, "estimator_", model)
    if not hasattr(model, "coef_"):
        raise TypeError(
            f"{type(estimator).__name__} has no coef_; report() is about linear and additive "
            "models, ours or those of sklearn.linear_model; after a selector, a pipeline that ends "
            "with one: make_pipeline(selector, LinearRegression())"
        )
    own = getattr(model, "feature_names_in_", None)
    design = inputs = as_design(data)
    _check_n_features(model, inputs, reset=False)
    terms = getattr(model, "feature_map_", None)
    if terms is not None and getattr(model, "features", "linear") != "linear":
        design = terms.apply(inputs)
    terms = map_of(design) if terms is None else terms
    columns, weights = nonzero_coefficients(model.coef_)
    labels = given or (list(own) if own is not None else [f"x{j}" for j in range(inputs.shape[1])])
    classes = tuple(model.classes_.tolist()) if is_classifier(model) else None
    offered = max([inputs.shape[1], *map(len, masks)])
    return View(model, inputs, design, terms, [str(n) for n in labels], columns, weights, classes,
                offered)  # fmt: skip


def target_names(y: Any) -> list[str]:
    """Return the names that a column or a table of targets has, none where it has none."""
    found: list[Any] = list(getattr(y, "columns", [getattr(y, "name", None)]))
    return found if all(str(name) == name and name.strip() for name in found) else []


def outputs_of(view: View, target: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    if view.classes is None:
        if len(names) == view.outputs > 1:
            return tuple(names)
        return (target,) if view.outputs == 1 else tuple(
            f"{target}[{place}]" for place in range(view.outputs))  # fmt: skip
    if view.outputs == 1:
        return (str(view.classes[-1]),)
    return tuple(str(label) for label in view.classes)
