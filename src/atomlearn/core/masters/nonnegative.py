"""Small non-negative quadratic programs: min 1/2 x'Hx - b'x over x >= 0, H positive definite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.tuning import TUNING


def nonnegative_minimum(hessian: Array, right: Array, positive: NDArray[np.bool_]) -> Array | None:
    """Return argmin over x >= 0 of 1/2 x'Hx - b'x, or None where H is not positive definite.

    Principal pivoting with whole blocks from the guess ``positive`` [Portugal, Judice, Vicente
    1994]: solve on the guess, exchange all unknowns that violate a condition, repeat; a handful
    of factorizations where the guess is good. Where that cycles, Lawson and Hanson's method.
    """
    # Unknowns of the same size: conditions are compared with each other.
    diagonal = np.diag(hessian)
    if not ((diagonal > 0).all() and np.isfinite(diagonal).all()):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    matrix = scale[:, None] * hessian * scale
    b = scale * right
    inside = positive | (b > 0)
    fewest, patience = b.size + 1, 3
    for _ in range(TUNING.exchanges):
        x = np.zeros(b.size)
        used = np.flatnonzero(inside)
        try:
            lower = cho_factor(matrix[np.ix_(used, used)], lower=True, check_finite=False)
        except LinAlgError:
            return None
        x[used] = cho_solve(lower, b[used], check_finite=False)
        slack = matrix[:, used] @ x[used] - b
        tiny = 1e-12 * float(np.abs(b).max())
        wrong = np.where(inside, x < 0, slack < -tiny)
        count = int(np.count_nonzero(wrong))
        if not count:
            return scale * x
        if count < fewest:
            fewest, patience = count, 3
        elif patience:
            patience -= 1
        else:
            break
        inside ^= wrong
    try:
        upper = cholesky(matrix, lower=False, check_finite=False)
        solution, _ = nnls(upper, solve_triangular(upper, b, trans="T", check_finite=False))
    except (LinAlgError, RuntimeError):
        return None
    return scale * np.asarray(solution)
