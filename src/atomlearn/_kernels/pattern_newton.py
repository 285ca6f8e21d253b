"""A quadratic under the k-support norm, that of a branch, or the elastic net's: Newton steps."""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


def balance_level(v: Array, k: float) -> float:
    """Return the smallest theta >= 0 with ||S(v, theta)||_1 <= sqrt k ||S(v, theta)||_2."""
    return _native.balance_level(v, k)


def pattern_newton(
    matrix: Array,
    pull: Array,
    weights: Array,
    *,
    k: float,
    level: float,
    squared: bool,
    gram: bool,
    elastic: bool = False,
    most: int = 100,
) -> tuple[Array, int]:
    """argmin_w 1/2 w'Hw - pull'w + level g(w), or + level/2 g(w)^2 where ``squared``.

    g is the k-support norm, or, where ``elastic``, max(||w||_2, ||w||_1 / sqrt k).

    Accelerated proximal gradient steps and semismooth Newton steps take turns, as they do in
    ``SemismoothNewton``, until a point is fixed to rounding. Nothing is proved: price the point.

    Parameters
    ----------
    matrix : (n, m) float64
        A with H = A'A, by columns (copied otherwise), or H itself, by rows, where ``gram``.
    pull : (m,) float64
    weights : (m,) the start
    k : number >= 1, a whole one unless ``elastic``
    level : float > 0
    most : int
        Bound on steps.

    Returns
    -------
    w : (m,) the weights, no worse than the start
    steps : int
    """
    array = np.asarray(matrix.T if gram else matrix, dtype=np.float64, order="F")
    size = array.shape[1]
    if gram and array.shape[0] != size:
        raise ValueError(f"a Gram matrix must be square, got shape {array.shape}")
    point = np.array(_checks.weights(weights, "weights", size))
    line = _checks.weights(pull, "pull", size)
    load_blas()
    arguments = array, gram, line, min(k, max(size, 1)), level, squared, elastic
    steps = _native.pattern_newton(*arguments, point, most)
    return point, steps


def branch_newton(
    gram: Array,
    free: Positions,
    inside: Positions,
    pull: Array,
    weights: Array,
    *,
    k: int,
    level: float,
    least: float,
    most: int,
) -> int:
    """Move w toward argmin of 1/2 w'Hw - pull'w + level/2 (||w_in||^2 + gauge_k(w_free)^2).

    Over the rows and columns ``free`` and ``inside`` of a symmetric matrix H; what is in is
    minimized out first. As ``pattern_newton`` otherwise.

    Parameters
    ----------
    gram : (m, m) float64, symmetric, rows contiguous
    free, inside : int64 positions in H
    pull : (m,) float64
    weights : (n_free + n_inside,) float64, overwritten
    k : int >= 0
    level : float > 0
    least : float >= 0
        Where it is above 0, gauge_k(w)^2 is min sum_j (w_j^2 / d_j + least^2 d_j) over
        0 <= d <= 1, sum d <= k: each entry has a separate price.
    most : int
        Bound on steps.

    Returns
    -------
    steps : int
    """
    matrix = _checks.symmetric(gram, gram.shape[0])
    load_blas()
    return _native.branch_newton(matrix, free, inside, pull, k, level, least, weights, most)
