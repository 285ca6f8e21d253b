"""Newton steps by quadratic programs: a loss under l1 over a few columns, start to end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array
from atomlearn._kernels.group_newton import has_group_newton

KeptHessian = _native.KeptHessian

#: The losses that the kernel knows, by their names.
NEWTON_LOSSES = {"squared": 0, "logistic": 1, "squared_hinge": 2, "poisson": 3, "huber": 4}


def newton_qp(
    columns: Any,
    target: Array,
    sample_weight: Array,
    loss: str,
    weights: Array,
    shift: float = 0.0,
    *,
    price: Array,
    slopes: tuple[float, float, float] = (-1.0, 1.0, 1.0),
    level: float = 0.0,
    coupling: float = 0.0,
    ridge: float = 0.0,
    radius: float = math.inf,
    signed: bool = True,
    intercept: bool = False,
    gap: float = 0.0,
    batch: int = 1,
    most: int = 50,
    most_columns: int = 2**31,
    work: float = math.inf,
    seconds: float = math.inf,
    kept: KeptHessian | None = None,
) -> tuple[Array, float, int]:
    """argmin_c,b sum_i s_i loss(y_i, a_i'c + b) + ridge/2 c'c + level p'|c| + coupling/2 (p'|c|)^2.

    And over p'|c| <= radius; over c >= 0 unless ``signed``. Newton steps over the columns in use
    and those that want in, whose models are minimised by exchanges of signs (``pivot_path``) or by
    ``active_set_qp``, the intercept minimised out, with Armijo's search. Nothing is proved: price
    the point.

    Parameters
    ----------
    columns : (n_samples, m) array, or sparse array by columns without duplicates
        Copied where it is not float64, or dense without contiguous columns.
    target, sample_weight : (n_samples,) float64
    loss : one of ``NEWTON_LOSSES``
    slopes : (low, high, width)
        The loss named Huber's is max over a in [low, high] of a (z - y) - width/2 a^2.
    weights : (m,) feasible start
    shift : float
        The intercept at the start.
    price : (m,) float64 > 0
    gap : float
        Ends where about so much of the objective is left, or a step promises mere rounding.
    batch : int
        Columns that enter between two solves of ``active_set_qp``.
    most : int
        Bound on steps.
    most_columns, work, seconds
        Ends before a model of more columns, or of more multiplications, and when time is up.
    kept : KeptHessian, optional
        What an earlier call left behind, for the same columns, or fewer of them; updated.

    Returns
    -------
    c, b : the weights and the intercept, no worse than the start
    steps : int
    """
    n_samples, size = columns.shape
    point = np.array(_checks.weights(weights, "weights", size))
    at = np.array([shift], dtype=np.float64)
    has_group_newton()  # which hands BLAS to the kernels
    rest = (
        _checks.weights(target, "target", n_samples),
        _checks.weights(sample_weight, "sample_weight", n_samples),
        (NEWTON_LOSSES[loss], *slopes),
        _checks.weights(price, "price", size),
        (float(level), float(coupling), float(ridge), float(radius), bool(signed), bool(intercept)),
        (
            float(gap), _checks.count(batch, "batch"), _checks.count(most, "most"),
            int(most_columns), float(work), float(seconds),
        ),
        KeptHessian() if kept is None else kept,
        point,
        at,
    )  # fmt: skip
    if sp.issparse(columns):
        matrix: Any = columns
        data = np.ascontiguousarray(matrix.data, dtype=np.float64)
        indptr = np.ascontiguousarray(matrix.indptr, dtype=matrix.indices.dtype)
        steps = _native.newton_qp_csc(data, matrix.indices, indptr, *rest)
    else:
        steps = _native.newton_qp(np.asarray(columns, dtype=np.float64, order="F"), *rest)
    return point, float(at[0]), steps
