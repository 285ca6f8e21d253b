"""Norms of singular values and of eigenvalues: TraceNorm and PSD; and bounds on the largest.

Every Ritz value of Golub-Kahan-Lanczos is a bound from below. The bound from above is that of
Hochstenbach 2013 ("Probabilistic upper bounds for the matrix two-norm", doi
10.1007/s10915-013-9716-x), the posterior form of Kuczynski, Wozniakowski 1992: after k steps from
b, with p the characteristic polynomial of T = B'B, ||p(A'A) b|| = prod_j T_(j+1,j). So the largest
eigenvalue x of A'A, whose eigenvector has <q, b> = c, satisfies p(x) |c| <= prod_j T_(j+1,j); and
a random b has |c| below delta / sqrt(n) with a probability of less than delta.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from atomlearn.core import L1, Array, Form, Nonnegative, Norm, ProxJacobian, ProxPoint, VectorNorm
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.scores import Found, ScoreMatrix, Shape, symmetric_block, symmetric_part
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.spans import Span, SymmetricSpan


def top_singular(matrix: ScoreMatrix, count: int, accuracy: float) -> Found:
    """Return the ``count`` largest singular triplets found, lower <= sigma_1 <= upper.

    Small matrices are decomposed, so that both bounds are equal. Otherwise Lanczos with full
    reorthogonalization runs from a random start until upper <= (1 + accuracy) lower, or for 500
    steps: a step takes one product with Z, one with Z', and O((p + q) k^2) operations. Then the
    upper bound fails with a probability of at most 1e-12 over the start, which is different for
    each matrix (and reproducible, from its scores).
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
    U = np.empty((p, SETTINGS.look), order="F")
    V = np.empty((q, SETTINGS.look), order="F")
    start = _random_start(matrix)
    V[:, 0] = start / np.linalg.norm(start)
    alpha = np.zeros(steps)
    beta = np.zeros(steps)
    k = 0
    look = SETTINGS.look
    while True:
        if k + 1 == U.shape[1]:
            U, V = (np.asfortranarray(np.hstack([basis, basis])) for basis in (U, V))
        U[:, k], alpha[k] = _orthogonal(matrix.dot(V[:, k]), U[:, :k])
        V[:, k + 1], beta[k] = _orthogonal(matrix.transpose_dot(U[:, k]), V[:, : k + 1])
        k += 1
        least = SETTINGS.rounding * max(alpha.max(), beta.max())
        ended = min(alpha[k - 1], beta[k - 1]) <= least or k == min(p, q)
        if not (ended or k in (look, steps)):
            continue
        look = k + max(SETTINGS.look, k // 8)  # a look costs O(k^3)
        P, sigma, Q = np.linalg.svd(np.diag(alpha[:k]) + np.diag(beta[: k - 1], 1))
        lower = float(sigma[0])
        upper = lower if ended else _upper_bound(sigma, alpha[:k] * beta[:k], q)
        # Triplets are accepted when their residuals beta_k |P_k| are small.
        settled = beta[k - 1] * np.abs(P[-1, :count]).max() <= 0.01 * lower
        if ended or k == steps or (settled and upper <= (1 + accuracy) * lower):
            break
    left = U[:, :k] @ P[:, :count]
    right = V[:, :k] @ Q[:count].T
    return Found(left, right, sigma[:count], lower, upper * (1 + SETTINGS.rounding))


def _random_start(matrix: ScoreMatrix) -> Array:
    """Return a normal vector (q,): a different one for each Z, the same one for the same Z."""
    p, q = matrix.shape
    probe = matrix.transpose_dot(np.cos(np.arange(p, dtype=np.float64)))
    seed = np.frombuffer(np.ascontiguousarray(probe).tobytes(), dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence(seed.tolist()[: 2**12])).normal(size=q)


def _orthogonal(x: Array, basis: Array) -> tuple[Array, float]:
    """Return x minus its projection on the span (twice suffices), normalized, and its norm."""
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
    gaps = 1.0 - sigma * sigma / largest
    most = min(goal / sigma.size, 700.0)

    def excess(above: float) -> float:
        return float(np.log(gaps + math.exp(above)).sum()) - goal

    above = math.log(SETTINGS.rounding)
    if excess(above) < 0.0:
        above = brentq(excess, above, max(most, above), xtol=1e-3) + 1e-3
    return math.sqrt(largest * (1.0 + math.exp(above)))


class SpectralNorm(MatrixNorm, VectorNorm):
    """gauge(W) = ||values||_1 for W = left diag(values) right', O(p q min(p, q)).

    The proximal maps are those of the values. [Cai, Candes, Shen 2010]
    """

    absolute = False
    #: The norm of the values.
    of_values: ClassVar[Norm] = L1()

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    @abstractmethod
    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        """Return left (p, m), values (m,) and right (q, m)."""

    @abstractmethod
    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return the derivative of the proximal map at W."""

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """Return the decomposition of the sum, without its zeros."""
        P, A = np.linalg.qr(left)
        Q, B = np.linalg.qr(right)
        U, values, V = self._decomposed((A * weights) @ B.T)
        kept = values > SETTINGS.rounding * values.max(initial=0.0)
        return P @ U[:, kept], values[kept], Q @ V[:, kept]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        W = self._as_matrix(v)
        left, values, right = self._decomposed(W)
        inner = self.of_values.prox_point(values, amount, form)
        if np.array_equal(inner.point, values) and self.value(W) < math.inf:
            point = v.copy()
        else:
            used = np.flatnonzero(inner.point)
            point = (left[:, used] * inner.point[used]) @ right[:, used].T
        jacobian = self._jacobian
        return ProxPoint(point.reshape(v.shape), inner.gauge, lambda: jacobian(W, amount, form))


class TraceNorm(SpectralNorm):
    """gauge(W) = sum_i sigma_i(W) (nuclear norm); its polar is sigma_1(Z). Atoms u v', unit.

    For large matrices the polar and the best atoms come from Lanczos, with the bound of ``lanczos``
    in this file.

    Parameters
    ----------
    shape : (p, q), optional
        Shape of W; None: that of the design, or of a 2-d array.

    References
    ----------
    Fazel, Hindi, Boyd 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> round(float(norms.TraceNorm((2, 2)).value(np.array([2.0, 0.0, 0.0, 1.0]))), 6)
    3.0
    """

    coordinates = Span

    def value(self, w: NDArray[Any]) -> float:
        """Return sum_i sigma_i(W) of a 2-d array or of a vector of p q numbers."""
        return float(np.linalg.svd(self._as_matrix(w), compute_uv=False).sum())

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Return the top singular triplets."""
        return top_singular(matrix, count, accuracy)

    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        left, values, right = np.linalg.svd(W, full_matrices=False)
        return left, values, right.T

    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return that of the eigenvalues of [0 W; W' 0], the singular values with both signs.

        [Lewis, Sendov 2001; Ding et al. 2018]
        """
        p = len(W)
        share = {"penalized": 1.0, "squared": 0.5, "constrained": 2.0}[form]
        values, vectors = np.linalg.eigh(symmetric_block(W))
        inner = self.of_values.prox_point(values, share * amount, form)
        vectors *= 2.0**0.25
        return _derivative(values, inner, vectors[:p], vectors[p:])


Square = TypeVar("Square", bound=MatrixNorm)


class PSD(SpectralNorm):
    """gauge(W) = trace(W) if W is symmetric positive semidefinite, else infinite.

    The polar is the largest eigenvalue of (Z + Z')/2, or 0 if it is negative. Proximal maps are
    those of the symmetric part: a non-negative soft threshold of eigenvalues. [V] section 2.1.

    Parameters
    ----------
    shape : (p, p), optional
        Shape of W; None: that of the design, or of a 2-d array.

    References
    ----------
    Fazel, Hindi, Boyd 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> float(norms.PSD((2, 2)).value(np.array([2.0, 0.0, 0.0, 1.0])))
    3.0
    """

    coordinates = SymmetricSpan
    of_values = Nonnegative(L1())

    def on(self, n_features: int, shape: Shape | None = None) -> PSD:
        """Return the same norm for matrices of this shape, which must be square."""
        return square(super().on(n_features, shape))

    def value(self, w: NDArray[Any]) -> float:
        """Return trace(W), or infinity if W is not symmetric positive semidefinite."""
        W = self._as_matrix(w)
        self.on(W.size, W.shape)
        size = float(np.abs(W).max(initial=0.0))
        if size == 0.0:
            return 0.0
        W = W / size
        if float(np.abs(W - W.T).max()) > SETTINGS.accuracy:
            return math.inf
        least = float(np.linalg.eigvalsh(0.5 * (W + W.T))[0])
        return math.inf if least < -SETTINGS.accuracy * W.shape[0] else size * float(np.trace(W))

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Return the largest eigenpairs with positive eigenvalues."""
        n = matrix.shape[0]
        symmetric = symmetric_part(matrix)
        if n * n <= SETTINGS.decomposed_entries:
            values, U = np.linalg.eigh(symmetric.dense())
            upper = float(values[-1])
        else:
            # After a shift by a bound on -l_min the largest eigenvalue is the largest singular
            # value.
            reach = lanczos(symmetric, 1, 1e-2).upper
            shifted = lanczos(symmetric_part(matrix, reach), count, 0.25 * accuracy)
            U = shifted.right
            values = np.einsum("ij,ij->j", U, symmetric.dot(U))
            upper = max(shifted.upper - reach, 0.0) + SETTINGS.rounding * reach
        order = np.argsort(-values)[:count]
        order = order[values[order] > 0.0]
        lower = float(values[order].max(initial=0.0))
        return Found(U[:, order], U[:, order], values[order], lower, max(upper, lower))

    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        return vectors, values, vectors

    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return the derivative, which is zero on skew matrices."""
        vectors, values, _ = self._decomposed(W)
        inner = self.of_values.prox_point(values, amount, form)
        return _derivative(values, inner, vectors, vectors)


def square(norm: Square) -> Square:
    """Return the norm; raise if its shape is not square."""
    if norm.shape[0] != norm.shape[1]:
        raise ValueError(
            f"{type(norm).__name__} is for square matrices, got shape {tuple(norm.shape)}; use "
            "norms.TraceNorm() or norms.SparseRankOne(k, q) for others"
        )
    return norm


def _derivative(values: Array, inner: ProxPoint, left: Array, right: Array) -> ProxJacobian:
    """Return the derivative of left diag(l) right' -> left diag(g(l)) right', g = ``inner``.

    The pair u_i u_j' + u_j u_i' moves by (g_i - g_j) / (l_i - l_j), the mean slope where l_i = l_j.
    """
    jacobian = inner.jacobian()
    images = inner.point
    slopes = jacobian.diagonal
    own, turns = np.linalg.eigh(jacobian.dense())
    i, j = np.triu_indices(values.size, 1)
    difference = values[i] - values[j]
    tie = np.abs(difference) <= 1e-12 * np.abs(values).max(initial=0.0)
    mean = 0.5 * (slopes[i] + slopes[j])
    quotients = np.where(tie, mean, (images[i] - images[j]) / np.where(tie, 1.0, difference))
    turning = own > 1e-15
    moving = quotients > 1e-15
    i = i[moving]
    j = j[moving]
    pairs = np.einsum("am,bm->abm", left[:, i], right[:, j])
    pairs += np.einsum("am,bm->abm", left[:, j], right[:, i])
    alone = np.einsum("ai,im,bi->abm", left, turns[:, turning], right)
    factors = np.concatenate([alone, np.sqrt(0.5) * pairs], axis=2)
    coefficients = np.minimum(np.append(own[turning], quotients[moving]), 1.0)
    size = left.shape[0] * right.shape[0]
    return ProxJacobian(np.zeros(size), factors.reshape(size, -1), coefficients)
