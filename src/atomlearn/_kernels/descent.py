"""Coordinate descent on an l1-penalized quadratic with half of its matrix in float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array


def descend_quadratic(
    strips: Sequence[NDArray[np.float32]],
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
    zero costs O(1), and one that changes costs O(m) for the update of the gradient. So do all those
    of a strip that do not change, if one of them does.

    Parameters
    ----------
    strips : list of (k + 1, b, b) float32
        The lower half of H, which is symmetric positive semidefinite. Strip k = 0, 1, ... has b
        rows of H, from row k b on, and the columns up to the last of these rows, as k + 1 tiles of
        b rows and b columns. Entries beyond the last row and column of H have no effect.
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
    # The kernel overwrites the copy.
    size = weights.size
    prices = _checks.positive_weights(price, "price", size)
    point = _checks.weights(weights, "weights", size).copy()
    gradient = _checks.weights(slope, "slope", size)
    sweeps = _native.descend_quadratic(
        list(strips), gradient, prices, point, ridge, signed, tolerance, most
    )
    return point, sweeps
