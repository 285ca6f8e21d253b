"""Rows that stay on their machine, the questions about them, and sums as answers.

Every answer is a dictionary of arrays that are sums over rows, so that answers of several machines
can be added up, and no answer shows a single row. This module runs on the machine of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import Array, Design, Loss, existing_columns, pieces

#: Sums over rows, by name.
Sums = dict[str, Any]
#: Share by which a dual point is made smaller for a second value of its conjugate; convexity bounds
#: the values between the two.
NEAR = 1e-3


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Targets and weights of some rows, which return the sums of f at X w + b over these rows."""

    loss: Loss
    y: Array
    weight: Array

    def answer(self, design: Design, question: Sums) -> Sums:
        """Return sums at some points of a few columns of ``design``.

        Parameters
        ----------
        design : Design
            The columns of these rows.
        question : dict
            "columns" (m,), "weights" (k, m) and "shifts" (k,) define the points. "ask" is one of
            three words.

            - "look": ``squares`` (m,) of the columns, over rows with a weight; and for each point
            ``value`` of f and ``slope``, ``size``, ``curve``, the sums of f'_i, of abs(f'_i) and of
            f''_i.
            - "bend", at one point, in addition: ``gradient``, ``pull`` (m,), A'f' and A'f'';
            ``hessian`` (m, m), A'diag(f'')A.
            - "price", in addition to "look": the sums for a proof, see ``_price``.
        """
        block = design.gather(existing_columns(question["columns"], design.shape[1]))
        used = self.weight > 0.0
        looks = list[Sums]()
        duals = list[Array]()
        for weights, shift in zip(question["weights"], question["shifts"], strict=True):
            linear = block.predict(weights) + shift
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
            found["gradient"] = block.scores(slopes).full()
            found["pull"] = block.scores(curvature).full()
            found["hessian"] = block.gram(curvature)
        if duals:
            scores = design.scores_many(np.column_stack(duals))
            found["scores"] = np.array([z.full() for z in scores])
        return found

    def _price(self, linear: Array, v: Array) -> Sums:
        """Return the sums for a proof at v = -f', which stays here; "scores" has X'v.

        In v, the entries of the sign of ``cuts`` are smaller by its size as a share, so that v sums
        to 0 over all rows. ``conjugates`` : f* at -v, and at -v less the share NEAR; ``steepness``,
        ``predicted`` : sums of squares of v and of predictions; ``slack`` : a bound on rounding in
        f and f*.
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
    """Return the sum of the answers to a question."""
    return {name: sum(each[name] for each in answers) for name in answers[0]}


def size_of(message: Sums) -> int:
    """Return the bytes of the arrays and numbers in a question or an answer."""
    return 8 * sum(math.prod(np.shape(part)) for part in message.values())
