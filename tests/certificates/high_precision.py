"""Objectives in 60 digits for every loss, and points near the optimum found in 60 digits.

A gap says that no point has an objective below ``objective - gap``. Any point refutes one that is
wrong, whoever found it: here Newton's method on the signs of a solution, in mpmath.
"""

from __future__ import annotations

import mpmath as mp

mp.mp.dps = 60


def exact(values):
    """Return floats as what they are."""
    return [mp.mpf(float(x)) for x in values]


def per_sample(loss, y, z):
    """Return loss(y, z), zero where it is least for this y."""
    name = loss.name
    if name == "squared":
        return (z - y) ** 2 / 2
    if name == "logistic":
        return mp.log1p(mp.exp(-y * z))
    if name == "binomial":
        return mp.log1p(mp.exp(z)) - y * z
    if name == "squared_hinge":
        return max(1 - y * z, mp.mpf(0)) ** 2 / 2
    if name == "huber":
        delta = mp.mpf(loss.delta)
        size = abs(z - y)
        return size**2 / 2 if size <= delta else delta * (size - delta / 2)
    if name == "quantile":
        q = mp.mpf(loss.q)
        return max(q * (y - z), (1 - q) * (z - y))

    def raw(eta):
        if name == "poisson":
            return mp.exp(eta) - y * eta
        if name == "gamma":
            return y * mp.exp(-eta) + eta
        if name == "tweedie":
            p = mp.mpf(loss.power)
            return mp.exp((2 - p) * eta) / (2 - p) - y * mp.exp((1 - p) * eta) / (1 - p)
        theta = mp.mpf(loss.theta)
        return (y + theta) * mp.log(mp.exp(eta) + theta) - y * eta

    if y > 0:
        return raw(z) - raw(mp.log(y))
    theta = mp.mpf(getattr(loss, "theta", 1))
    return raw(z) - (theta * mp.log(theta) if name == "negative_binomial" else 0)


class Small:
    """An l1 problem of a few rows and columns."""

    def __init__(self, X, y, weight, loss, form, amount, intercept, tau=0.0):
        self.X, self.y, self.s = [exact(row) for row in X], exact(y), exact(weight)
        self.loss, self.form, self.amount = loss, form, mp.mpf(float(amount))
        self.intercept, self.tau = intercept, mp.mpf(float(tau))

    def objective(self, w, b):
        """Return F(w, b); None outside of the ball by more than rounding."""
        total, gauge = self.smooth(w, b), sum(abs(x) for x in w)
        if self.form == "constrained":
            return total if gauge <= self.amount * (1 + mp.mpf(10) ** -9) else None
        return total + self.amount * (gauge if self.form == "penalized" else gauge**2 / 2)

    def smooth(self, w, b):
        rows = zip(self.X, self.y, self.s, strict=True)
        total = sum(s * per_sample(self.loss, y, self._at(row, w, b)) for row, y, s in rows)
        return total + self.tau * sum(x * x for x in w) / 2

    def _at(self, row, w, b):
        return b + sum(x * c for x, c in zip(row, w, strict=True))

    def better(self, w, b, steps=12):
        """Return the least objective that Newton steps on the signs of (w, b) reach."""
        used = [j for j, x in enumerate(w) if x]
        signs = [mp.sign(w[j]) for j in used]
        best = self.objective(w, b)
        m, k = len(used), len(used) + int(self.intercept)
        bound = self.form == "constrained" and m and sum(abs(x) for x in w) > self.amount * 0.999999
        if not k:
            return best
        for _ in range(steps):
            gradient, hessian = self._derivatives(w, b, used)
            gauge = sum(abs(x) for x in w)
            for i in range(m):
                slope = {"penalized": self.amount, "squared": self.amount * gauge}.get(self.form, 0)
                gradient[i] += slope * signs[i]
                for j in range(m) if self.form == "squared" else ():
                    hessian[i, j] += self.amount * signs[i] * signs[j]
            right = [-x for x in gradient]
            if bound:
                hessian = self._bordered(hessian, k, signs)
                right.append(self.amount - gauge)
            try:
                step = mp.lu_solve(hessian, mp.matrix(right))
            except ZeroDivisionError:
                break
            share, moved = mp.mpf(1), False
            for _ in range(30):
                trial = list(w)
                for i, j in enumerate(used):
                    trial[j] += share * step[i]
                shifted = b + share * step[m] if self.intercept else b
                same = all(trial[j] * s >= 0 for j, s in zip(used, signs, strict=True))
                value = self.objective(trial, shifted) if same else None
                if value is not None and (best is None or value < best):
                    w, b, best, moved = trial, shifted, value, True
                    break
                share /= 2
            if not moved:
                break
        return best

    def _derivatives(self, w, b, used):
        k = len(used) + int(self.intercept)
        gradient, hessian = [mp.mpf(0)] * k, mp.zeros(k, k)
        for row, y, s in zip(self.X, self.y, self.s, strict=True):
            z = self._at(row, w, b)
            first, second = (
                mp.diff(lambda t, y=y: per_sample(self.loss, y, t), z, order) for order in (1, 2)
            )
            direction = [row[j] for j in used] + ([mp.mpf(1)] if self.intercept else [])
            for i in range(k):
                gradient[i] += s * first * direction[i]
                for j in range(k):
                    hessian[i, j] += s * second * direction[i] * direction[j]
        for i, j in enumerate(used):
            gradient[i] += self.tau * w[j]
            hessian[i, i] += self.tau
        return gradient, hessian

    @staticmethod
    def _bordered(hessian, k, signs):
        bordered = mp.zeros(k + 1, k + 1)
        for i in range(k):
            for j in range(k):
                bordered[i, j] = hessian[i, j]
        for i, sign in enumerate(signs):
            bordered[i, k] = bordered[k, i] = sign
        return bordered
