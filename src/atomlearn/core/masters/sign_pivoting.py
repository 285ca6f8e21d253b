"""Block pivoting on signs: l1 and a quadratic, all exchanges of a round at once.

From the solution of the level before, two or three systems are enough; where exchanges cycle,
``active_set_qp``, which descends, takes over.

L. F. Portugal, J. J. Judice, L. N. Vicente 1994; J. Kim, H. Park, NIPS 2010, section 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import ActiveFactor, PivotStatus, active_set_qp, pivot_signs

Array = NDArray[np.float64]


def l1_quadratic(
    H: Array,
    slope: Array,
    price: Array,
    weights: Array,
    *,
    ridge: float = 0.0,
    factor: ActiveFactor | None = None,
    most: int | None = None,
) -> tuple[Array, int]:
    """argmin_w of 1/2 d'(H + ridge I)d + slope'd + sum_j p_j |w_j| with d = w - weights.

    Parameters
    ----------
    H : (m, m), symmetric positive semidefinite, rows contiguous
    slope : (m,) gradient of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) warm start
    factor : kept between calls with the same (or a larger) H and ridge
    most : bound on the support, beyond which H is singular

    Returns
    -------
    w : (m,) solution; systems : number of systems solved, negative where ``active_set_qp`` was
    called after them.
    """
    w, status, systems = pivot_signs(H, slope, price, weights, ridge=ridge, most=most, state=factor)
    if status is PivotStatus.OPTIMAL:
        return w, systems
    w, _ = active_set_qp(
        H, slope, weights, price=price, level=1.0, signed=True, ridge=ridge, from_gradient=True
    )
    return w, -systems - 1
