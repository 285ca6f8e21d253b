"""Imputed: any estimator behind scikit-learn's imputer, as ``--missing`` of the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _estimator_has, check_is_fitted

from atomlearn.core.data.convert import readable
from atomlearn.core.interfaces.numbers import unmasked


class Imputed(MetaEstimatorMixin, BaseEstimator):
    """An estimator of X whose missing values (NaN) are filled in, flagged, or whose rows drop out.

    Parameters
    ----------
    estimator : estimator
        With a parameter ``groups`` that is None, a value and its flag are one group of it.
    missing : {"median", "indicator", "drop"}, default="median"
        "median": of the column; "indicator": and a 0/1 column that says where; "drop": rows with
        a missing value take no part in the fit, and are predicted with medians.

    Attributes
    ----------
    estimator_ : the fitted estimator
    imputer_ : sklearn.impute.SimpleImputer
    groups_ : (n_columns,) ndarray of int64
        The column of X that each column of the estimator comes from.

    References
    ----------
    D. B. Rubin. Inference and missing data. Biometrika 63 (1976) 581-592,
    doi:10.1093/biomet/63.3.581.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import FeatureGenerator, Imputed
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 6))
    >>> y = X[:, 2] > 0
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> model = Imputed(FeatureGenerator(1), "indicator").fit(X, y)
    >>> model.groups_[model.estimator_.get_support()].tolist(), bool(model.score(X, y) > 0.8)
    ([2, 2], True)
    """

    def __init__(self, estimator: Any, missing: str = "median") -> None:
        self.estimator = estimator
        self.missing = missing

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, **of_rows: Any) -> Imputed:
        """Fit imputer and estimator; ``of_rows`` such as ``sample_weight`` go to the estimator."""
        if self.missing not in ("median", "indicator", "drop"):
            raise ValueError(
                f"missing must be 'median', 'indicator' or 'drop', got {self.missing!r}"
            )
        flagged = self.missing == "indicator"
        self.imputer_ = SimpleImputer(
            strategy="median", add_indicator=flagged, keep_empty_features=True
        )
        for name, given in {"y": y, **of_rows}.items():
            unmasked(name, given)
        filled = self.imputer_.fit_transform(readable(X))
        n_inputs = self.imputer_.n_features_in_
        self.groups_ = np.arange(n_inputs, dtype=np.int64)
        if flagged:
            flags = self.imputer_.indicator_.features_
            self.groups_ = np.append(self.groups_, flags).astype(np.int64)
        self.estimator_ = clone(self.estimator)
        params = self.estimator_.get_params(deep=False)
        if flagged and params.get("groups", 0) is None:
            self.estimator_.set_params(groups=self.groups_)
        if self.missing == "drop":
            full = ~np.isnan(np.asarray(X, dtype=np.float64)).any(axis=1)
            if not full.any():
                raise ValueError("every row of X has a missing value; use missing='median'")
            of_rows = {k: v if v is None else np.asarray(v)[full] for k, v in of_rows.items()}
            filled, y = filled[full], np.asarray(y)[full]
        self.estimator_.fit(filled, y, **of_rows)
        return self

    @property
    def classes_(self) -> Any:
        """The labels of a classifier."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return int(self.imputer_.n_features_in_)

    def _filled(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "estimator_")
        filled: NDArray[Any] = self.imputer_.transform(readable(X))
        return filled

    def predict(self, X: Any) -> Any:
        """Return the predictions for X, missing values filled in."""
        return self.estimator_.predict(self._filled(X))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.estimator_.predict_proba(self._filled(X))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the decisions of the estimator."""
        return self.estimator_.decision_function(self._filled(X))

    @available_if(_estimator_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return what the estimator makes of X, such as its selected columns."""
        return self.estimator_.transform(self._filled(X))

    def score(self, X: Any, y: Any, **of_rows: Any) -> float:
        """Return the score of the estimator."""
        return float(self.estimator_.score(self._filled(X), y, **of_rows))
