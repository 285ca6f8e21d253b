"""The k-support norm: its value, and its proximal map by our algorithm and by those of papers.

The squared norm is min over d of sum_j w_j^2 / d_j with 0 <= d <= 1 and sum d <= k. The minimizer
is d_j = clip(t |w_j|, 0, 1), where the number t solves sum d = k. The algorithms compute t.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Data

#: Algorithms for the proximal map: ours, and those of the papers.
_METHODS: dict[str, Callable[[Data, int, float, Data], float]] = {
    "scaling": _native.prox,
    "exhaustive": _native.prox_exhaustive,
    "box_norm": _native.prox_box_norm,
    "binary_search": _native.prox_binary_search,
    "two_step": _native.prox_two_step,
}


def _finite(result: float, name: str) -> float:
    """Return the ``result`` of a kernel; raise ValueError if it is NaN.

    A kernel returns NaN if its vector, called ``name`` in the error, is not finite.
    """
    if math.isnan(result):
        raise ValueError(f"{name} holds NaN or infinity: check where it came from")
    return result


def ksupport_prox(v: Data, k: int, step: float, method: str = "scaling") -> tuple[Data, float]:
    """Return w = argmin_x 1/2 ||x - v||^2 + (step/2) ||x||_k^2 for the k-support norm, and t.

    The entries of w are w_j = v_j d_j / (d_j + step), with d_j = clip(t |v_j| - step, 0, 1). The
    number t solves sum d = k. So w_j is soft-thresholded by step / t if 0 < d_j < 1, and is
    v_j / (1 + step) if d_j = 1. If at most k entries are non-zero, t is infinite. If several t
    solve the equation, t is the smallest.

    w has the precision of v. Everything else is computed in float64, and the sum d in pairs of
    float64 (double-double). Expected linear time.

    Parameters
    ----------
    v : (p,)
        The point.
    k : int
        The k of the norm.
    step : float > 0
        The step.
    method : str
        "scaling", ours, or the algorithm of a paper for the same result: "exhaustive", Algorithm 1
        of Argyriou et al. 2012 (a sort, then every (r, l)); "box_norm", McDonald, Pontil, Stamos
        2014 (a sort of 2 p break points); "binary_search", Lai et al. 2014 (a sort, then nested
        searches for (r, l)); "two_step", Eriksson et al. 2015 (a sort, a search for r, another for
        l).

    References
    ----------
    McDonald, Pontil, Stamos 2014 (the equation); Argyriou, Foygel, Srebro 2012 (the norm).
    """
    if not 0 < step < math.inf:
        raise ValueError(f"step must be finite and > 0, got {step!r}")
    w = np.empty_like(v, order="C")
    if v.size == 0:
        return w, math.inf
    t = _METHODS[method](np.ascontiguousarray(v), min(k, v.size), step, w)
    return w, _finite(t, "v")


def ksupport_multiplier(v: Data, k: int, amount: float, penalized: bool, guess: float) -> float:
    """Return the step mu at which ``ksupport_prox`` is the penalized or the constrained prox.

    With w(mu) = ksupport_prox(v, k, mu), mu solves mu gauge(w(mu)) = amount if ``penalized``. Then
    w(mu) is the proximal point for the norm itself, with step ``amount``. Otherwise mu solves
    gauge(w(mu)) = amount, and w(mu) is the projection onto the ball of radius ``amount``. ``guess``
    > 0 is a first guess of 1 / mu if ``penalized``, else of mu.
    """
    return _finite(_native.multiplier(v, k, amount, penalized, guess), "v")


def ksupport_gauge(w: Data, k: int) -> float:
    """Return ||w||_k^sp = sqrt(min sum_j w_j^2 / d_j over 0 <= d <= 1, sum d <= k).

    It takes expected linear time, and equals Argyriou, Foygel, Srebro 2012, Proposition 2.1, which
    needs a sort.
    """
    if w.size == 0:
        return 0.0
    return _finite(_native.gauge(np.ascontiguousarray(w), min(k, w.size)), "w")
