"""The gap of a point at a dual point: Fenchel's inequality, and the classical alternative."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.interfaces import Array

if TYPE_CHECKING:
    from atomlearn.core.interfaces.excess import Excess
    from atomlearn.core.problem.problem import Problem


def gap_at(
    problem: Problem,
    base: float,
    objective: float,
    prediction: Array,
    v: Array,
    polar: float,
    excess: Excess | None = None,
) -> float:
    """Return the gap at the dual point -v, or at it scaled into feasibility, for this polar."""
    # F >= level * gauge at the optimum, because losses are bounded below by zero.
    bound = objective / problem.regularizer.amount
    gap = base + problem.loss_conjugate(v, -1.0, prediction)
    gap += problem.regularizer.conjugate(polar, bound, excess)
    level = problem.regularizer.amount
    if not problem.tau and problem.regularizer.form == "penalized" and polar > level:
        # The classical alternative: the dual point scaled into gauge°(z) <= level.
        feasible = objective + problem.loss_conjugate(v, -level / polar, prediction)
        if excess is not None:
            feasible += excess.scaled(level / polar).at(level)
        gap = min(gap, feasible)
    if np.isnan(gap):
        gap = math.inf
    # F itproblem bounds F - F*, as losses and norms are bounded below by zero.
    return min(max(gap, 0.0), objective)
