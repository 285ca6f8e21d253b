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
    """argmin_w of 1/2 d'(H + ridge I)d + slope'd + level_k sum_j p_j |w_j|, d = w - weights.

    Where the support S of w and its signs s are known, w is one system. All coordinates whose sign
    comes out wrong leave and all whose gradient exceeds level_k p_j enter, until none is left;
    if that cycles it is given up. The Cholesky factor of H_SS + ridge I is kept: what enters is
    appended by triangular solves, what leaves is projected off, and now and then it is made afresh.

    Parameters
    ----------
    gram : (m, m) float64, rows contiguous: H, symmetric positive semidefinite
    slope : (m,) gradient of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) the start, whose signs come first
    levels : (L,) > 0; each begins where the one before ended
    most : bound on the support; None: m
    state : of an earlier call with the same (or a larger) H and ridge; updated

    Returns
    -------
    W : (solved, m) the solutions, up to the first level that is not reached: exchanges cycle,
        columns that would be used depend on each other, or more would be used than may be
    """
    size = weights.size
    matrix = _checks.symmetric(gram, size)
    line = _checks.weights(slope, "slope", size)
    prices = _checks.positive_weights(price, "price", size)
    bound = size if most is None else max(int(most), 0)
    load_blas()
    state = ActiveFactor() if state is None else state
    state.reserve(min(size, bound))
    if state.count and state.active.max() >= size:
        raise ValueError(f"state lists coordinates beyond the {size} there are; call its forget")
    count = np.array([state.count], dtype=np.int64)
    rows = np.empty((levels.size, size))
    solved = _native.pivot_path(
        matrix, line, prices, ridge, bound, levels, state.factor, state.order, count, weights,
        rows,
    )  # fmt: skip
    state.count = int(count[0])
    return rows[:solved]
