"""Twins of kernels that solve problems: the k-support norm in rationals, quadratic programs by
trying every support."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from atomlearn._kernels._checks import Array, Data


def exact_scaling(magnitudes: Sequence[Fraction], k: int, step: Fraction) -> Fraction | None:
    """Return the t with sum_j clip(t a_j - step, 0, 1) = k, the smallest one; None for infinity.

    Walks the sorted break points step/a and (1 + step)/a in rational arithmetic.
    """
    positive = [a for a in magnitudes if a > 0]
    if len(positive) <= k:
        return None
    # One event for each bend: (t, change of slope, change of constant).
    events = [(step / a, a, -step) for a in positive]
    events += [((1 + step) / a, -a, 1 + step) for a in positive]
    slope, constant = Fraction(0), Fraction(0)
    for t, slope_change, constant_change in sorted(events):
        if slope * t + constant >= k:
            return (k - constant) / slope
        slope += slope_change
        constant += constant_change
    raise AssertionError("the sum reaches the number of non-zero entries, which exceeds k")


def exact_ksupport_prox(v: Data, k: int, step: float) -> list[Fraction]:
    """Return the prox of (step/2) ||.||_k^2 as exact rationals."""
    values = [Fraction(value) for value in np.asarray(v, dtype=np.float64).tolist()]
    amount = Fraction(step)
    t = exact_scaling([abs(value) for value in values], k, amount)
    if t is None:
        return [value / (1 + amount) for value in values]
    scaling = [min(max(t * abs(value) - amount, Fraction(0)), Fraction(1)) for value in values]
    return [value * d / (d + amount) for value, d in zip(values, scaling, strict=True)]


def exact_ksupport_squared_gauge(w: Data, k: int) -> Fraction:
    """Return (||w||_k^sp)^2 as an exact rational: Argyriou et al. 2012, Proposition 2.1."""
    z = sorted((abs(Fraction(x)) for x in np.asarray(w, dtype=np.float64).tolist()), reverse=True)
    k = min(k, len(z))
    tail = sum(z[k:], Fraction(0))
    for r in range(k):
        head = z[: k - r - 1]
        tail += z[k - r - 1]
        if (not head or head[-1] > tail / (r + 1)) and tail / (r + 1) >= z[k - r - 1]:
            return sum((a * a for a in head), Fraction(0)) + tail * tail / (r + 1)
    raise AssertionError("Proposition 2.1 promises one r")


def ksupport_prox(v: Data, k: int, step: float) -> tuple[Data, float]:
    """Return (w, t) of the fast twin, rounded from exact rationals."""
    values = [abs(Fraction(value)) for value in np.asarray(v, dtype=np.float64).tolist()]
    t = exact_scaling(values, k, Fraction(step))
    w = np.array([float(x) for x in exact_ksupport_prox(v, k, step)]).astype(v.dtype)
    return w, math.inf if t is None else float(t)


def ksupport_gauge(w: Data, k: int) -> float:
    """Return ||w||_k^sp, from its exact square."""
    return math.sqrt(exact_ksupport_squared_gauge(w, k))


def active_set_qp(
    gram: Array,
    linear: Array,
    *,
    price: Array | None = None,
    coupling: float = 0.0,
    ridge: float = 0.0,
    radius: float = math.inf,
    equality: bool = False,
) -> tuple[Array, float]:
    """(c, value) of min 1/2 c'Qc - linear'c over c >= 0 [p'c <= radius], by trying every support.

    The minimum over one support is a linear system, in the least-squares sense where atoms depend
    on each other: then some smaller support has the same minimum. 2^m supports: for m <= 10.
    """
    size = linear.size
    p = np.ones(size) if price is None else price
    Q = gram + coupling * np.outer(p, p) + ridge * np.eye(size)
    best, value = np.zeros(size), math.inf if equality else 0.0
    for k in range(1, size + 1):
        for support in itertools.combinations(range(size), k):
            J = list(support)
            for tight in (False, True):
                if (equality and not tight) or (tight and radius == math.inf):
                    continue
                x = _stationary(Q[np.ix_(J, J)], linear[J], p[J], radius if tight else None)
                if x is None or (x < 0).any() or (not tight and p[J] @ x > radius):
                    continue
                reached = float(0.5 * x @ Q[np.ix_(J, J)] @ x - linear[J] @ x)
                if reached < value:
                    best, value = np.zeros(size), reached
                    best[J] = x
    return best, value


def _stationary(Q: Array, q: Array, p: Array, radius: float | None) -> Array | None:
    """Solve Q x = q, or Q x + nu p = q with p'x = radius, in units in which diag(Q) = 1."""
    unit = np.sqrt(np.maximum(np.diag(Q), 0.0))
    if not unit.all():
        unit = np.ones(unit.size)
    Q, q, p = Q / np.outer(unit, unit), q / unit, p / unit
    if radius is not None:
        scale = float(np.abs(p).max())
        border = p[:, None] / scale
        Q = np.block([[Q, border], [border.T, np.zeros((1, 1))]])
        q = np.append(q, radius / scale)
    solution = np.linalg.lstsq(Q, q, rcond=1e-11)[0]
    if np.abs(Q @ solution - q).max() > 1e-9 * np.abs(q).max(initial=0.0):
        return None
    return np.asarray(solution[: p.size] / unit)
