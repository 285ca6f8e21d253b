"""Coordinate descent on an l1-penalized quadratic with a matrix in float32."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array


def descend_quadratic(
    gram: NDArray[Any],
    slope: Array,
    price: Array,
    weights: Array,
    *,
    ridge: float = 0.0,
    signed: bool = True,
    tolerance: float = 1e-9,
    most: int = 1000,
) -> tuple[Array, int]:
    """Minimize 1/2 d'(H + ridge I)d + slope'd + sum_j p_j |w_j| over w, with d = w - weights.

    A sweep minimizes over one coordinate after the other. A coordinate that is zero and remains
    zero costs O(1), and one that changes costs O(m) for the update of the gradient.

    Parameters
    ----------
    gram : (m, m) float32, rows contiguous
        H, symmetric positive semidefinite.
    slope : (m,)
        Gradient of the quadratic at ``weights``, the ridge included.
    price : (m,)
        p > 0.
    weights : (m,)
        The start.
    ridge : float
        Weight of the ridge term, >= 0.
    signed : bool
        If False, w >= 0.
    tolerance : float
        The last sweep moves no w_j by more than tolerance p_j / (H_jj + ridge).
    most : int
        Maximum number of sweeps.

    Returns
    -------
    w : (m,)
        The minimizer, to the tolerance.
    sweeps : int
        Number of sweeps.
    """
    # The kernel overwrites both copies: the point, and the gradient of the quadratic there.
    size = weights.size
    prices = _checks.positive_weights(price, "price", size)
    point = _checks.weights(weights, "weights", size).copy()
    gradient = _checks.weights(slope, "slope", size).copy()
    sweeps = _native.descend_quadratic(
        gram, gradient, prices, point, ridge, signed, tolerance, most
    )
    return point, sweeps
