"""Rows that stay where they are: what is asked of them, and the sums that they answer with.

Every answer is a dictionary of arrays that are sums over rows, so that the answers of several
places are added up, and no row can be told from another. This runs where the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.interfaces import Array, Block, Loss
from atomlearn.core.losses import pieces

#: Sums over rows by their names.
Sums = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Targets and weights of rows that lie together: the sums of f at X w + b over these rows."""

    loss: Loss
    y: Array
    weight: Array

    def look(self, block: Block, weights: Array, shift: float, bend: bool) -> Sums:
        """Return value and slopes of f along the columns of a block; the Hessian if ``bend``.

        value : f; slope, size, curve : the sums of f'_i, of |f'_i| and of f''_i. gradient, pull :
        A'f' and A'f'', (m,); hessian : A'diag(f'')A, (m, m).
        """
        linear = block.dot(weights)
        slopes = pieces.gradient(self.loss, self.y, linear, self.weight, shift)
        curvature = self.loss.curvature(self.y, linear + shift, self.weight)
        found: Sums = {
            "value": pieces.value(self.loss, self.y, linear, self.weight, shift),
            "slope": float(slopes.sum()),
            "size": float(np.abs(slopes).sum()),
            "curve": float(curvature.sum()),
        }
        if bend:
            found["gradient"] = block.transpose_dot(slopes)
            found["pull"] = block.transpose_dot(curvature)
            found["hessian"] = block.gram(curvature)
        return found

    def priced(
        self, block: Block, weights: Array, shift: float, kept: Sequence[float]
    ) -> tuple[Array, Sums]:
        """Return v, which stays here, and what a proof takes of it.

        v = -f', its entries above and below zero times ``kept``, with which all of them sum to 0.
        value, conjugate : f and f*(-v); squares, predicted : of v and of predictions, summed;
        slack : what rounding leaves open in the first two.
        """
        linear = block.dot(weights)
        v = self.dual(linear, shift, kept)
        linear += shift
        at = np.where(self.weight > 0.0, linear, 0.0)
        return v, {
            "value": pieces.value(self.loss, self.y, linear, self.weight),
            "conjugate": pieces.conjugate(self.loss, self.y, v, self.weight, -1.0),
            "squares": float(v @ v),
            "predicted": float(at @ at),
            "slack": self.loss.slack(self.y, linear, v, self.weight),
        }

    def dual(self, linear: Array, shift: float, kept: Sequence[float]) -> Array:
        """Return v = -f' at these predictions, its two sides as far as they are kept."""
        v = pieces.gradient(self.loss, self.y, linear, self.weight, shift)
        np.negative(v, out=v)
        v[v > 0.0] *= kept[0]
        v[v < 0.0] *= kept[1]
        return v

    def conjugate(
        self, block: Block, weights: Array, shift: float, kept: Sequence[float], factor: float
    ) -> Sums:
        """Return f*(-factor v)."""
        v = self.dual(block.dot(weights), shift, kept)
        return {"conjugate": pieces.conjugate(self.loss, self.y, v, self.weight, -factor)}

    def squares(self, block: Block) -> Sums:
        """Return the squared lengths of columns over the rows that have a weight, (m,)."""
        return {"squares": block.squared_norms((self.weight > 0.0).astype(np.float64))}


def added(answers: Sequence[Sums]) -> Sums:
    """Return the sum of answers to one question."""
    return {name: sum(each[name] for each in answers) for name in answers[0]}


def size_of(message: Any) -> int:
    """Return the bytes of the arrays and numbers in a question or an answer."""
    if isinstance(message, dict):
        return sum(map(size_of, message.values()))
    stored = message.nnz * 1.5 if is_sparse(message) else math.prod(np.shape(message))
    return int(8 * stored)
