"""Proximal Newton method for a smooth loss with an l1 penalty over a few columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array
from atomlearn._kernels.threads import load_blas

KeptHessian = _native.KeptHessian


def newton_qp(
    columns: Any,
    target: Array,
    sample_weight: Array,
    loss: Any,
    weights: Array,
    shift: float = 0.0,
    *,
    price: Array,
    level: float = 0.0,
    coupling: float = 0.0,
    ridge: float = 0.0,
    metric: Array | None = None,
    radius: float = math.inf,
    signed: bool = True,
    intercept: bool = False,
    gap: float = 0.0,
    most: int = 50,
    seconds: float = math.inf,
    kept: KeptHessian | None = None,
) -> tuple[Array, float, int]:
    """argmin_c,b f(A c + b) + ridge/2 c'Mc + level p'|c| + coupling/2 (p'|c|)^2.

    The constraints are p'|c| <= radius, and c >= 0 unless ``signed``. A proximal Newton step
    minimizes the quadratic model of f plus the penalty, over the active columns and those that
    violate optimality, with the intercept b eliminated. The model is solved by block pivoting on
    signs (``pivot_path``) or by ``active_set_qp``; an Armijo line search follows. No duality gap is
    computed; the caller must certify the result. Models have at most 10,000 columns.

    Parameters
    ----------
    columns : (n_samples, m) array, or sparse array by columns without duplicates
        Copied if it is not float64, or dense without contiguous columns.
    target, sample_weight : (n_samples,) float64
    loss : Loss
        A separable loss, a sum over samples; the kernel calls its values and derivatives.
    weights : (m,) feasible start
    shift : float
        The intercept at the start.
    price : (m,) float64 > 0
    metric : (m, m), optional
        M; the identity if None.
    gap : float
        The iteration ends when the estimated suboptimality is at most ``gap``, or the predicted
        decrease is only rounding error.
    most : int
        Maximum number of steps.
    seconds : float
        Time limit.
    kept : KeptHessian, optional
        A Hessian from an earlier call, for the same or fewer columns; updated in place.

    Returns
    -------
    c, b : the weights and the intercept, no worse than the start
    steps : int
    """
    point = np.array(weights, dtype=np.float64)
    at = np.array([shift], dtype=np.float64)
    load_blas()
    terms = level, coupling, ridge, radius, signed, intercept
    M = np.zeros(0) if metric is None else metric.reshape(-1)
    kept = KeptHessian() if kept is None else kept
    given = _asked(loss, target, sample_weight), price, terms, M, gap, most, seconds, kept
    if sp.issparse(columns):
        matrix: Any = columns
        data = np.ascontiguousarray(matrix.data, dtype=np.float64)
        indptr = np.ascontiguousarray(matrix.indptr, dtype=matrix.indices.dtype)
        parts = data, matrix.indices, indptr
        steps = _native.newton_qp_csc(parts, *given, point, at)
    else:
        dense = np.asarray(columns, dtype=np.float64, order="F")
        steps = _native.newton_qp(dense, *given, point, at)
    return point, float(at[0]), steps


def _asked(loss: Any, y: Array, s: Array) -> _native.PythonLoss:
    """Return the callbacks by which the kernel evaluates the loss, at a shared prediction array.

    The kernel writes the predictions z; the callbacks return values, or write f'(z) and f''(z).
    """
    z, first, second = np.empty((3, y.size))
    least, largest = loss.curvature_bounds

    def differentiate() -> None:
        first[:] = loss.gradient(y, z, s)
        second[:] = loss.curvature(y, z, s)

    def bend(share: float) -> float:
        both = loss.value(y, z, s) + loss.conjugate(y, share * first, s)
        return float(both - share * float(first @ z))

    return _native.PythonLoss(
        lambda: loss.value(y, z, s),
        differentiate,
        bend,
        z,
        first,
        second,
        s,
        largest,
        least == largest,
    )
