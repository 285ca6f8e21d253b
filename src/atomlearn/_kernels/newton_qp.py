"""Newton steps by quadratic programs: a loss under l1 over a few dense columns, start to end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array
from atomlearn._kernels.group_newton import has_group_newton

#: The losses that the kernel knows, by their names.
NEWTON_LOSSES = {"squared": 0, "logistic": 1, "squared_hinge": 2}


def newton_qp(
    columns: NDArray[Any],
    target: Array,
    sample_weight: Array,
    loss: str,
    weights: Array,
    shift: float = 0.0,
    *,
    price: Array,
    level: float = 0.0,
    coupling: float = 0.0,
    ridge: float = 0.0,
    radius: float = math.inf,
    signed: bool = True,
    intercept: bool = False,
    batch: int = 1,
    most: int = 50,
) -> tuple[Array, float, int]:
    """argmin_c,b sum_i s_i loss(y_i, a_i'c + b) + ridge/2 c'c + level p'|c| + coupling/2 (p'|c|)^2.

    And over p'|c| <= radius; over c >= 0 unless ``signed``. Newton steps whose models
    ``active_set_qp`` minimises, the intercept minimised out, with Armijo's search, until a step
    promises no more than rounding. Nothing is proved: price the point.

    Parameters
    ----------
    columns : (n_samples, m) array
        Copied where it is not float64 with contiguous columns.
    target, sample_weight : (n_samples,) float64
    loss : one of ``NEWTON_LOSSES``
    weights : (m,) feasible start
    shift : float
        The intercept at the start.
    price : (m,) float64 > 0
    most : int
        Bound on steps.

    Returns
    -------
    c, b : the weights and the intercept, no worse than the start
    steps : int
    """
    array = np.asarray(columns, dtype=np.float64, order="F")
    n_samples, size = array.shape
    point = np.array(_checks.weights(weights, "weights", size))
    at = np.array([shift], dtype=np.float64)
    has_group_newton()  # which hands BLAS to the kernels
    steps = _native.newton_qp(
        array, _checks.weights(target, "target", n_samples),
        _checks.weights(sample_weight, "sample_weight", n_samples), NEWTON_LOSSES[loss],
        _checks.weights(price, "price", size), float(level), float(coupling), float(ridge),
        float(radius), bool(signed), bool(intercept), point, at, _checks.count(batch, "batch"),
        _checks.count(most, "most"),
    )  # fmt: skip
    return point, float(at[0]), steps
