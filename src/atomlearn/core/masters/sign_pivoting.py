"""Block principal pivoting for l1-penalized quadratics (the lasso with a given Gram matrix).

The method guesses the sign (-1, 0 or +1) of each coefficient, and solves a linear system for the
nonzero ones. A round changes the signs of all coefficients that violate optimality at once. With a
warm start from the previous penalty level, two or three linear systems per level are enough. If the
rounds repeat the same signs in a cycle, ``active_set_qp``, which always descends, takes over.

L. F. Portugal, J. J. Judice, L. N. Vicente 1994; J. Kim, H. Park, NIPS 2010, section 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from atomlearn._kernels import ActiveFactor, active_set_qp, pivot_path
from atomlearn.core.interfaces import Array

#: Number of levels that one call to the kernel solves.
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
    """Return argmin_w 1/2 d'(H + ridge I)d + slope'd + level_k sum_j p_j |w_j| for each level_k.

    Here d = w - weights is the change from the warm start ``weights``, and p = ``price``.

    Parameters
    ----------
    H : (m, m), symmetric positive semidefinite, rows contiguous
    slope : (m,) grad of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) warm start of the first level; each solution is the warm start of the next level
    levels : (n_levels,) penalty levels, each close to the one before
    factor : a Cholesky factor, kept between calls with the same (or a larger) H and ridge
    most : maximum size of the support, beyond which H is singular
    going : called before each batch of ``AT_ONCE`` levels; False ends the path

    Returns
    -------
    W : (n_solved, m), the solution of each level that was solved, in order
    """
    factor = ActiveFactor() if factor is None else factor
    solutions = [np.zeros((0, weights.size))]
    w = weights
    remaining = np.asarray(levels, dtype=np.float64)
    while remaining.size and going():
        # The gradient of the quadratic at w, the last solution.
        grad = slope + H @ (w - weights) + ridge * (w - weights) if w is not weights else slope
        batch = remaining[:AT_ONCE]
        rows = pivot_path(H, grad, price, w, batch, ridge=ridge, most=most, state=factor)
        if not len(rows):  # the signs cycle: solve one level by a method that always descends
            w, _ = active_set_qp(
                H, grad, w, price=price, level=float(remaining[0]), signed=True, ridge=ridge,
                from_gradient=True,
            )  # fmt: skip
            rows = w[None]
        solutions.append(rows)
        w = rows[-1]
        remaining = remaining[len(rows) :]
    return np.vstack(solutions)
