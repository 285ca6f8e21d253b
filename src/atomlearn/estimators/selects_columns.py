"""SelectsColumns: transformers that return the columns with a coefficient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from atomlearn.core import LIMITS, Columns, Mask, is_opened
from atomlearn.estimators.checks import available_if, checked_design, input_names, table_encoding
from atomlearn.maps.feature_map import FeatureMap, Inputs
from atomlearn.maps.features import features_named


def _selects_columns(estimator: Any) -> bool:
    """Return True if the estimator selects columns of X, else raise AttributeError."""
    if not features_named(estimator.features).kind.implicit:
        return True
    raise AttributeError("products of columns cannot be undone; use features='linear'")


class SelectsColumns(SelectorMixin):
    """``transform`` and ``get_support`` of the columns with a coefficient; not for direct use.

    ``selected_`` has the indices of these columns among those of ``feature_map_``: the columns of
    X, or the columns that are made of them, such as products and curves.
    """

    features: str
    n_features_in_: int
    feature_map_: FeatureMap
    selected_: Columns

    def _get_support_mask(self) -> Mask:
        """Return the mask of the selected features."""
        check_is_fitted(self)
        n_columns = self._selectable.n_columns
        if n_columns > LIMITS.most_dense:
            raise ValueError(
                f"a mask of {n_columns} columns would not fit; use get_support(indices=True)"
            )
        mask = np.zeros(n_columns, dtype=bool)
        mask[self._columns_selected()] = True
        return mask

    @property
    def _selectable(self) -> FeatureMap:
        """The map of the columns from which ``transform`` selects: columns of X, or products."""
        names = input_names(self)
        n_inputs = self.n_features_in_ if table_encoding(self) is None else len(names or ())
        return self.feature_map_ if self.feature_map_.implicit else Inputs(n_inputs)

    def _terms_selected(self) -> Columns:
        """Return the numbers of the selected terms of the map: columns, products or curves."""
        return np.unique(self.feature_map_.term_of(self.selected_))

    def _columns_selected(self) -> Columns:
        """Return the selected columns of X (or of the products), in increasing order."""
        if self.feature_map_.implicit:
            return np.sort(self.selected_)
        inputs = self.feature_map_.inputs_of(self._terms_selected())
        return np.unique(inputs[inputs >= 0])

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return the mask of the selected columns, or their increasing numbers (``indices``)."""
        check_is_fitted(self)
        return self._columns_selected() if indices else self._get_support_mask()

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X in increasing order, (n_samples, n_selected).

        Only the selected products are formed.
        """
        check_is_fitted(self)
        # Scikit-learn selects columns of arrays. Encoded tables, products, and designs that are
        # opened are read here.
        selects_from_X = table_encoding(self) is None and not self.feature_map_.implicit
        if selects_from_X and not is_opened(X):
            with warnings.catch_warnings():
                # A large penalty selects no columns; this is a valid model.
                warnings.filterwarnings("ignore", "No features were selected")
                return super().transform(X)
        design = self._selectable.apply(checked_design(self, X, reset=False))
        block = design.gather(self._columns_selected())
        return (block.stored() if block.traits.is_sparse else block.dense()).astype(design.dtype)

    @available_if(_selects_columns)
    def inverse_transform(self, X: Any) -> Any:
        """Return X with zeros in the columns that are not selected; for ``features="linear"``."""
        return super().inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns that ``transform`` returns, an array of str objects.

        input_features : the names of the columns of X, for estimators that have not stored them.
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        all_names = list(inputs) if table_encoding(self) is None else input_names(self)
        names = self._selectable.names(self._columns_selected(), all_names)
        return np.array(names, dtype=object)
