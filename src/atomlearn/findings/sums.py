"""The law of a sum of products e_i r_i if the e_i and the r_i have nothing to do with each other.

One of the two stays as it is, the one with the longer tails. The other is drawn anew from its own
values, for each row. Tails of that law come from its cumulants K by the saddlepoint approximation:
with K'(t) = x,  w = sign(t) sqrt(2 (t x - K(t)))  and  s = t sqrt(K''(t)),

    P(sum > x)  ~  1 - Phi(w + log(s / w) / w).

A normal law with the same variance is far off in the tails where few rows have an e_i, or an r_i,
of any size: carriers of a rare allele, a rare class, skewed numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2
from scipy.stats import norm as normal

from atomlearn.core import Array

#: Standardized third and fourth cumulants up to which the normal law does: p = 0.001 is then right
#: to a twentieth.
MOST_SKEW = 0.1
MOST_KURTOSIS = 0.02
#: Different values that are kept of the e_i, and of the r_i: neighbors are joined to their mean.
MOST_VALUES = 128
#: Steps of Newton's method with bisection for K'(t) = x.
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Cumulants:
    """K(t) = sum_i counts_i log sum_k shares_k exp(t products_ik)."""

    counts: Array
    products: Array
    shares: Array

    def at(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t) and K''(t)."""
        powers = t * self.products
        most = powers.max(axis=1, keepdims=True)
        tilted = self.shares * np.exp(powers - most)
        total = tilted.sum(axis=1)
        tilted /= total[:, None]
        mean = np.einsum("ik,ik->i", tilted, self.products)
        variance = np.einsum("ik,ik->i", tilted, (self.products - mean[:, None]) ** 2)
        value = self.counts @ (np.log(total) + most[:, 0])
        return float(value), float(self.counts @ mean), float(self.counts @ variance)

    def beyond(self, x: float) -> float:
        """Return P(sum >= x) for x > 0, by the saddlepoint approximation."""
        if x >= float(self.counts @ self.products.max(axis=1)):
            return 0.0  # no draw is as large
        low = 0.0
        high = np.inf
        t = x / self.at(0.0)[2]
        for _ in range(MOST_STEPS):
            value, slope, curvature = self.at(t)
            low, high = (t, high) if slope < x else (low, t)
            if abs(slope - x) <= 1e-6 * x:
                break
            step = t + (x - slope) / curvature if curvature > 0 else np.inf
            inside = low < step < min(high, 4.0 * t)
            t = step if inside else (2.0 * low if high == np.inf else 0.5 * (low + high))
        w = np.sqrt(2.0 * max(t * x - value, 0.0))
        s = t * np.sqrt(curvature)
        return float(normal.sf(w + np.log(s / w) / w))


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A sum of e_i r_i, two columns (n,) with mean 0."""

    e: Array
    r: Array

    @property
    def noise(self) -> float:
        """The relative standard error of sum e_i^2 r_i^2 as an estimate of the variance."""
        excess = (_kurtosis(self.e) - 1.0) * (_kurtosis(self.r) - 1.0)
        return float(np.sqrt(max(excess, 0.0) / self.e.size))

    def p_value(self) -> float | None:
        """Return P(|sum| >= the observed one), None if the normal law is as good."""
        drawn, kept = sorted((self.e, self.r), key=_kurtosis)
        variance = np.mean(drawn**2) * np.sum(kept**2)
        skew = np.mean(drawn**3) * np.sum(kept**3) / variance**1.5
        fourth = np.mean(drawn**4) - 3.0 * np.mean(drawn**2) ** 2
        kurtosis = fourth * np.sum(kept**4) / variance**2
        if abs(skew) <= MOST_SKEW and abs(kurtosis) <= MOST_KURTOSIS:
            return None
        (values, numbers) = _joined(drawn)
        (factors, counts) = _joined(kept)
        law = Cumulants(counts, np.outer(factors, values), numbers / numbers.sum())
        turned = Cumulants(counts, -law.products, law.shares)
        size = abs(float(self.e @ self.r))
        return law.beyond(size) + turned.beyond(size)

    def shortened(self, robust: bool) -> float:
        """Return the share of the squared length in errors at which a normal law has the same p.

        ``robust`` : whether these are errors by the larger one of both variances. Below a length of
        one no law says much, and the share is 1.
        """
        products = self.e * self.r
        variance = (self.e @ self.e) * (self.r @ self.r) / self.e.size
        square = products.sum() ** 2 / max(variance, products @ products if robust else 0.0)
        p = self.p_value() if square > 1.0 else None
        return 1.0 if not p else min(float(chi2.isf(p, 1)) / square, 1.0)


def _kurtosis(values: Array) -> float:
    """Return the kurtosis."""
    return float(np.mean(values**4) / np.mean(values**2) ** 2)


def _joined(values: Array) -> tuple[Array, Array]:
    """Return at most ``most`` values and how often each occurs; the mean does not change."""
    low = values.min()
    high = values.max()
    cells = np.minimum((values - low) * (MOST_VALUES / (high - low)), MOST_VALUES - 1).astype(int)
    counts = np.bincount(cells)
    some = counts > 0
    return np.bincount(cells, values)[some] / counts[some], counts[some].astype(float)
