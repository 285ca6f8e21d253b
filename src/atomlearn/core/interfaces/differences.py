"""The best atom of a norm that gives only value, polar and best columns: the slope of its polar.

The polar, gauge°(z) = max over atoms of <a, z>, has the best atom for its gradient wherever that is
unique. Central differences over the columns of the best atom find it; dividing by the gauge makes
the atom a point of the unit ball, whatever the differences have got wrong. So every certificate
stays exact: it is made of value and polar, and no atom of ours lies outside the ball.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.core.interfaces.arrays import Array, Columns
from atomlearn.core.interfaces.scores import ArrayScores, Scores


def best_by_differences(norm: Any, columns: Columns, scores: Scores) -> tuple[Columns, Array]:
    """Return columns and values of an atom with <a, z> = gauge°(z), nearly, and gauge(a) = 1.

    Where several atoms are best the polar has a kink, and the differences mix them: the slope is
    then taken close by, where one of them is best. 2 len(columns) polars, once to three times.

    Raises
    ------
    TypeError
        Where no slope of the polar, as a point of the ball, attains the polar.
    """
    polar = norm.polar(scores)
    z = scores.at(columns)
    if polar <= 0.0 or not z.any():
        return columns[:0], z[:0]

    def spread(values: Array) -> Array:
        whole = np.zeros(scores.n_columns)
        whole[columns] = values
        return whole

    size = float(np.abs(z).max())
    rng = np.random.default_rng(0)
    best = np.zeros(z.size)
    reached = 0.0
    # How far from z, and how long the differences are, relative to the largest score: at z with
    # the step that balances rounding and curvature, then far enough from kinks at z.
    for shift, step in ((0.0, 6e-6), (1e-7, 1e-9), (1e-4, 1e-6)):
        near = z + shift * size * rng.standard_normal(z.size)
        slopes = np.empty(z.size)
        for place, move in enumerate(step * size * np.eye(z.size)):
            above, below = (norm.polar(ArrayScores(spread(near + m))) for m in (move, -move))
            slopes[place] = (above - below) / (2.0 * step * size)
        steepest = float(np.abs(slopes).max())
        if math.isfinite(steepest) and steepest > 0.0:
            # Seven digits: atoms of polytopes come out the same at every z at which they are best.
            rounded = np.round(slopes / steepest, 7)
            gauge = norm.value(spread(rounded))
            if gauge > 0.0 and float(rounded @ z) / gauge > reached:
                best = rounded / gauge
                reached = float(rounded @ z) / gauge
        if reached >= polar * (1.0 - 1e-9):
            break
    if reached < 0.99 * polar:
        raise TypeError(
            f"the slope of the polar of {norm!r}, scaled to gauge 1, reaches {reached} of the "
            f"polar {polar}: value and polar are not those of one norm, or best_columns leaves "
            "out columns of the best atom; correct them, or give the norm a best_atom"
        )
    used = np.flatnonzero(best)
    return columns[used], best[used]
