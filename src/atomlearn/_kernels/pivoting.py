"""Block pivoting on the signs of an l1-penalized quadratic."""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array
from atomlearn._kernels.active_set import ActiveFactor
from atomlearn._kernels.threads import load_blas


def pivot_path(
    gram: Array,
    slope: Array,
    price: Array,
    weights: Array,
    levels: Array,
    *,
    ridge: float = 0.0,
    most: int | None = None,
    state: ActiveFactor | None = None,
) -> Array:
    """Minimize 1/2 d'(H + ridge I)d + slope'd + level sum_j p_j |w_j| over w, at each level.

    Here d = w - weights. Given the support S and the signs of w, w is the solution of a linear
    system. Coordinates whose solution has the wrong sign are removed from S. All others whose
    gradient exceeds level p_j in magnitude are added, except those whose column of H depends on the
    columns of S. This is repeated until S does not change; if S cycles, the method gives up. The
    Cholesky factor of H_SS + ridge I is updated with S, and computed afresh after some updates.

    Parameters
    ----------
    gram : (m, m) float64, rows contiguous
        H, symmetric positive semidefinite.
    slope : (m,)
        Gradient of the quadratic at ``weights``, the ridge included.
    price : (m,)
        p > 0.
    weights : (m,)
        The start, which gives the first support and signs.
    levels : (n_levels,)
        Strengths > 0; each level starts at the solution of the previous one.
    ridge : float
        Weight of the ridge term.
    most : int, optional
        Maximum number of coordinates in the support; None: m.
    state : ActiveFactor, optional
        The factor of an earlier call with the same (or a larger) H and ridge; updated in place.

    Returns
    -------
    W : (solved, m)
        The solutions of the first ``solved`` levels. The path ends early if S cycles, or if S would
        have more than ``most`` coordinates.
    """
    size = weights.size
    matrix = _checks.symmetric(gram, size)
    gradient = _checks.weights(slope, "slope", size)
    prices = _checks.positive_weights(price, "price", size)
    most_active = size if most is None else max(int(most), 0)
    load_blas()
    # Continue from the kept factor, which must be over these coordinates.
    state = ActiveFactor() if state is None else state
    state.reserve(min(size, most_active))
    if state.count and state.active.max() >= size:
        raise ValueError(f"state lists coordinates beyond the {size} there are; call its forget")
    count = np.array([state.count], dtype=np.int64)
    solutions = np.empty((levels.size, size))
    solved = _native.pivot_path(
        matrix, gradient, prices, ridge, most_active, levels, state.factor, state.order, count,
        weights, solutions,
    )  # fmt: skip
    state.count = int(count[0])
    return solutions[:solved]
