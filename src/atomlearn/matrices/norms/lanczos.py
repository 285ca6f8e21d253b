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

import numpy as np
from scipy.optimize import brentq

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
    if p * q <= SETTINGS.decomposed_entries:
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
    U, V = np.empty((p, SETTINGS.look), order="F"), np.empty((q, SETTINGS.look), order="F")
    start = _random_start(matrix)
    V[:, 0] = start / np.linalg.norm(start)
    alpha, beta, k = np.zeros(steps), np.zeros(steps), 0
    while True:
        if k + 1 == U.shape[1]:
            U, V = (np.asfortranarray(np.hstack([basis, basis])) for basis in (U, V))
        U[:, k], alpha[k] = _orthogonal(matrix.dot(V[:, k]), U[:, :k])
        V[:, k + 1], beta[k] = _orthogonal(matrix.transpose_dot(U[:, k]), V[:, : k + 1])
        k += 1
        least = SETTINGS.rounding * max(alpha.max(), beta.max())
        ended = min(alpha[k - 1], beta[k - 1]) <= least or k == min(p, q)
        if not (ended or k % SETTINGS.look == 0 or k == steps):
            continue
        P, sigma, Q = np.linalg.svd(np.diag(alpha[:k]) + np.diag(beta[: k - 1], 1))
        lower = float(sigma[0])
        upper = lower if ended else _upper_bound(sigma, alpha[:k] * beta[:k], q)
        # Triplets are of use once their residuals beta_k |P_k| have become small.
        settled = beta[k - 1] * np.abs(P[-1, :count]).max() <= 0.01 * lower
        if ended or k == steps or (settled and upper <= (1 + accuracy) * lower):
            break
    left, right = U[:, :k] @ P[:, :count], V[:, :k] @ Q[:count].T
    return Found(left, right, sigma[:count], lower, upper * (1 + SETTINGS.rounding))


def _random_start(matrix: ScoreMatrix) -> Array:
    """Return a normal vector (q,): a new one for each Z, the same one for the same Z."""
    p, q = matrix.shape
    probe = matrix.transpose_dot(np.cos(np.arange(p, dtype=np.float64)))
    seed = np.frombuffer(np.ascontiguousarray(probe).tobytes(), dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence(seed.tolist()[: 2**12])).normal(size=q)


def _orthogonal(x: Array, basis: Array) -> tuple[Array, float]:
    """Return x without its part in the span (twice is enough), unit, and its norm."""
    before = float(np.linalg.norm(x))
    for _ in range(2):
        x = x - basis @ (basis.T @ x)
    norm = float(np.linalg.norm(x))
    if norm <= SETTINGS.rounding * before:
        return np.zeros_like(x), 0.0
    return x / norm, norm


def _upper_bound(sigma: Array, couplings: Array, n: int) -> float:
    """Return sqrt(x) for the x > sigma_1^2 with p(x) delta / sqrt(n) = prod of the couplings."""
    largest = float(sigma[0]) ** 2
    # In units of the largest Ritz value, and in logarithms: x is largest (1 + exp(above)).
    goal = float(np.log(couplings / largest).sum()) + math.log(math.sqrt(n) / SETTINGS.failure)
    gaps, most = 1.0 - sigma * sigma / largest, min(goal / sigma.size, 700.0)

    def excess(above: float) -> float:
        return float(np.log(gaps + math.exp(above)).sum()) - goal

    above = math.log(SETTINGS.rounding)
    if excess(above) < 0.0:
        above = brentq(excess, above, max(most, above), xtol=1e-3) + 1e-3
    return math.sqrt(largest * (1.0 + math.exp(above)))
