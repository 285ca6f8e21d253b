"""The part of a distributed solve that runs on the machine of the rows: requests and answers.

Every answer is a dictionary of arrays that are sums over rows, so that the answers of several
machines can be added up, and no answer contains a single row.
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
#: The conjugate f* is computed at the dual vector v and at (1 - NEAR) v; convexity bounds its
#: values between the two.
NEAR = 1e-3


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Loss, targets (n,) and sample weights (n,) of some rows; it answers distributed requests.

    The loss f is the sum of f_i(y_i, p_i) over rows i with prediction p = X w + b; f'_i and f''_i
    are derivatives with respect to p_i, multiplied by the weight of the row.
    """

    loss: Loss
    y: Array
    weight: Array

    def answer(self, design: Design, question: Sums) -> Sums:
        """Return sums over these rows at k points, each with coefficients and an intercept.

        Parameters
        ----------
        design : Design
            X for these rows.
        question : dict
            The request. "columns" (m,) are the columns A of X with nonzero coefficients, "weights"
            (k, m) their coefficients and "shifts" (k,) the intercepts. "ask" is the kind.

            - "look": ``squares`` (m,), the squared norms of the columns over rows with a positive
            weight; and, with one entry per point, ``value`` of f and ``slope``, ``size``,
            ``curve``: the sums of f'_i, of abs(f'_i) and of f''_i.
            - "bend", for one point, in addition: ``gradient`` A'f' (m,), ``pull`` A'f'' (m,) and
            ``hessian`` A'diag(f'')A (m, m).
            - "price", in addition to "look": the sums for a duality certificate, see ``_price``,
            and ``scores`` X'v (k, n_features). Here "cuts" (k,) is part of the request: the entries
            of v of the sign of a cut are multiplied by 1 - abs(cut).
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
        """Return the sums for a duality certificate at the dual vector v = -f' (n,) of these rows.

        ``conjugates`` : f* at -v and at -(1 - NEAR) v; ``steepness``, ``predicted`` : sums of
        squares of v and of the predictions ``linear`` (n,); ``slack`` : a bound on the rounding
        error in f and f*. The vector v itself is not sent.
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
    """Return the entry-by-entry sum of the answers of several machines to one request."""
    return {name: sum(each[name] for each in answers) for name in answers[0]}


def size_of(message: Sums) -> int:
    """Return the number of bytes of the arrays and numbers in a request or an answer."""
    return 8 * sum(math.prod(np.shape(part)) for part in message.values())
