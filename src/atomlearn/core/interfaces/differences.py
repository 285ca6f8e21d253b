"""The best atom by finite differences of the polar, for norms that do not define ``best_atom``.

The gradient of the polar, gauge°(z) = max over atoms of <a, z>, is the best atom if it is unique.
It is computed by central differences over the columns of the best atom. Dividing it by its gauge
puts it into the unit ball in spite of the errors of the differences. Certificates are not affected
by these errors: they are computed from value and polar.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn._support import Array, Columns
from atomlearn.core.interfaces.scores import ArrayScores, Scores


def best_by_differences(norm: Any, columns: Columns, scores: Scores) -> tuple[Columns, Array]:
    """Return columns and values of an atom a with <a, z> = gauge°(z), nearly, and gauge(a) = 1.

    ``norm`` has value and polar, ``columns`` are those of the best atom, and ``scores`` are z. If
    several atoms are best, the polar has a kink at z, and the differences are a mixture of them.
    The gradient is then computed at a point near z, at which one of them is best. It takes 2
    len(columns) polars, up to three times.

    Raises
    ------
    TypeError
        If no gradient of the polar, scaled into the ball, attains the polar.
    """
    polar = norm.polar(scores)
    z = scores.at(columns)
    if polar <= 0.0 or not z.any():
        return columns[:0], z[:0]

    def spread(values: Array) -> Array:
        """Return an array over all columns: ``values`` at ``columns``, else 0."""
        scattered = np.zeros(scores.n_columns)
        scattered[columns] = values
        return scattered

    largest = float(np.abs(z).max())
    rng = np.random.default_rng(0)
    best = np.zeros(z.size)
    value = 0.0
    # Pairs of (distance of the point from z, step of the differences), relative to the largest
    # score. The first pair is z itself, with the step that balances rounding and curvature. The
    # others are points far enough from kinks at z.
    for shift, step in ((0.0, 6e-6), (1e-7, 1e-9), (1e-4, 1e-6)):
        perturbed = z + shift * largest * rng.standard_normal(z.size)
        slopes = np.empty(z.size)
        for coordinate, change in enumerate(step * largest * np.eye(z.size)):
            polar_above, polar_below = (
                norm.polar(ArrayScores(spread(perturbed + offset))) for offset in (change, -change)
            )
            # The central difference of the polar in this coordinate.
            slopes[coordinate] = (polar_above - polar_below) / (2.0 * step * largest)
        steepest = float(np.abs(slopes).max())
        if math.isfinite(steepest) and steepest > 0.0:
            # Round to seven digits, so that an atom of a polytope is the same for every z at
            # which it is best. Keep the best of the three candidates.
            rounded = np.round(slopes / steepest, 7)
            gauge = norm.value(spread(rounded))
            if gauge > 0.0 and float(rounded @ z) / gauge > value:
                best = rounded / gauge
                value = float(rounded @ z) / gauge
        # This candidate is the best atom, up to rounding.
        if value >= polar * (1.0 - 1e-9):
            break
    # Differences are inexact, so that a value somewhat below the polar is accepted.
    if value < 0.99 * polar:
        raise TypeError(
            f"the slope of the polar of {norm!r}, scaled to gauge 1, reaches {value} of the "
            f"polar {polar}: value and polar are not those of one norm, or best_columns leaves "
            "out columns of the best atom; correct them, or give the norm a best_atom"
        )
    support = np.flatnonzero(best)
    return columns[support], best[support]
