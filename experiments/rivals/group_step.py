"""The sub-problem of one group, argmin_u 1/2 u'M u - q'u + level ||u||, by its equation for ||u||.

The eigenvectors of M turn it into a trust-region-like equation for the radius, which Newton's
method solves in a few steps. [Qin, Scheinberg, Goldfarb 2013, Efficient block-coordinate descent
algorithms for the group lasso]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array

#: Eigenvalues below this share of the largest are rounding.
RANK = 1e-13
#: Bound on Newton steps; three to six are usual.
INNER_STEPS = 100


@dataclass(frozen=True, slots=True)
class Spectrum:
    """M = vectors diag(values) vectors', values >= 0."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, matrix: Array) -> Spectrum:
        """Return the eigendecomposition of a symmetric positive semidefinite matrix."""
        values, vectors = np.linalg.eigh(matrix)
        values = np.where(values > RANK * max(float(values[-1]), 0.0), values, 0.0)
        return cls(values, vectors)

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.values[-1])

    def apply(self, u: Array) -> Array:
        """Return M u."""
        image: Array = self.vectors @ (self.values * (self.vectors.T @ u))
        return image


def exact_step(spectrum: Spectrum, q: Array, level: float) -> Array:
    """argmin_u 1/2 u'M u - q'u + level ||u||, level > 0: O(s^2), s the size of the group.

    u = 0 where ||q|| <= level; else u = (M + (level / r) I)^-1 q with r = ||u|| the root of
    phi(r) = sum_i p_i^2 / (m_i r + level)^2 = 1, p = vectors'q, a decreasing convex function.
    """
    p = spectrum.vectors.T @ q
    # Without curvature there is no pull either: what is left there is rounding.
    p = np.where(spectrum.values > 0, p, 0.0)
    if float(np.sqrt(p @ p)) <= level:
        return np.zeros(q.size)
    radius = newton_radius(spectrum.values, p, level)
    solution: Array = spectrum.vectors @ (p * (radius / (spectrum.values * radius + level)))
    return solution


def newton_radius(values: Array, p: Array, level: float) -> float:
    """Return r > 0 with sum p_i^2 / (m_i r + level)^2 = 1, where ||p|| > level > 0.

    Newton's method on 1 - phi(r)^(-1/2), nearly linear in r, within the bracket that the extreme
    eigenvalues give. [Qin et al. 2013; More, Sorensen 1983]
    """
    used = p != 0
    m, squares = values[used], p[used] ** 2
    excess = float(np.sqrt(squares.sum())) - level
    low, high = excess / float(m.max()), excess / float(m.min())
    r = low
    for _ in range(INNER_STEPS):
        shifted = m * r + level
        terms = squares / (shifted * shifted)
        phi = float(terms.sum())
        slope = -2.0 * float((terms * m / shifted).sum())
        low, high = (r, high) if phi > 1.0 else (low, r)
        # d/dr phi^(-1/2) = -phi^(-3/2) phi' / 2
        change = (1.0 - phi**-0.5) / (-0.5 * phi**-1.5 * slope)
        proposal = r + change
        if not low <= proposal <= high:
            proposal = 0.5 * (low + high)
        if abs(proposal - r) <= 4e-16 * r:
            return float(proposal)
        r = proposal
    return r


def majorized_step(lipschitz: float, q: Array, level: float) -> Array:
    """argmin_u lipschitz/2 ||u||^2 - q'u + level ||u||: the soft threshold of a group."""
    norm = float(np.sqrt(q @ q))
    if norm <= level or lipschitz <= 0.0:
        return np.zeros(q.size)
    return q * ((1.0 - level / norm) / lipschitz)
