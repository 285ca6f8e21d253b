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

from atomlearn.core import Array, as_loss, has_link, has_probabilities, nonzero_coefficients
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names


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
    columns, weights = nonzero_coefficients(estimator.coef_)
    dense = np.zeros((len(weights), estimator.n_features_in_))
    dense[:, columns] = weights
    intercepts = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), (len(weights),))
    plain: Any
    if not is_classifier(estimator):
        plain = LinearRegression()
        plain.coef_ = dense if estimator.coef_.ndim > 1 else dense[0]
        plain.intercept_ = intercepts if estimator.coef_.ndim > 1 else intercepts[0]
    elif has_probabilities(loss) and len(weights) > 1 and estimator.multi_class != "multinomial":
        plain = _one_against_rest(dense, intercepts, estimator.classes_)
    else:
        plain = LogisticRegression() if has_probabilities(loss) else LinearSVC()
        plain.coef_ = dense
        plain.intercept_ = intercepts
        plain.classes_ = estimator.classes_
    plain.n_features_in_ = estimator.n_features_in_
    if input_names(estimator) is not None:
        plain.feature_names_in_ = estimator.feature_names_in_
    return plain


def _one_against_rest(coef: Array, intercepts: Array, classes: NDArray[Any]) -> Any:
    """Return scikit-learn's one-against-rest of logistic regressions."""
    plain = OneVsRestClassifier(LogisticRegression())
    plain.estimators_ = []
    for row, intercept in zip(coef, intercepts, strict=True):
        one = LogisticRegression()
        one.coef_, one.intercept_ = row[None], np.array([intercept])
        one.classes_ = np.array([0, 1])
        one.n_features_in_ = coef.shape[1]
        plain.estimators_.append(one)
    plain.classes_ = classes
    plain.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    return plain
