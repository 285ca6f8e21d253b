"""Rising: an l1 norm whose price rises with the number of the column."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Norm, Scores
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.parameters import Parameters


class Rising(Parameters, Norm):
    """gauge(w) = sum_j (1 + slope j) |w_j|, j = 0, 1, ...: later columns cost more.

    The polar is max_j |z_j| / (1 + slope j); slope >= 0.
    """

    def __init__(self, slope: float = 1.0) -> None:
        self.slope = slope

    def _prices(self, n_features: int) -> Array:
        return 1.0 + self.slope * np.arange(n_features)

    def value(self, w: Array) -> float:
        return float(self._prices(w.size) @ np.abs(w))

    def polar(self, scores: Scores) -> float:
        return float(np.max(np.abs(scores.full()) / self._prices(scores.n_columns), initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        ratios = np.abs(scores.full()) / self._prices(scores.n_columns)
        return ArrayScores(ratios).top(max(1, count))[0]
