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

from atomlearn.core import Array, Design, Loss, pieces
from atomlearn.storage.checks import existing_columns

#: Sums over rows, by name.
Sums = dict[str, Any]
#: The convex conjugate f* is computed for the dual vectors v = -f' and (1 - NEAR) v. Its values
#: between them are bounded by linear interpolation, because f* is convex.
NEAR = 1e-3


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Loss, targets and sample weights of the rows on one machine; it answers requests for sums.

    The loss f is the sum of f_i(y_i, p_i) over rows i with prediction p = X w + b. The derivatives
    f'_i and f''_i are with respect to p_i, and multiplied by the weight of the row.

    Attributes
    ----------
    loss : Loss
        The loss.
    y : (n,) array
        Targets of the rows.
    weight : (n,) array
        Sample weights of the rows.
    """

    loss: Loss
    y: Array
    weight: Array

    def answer(self, design: Design, question: Sums) -> Sums:
        """Return sums over these rows at k points, each with coefficients and an intercept.

        Parameters
        ----------
        design : Design
            X for these rows, in memory.
        question : dict
            The request. "columns" (m,) are the columns A of X with nonzero coefficients, "weights"
            (k, m) their coefficients and "shifts" (k,) the intercepts. "ask" is the kind.

            - "look", for values and slopes: ``squares`` (m,), the squared norms of the columns over
            rows with a positive weight; and, with one entry per point, ``value`` of f and
            ``slope``, ``size``, ``curve``: the sums of f'_i, of abs(f'_i) and of f''_i.
            - "bend", for second derivatives at one point, in addition: ``gradient`` A'f' (m,),
            ``pull`` A'f'' (m,) and ``hessian`` A'diag(f'')A (m, m).
            - "price", in addition to "look": the sums for a duality certificate (the proof of how
            good a point is), see ``_price``, and ``scores`` X'v (k, n_features), with v = -f'. Here
            "cuts" (k,) is part of the request. The entries of v with the sign of a cut are
            multiplied by 1 - abs(cut), so that v sums to 0. A model with an intercept needs this.

        Returns
        -------
        dict
            The sums, by name; see "ask".
        """
        block = design.gather(existing_columns(question["columns"], design.shape[1]))
        is_used = self.weight > 0.0
        # The sums of each point, and the dual vectors v for which scores are requested. The module
        # ``pieces`` adds up a loss over pieces of the rows, without large temporary arrays.
        sums_of_points = list[Sums]()
        duals = list[Array]()
        for weights, shift in zip(question["weights"], question["shifts"], strict=True):
            predictions = block.predict(weights) + shift
            slopes = pieces.gradient(self.loss, self.y, predictions, self.weight)
            curvature = self.loss.curvature(self.y, predictions, self.weight)
            sums = {
                "value": pieces.value(self.loss, self.y, predictions, self.weight),
                "slope": float(slopes.sum()),
                "size": float(np.abs(slopes).sum()),
                "curve": float(curvature.sum()),
            }
            if question["ask"] == "price":
                v = -slopes
                cut = question["cuts"][len(sums_of_points)]
                v[v * cut > 0.0] *= 1.0 - abs(cut)
                sums |= self._price(np.where(is_used, predictions, 0.0), v)
                duals.append(v)
            sums_of_points.append(sums)
        # One array over the points for each name.
        names = sums_of_points[0]
        totals: Sums = {name: np.array([sums[name] for sums in sums_of_points]) for name in names}
        totals["squares"] = block.squared_norms(is_used.astype(np.float64))
        # Derivatives by the coefficients; the request has a single point.
        if question["ask"] == "bend":
            totals["gradient"] = block.scores(slopes).full()
            totals["pull"] = block.scores(curvature).full()
            totals["hessian"] = block.gram(curvature)
        if duals:
            scores = design.scores_many(np.column_stack(duals))
            totals["scores"] = np.array([z.full() for z in scores])
        return totals

    def _price(self, predictions: Array, v: Array) -> Sums:
        """Return the sums for a duality certificate at the dual vector v = -f' (n,) of these rows.

        They are ``conjugates``, f* at -v and at -(1 - NEAR) v; ``steepness`` and ``predicted``, the
        sums of squares of v and of the ``predictions`` X w + b (n,); and ``slack``, a bound on the
        rounding error in f and f*. The vector v itself is not sent.
        """
        loss = self.loss
        y = self.y
        weight = self.weight
        shares = (-1.0, NEAR - 1.0)
        return {
            "conjugates": [pieces.conjugate(loss, y, v, weight, share) for share in shares],
            "steepness": float(v @ v),
            "predicted": float(predictions @ predictions),
            "slack": loss.slack(y, predictions, v, weight),
        }


def summed(answers: Sequence[Sums]) -> Sums:
    """Return the entry-by-entry sum of the answers of several machines to one request."""
    return {name: sum(answer[name] for answer in answers) for name in answers[0]}


def size_of(message: Sums) -> int:
    """Return the number of bytes of the arrays and numbers in ``message``.

    ``message`` is a request or an answer. The bytes of its names are not counted.
    """
    return 8 * sum(math.prod(np.shape(entry)) for entry in message.values())
