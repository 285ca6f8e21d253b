"""Coordinates of rows in a subspace by Huber regression, robust to sparse gross errors."""

from __future__ import annotations

import numpy as np

from atomlearn.core import LIMITS, Array


def robust_coordinates(
    X: Array, V: Array, threshold: float, tol: float, max_iter: int
) -> tuple[Array, float]:
    """Return the C that minimizes 1/2 ||X - C V' - S||_F^2 + threshold ||S||_1 over C and S.

    X is (n, p), the columns of V (p, r) are orthonormal, and C is (n, r). Minimizing over S gives
    Huber's loss of X - C V', so that each row of C is a Huber regression. A row ends when its
    relative duality gap is at most ``tol``, or after ``max_iter`` steps. The second result is the
    largest relative duality gap of a row.
    """
    # With the threshold 0, S takes up any residual, so that every C is optimal.
    if not V.shape[1] or not threshold > 0:
        return X @ V, 0.0
    # Slices of rows, so that the arrays of ``_huber`` have a bounded size.
    slices = LIMITS.pieces(X.shape[0], V.shape[0] + V.shape[1] ** 2)
    results = [_huber(X[rows], V, threshold, tol, max_iter) for rows in slices]
    return np.vstack([C for C, _ in results]), max(gap for _, gap in results)


def _huber(X: Array, V: Array, threshold: float, tol: float, max_iter: int) -> tuple[Array, float]:
    """Return C (n, r) for the rows X (n, p), and their largest relative duality gap.

    The method is iteratively reweighted least squares. Each step minimizes the quadratic upper
    bound of Huber's loss that touches it at the last iterate. V (p, r) has orthonormal columns,
    ``threshold`` is that of Huber's loss, ``tol`` the relative gap at which a row ends, and
    ``max_iter`` the largest number of steps.
    """
    # Row j of ``squares`` has the products V_ja V_jb, from which weighted Gram matrices are summed.
    squares = (V[:, :, None] * V[:, None, :]).reshape(V.shape[0], -1)
    C = X @ V
    gaps = np.zeros(X.shape[0])
    unfinished = np.arange(X.shape[0])
    for _ in range(max_iter + 1):
        active_rows = X[unfinished]
        residuals = active_rows - C[unfinished] @ V.T
        clipped = np.clip(residuals, -threshold, threshold)
        values = (clipped * (residuals - 0.5 * clipped)).sum(axis=1)
        # The dual point is orthogonal to V, with entries up to the threshold.
        dual = clipped - clipped @ V @ V.T
        dual *= (threshold / np.maximum(np.abs(dual).max(axis=1), threshold))[:, None]
        gap = np.maximum(values - (dual * (active_rows - 0.5 * dual)).sum(axis=1), 0.0)
        gaps[unfinished] = gap / np.where(values > 0.0, values, 1.0)
        # Each row ends by its gap, so that its coordinates do not depend on other rows.
        is_open = gaps[unfinished] > tol
        unfinished = unfinished[is_open]
        residuals = residuals[is_open]
        clipped = clipped[is_open]
        if not unfinished.size:
            break
        # The least squares problem of each open row, with the weights w_j = min(1, threshold /
        # |residual_j|). Then w_j residual_j is the clipped residual.
        weights = threshold / np.maximum(np.abs(residuals), threshold)
        hessians = (weights @ squares).reshape(-1, V.shape[1], V.shape[1])
        C[unfinished] += np.linalg.solve(hessians, (clipped @ V)[:, :, None])[:, :, 0]
    return C, float(gaps.max())
