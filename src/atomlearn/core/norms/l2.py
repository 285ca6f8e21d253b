"""L2: gauge(w) = ||w||_2, whose atoms are all unit vectors. Not sparse: a baseline."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Form, ProxJacobian, ProxPoint, Scores
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.vectors import l2_norm, to_float64


class L2(VectorNorm):
    """gauge(w) = ||w||_2, which is its own polar.

    Its one best atom is z / ||z||_2, so ``best_columns`` returns every column whatever the count:
    it needs all scores, and fits designs whose scores can be stored.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L2().value(np.array([3.0, 0.0, -4.0]))
    5.0

    References
    ----------
    A. E. Hoerl, R. W. Kennard 1970, Ridge regression.
    """

    def value(self, w: Array) -> float:
        """||w||_2"""
        return l2_norm(to_float64(w))

    def polar(self, scores: Scores) -> float:
        """||z||_2"""
        return l2_norm(scores.full())

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """All columns, largest |z_j| first: the support of the one best atom."""
        return np.argsort(-np.abs(scores.full()), kind="stable").astype(np.int64)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        length = l2_norm(v)
        if form == "squared":
            shrink = 1.0 / (1.0 + amount)
        elif form == "penalized":
            shrink = max(0.0, length - amount) / length if length > 0 else float(amount == 0)
        else:
            shrink = 1.0 if length <= amount else amount / length

        def jacobian() -> ProxJacobian:
            diagonal = np.full(v.size, shrink)
            if form == "squared" or shrink in (0.0, 1.0):
                return ProxJacobian(diagonal)
            along = 1.0 - shrink if form == "penalized" else -shrink
            return ProxJacobian(diagonal, (v / length)[:, None], np.array([along]))

        return ProxPoint(shrink * v, shrink * length, jacobian)

    def restrict(self, columns: Columns, n_features: int) -> L2:
        """The same norm on fewer coordinates."""
        return self

    def as_groups(self, n_features: int) -> Groups:
        """One group."""
        return Groups(Partition(np.zeros(n_features, dtype=np.int64), 1, 1))

    def zero_threshold(self, w: Array) -> float:
        """0: every coordinate with z_j != 0 enters."""
        return 0.0
