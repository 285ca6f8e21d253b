"""Fitted linear models as estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from atomlearn.core import Array, as_loss, has_link, has_probabilities
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names
from atomlearn.estimators.coefficients import nonzero_coefficients


def to_sklearn(estimator: Any) -> Any:
    """Return an estimator of scikit-learn with the same predictions, for tools that need one.

    Parameters
    ----------
    estimator : fitted linear estimator
        ``AtomicRegressor`` (identity link), ``AtomicClassifier``, ``AtomicSurvival``,
        ``FeatureGenerator``, or one with cross-validation, with ``features="linear"``.

    Returns
    -------
    LinearRegression, LogisticRegression, OneVsRestClassifier or LinearSVC
        Its ``coef_``, ``intercept_`` and ``classes_`` are set, without a call of ``fit``. So its
        parameters (such as C) are not those of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, interop
    >>> X, y = np.eye(4), np.array([3.0, 0.0, 0.0, 1.0])
    >>> model = AtomicRegressor(alpha=0.1).fit(X, y)
    >>> plain = interop.to_sklearn(model)
    >>> type(plain).__name__, bool(np.allclose(plain.predict(X), model.predict(X)))
    ('LinearRegression', True)
    """
    check_is_fitted(estimator)
    owner = type(estimator).__name__
    if not isinstance(estimator, AtomicModel):
        raise TypeError(f"{owner} is not a linear model of atomlearn with coef_ and a loss")
    loss: Any = as_loss(estimator.loss)
    if estimator.features != "linear":
        raise ValueError(
            f"{owner} was fitted with features={estimator.features!r}, which scikit-learn's linear "
            "models cannot form from columns; write its model file instead (reports.write_model)"
        )
    if loss.task == "regression" and has_link(loss):
        raise ValueError(
            f"the loss {loss.name!r} has a link, and scikit-learn has no linear model with one "
            "whose coefficients can be set; write its model file instead (reports.write_model)"
        )
    # Coefficients of all columns as a dense matrix (n_outputs, n_features).
    columns, weights = nonzero_coefficients(estimator.coef_)
    dense = np.zeros((len(weights), np.shape(estimator.coef_)[-1]))
    dense[:, columns] = weights
    intercepts = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), (len(weights),))
    # The estimator of scikit-learn whose decision function is linear and whose link is the same.
    model: Any
    if not is_classifier(estimator):
        model = LinearRegression()
        model.coef_ = dense if estimator.coef_.ndim > 1 else dense[0]
        model.intercept_ = intercepts if estimator.coef_.ndim > 1 else intercepts[0]
    elif has_probabilities(loss) and len(weights) > 1 and estimator.multi_class != "multinomial":
        model = _one_against_rest(dense, intercepts, estimator.classes_)
    else:
        model = LogisticRegression() if has_probabilities(loss) else LinearSVC()
        model.coef_ = dense
        model.intercept_ = intercepts
        model.classes_ = estimator.classes_
    model.n_features_in_ = dense.shape[1]
    if (names := input_names(estimator)) is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _one_against_rest(coef: Array, intercepts: Array, classes: NDArray[Any]) -> Any:
    """Return scikit-learn's one-against-rest of logistic regressions, without fitting it.

    coef, intercepts : (n_classes, n_features) and (n_classes,). classes : the sorted labels.
    """
    model = OneVsRestClassifier(LogisticRegression())
    model.estimators_ = []
    for row, intercept in zip(coef, intercepts, strict=True):
        binary_model = LogisticRegression()
        binary_model.coef_ = row[None]
        binary_model.intercept_ = np.array([intercept])
        binary_model.classes_ = np.array([0, 1])
        binary_model.n_features_in_ = coef.shape[1]
        model.estimators_.append(binary_model)
    model.classes_ = classes
    model.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    return model
