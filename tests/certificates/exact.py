"""The optimum of small l1 problems in exact rationals, by all patterns of signs.

min over w, b of  1/2 sum_i s_i (y_i - x_i'w - b)^2 + R(||w||_1), with the floats given taken for
what they are: fractions. On each pattern of signs the optimum solves a linear system; the least
objective over the patterns whose solution has these very signs is F*, without any rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

Vector = list[Fraction]


def fractions(values: Sequence[float] | np.ndarray) -> Vector:
    return [Fraction(float(x)) for x in np.ravel(values)]


def objective(X, y, weight, w, b, form, amount) -> Fraction | None:
    """Return F(w, b) exactly; None where w lies outside of the ball by more than rounding."""
    rows = [fractions(row) for row in X]
    coefficients, shift = fractions(w), Fraction(float(b))
    loss = Fraction(0)
    for row, target, s in zip(rows, fractions(y), fractions(weight), strict=True):
        residual = target - shift - sum(x * c for x, c in zip(row, coefficients, strict=True))
        loss += s * residual * residual / 2
    gauge, size = sum(abs(c) for c in coefficients), Fraction(float(amount))
    if form == "penalized":
        return loss + size * gauge
    if form == "squared":
        return loss + size * gauge * gauge / 2
    return loss if gauge <= size * (1 + Fraction(1, 10**8)) else None


def optimum(X, y, weight, form, amount, intercept: bool) -> Fraction:
    """Return F* exactly. Columns: at most four or so, 3^p patterns are tried."""
    rows, targets, s = [fractions(row) for row in X], fractions(y), fractions(weight)
    n, p, size = len(rows), len(rows[0]), Fraction(float(amount))
    if intercept:
        total = sum(s)
        means = [sum(s[i] * rows[i][j] for i in range(n)) / total for j in range(p)]
        mean = sum(s[i] * targets[i] for i in range(n)) / total
        rows = [[x - m for x, m in zip(row, means, strict=True)] for row in rows]
        targets = [t - mean for t in targets]
    Q = [[sum(s[i] * r[a] * r[b] for i, r in enumerate(rows)) for b in range(p)] for a in range(p)]
    c = [sum(s[i] * r[a] * targets[i] for i, r in enumerate(rows)) for a in range(p)]
    constant = sum(s[i] * targets[i] ** 2 for i in range(n)) / 2

    def value(w: Vector) -> Fraction:
        quadratic = sum(w[a] * Q[a][b] * w[b] for a in range(p) for b in range(p)) / 2
        gauge = sum(abs(x) for x in w)
        extra = {"penalized": size * gauge, "squared": size * gauge**2 / 2}.get(form, Fraction(0))
        return constant + quadratic - sum(x * z for x, z in zip(w, c, strict=True)) + extra

    best = constant
    for signs in product((-1, 0, 1), repeat=p):
        used = [j for j in range(p) if signs[j]]
        if not used:
            continue
        for bound in (False, True) if form == "constrained" else (False,):
            w = _stationary(Q, c, signs, used, form, size, bound)
            if w is None or any(w[j] * signs[j] <= 0 for j in used):
                continue
            if form == "constrained" and sum(abs(x) for x in w) > size:
                continue
            best = min(best, value(w))
    return best


def _stationary(Q, c, signs, used, form, size, bound) -> Vector | None:
    """Return the stationary point on these signs; None where there is no single one."""
    m = len(used)
    A = [[Q[a][b] for b in used] for a in used]
    right = [c[a] for a in used]
    if form == "penalized":
        right = [z - size * signs[a] for z, a in zip(right, used, strict=True)]
    elif form == "squared":
        for i, a in enumerate(used):
            for j, b in enumerate(used):
                A[i][j] += size * signs[a] * signs[b]
    elif bound:
        A = [[*row, Fraction(signs[a])] for row, a in zip(A, used, strict=True)]
        A.append([*(Fraction(signs[a]) for a in used), Fraction(0)])
        right = [*right, size]
    solution = _solve(A, right)
    if solution is None:
        return None
    w = [Fraction(0)] * len(c)
    for i in range(m):
        w[used[i]] = solution[i]
    return w


def _solve(A, right) -> Vector | None:
    """Return the solution of a linear system by elimination; None where it is singular."""
    size = len(A)
    rows = [[*row, z] for row, z in zip(A, right, strict=True)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(size):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * z for x, z in zip(rows[i], rows[k], strict=True)]
    return [rows[k][-1] / rows[k][k] for k in range(size)]
