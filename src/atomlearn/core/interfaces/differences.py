"""The best atom of a norm that gives only value, polar and best columns: the slope of its polar.

The polar, gauge°(z) = max over atoms of <a, z>, has the best atom for its gradient wherever that is
unique. Central differences over the columns of the best atom find it; dividing by the gauge makes
the atom a point of the unit ball, whatever the differences have got wrong. So every certificate
stays exact: it is made of value and polar, and no atom of ours lies outside the ball.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces.arrays import Array, Columns
from atomlearn.core.interfaces.scores import ArrayScores, Scores


@dataclass(frozen=True, slots=True)
class Measures:
    """Of a norm: its name, its gauge of w, and the polar of scores."""

    name: str
    value: Callable[[Array], float]
    polar: Callable[[Scores], float]


def best_by_differences(norm: Measures, columns: Columns, scores: Scores) -> tuple[Columns, Array]:
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
    size, rng = float(np.abs(z).max()), np.random.default_rng(0)
    best, reached = np.zeros(z.size), 0.0
    # How far from z, and how long the differences are, relative to the largest score: at z with
    # the step that balances rounding and curvature, then far enough from kinks at z.
    for shift, step in ((0.0, 6e-6), (1e-7, 1e-9), (1e-4, 1e-6)):
        near = z + shift * size * rng.standard_normal(z.size)
        atom = _in_ball(norm, columns, _slopes(norm, columns, near, step * size, scores), scores)
        if float(atom @ z) > reached:
            best, reached = atom, float(atom @ z)
        if reached >= polar * (1.0 - 1e-9):
            break
    if reached < 0.99 * polar:
        raise TypeError(
            f"the slope of the polar of {norm.name}, scaled to gauge 1, reaches {reached} of the "
            f"polar {polar}: value and polar are not those of one norm, or best_columns leaves "
            "out columns of the best atom; correct them, or give the norm a best_atom"
        )
    used = np.flatnonzero(best)
    return columns[used], best[used]


def _slopes(norm: Measures, columns: Columns, z: Array, step: float, scores: Scores) -> Array:
    """Return central differences of the polar at z on the columns, 0 elsewhere."""
    slopes = np.empty(z.size)
    for place in range(z.size):
        sides = []
        for moved in (z[place] + step, z[place] - step):
            there = z.copy()
            there[place] = moved
            sides.append(norm.polar(ArrayScores(_spread(columns, there, scores.n_columns))))
        slopes[place] = (sides[0] - sides[1]) / (2.0 * step)
    return slopes


def _in_ball(norm: Measures, columns: Columns, slopes: Array, scores: Scores) -> Array:
    """Return the slopes, without the digits that are noise, divided by their gauge."""
    size = float(np.abs(slopes).max())
    if not (math.isfinite(size) and size > 0.0):
        return np.zeros(slopes.size)
    # Seven digits: atoms of polytopes come out the same at every z at which they are best.
    rounded = np.round(slopes / size, 7)
    gauge = norm.value(_spread(columns, rounded, scores.n_columns))
    return rounded / gauge if math.isfinite(gauge) and gauge > 0.0 else np.zeros(slopes.size)


def _spread(columns: Columns, values: Array, n_columns: int) -> Array:
    """Return the vector that is 0 outside of the columns."""
    result = np.zeros(n_columns)
    result[columns] = values
    return result
