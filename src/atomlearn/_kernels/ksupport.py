"""The k-support norm: its prox and its value through scaling, and the prox as others compute it.

The squared norm is min over d of sum_j w_j^2 / d_j with 0 <= d <= 1 and sum d <= k; all that is
unknown of the minimiser is one number t with d_j = clip(t |w_j|, 0, 1).
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Data


class _Method(IntEnum):
    SCALING = -1
    EXHAUSTIVE = 0
    BOX_NORM = 1
    BINARY_SEARCH = 2
    TWO_STEP = 3


def _prox(method: _Method, v: Data, k: int, step: float) -> tuple[Data, float]:
    array = _checks.vector(v, "v")
    wanted = _checks.count(k, "k")
    if not 0 < step < math.inf:
        raise ValueError(f"step must be finite and > 0, got {step!r}")
    w = np.empty_like(array)
    if array.size == 0:
        return w, math.inf
    status, scale = _native.prox(method, array, min(wanted, array.size), float(step), w)
    if status == 1:
        raise ValueError("v holds NaN or infinity: check the point and the step it came from")
    return w, scale


def ksupport_prox(v: Data, k: int, step: float) -> tuple[Data, float]:
    """(w, t): w = argmin_x 1/2 ||x - v||^2 + (step/2) ||x||_k^2 for the k-support norm.

    w_j = v_j d_j / (d_j + step) with d_j = clip(t |v_j| - step, 0, 1) and sum d = k: a soft
    threshold by step/t where 0 < d < 1, a shrinkage by 1 + step where d = 1. t is infinite where
    at most k entries are non-zero, and the smallest one where several solve the equation.

    w has the precision of v; everything else is float64, the equation double-double. Expected
    linear time. References: McDonald, Pontil, Stamos 2014 (the equation); Argyriou, Foygel,
    Srebro 2012 (the norm).
    """
    return _prox(_Method.SCALING, v, k, step)


def ksupport_multiplier(
    v: Data, k: int, amount: float, penalized: bool, start: float, low: float, high: float
) -> float:
    """Return the mu at which ``ksupport_prox(v, k, mu)`` is the penalized or constrained prox.

    That is where mu gauge(w(mu)) = amount (``penalized``), or gauge(w(mu)) = amount. ``start`` is
    the left side's F(0), [low, high] holds the root x = 1 / mu, or mu, of F(x) = amount: see
    ``core.norms.ksupport_point``.
    """
    array = _checks.weights(v, "v", np.size(v))
    wanted = _checks.count(k, "k", array.size)
    bounds = np.array([start, low, high])
    status, mu = _native.multiplier(
        array, wanted, float(amount), bool(penalized), bounds, np.empty_like(array)
    )
    if status:
        raise ValueError("v holds NaN or infinity: check the point and the step it came from")
    return mu


def ksupport_gauge(w: Data, k: int) -> float:
    """||w||_k^sp = sqrt(min sum_j w_j^2 / d_j over 0 <= d <= 1, sum d <= k): expected linear time.

    Equal to Argyriou, Foygel, Srebro 2012, Proposition 2.1, without its sort.
    """
    array = _checks.vector(w, "w")
    wanted = _checks.count(k, "k")
    if array.size == 0:
        return 0.0
    status, value = _native.gauge(array, min(wanted, array.size))
    if status:
        raise ValueError("w holds NaN or infinity: check where it came from")
    return value


def ksupport_prox_exhaustive(v: Data, k: int, step: float) -> tuple[Data, float]:
    """As ``ksupport_prox``, by Algorithm 1 of Argyriou et al. 2012: a sort, then every (r, l)."""
    return _prox(_Method.EXHAUSTIVE, v, k, step)


def ksupport_prox_box_norm(v: Data, k: int, step: float) -> tuple[Data, float]:
    """As ``ksupport_prox``, by McDonald, Pontil, Stamos 2014: a sort of 2d break points."""
    return _prox(_Method.BOX_NORM, v, k, step)


def ksupport_prox_binary_search(v: Data, k: int, step: float) -> tuple[Data, float]:
    """As ``ksupport_prox``, by Lai et al. 2014: a sort, then nested binary searches for (r, l)."""
    return _prox(_Method.BINARY_SEARCH, v, k, step)


def ksupport_prox_two_step(v: Data, k: int, step: float) -> tuple[Data, float]:
    """As ``ksupport_prox``, by Eriksson et al. 2015: a sort, a search for r, another for l."""
    return _prox(_Method.TWO_STEP, v, k, step)
