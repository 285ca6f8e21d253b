"""Newton methods for a quadratic plus the k-support norm, an elastic net norm, or relatives."""

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
    proximal gradient steps alternate with semismooth Newton steps for the fixed-point equation of
    the proximal gradient step, as in ``SemismoothNewton``. The iteration ends when that step
    changes w only by rounding. No gap is computed: the caller must certify the point.

    Parameters
    ----------
    matrix : (n, m) float64
        A with H = A'A, in Fortran order (else it is copied); or H itself, in C order, if ``gram``.
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
        Whether g is the elastic net norm rather than the k-support norm.
    most : int
        Maximum number of steps.

    Returns
    -------
    w : (m,)
        The weights, whose objective is not above that of the start.
    steps : int
        Number of steps.
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

    This is the relaxation at a node of a branch-and-bound search for the best subset of features.
    The features in ``inside`` are selected for certain (weights w_in), and at most k of those in
    ``free`` are to be selected (weights w_free). w_in is minimized out first. The method is that of
    ``pattern_newton``; the objective never rises.

    Parameters
    ----------
    gram : (m, m) float64, symmetric, rows contiguous
        H is the submatrix of the rows and columns ``free`` and ``inside``.
    free, inside : int64
        Positions in ``gram`` of the features of the two kinds.
    pull : (m,) float64
        The linear term.
    weights : (n_free + n_inside,) float64
        w, first of the features ``free``, then ``inside``: the start, which the result overwrites.
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
