"""Convex upper bounds on the polar of sparse rank-one atoms, and dual points that they allow.

The polar max u'Zv over unit u, v with at most k and q nonzero entries is NP-hard. For each sum
Z = S + U it is at most

    sigma_max(S) + sqrt(k q) max |U_ij|,

because ||u||_1 ||v||_1 <= sqrt(k q). For atoms u u' the bound is lambda_max(S) + k max |U_ij|. The
smallest such bound is the dual of the semidefinite relaxation of sparse PCA (DSPCA) [d'Aspremont,
El Ghaoui, Jordan, Lanckriet 2007]. As a function of Z it is the dual norm of
max(||W||_tr, ||W||_1 / sqrt(k q)), which is at most the atomic norm. Every split gives a valid
bound, so that no iteration here has to converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Deadline
from atomlearn.core import Array
from atomlearn.matrices.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class RankOneRelaxation:
    """The bound sigma_max(S) + size * max |U_ij| on the polar of S + U.

    Attributes
    ----------
    symmetric : bool
        Whether the atoms are u u', so that lambda_max(S) replaces sigma_max(S).
    size : float
        Largest sum of the entries of an atom in absolute value: sqrt(k q), or k if symmetric.
    """

    symmetric: bool
    size: float

    def bound(self, S: Array, U: Array) -> float:
        """Return an upper bound on the polar of S + U (p, q), rounding included."""
        values = np.linalg.eigvalsh(S) if self.symmetric else np.linalg.svd(S, compute_uv=False)
        return self.bound_of_values(values, U)

    def bound_of_values(self, values: NDArray[Any], U: Array) -> float:
        """Return the bound for S with these eigenvalues or singular values, and for U."""
        flat = self.size * float(np.abs(U).max(initial=0.0))
        rounding = SETTINGS.rounding * (float(np.abs(values).max(initial=0.0)) + flat)
        return float(values.max(initial=0.0)) + self.size * self.largest(U) + rounding

    def largest(self, U: Array) -> float:
        """Return max |U_ij| for U (p, q); if symmetric, a negative U_ii counts as zero."""
        return float(self._magnitudes(U).max(initial=0.0))

    def lowest(self, Z: Array, deadline: Deadline) -> tuple[float, Array]:
        """Return the smallest bound on the polar of Z that was found, and the U of its split.

        The alternating direction method of multipliers minimizes the bound over S and U with
        S + U = Z, and stops early at ``deadline``.
        """
        U = np.zeros_like(Z)
        best = self.bound(Z, U), U
        if best[0] <= 0.0:
            return best
        step = best[0]  # in the units of Z
        scaled_multiplier = np.zeros_like(Z)
        for iteration in range(1, SETTINGS.relaxed_steps + 1):
            # Proximal steps for S, then for U, then the multiplier of S + U = Z.
            S = self._spectral(Z - U - scaled_multiplier, step)
            M = Z - S - scaled_multiplier
            U = self._clipped(M, _threshold(self._magnitudes(M).ravel(), step * self.size))
            scaled_multiplier += S + U - Z
            # Any U gives a valid bound, which is computed now and then.
            if iteration % SETTINGS.look == 0:
                bound = self.bound(Z - U, U)
                if bound < best[0]:
                    best = bound, U
                if deadline.passed:
                    break
        return best

    def nearest(
        self, T: Array, radius: float, accuracy: float, deadline: Deadline
    ) -> tuple[Array, float]:
        """Return V near the matrix T, and a bound on the polar of V, at most about ``radius``.

        V is the projection of T on the sums S + U whose bound is at most ``radius``, computed by
        accelerated projected gradients. W = T - V minimizes the objective
        1/2 ||T - W||^2 + radius max(||W||_tr, ||W||_1 / size). The iteration ends when the duality
        gap is at most ``accuracy`` times the dual objective, or at the deadline.
        """
        # Each step starts at the extrapolated point (ahead_S, ahead_U).
        S = U = np.zeros_like(T)
        ahead_S = S
        ahead_U = U
        momentum = 1.0
        for iteration in range(1, SETTINGS.relaxed_steps + 1):
            # A gradient step of length 1/2: the gradient of 1/2 ||T - S - U||^2 in (S, U) has the
            # Lipschitz constant 2.
            half_residual = 0.5 * (T - ahead_S - ahead_U)
            previous = S, U
            S, U = self._projected(ahead_S + half_residual, ahead_U + half_residual, radius)
            next_momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            change = S - previous[0], U - previous[1]
            if float(np.vdot(ahead_S - S, change[0]) + np.vdot(ahead_U - U, change[1])) > 0.0:
                next_momentum = 1.0  # restart: the last step went uphill
            extrapolation = (momentum - 1.0) / next_momentum if next_momentum > 1.0 else 0.0
            momentum = next_momentum
            ahead_S, ahead_U = S + extrapolation * change[0], U + extrapolation * change[1]
            if iteration % SETTINGS.look == 0:
                # The duality gap of the problem in W.
                W = T - S - U
                dual = 0.5 * float(np.vdot(T, T) - np.vdot(W, W))
                primal = 0.5 * float(np.vdot(S + U, S + U)) + radius * self._value(W)
                if primal - dual <= accuracy * abs(dual) or deadline.passed:
                    break
        return S + U, self.bound(S, U)

    def _value(self, W: Array) -> float:
        """Return max(||W||_tr, ||W||_1 / size), with ||W||_1 the sum of all |W_ij|."""
        values = np.linalg.eigvalsh(W) if self.symmetric else np.linalg.svd(W, compute_uv=False)
        return max(float(np.abs(values).sum()), float(np.abs(W).sum()) / self.size)

    def _projected(self, S: Array, U: Array, radius: float) -> tuple[Array, Array]:
        """Return the S and U nearest to these, (p, q) each, whose bound is at most ``radius``.

        If the largest entry of U may be s, the nearest S and U are clipped: the values of S at
        radius - size * s, and U at s. The squared distance is convex in s. So bisection by the sign
        of its slope finds the best s.
        """
        values, with_values = self._decomposed(S)
        magnitudes = np.sort(self._magnitudes(U).ravel())[::-1]
        sums = np.cumsum(magnitudes)
        low = 0.0
        high = radius / self.size
        sufficient = SETTINGS.rounding * high
        while high - low > sufficient > 0.0:
            # The slope is size * (sum of the parts of values above ``top``) minus the sum of the
            # parts of |U_ij| above s.
            s = 0.5 * (low + high)
            count = int(np.searchsorted(-magnitudes, -s))
            excess = float(sums[count - 1]) - count * s if count else 0.0
            top = radius - self.size * s
            if self.size * float(np.maximum(values - top, 0.0).sum()) > excess:
                high = s
            else:
                low = s
        return with_values(np.minimum(values, radius - self.size * low)), self._clipped(U, low)

    def _decomposed(self, M: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the eigenvalues or singular values of M, and a function that replaces them.

        The function takes other values, and returns the matrix with these values and the vectors
        of M.
        """
        if self.symmetric:
            values, vectors = np.linalg.eigh(M)
            return values, lambda new: (vectors * new) @ vectors.T
        left, values, right = np.linalg.svd(M, full_matrices=False)
        return values, lambda new: (left * new) @ right

    def _spectral(self, M: Array, step: float) -> Array:
        """Return the proximal map at M of ``step`` times the largest eigen- or singular value.

        It cuts off the values above a threshold t, where the parts above t sum to ``step``.
        """
        values, with_values = self._decomposed(M)
        return with_values(np.minimum(values, _threshold(values, step, not self.symmetric)))

    def _magnitudes(self, U: Array) -> Array:
        """Return |U_ij| for U (p, q); if symmetric, the diagonal has max(U_ii, 0)."""
        sizes = np.abs(U)
        if self.symmetric:
            np.fill_diagonal(sizes, np.maximum(np.diag(U), 0.0))
        return sizes

    def _clipped(self, U: Array, most: float) -> Array:
        """Return U clipped to [-most, most]; on the diagonal only from above if symmetric."""
        clipped = np.clip(U, -most, most)
        if self.symmetric:
            np.fill_diagonal(clipped, np.minimum(np.diag(U), most))
        return clipped


def _threshold(values: Array, amount: float, positive: bool = True) -> float:
    """Return t with sum_i max(values_i - t, 0) = amount for an array ``values``.

    If ``positive``, the result is at least 0.
    """
    # If the m largest values exceed t, then t = (their sum - amount) / m.
    ordered = np.sort(values)[::-1]
    ends = (np.cumsum(ordered) - amount) / np.arange(1, ordered.size + 1)
    t = float(ends[int(np.count_nonzero(ordered > ends)) - 1])
    return max(t, 0.0) if positive else t
