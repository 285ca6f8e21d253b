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

from atomlearn.core import Array, Design, Loss, existing_columns, pieces

#: Sums over rows by their names.
Sums = dict[str, Any]
#: How much is taken off a dual point where its conjugate is told, too: between is less.
NEAR = 1e-3


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Targets and weights of rows that lie together: the sums of f at X w + b over these rows."""

    loss: Loss
    y: Array
    weight: Array

    def answer(self, design: Design, question: Sums) -> Sums:
        """Return sums at some points of a few columns of these rows' ``design``.

        columns (m,), weights (k, m), shifts (k,) : the points. To "look": squares : of the columns,
        over rows that have a weight, (m,); and of each point value : f; slope, size, curve : the
        sums of f'_i, of |f'_i| and of f''_i. To "bend", at one point: gradient, pull : A'f' and
        A'f'', (m,); hessian : A'diag(f'')A, (m, m), too. To "price": what a proof takes, see there.
        """
        block = design.gather(existing_columns(question["columns"], design.shape[1]))
        used = self.weight > 0.0
        looks = list[Sums]()
        duals = list[Array]()
        for weights, shift in zip(question["weights"], question["shifts"], strict=True):
            linear = block.dot(weights) + shift
            slopes = pieces.gradient(self.loss, self.y, linear, self.weight)
            curvature = self.loss.curvature(self.y, linear, self.weight)
            look = {
                "value": pieces.value(self.loss, self.y, linear, self.weight),
                "slope": float(slopes.sum()),
                "size": float(np.abs(slopes).sum()),
                "curve": float(curvature.sum()),
            }
            if question["ask"] == "price":
                v = -slopes
                cut = question["cuts"][len(looks)]
                v[v * cut > 0.0] *= 1.0 - abs(cut)
                look |= self._price(np.where(used, linear, 0.0), v)
                duals.append(v)
            looks.append(look)
        found: Sums = {name: np.array([look[name] for look in looks]) for name in looks[0]}
        found["squares"] = block.squared_norms(used.astype(np.float64))
        if question["ask"] == "bend":
            found["gradient"] = block.transpose_dot(slopes)
            found["pull"] = block.transpose_dot(curvature)
            found["hessian"] = block.gram(curvature)
        if duals:
            scores = design.scores_many(np.column_stack(duals))
            found["scores"] = np.array([z.full() for z in scores])
        return found

    def _price(self, linear: Array, v: Array) -> Sums:
        """Return what a proof takes of v = -f', which stays here, as X'v comes as "scores".

        Of v the side that ``cuts`` names is less by that share: so it sums to 0 over all rows.
        conjugates : f* at -v, and at it less NEAR; steepness, predicted : the sums of squares of v
        and of predictions; slack : what rounding leaves open in f and f*.
        """
        loss = self.loss
        y = self.y
        s = self.weight
        return {
            "conjugates": [pieces.conjugate(loss, y, v, s, share) for share in (-1.0, NEAR - 1.0)],
            "steepness": float(v @ v),
            "predicted": float(linear @ linear),
            "slack": loss.slack(y, linear, v, s),
        }


def summed(answers: Sequence[Sums]) -> Sums:
    """Return the sum of answers to one question."""
    return {name: sum(each[name] for each in answers) for name in answers[0]}


def size_of(message: Sums) -> int:
    """Return the bytes of the arrays and numbers in a question or an answer."""
    return 8 * sum(math.prod(np.shape(part)) for part in message.values())
