"""Top singular values with a bound from above: Golub-Kahan-Lanczos from a random start.

Every Ritz value is a bound from below. The bound from above is that of Hochstenbach 2013
("Probabilistic upper bounds for the matrix two-norm", doi 10.1007/s10915-013-9716-x), the
posterior form of Kuczynski, Wozniakowski 1992: after k steps from b, with p the characteristic
polynomial of T = B'B, ||p(A'A) b|| = prod_j T_(j+1,j). So the largest eigenvalue x of A'A, whose
eigenvector has <q, b> = c, satisfies p(x) |c| <= prod_j T_(j+1,j); and a random b has |c| below
delta / sqrt(n) with a probability of less than delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.matrices.found import Found
from atomlearn.matrices.scores import ScoreMatrix
from atomlearn.matrices.settings import SETTINGS


def top_singular(matrix: ScoreMatrix, count: int, accuracy: float) -> Found:
    """Return the ``count`` largest singular triplets found, lower <= sigma_1 <= upper.

    Dense decomposition for small matrices (both bounds are equal); else Lanczos with full
    reorthogonalization from a random start, until upper <= (1 + accuracy) lower or 500 steps: one
    product with Z and one with Z' a step, O((p + q) k^2) beside. The bound from above then holds
    but for a probability of 1e-12 over the start, which is drawn anew for each matrix
    (reproducibly, from its scores).
    """
    p, q = matrix.shape
    if min(p, q) <= SETTINGS.dense_side and p * q <= SETTINGS.decomposed_entries:
        left, sigma, right = np.linalg.svd(matrix.dense(), full_matrices=False)
        top = float(sigma[0])
        return Found(left[:, :count], right[:count].T, sigma[:count], top, top)
    return lanczos(matrix, count, accuracy)


def lanczos(
    matrix: ScoreMatrix, count: int, accuracy: float, max_steps: int = SETTINGS.most_steps
) -> Found:
    """Return the triplets by Golub-Kahan-Lanczos; see ``top_singular``."""
    p, q = matrix.shape
    steps = min(p, q, max_steps)
    b = _random_start(matrix)
    U, V = _Basis(p), _Basis(q)
    alpha, beta = np.zeros(steps), np.zeros(steps)
    v = b / np.linalg.norm(b)
    V.append(v)
    upper, scale, k = math.inf, 0.0, 0
    P, sigma, Q = np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0))
    while k < steps:
        u, alpha[k] = U.orthogonal(matrix.dot(v))
        U.append(u)
        v, beta[k] = V.orthogonal(matrix.transpose_dot(u))
        V.append(v)
        scale = max(scale, alpha[k], beta[k])
        k += 1
        ended = min(alpha[k - 1], beta[k - 1]) <= SETTINGS.ritz_rounding * scale or k == min(p, q)
        if not (ended or k % SETTINGS.look == 0 or k == steps):
            continue
        B = np.diag(alpha[:k]) + np.diag(beta[: k - 1], 1)
        P, sigma, Q = np.linalg.svd(B)
        if ended:
            upper = float(sigma[0])
            break
        upper = _upper_bound(sigma, alpha[:k] * beta[:k], q)
        enough = upper <= (1 + accuracy) * sigma[0]
        # Triplets are of use once their residuals beta_k |P_k| have become small.
        settled = beta[k - 1] * np.abs(P[-1, : min(count, k)]).max() <= 0.01 * sigma[0]
        if enough and settled:
            break
    lower = float(sigma[0])
    kept = min(count, k)
    left, right = U.combined(P[:, :kept]), V.combined(Q[:kept].T)
    upper = max(upper, lower) * (1 + 4 * SETTINGS.ritz_rounding)
    return Found(left, right, sigma[:kept].copy(), lower, upper)


def _random_start(matrix: ScoreMatrix) -> Array:
    """Return a normal vector (q,): a new one for each Z, the same one for the same Z."""
    p, q = matrix.shape
    probe = matrix.transpose_dot(np.cos(np.arange(p, dtype=np.float64)))
    seed = np.frombuffer(np.ascontiguousarray(probe).tobytes(), dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence(seed.tolist()[: 2**12])).normal(size=q)


class _Basis:
    """Orthonormal columns, kept in blocks: it grows without a copy and without room to spare."""

    def __init__(self, length: int) -> None:
        self._length, self._count = length, 0
        self._blocks: list[Array] = []

    def append(self, x: Array) -> None:
        """Add a column."""
        place = self._count % SETTINGS.basis_columns
        if place == 0:
            self._blocks.append(np.empty((self._length, SETTINGS.basis_columns), order="F"))
        self._blocks[-1][:, place] = x
        self._count += 1

    def combined(self, weights: Array) -> Array:
        """Return the basis, as many columns as weights has rows, times weights (k, t)."""
        result = np.zeros((self._length, weights.shape[1]))
        for used, start in self._used(weights.shape[0]):
            result += used @ weights[start : start + SETTINGS.basis_columns]
        return result

    def orthogonal(self, x: Array) -> tuple[Array, float]:
        """Return x without its part in the span (twice is enough), unit, and its norm."""
        before = float(np.linalg.norm(x))
        for _ in range(2):
            parts = [(used, used.T @ x) for used, _ in self._used(self._count)]
            for used, weights in parts:
                x = x - used @ weights
        norm = float(np.linalg.norm(x))
        if norm <= SETTINGS.ritz_rounding * before or norm == 0.0:
            return np.zeros_like(x), 0.0
        return x / norm, norm

    def _used(self, count: int) -> Iterator[tuple[Array, int]]:
        for start, block in zip(
            range(0, count, SETTINGS.basis_columns), self._blocks, strict=False
        ):
            yield block[:, : count - start], start


def _upper_bound(sigma: Array, couplings: Array, n: int) -> float:
    """Return sqrt(x) for the x > sigma_1^2 with p(x) delta / sqrt(n) = prod of the couplings."""
    theta = sigma * sigma
    largest = float(theta[0])
    if largest == 0.0:
        return 0.0
    # In units of the largest Ritz value, in logarithms.
    goal = float(np.log(couplings / largest).sum()) + math.log(math.sqrt(n) / SETTINGS.failure)
    gaps = 1.0 - theta / largest

    def excess(above: float) -> float:
        return float(np.log(gaps + above).sum()) - goal

    low, high = SETTINGS.ritz_rounding, math.exp(min(goal / sigma.size, 700.0))
    if excess(low) >= 0.0:
        high = low
    low = math.log(low)
    high = max(math.log(high), low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(math.exp(middle)) < 0.0 else (low, middle)
        if high - low <= 1e-3:
            break
    return math.sqrt(largest * (1.0 + math.exp(high)))
