"""L1: gauge(w) = sum_j |w_j|, whose atoms are the signed unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.design import Columns, Scores
from atomlearn.core.interfaces.norm import Form, Mask, ProxPoint
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.screening import least, most, reaches_largest
from atomlearn.core.norms.threshold import weighted_l1_point
from atomlearn.core.norms.vectors import to_float64

Array = NDArray[np.float64]


class L1(VectorNorm):
    """gauge(w) = ||w||_1; its polar is max_j |z_j|.

    The proximal maps are soft thresholds, found in O(n) expected time.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L1().value(np.array([3.0, 0.0, -4.0]))
    7.0

    References
    ----------
    R. Tibshirani 1996, Regression shrinkage and selection via the lasso.
    """

    def value(self, w: Array) -> float:
        """||w||_1"""
        return float(np.abs(to_float64(w)).sum())

    def polar(self, scores: Scores) -> float:
        """max_j |z_j|"""
        return float(np.abs(scores.top(1)[1]).max(initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The ``count`` columns of largest |z_j|."""
        return scores.top(max(1, count))[0]

    def of_groups(self, groups: Any) -> Groups:
        """The sum of the norms of the groups."""
        return Groups(groups)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        return weighted_l1_point(v, None, amount, form)

    def restrict(self, columns: Columns, n_features: int) -> L1:
        """The same norm: l1 does not mix coordinates."""
        return self

    def as_groups(self, n_features: int) -> Groups:
        """Groups of one column."""
        return Groups(Partition(np.arange(n_features), n_features, n_features))

    def l1_weights(self, n_features: int) -> Array:
        """All ones."""
        return np.ones(n_features)

    def possible_support(self, z: Array, error: Array, polar: float) -> Mask:
        """w_j != 0 only where |z_j*| = max_i |z_i*|."""
        return reaches_largest(least(z, error), most(z, error), polar)

    def zero_threshold(self, w: Array) -> float:
        """1: a zero coordinate stays zero where |z_j| <= multiplier."""
        return 1.0
