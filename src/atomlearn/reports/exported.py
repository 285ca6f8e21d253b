"""exported_model: the model file of a fitted estimator, which the command line reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from atomlearn import __version__
from atomlearn.core import as_loss
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names, table_encoding
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.reports.halves import curve_of
from atomlearn.reports.model import (
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.storage.formats.table import Schema


def exported_model(estimator: Any, target: str = "target") -> SavedModel:
    """Return the model file of a fitted estimator, with the encoding of its table.

    ``target`` is the name of the target. Models of surfaces and kernels are refused.
    """
    check_is_fitted(estimator)
    map = vars(estimator).get("feature_map_")
    if not isinstance(estimator, AtomicModel) or map is None or map.unit not in (None, "inputs"):
        raise TypeError(
            "a model file holds linear models, products and curves of this library, got "
            f"{type(estimator).__name__}; persist others by pickle"
        )
    columns, weights = nonzero_coefficients(estimator.coef_)
    has_curves = map.unit == "inputs"
    terms = np.unique(map.term_of(columns)) if has_curves else columns
    # The inputs of a term: one, or two of a product; -1 stands for no second input.
    pairs = [[int(column) for column in pair if column >= 0] for pair in map.inputs_of(terms)]
    inputs = sorted({column for pair in pairs for column in pair})
    names = input_names(estimator)
    names_of_inputs = names or [f"x{column}" for column in range(map.n_inputs)]
    # A curve has the coefficient 1: its values contain the coefficients of its basis.
    features = []
    for term, pair in zip(terms.tolist(), pairs, strict=True):
        curve = ModelCurve(*curve_of(map, columns, weights, term)) if has_curves else None
        name = map.term_names([term], names)[0] if has_curves else map.names([term], names)[0]
        factors = tuple(inputs.index(column) for column in pair)
        features.append(ModelFeature(term, name, factors, curve))
    encoding = table_encoding(estimator)
    plans = () if encoding is None else encoding.columns
    schema = Schema(len(names_of_inputs), tuple(names_of_inputs), columns=plans).restricted_to(
        inputs
    )
    n_outputs = len(weights)
    task = as_loss(estimator.loss).task
    return SavedModel(
        task=task,
        loss=as_loss(estimator.loss).name,
        target=target,
        classes=tuple(estimator.classes_.tolist()) if is_classifier(estimator) else None,
        n_features=map.n_terms if has_curves else map.n_columns,
        n_inputs=len(names_of_inputs),
        inputs=tuple(ModelInput(column, names_of_inputs[column]) for column in inputs),
        features=tuple(features),
        is_named=names is not None,
        first_index=0,
        coefficients=np.ones((n_outputs, terms.size)) if has_curves else weights,
        intercepts=np.broadcast_to(np.asarray(estimator.intercept_, np.float64), (n_outputs,)),
        certificates=tuple(
            ModelCertificate(
                result.status.name, result.objective, result.gap, result.relative_gap, result.passes
            )
            for result in estimator.results_
        ),
        settings=_settings(estimator, task),
        created_with=f"atomlearn {__version__}",
        columns=schema.columns,
    )


def _settings(estimator: Any, task: str) -> dict[str, Any]:
    """Return the settings that predictions need: joint classes, and the baseline hazard.

    task : the task of the loss. The hazard is stored if there is one stratum. ``estimator`` is the
    fitted estimator.
    """
    settings: dict[str, Any] = {"method": "atomic norm"}
    # One result for more than two classes means that one fit has all classes.
    if task == "classification" and len(estimator.results_) == 1 < len(estimator.classes_) - 1:
        settings["classes"] = "together"
    if task == "survival" and len(estimator.baselines_) == 1:
        [baseline] = estimator.baselines_.values()
        if np.isfinite(baseline.cumulative).all():
            settings["baseline_score"] = 0.0
            settings["baseline_times"] = baseline.times.tolist()
            settings["baseline_hazard"] = baseline.cumulative.tolist()
    return settings
