"""Block pivoting on the signs of an l1-penalized quadratic."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array
from atomlearn._kernels.active_set import ActiveFactor, check_factors, positive, symmetric
from atomlearn._kernels.group_newton import has_group_newton


class PivotStatus(IntEnum):
    """Why the exchanges ended."""

    OPTIMAL = 0
    #: They cycle, or SciPy exports no BLAS to solve systems with.
    NO_PROGRESS = 1
    #: Columns that would be used depend on each other.
    DEPENDENT = 2
    #: More would be used than may be.
    TOO_MANY = 3


def pivot_signs(
    gram: Array,
    slope: Array,
    price: Array,
    weights: Array,
    *,
    ridge: float = 0.0,
    most: int | None = None,
    state: ActiveFactor | None = None,
) -> tuple[Array, PivotStatus, int]:
    """argmin_w of 1/2 d'(H + ridge I)d + slope'd + sum_j p_j |w_j| with d = w - weights.

    Where the support S of w and its signs s are known, w is one system. All coordinates whose sign
    comes out wrong leave and all whose gradient exceeds p_j enter, until none is left; where that
    cycles it is given up. The Cholesky factor of H_SS + ridge I is kept: what enters is appended
    by triangular solves, what leaves is projected off, and now and then it is made afresh.

    Parameters
    ----------
    gram : (m, m) float64, rows contiguous: H, symmetric positive semidefinite
    slope : (m,) gradient of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) the start, whose signs come first
    most : bound on the support; None: m
    state : what an earlier call with the same (or a larger) H and ridge left behind; updated

    Returns
    -------
    w : (m,) the solution where the status is optimal, else ``weights``
    status : PivotStatus
    systems : number of systems solved
    """
    point = np.array(_checks.weights(weights, "weights", np.size(weights)))
    size = point.size
    matrix = symmetric(gram, size)
    line, prices = _checks.weights(slope, "slope", size), positive(price, size)
    check_factors(ridge=ridge)
    bound = size if most is None else max(int(most), 0)
    if not has_group_newton():
        return point, PivotStatus.NO_PROGRESS, 0
    state = ActiveFactor() if state is None else state
    state.reserve(min(size, bound))
    if state.count and state.active.max() >= size:
        raise ValueError(f"state lists coordinates beyond the {size} there are; call its forget")
    counts = np.array([state.count, 0], dtype=np.int64)
    code = _native.pivot_signs(
        matrix, line, prices, float(ridge), bound, state.factor, state.order, counts, point
    )
    state.count, systems = counts.tolist()
    return point, PivotStatus(code), systems
