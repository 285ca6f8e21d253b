"""Excess: what bounds on single coefficients add to the conjugate of a penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces.arrays import Array


@dataclass(frozen=True, slots=True)
class Excess:
    """E(t) = sum_k width_k max(size_k - t price_k, 0), over the bounded sides of w.

    With gauge(w) = sum_j p_j |w_j| and l <= w <= u, and h the penalty as a function of the gauge,

        sup over l <= w <= u of <z, w> - h(gauge(w))  =  min over t >= polar of  h*(t) + E(t),

    where ``polar`` is that of the sides without a bound, and each bounded side (z_j > 0 with u_j,
    or z_j < 0 with l_j) has size |z_j|, price p_j and width u_j or -l_j: for fixed t the supremum
    is one over each coefficient by itself. [Rockafellar 1970, theorem 16.4 and corollary 28.3.1]
    """

    polar: float
    sizes: Array
    prices: Array
    widths: Array

    def at(self, t: float) -> float:
        """Return E(t)."""
        return float(self.widths @ np.maximum(self.sizes - t * self.prices, 0.0))

    def scaled(self, factor: float) -> Excess:
        """Return that of factor * z."""
        return Excess(factor * self.polar, factor * self.sizes, self.prices, self.widths)

    def best(self, start: float, constant: float, slope: float) -> float:
        """Return the t >= start that minimizes E(t) + constant t + (slope / 2) t^2, convex."""
        ends = self.sizes / self.prices
        order = np.argsort(ends)
        ends = np.concatenate([[start], np.maximum(ends[order], start)])
        falls = (self.widths * self.prices)[order]
        # From ends[k] on, -E' is what is left of the falls.
        left = np.concatenate([[falls.sum()], falls.sum() - np.cumsum(falls)])
        rising = constant + slope * ends >= left
        k = int(np.argmax(rising)) if rising.any() else ends.size - 1
        if k == 0 or not slope:
            return float(ends[k])
        return float(np.clip((left[k - 1] - constant) / slope, ends[k - 1], ends[k]))
