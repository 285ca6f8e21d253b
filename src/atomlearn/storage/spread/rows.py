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

from atomlearn.core.data.convert import existing_columns
from atomlearn.core.interfaces import Array, Design, Loss
from atomlearn.core.losses import pieces

#: Sums over rows by their names.
Sums = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Targets and weights of rows that lie together: the sums of f at X w + b over these rows."""

    loss: Loss
    y: Array
    weight: Array

    def answer(self, design: Design, question: Sums) -> Sums:
        """Return sums at a point of some columns of these rows' ``design``.

        columns, weights, shift : the point. To "look": value : f; slope, size, curve : the sums of
        f'_i, of |f'_i| and of f''_i; squares : of columns, over rows that have a weight, (m,).
        To "bend": gradient, pull : A'f' and A'f'', (m,); hessian : A'diag(f'')A, (m, m), too.

        To "price": what a proof takes of v = -f', which stays here. ``slope`` and ``size`` are
        those of all rows: the side that outweighs the other is less by that, so that v sums to 0.
        conjugate : f*(-factor v); steepness, predicted : the sums of squares of v and of
        predictions; slack : what rounding leaves open in f and f*; scores : X'v, where the factor
        is 1.
        """
        loss, y, s = self.loss, self.y, self.weight
        block = design.gather(existing_columns(question["columns"], design.shape[1]))
        linear = block.dot(question["weights"]) + question["shift"]
        slopes, used = pieces.gradient(loss, y, linear, s), s > 0.0
        if question["ask"] == "price":
            v, surplus, size, factor = -slopes, *(question[x] for x in ("slope", "size", "factor"))
            v[v * surplus < 0.0] *= (size - abs(surplus)) / (size + abs(surplus) or 1.0)
            at = np.where(used, linear, 0.0)
            found: Sums = {
                "conjugate": pieces.conjugate(loss, y, v, s, -factor),
                "steepness": float(v @ v),
                "predicted": float(at @ at),
                "slack": loss.slack(y, linear, v, s),
            }
            return found if factor != 1.0 else found | {"scores": design.scores(v).full()}
        curvature = loss.curvature(y, linear, s)
        found = {
            "value": pieces.value(loss, y, linear, s),
            "slope": float(slopes.sum()),
            "size": float(np.abs(slopes).sum()),
            "curve": float(curvature.sum()),
            "squares": block.squared_norms(used.astype(np.float64)),
        }
        if question["ask"] == "bend":
            found["gradient"] = block.transpose_dot(slopes)
            found["pull"] = block.transpose_dot(curvature)
            found["hessian"] = block.gram(curvature)
        return found


def summed(answers: Sequence[Sums]) -> Sums:
    """Return the sum of answers to one question."""
    return {name: sum(each[name] for each in answers) for name in answers[0]}


def size_of(message: Sums) -> int:
    """Return the bytes of the arrays and numbers in a question or an answer."""
    return 8 * sum(math.prod(np.shape(part)) for part in message.values())
