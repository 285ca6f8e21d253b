"""Block pivoting on signs: l1 and a quadratic, all exchanges of a round at once.

From the solution of the level before, two or three systems are enough; where exchanges cycle,
``active_set_qp``, which descends, takes over.

L. F. Portugal, J. J. Judice, L. N. Vicente 1994; J. Kim, H. Park, NIPS 2010, section 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from atomlearn._kernels import ActiveFactor, active_set_qp, pivot_path
from atomlearn.core.interfaces import Array

#: Levels of one call to the kernel.
AT_ONCE = 32


def l1_quadratic(
    H: Array,
    slope: Array,
    price: Array,
    weights: Array,
    levels: Array,
    *,
    ridge: float = 0.0,
    factor: ActiveFactor | None = None,
    most: int | None = None,
    going: Callable[[], bool] = lambda: True,
) -> Array:
    """argmin_w of 1/2 d'(H + ridge I)d + slope'd + level_k sum_j p_j |w_j|, d = w - weights.

    Parameters
    ----------
    H : (m, m), symmetric positive semidefinite, rows contiguous
    slope : (m,) gradient of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) warm start of the first level, whose solution is that of the next
    factor : kept between calls with the same (or a larger) H and ridge
    most : bound on the support, beyond which H is singular
    going : asked before each ``AT_ONCE`` levels whether there is time

    Returns
    -------
    W : (solved, m), a row for each level
    """
    factor = ActiveFactor() if factor is None else factor
    found = [np.zeros((0, weights.size))]
    w = weights
    left = np.asarray(levels, dtype=np.float64)
    while left.size and going():
        here = slope + H @ (w - weights) + ridge * (w - weights) if w is not weights else slope
        rows = pivot_path(H, here, price, w, left[:AT_ONCE], ridge=ridge, most=most, state=factor)
        if not len(rows):
            w, _ = active_set_qp(
                H, here, w, price=price, level=float(left[0]), signed=True, ridge=ridge,
                from_gradient=True,
            )  # fmt: skip
            rows = w[None]
        found.append(rows)
        w = rows[-1]
        left = left[len(rows) :]
    return np.vstack(found)
