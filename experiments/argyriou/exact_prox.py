"""The prox of the squared k-support norm in whole numbers, each entry rounded once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Array = Any


def exact_prox(v: Array, k: int, step: float, guess: Array) -> Array | None:
    """Return argmin_x 1/2 ||x - v||^2 + (step/2) ||x||_k^2, correctly rounded.

    With step = P / Q, d_j = clip(t |v_j| - P/Q, 0, 1) and sum d = k, the entries at 1 (F of them)
    and those between (M of them, of sum S) fix t = N / (Q S), N = (k - F) Q + P M. A guess
    of the result tells the three classes, which are checked in whole numbers; None where it was
    too far off to tell.
    """
    if np.count_nonzero(v) <= k:
        amount = 1 + Fraction(step)
        return np.array([float(Fraction(x) / amount) for x in v.tolist()])
    whole, shift = _whole_numbers(v)
    P, Q = step.as_integer_ratio()
    sizes = [abs(x) for x in whole]
    whole_step = np.abs(guess) * (1.0 + step) >= np.abs(v) * (1.0 - 4e-16)
    full = (whole_step & (guess != 0.0)).tolist()
    middle = (~whole_step & (guess != 0.0)).tolist()
    n_full, n_middle = sum(full), sum(middle)
    S = sum(a for a, inside in zip(sizes, middle, strict=True) if inside)
    N = (k - n_full) * Q + P * n_middle
    if S == 0:
        return None
    for a, top, inside in zip(sizes, full, middle, strict=True):
        reached, one, none = N * a, (Q + P) * S, P * S
        right = reached >= one if top else none <= reached <= one if inside else reached <= none
        if not right:
            return None
    exact = []
    for x, a, top, inside in zip(whole, sizes, full, middle, strict=True):
        if top:
            value = (x * Q, Q + P)
        elif inside:
            value = (_signed(a * N - P * S, x), N)
        else:
            value = (0, 1)
        # Python divides whole numbers with one rounding.
        exact.append(value[0] / (value[1] << shift))
    return np.array(exact)


def _signed(size: int, like: int) -> int:
    return size if like >= 0 else -size


def _whole_numbers(v: Array) -> tuple[list[int], int]:
    """Return v as whole numbers times 2^-shift."""
    ratios = [x.as_integer_ratio() for x in v.tolist()]
    shift = max(q.bit_length() - 1 for _, q in ratios)
    return [p << (shift - q.bit_length() + 1) for p, q in ratios], shift
