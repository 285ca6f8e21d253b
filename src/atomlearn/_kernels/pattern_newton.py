"""A quadratic under the k-support norm, that of a branch, or the elastic net's: Newton steps."""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


def balance_level(v: Array, k: float) -> float:
    """Return the smallest theta >= 0 with ||S(v, theta)||_1 <= sqrt k ||S(v, theta)||_2.

    S is soft thresholding: S(v, theta)_j = sign(v_j) max(|v_j| - theta, 0). ``k`` is a number >= 1.
    """
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
    """Minimize 1/2 w'Hw - pull'w + level g(w) over w, or + level/2 g(w)^2 if ``squared``.

    g is the k-support norm, or, if ``elastic``, max(||w||_2, ||w||_1 / sqrt k). Accelerated
    proximal gradient steps and semismooth Newton steps take turns, as they do in
    ``SemismoothNewton``, until a point is fixed to rounding. Nothing is proved: the caller must
    certify the point.

    Parameters
    ----------
    matrix : (n, m) float64
        A with H = A'A, by columns (copied otherwise); or H itself, by rows, if ``gram``.
    pull : (m,) float64
        The linear term, A'y for least squares.
    weights : (m,)
        The start.
    k : number >= 1
        A whole number unless ``elastic``.
    level : float > 0
        Regularization strength.
    squared : bool
        Whether g is squared.
    gram : bool
        Whether ``matrix`` is H.
    elastic : bool
        Which norm g is.
    most : int
        Maximum number of steps.

    Returns
    -------
    w : (m,)
        The weights, no worse than the start.
    steps : int
    """
    ordered = np.asarray(matrix.T if gram else matrix, dtype=np.float64, order="F")
    size = ordered.shape[1]
    if gram and ordered.shape[0] != size:
        raise ValueError(f"a Gram matrix must be square, got shape {ordered.shape}")
    # The kernel overwrites a copy of the start.
    point = np.array(_checks.weights(weights, "weights", size))
    linear_term = _checks.weights(pull, "pull", size)
    load_blas()
    arguments = ordered, gram, linear_term, min(k, max(size, 1)), level, squared, elastic
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
    """Minimize 1/2 w'Hw - pull'w + level/2 (||w_in||^2 + gauge_k(w_free)^2), in place.

    This is a node of a branch-and-bound search for the best subset of features. The features in
    ``inside`` are selected for certain, and at most k of those in ``free`` are to be selected. w_in
    is minimized out first. The method is that of ``pattern_newton``; w is never worse than before.

    Parameters
    ----------
    gram : (m, m) float64, symmetric, rows contiguous
        H is the submatrix of these rows and columns ``free`` and ``inside``.
    free, inside : int64
        Positions in ``gram``.
    pull : (m,) float64
        The linear term.
    weights : (n_free + n_inside,) float64
        w: the start, which the result overwrites.
    k : int >= 0
        The k of the k-support norm gauge_k.
    level : float > 0
        Regularization strength.
    least : float >= 0
        If it is above 0, gauge_k(w)^2 is min sum_j (w_j^2 / d_j + least^2 d_j) over
        0 <= d <= 1, sum d <= k: each selected entry has a price in addition.
    most : int
        Maximum number of steps.

    Returns
    -------
    steps : int
    """
    matrix = _checks.symmetric(gram, gram.shape[0])
    load_blas()
    return _native.branch_newton(matrix, free, inside, pull, k, level, least, weights, most)
