"""Quantiles of weighted numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from atomlearn.core.interfaces import Array


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the least value that at least this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-14)))
    # Samples without a weight are no quantile of anything.
    while place + 1 < order.size and weight[order[place]] == 0.0:
        place += 1
    return float(values[order[min(place, order.size - 1)]])


def quantile_along(
    q: float, residual: Array, weight: Array, basis: Array
) -> tuple[Array, Array] | None:
    """Return argmin_c sum_i s_i pinball_q(r_i - (Q c)_i), and u with Q'u = 0 that proves it.

    By the dual linear program, min <u, r> over -q s <= u <= (1 - q) s with Q'u = 0: it has one
    equation a column of Q, and c are their multipliers (Koenker, Bassett 1978). None where numbers
    are not finite.
    """
    size = float(np.abs(residual).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    bounds = np.column_stack([-q * weight, (1.0 - q) * weight])
    nothing = np.zeros(basis.shape[1])
    program: Any = {"A_eq": basis.T, "b_eq": nothing, "bounds": bounds, "method": "highs-ds"}
    found = linprog(residual / size, **program)
    if found.x is None:
        return None
    c = size * np.asarray(found.eqlin.marginals)
    return c, np.clip(found.x, bounds[:, 0], bounds[:, 1])
