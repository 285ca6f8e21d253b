"""StepDesign: step functions of time, of which nothing is stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores


class Steps:
    """As X: n samples in the order of time, column j is 1 from sample j on."""

    def __init__(self, n_samples: int) -> None:
        self.shape = (n_samples, n_samples)


def is_steps(X: object) -> bool:
    """Return whether X asks for this design."""
    return isinstance(X, Steps)


class StepDesign(Design):
    """x_ij = 1 for i >= j: the fused lasso of a signal is the lasso over these columns."""

    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __init__(self, steps: Steps) -> None:
        self._n = steps.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, self._n

    def scores(self, v: Array) -> Scores:
        """Return the sums of v from each sample on: O(n)."""
        return ArrayScores(np.cumsum(v[::-1])[::-1])

    def gather(self, columns: Columns) -> Block:
        return DenseBlock(np.asfortranarray(np.arange(self._n)[:, None] >= columns, dtype=float))
