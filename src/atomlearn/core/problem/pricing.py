"""Pricing: what one pass over the data tells of a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Norm, Scores
from atomlearn.core.interfaces.certificate import Certificate


@dataclass(slots=True)
class Pricing:
    """A point with its scores and the certificate of this very point.

    columns, weights : the point, ``columns`` None for all of them, of ``n_features``; prediction :
    X w + b; scores : z = X'v - tau w at the dual point -v; inner : <z, w>; multiplier : the lambda
    with z in lambda * subdifferential of gauge at w, if w is optimal.
    """

    norm: Norm
    n_features: int
    columns: Columns | None
    weights: Array
    prediction: Array
    scores: Scores
    inner: float
    multiplier: float
    certificate: Certificate

    def entering(self, columns: Columns) -> Columns:
        """Return those of these columns that the point does not have and would let in."""
        if self.columns is not None:
            columns = columns[~np.isin(columns, self.columns)]
        if not columns.size:
            return columns
        threshold = self.norm.thresholds(self.weights, columns, self.n_features)
        if np.max(threshold) <= 0 or np.max(threshold := threshold * self.multiplier) <= 0:
            return columns
        return columns[np.abs(self.scores.at(columns)) > threshold * (1 - 1e-12)]
