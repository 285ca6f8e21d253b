"""TraceNorm (nuclear norm), SpectralKSupport, and PSD (trace of a positive semidefinite matrix).

Their polars (dual norms) are functions of the largest singular values or eigenvalues. For large
matrices they are bounded by Golub-Kahan-Lanczos bidiagonalization. Ritz values are lower bounds.
The upper bound is from Hochstenbach 2013 ("Probabilistic upper bounds for the matrix two-norm", doi
10.1007/s10915-013-9716-x), the a posteriori form of Kuczynski, Wozniakowski 1992. Let B be the
bidiagonal matrix after k steps on A from the random unit vector b (n,), T = B'B, and p the
characteristic polynomial of T. Then ||p(A'A) b|| = prod_j T_(j+1,j). Let x be the largest
eigenvalue of A'A, q its eigenvector, and c = <q, b>. Then p(x) |c| <= prod_j T_(j+1,j), and
|c| < delta / sqrt(n) has probability less than delta.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from atomlearn._support import whole_number
from atomlearn.core import (
    L1,
    Array,
    Atom,
    Form,
    KSupport,
    Nonnegative,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
    VectorNorm,
)
from atomlearn.matrices.norms.base import MatrixNorm, ShapedNorm
from atomlearn.matrices.scores import (
    Found,
    ScoreMatrix,
    Shape,
    less_factored,
    score_matrix,
    symmetric_block,
    symmetric_part,
)
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.spans import PlainSpan, Span, SymmetricSpan


def top_singular(matrix: ScoreMatrix, count: int, accuracy: float) -> Found:
    """Return the ``count`` leading singular triplets of Z, with lower <= sigma_1 <= upper.

    Z (p, q) is ``matrix``, and sigma_1 its largest singular value. Small matrices are decomposed by
    a full SVD, so that both bounds are equal. Otherwise Golub-Kahan-Lanczos with full
    reorthogonalization runs from a random start until upper <= (1 + accuracy) lower, or for at most
    500 steps. Step k takes one product with Z, one with Z', and O((p + q) k) operations. The upper
    bound then fails with a probability of at most 1e-12 over the random start, whose seed is
    computed from Z.
    """
    p, q = matrix.shape
    if p * q <= SETTINGS.decomposed_entries:
        left, sigma, right = np.linalg.svd(matrix.dense(), full_matrices=False)
        top = float(sigma[0])
        return Found(left[:, :count], right[:count].T, sigma[:count], top, top)
    return lanczos(matrix, count, accuracy)


def largest_singular_values(matrix: ScoreMatrix, k: int, count: int, accuracy: float) -> Found:
    """Return ``count`` >= k singular triplets of Z, with bounds on sqrt(sum_{i<=k} sigma_i^2).

    Z (p, q) is ``matrix``. Small matrices are decomposed by a full SVD, and both bounds are equal.
    For large matrices ``lanczos`` is called with ``accuracy``. The bounds are as follows. Let
    U diag(s) V' be k computed triplets. In bases that extend U and V, Z is block diagonal with
    blocks diag(s) and C, up to the residuals Z V - U diag(s) and Z'U - V diag(s). Let x be a bound
    on ||Z - U diag(s) V'||_2, which is at least ||C||_2. The upper bound is the norm of the k
    largest of the numbers s and k copies of x, plus the Frobenius norm of the residuals.
    """
    p, q = matrix.shape
    k = min(k, p, q)
    if p * q <= SETTINGS.decomposed_entries:
        left, sigma, right = np.linalg.svd(matrix.dense(), full_matrices=False)
        top = float(np.linalg.norm(sigma[:k]))
        return Found(left[:, :count], right[:count].T, sigma[:count], top, top)
    leading = lanczos(matrix, count, accuracy, residual=accuracy)
    U = leading.left[:, :k]
    V = leading.right[:, :k]
    s = leading.values[:k]
    images = matrix.dot(V)
    residuals = np.hypot(
        np.linalg.norm(images - U * s), np.linalg.norm(matrix.transpose_dot(U) - V * s)
    )
    # An upper bound on the largest singular value of Z - U diag(s) V'.
    next_value = lanczos(less_factored(matrix, U * s, V), 1, SETTINGS.loose).upper
    largest = np.sort(np.append(s, np.full(k, next_value)))[-k:]
    lower = float(np.linalg.norm(U.T @ images))
    return replace(leading, lower=lower, upper=float(np.linalg.norm(largest) + residuals))


def lanczos(
    matrix: ScoreMatrix,
    count: int,
    accuracy: float,
    max_steps: int = SETTINGS.most_steps,
    residual: float = 0.01,
) -> Found:
    """Return the ``count`` leading singular triplets of a matrix by Golub-Kahan-Lanczos.

    Z (p, q) is ``matrix``. The result has bounds on its largest singular value sigma_1;
    ``top_singular`` describes them. After k steps Z V = U B with orthonormal U (p, k) and V (q,
    k), and a bidiagonal matrix B with the diagonal alpha and the superdiagonal beta. The
    singular values of B approximate the largest ones of Z.

    ``max_steps`` limits k. The iteration may stop when two conditions hold. The bounds differ
    by at most the share ``accuracy``. The residuals of the triplets are at most ``residual``
    times sigma_1.
    """
    p, q = matrix.shape
    steps = min(p, q, max_steps)
    # The bases have room for more columns, and are doubled when they are full.
    U = np.empty((p, SETTINGS.look), order="F")
    V = np.empty((q, SETTINGS.look), order="F")
    start = _random_start(matrix)
    V[:, 0] = start / np.linalg.norm(start)
    alpha = np.zeros(steps)
    beta = np.zeros(steps)
    k = 0
    next_check = SETTINGS.look
    while True:
        # One step of the recursion: a new column of U, then of V.
        if k + 1 == U.shape[1]:
            U, V = (np.asfortranarray(np.hstack([basis, basis])) for basis in (U, V))
        U[:, k], alpha[k] = _orthogonal(matrix.dot(V[:, k]), U[:, :k])
        V[:, k + 1], beta[k] = _orthogonal(matrix.transpose_dot(U[:, k]), V[:, : k + 1])
        k += 1
        # If a coefficient is 0, the bases span an invariant subspace, so that nothing can improve.
        negligible = SETTINGS.rounding * max(alpha.max(), beta.max())
        is_invariant = min(alpha[k - 1], beta[k - 1]) <= negligible or k == min(p, q)
        if not (is_invariant or k in (next_check, steps)):
            continue
        next_check = k + max(SETTINGS.look, k // 8)  # computing the bounds costs O(k^3)
        P, sigma, Q = np.linalg.svd(np.diag(alpha[:k]) + np.diag(beta[: k - 1], 1))
        lower = float(sigma[0])
        upper = lower if is_invariant else _upper_bound(sigma, alpha[:k] * beta[:k], q)
        # Singular triplets have converged if their residuals beta_k |P_k| are small.
        converged = beta[k - 1] * np.abs(P[-1, :count]).max() <= residual * lower
        if is_invariant or k == steps or (converged and upper <= (1 + accuracy) * lower):
            break
    # The triplets of Z are those of B in the bases U and V.
    left = U[:, :k] @ P[:, :count]
    right = V[:, :k] @ Q[:count].T
    return Found(left, right, sigma[:count], lower, upper * (1 + SETTINGS.rounding))


def _random_start(matrix: ScoreMatrix) -> Array:
    """Return a Gaussian vector (q,) whose seed is computed from Z (p, q), ``matrix``.

    So equal matrices have equal results.
    """
    p, q = matrix.shape
    # The seed is made of the bits of one product with Z, at most 4096 words of them.
    probe = matrix.transpose_dot(np.cos(np.arange(p, dtype=np.float64)))
    seed = np.frombuffer(np.ascontiguousarray(probe).tobytes(), dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence(seed.tolist()[: 2**12])).normal(size=q)


def _orthogonal(x: Array, basis: Array) -> tuple[Array, float]:
    """Return x orthogonalized against ``basis`` and normalized, and its norm before normalizing.

    ``basis`` (n, k) has orthonormal columns. Gram-Schmidt is applied twice, which suffices for
    orthogonality up to rounding. If x (n,) is in the span of the basis, both results are 0.
    """
    before = float(np.linalg.norm(x))
    for _ in range(2):
        x = x - basis @ (basis.T @ x)
    norm = float(np.linalg.norm(x))
    if norm <= SETTINGS.rounding * before:
        return np.zeros_like(x), 0.0
    return x / norm, norm


def _upper_bound(sigma: Array, couplings: Array, n: int) -> float:
    """Return sqrt(x) for the x > sigma_1^2 with p(x) delta / sqrt(n) = prod(couplings).

    p(x) = prod_i (x - sigma_i^2), with ``sigma`` (k,) the singular values of B. ``couplings`` (k,)
    are the off-diagonal entries T_(j+1,j), and delta is the failure probability. The module
    docstring derives this bound.
    """
    largest = float(sigma[0]) ** 2
    # Solve in logarithms, relative to the largest Ritz value: x = largest (1 + exp(above)).
    right_side = float(np.log(couplings / largest).sum()) + math.log(
        math.sqrt(n) / SETTINGS.failure
    )
    gaps = 1.0 - sigma * sigma / largest
    limit = min(right_side / sigma.size, 700.0)  # exp(700) is near the largest float

    def excess(above: float) -> float:
        """Return log(p(x) / largest^k) minus ``right_side`` at x = largest (1 + exp(above))."""
        return float(np.log(gaps + math.exp(above)).sum()) - right_side

    # If even the smallest x satisfies the equation, the bound is tight up to rounding.
    above = math.log(SETTINGS.rounding)
    if excess(above) < 0.0:
        above = brentq(excess, above, max(limit, above), xtol=1e-3) + 1e-3
    return math.sqrt(largest * (1.0 + math.exp(above)))


class SpectralNorm(MatrixNorm, VectorNorm):
    """Base of norms that are functions of the singular values or eigenvalues of W.

    gauge(W) = ||values||_1 for the decomposition W = left diag(values) right', which costs
    O(p q min(p, q)). The proximal operator applies the proximal operator of the l1 norm to the
    values (singular value thresholding). [Cai, Candes, Shen 2010]
    """

    absolute = False

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    @property
    def of_values(self) -> Norm:
        """The norm of the singular values or eigenvalues."""
        return L1()

    @abstractmethod
    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        """Return left (p, m), values (m,) and right (q, m) with W = left diag(values) right'."""

    @abstractmethod
    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return the generalized Jacobian of the proximal operator at W (p, q), over vec(W).

        ``amount`` is the regularization parameter in the form ``form``.
        """

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """Return the SVD or eigendecomposition of left diag(weights) right', without zeros.

        left is (p, t), weights (t,) and right (q, t). The result has the same form.
        """
        # The QR decompositions reduce the problem to a t x t matrix.
        P, A = np.linalg.qr(left)
        Q, B = np.linalg.qr(right)
        U, values, V = self._decomposed((A * weights) @ B.T)
        is_positive = values > SETTINGS.rounding * values.max(initial=0.0)
        return P @ U[:, is_positive], values[is_positive], Q @ V[:, is_positive]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal point of v = vec(W), by the proximal operator of the values.

        ``amount`` is the regularization parameter in the form ``form``.
        """
        W = self._as_matrix(v)
        left, values, right = self._decomposed(W)
        inner = self.of_values.prox_point(values, amount, form)
        # If no value changes, neither does W, up to the last bit.
        if np.array_equal(inner.point, values) and self.value(W) < math.inf:
            point = v.copy()
        else:
            nonzero = np.flatnonzero(inner.point)
            point = (left[:, nonzero] * inner.point[nonzero]) @ right[:, nonzero].T
        jacobian = self._jacobian
        return ProxPoint(point.reshape(v.shape), inner.gauge, lambda: jacobian(W, amount, form))


class TraceNorm(SpectralNorm):
    """Trace norm (nuclear norm): gauge(W) = sum_i sigma_i(W), the sum of the singular values.

    The atoms are u v' with unit vectors u, v; the polar is the spectral norm sigma_1(Z). For large
    matrices the polar and the best atoms are computed by Golub-Kahan-Lanczos, with a probabilistic
    upper bound (failure probability 1e-12).

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
        """Return the top ``count`` singular triplets of the scores ``matrix`` (p, q), with bounds.

        The bounds on the largest singular value have the relative gap ``accuracy``;
        ``thorough`` changes nothing.
        """
        return top_singular(matrix, count, accuracy)

    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        """Return the singular value decomposition of W."""
        left, values, right = np.linalg.svd(W, full_matrices=False)
        return left, values, right.T

    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return the generalized Jacobian of the proximal operator at W (p, q).

        ``amount`` is the regularization parameter in the form ``form``. The Jacobian is
        computed from the eigendecomposition of [0 W; W' 0], whose eigenvalues are +- the
        singular values of W, with eigenvectors (u, +-v) / sqrt(2). [Lewis, Sendov 2001;
        Ding et al. 2018]
        """
        p = len(W)
        values, vectors = np.linalg.eigh(symmetric_block(W))
        inner = self._both_signs(values, amount, form)
        # Each direction u_i v_j' occurs for both signs of its values. With this factor it has the
        # length 1 / sqrt(2), so that both together count once.
        vectors *= 2.0**0.25
        return _derivative(values, inner, vectors[:p], vectors[p:])

    def _both_signs(self, values: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal point of the singular values, each of them given with both signs.

        ``amount`` is the regularization parameter for the singular values. With both signs the norm
        of the values is twice as large, which ``share`` corrects in each form.
        """
        share = {"penalized": 1.0, "squared": 0.5, "constrained": 2.0}[form]
        return self.of_values.prox_point(values, share * amount, form)


class SpectralKSupport(TraceNorm):
    """Spectral k-support norm: the k-support norm of the singular values of W.

    gauge(W)^2 = min { tr(W' M^-1 W) : 0 <= M <= I, tr M <= k }. The atoms are the matrices of rank
    at most k with ||W||_F = 1. The polar is sqrt(sigma_1^2 + ... + sigma_k^2) of Z. k = 1 is the
    trace norm, k = min(p, q) the Frobenius norm. Values, proximal operators and polars are those of
    ``KSupport`` at the singular values; the decomposition takes O(p q min(p, q)) operations.

    Parameters
    ----------
    k : int >= 1
        Largest rank of an atom.
    shape : (p, q), optional
        Shape of W; None: that of the design, or of a 2-d array.

    References
    ----------
    A. M. McDonald, M. Pontil, D. Stamos. Spectral k-support norm regularization. NeurIPS 27
    (2014). The same authors, New perspectives on k-support and cluster norms, JMLR 17(155), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> W = np.diag([3.0, 0.0, 4.0])
    >>> round(norms.SpectralKSupport(1).value(W), 6), round(norms.SpectralKSupport(2).value(W), 6)
    (7.0, 5.0)
    """

    coordinates = PlainSpan
    rank_one = False
    usual_form = "squared"

    def __init__(self, k: int, shape: Any = None) -> None:
        super().__init__(shape)
        self.k = k

    @property
    def of_values(self) -> KSupport:
        """The norm of the singular values."""
        return KSupport(whole_number("SpectralKSupport", "k", self.k))

    def value(self, w: NDArray[Any]) -> float:
        """Return the k-support norm of the singular values of W; ``w`` is W or vec(W)."""
        values = np.linalg.svd(self._as_matrix(w), compute_uv=False)
        return self.of_values.value(np.asarray(values, dtype=np.float64))

    def threshold(self, values: Array) -> float:
        """Return the threshold of the k-support norm at the singular values ``values``."""
        return self.of_values.thresholds(values, np.zeros(0, dtype=np.int64), min(self.shape))

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Return the top ``count`` singular triplets of the scores ``matrix`` (p, q), with bounds.

        The bounds are those on the polar, the root of the sum of the k largest squared
        singular values. Their relative gap is about ``accuracy``; ``thorough`` changes
        nothing.
        """
        k = self.of_values.k
        return largest_singular_values(matrix, k, max(count, k), accuracy)

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom of largest score: k terms of the SVD of Z, divided by their norm."""
        matrix = score_matrix(scores, self._shape_of(scores.n_columns))
        atoms = self.search(matrix)
        values = atoms.values[: self.of_values.k]
        terms = (atoms.left[:, : values.size] * values) @ atoms.right[:, : values.size].T
        size = float(np.linalg.norm(values))
        if size <= 0.0:
            return Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
        return Atom(np.arange(terms.size), terms.reshape(-1) / size)

    def _both_signs(self, values: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal point of the singular values, each of them given with both signs.

        ``amount`` is the regularization parameter for the singular values in the form
        ``form``. The 2k-support norm of both signs is sqrt(2) times the k-support norm, for
        which ``share`` corrects.
        """
        share = 1.0 if form == "squared" else math.sqrt(2.0)
        return KSupport(2 * self.of_values.k).prox_point(values, share * amount, form)


Square = TypeVar("Square", bound=ShapedNorm)


class PSD(SpectralNorm):
    """gauge(W) = trace(W) if W is symmetric positive semidefinite, else infinite.

    The atoms are u u' with unit vectors u. The polar is the largest eigenvalue of (Z + Z')/2, or 0
    if it is negative. The proximal operator takes the symmetric part, soft-thresholds its
    eigenvalues, and sets negative ones to 0. [V] section 2.1.

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

    @property
    def of_values(self) -> Norm:
        """The sum of the eigenvalues, infinite if one is negative."""
        return Nonnegative(L1())

    def on(self, n_features: int, shape: Shape | None = None) -> PSD:
        """Return the same norm for matrices of this shape, with ``n_features`` entries.

        The shape must be square.
        """
        return square(super().on(n_features, shape))

    def value(self, w: NDArray[Any]) -> float:
        """Return trace(W), or infinity if W is not symmetric positive semidefinite."""
        W = self._as_matrix(w)
        self.on(W.size, W.shape)
        # Scaled to a largest entry of 1, W may violate a condition by ``SETTINGS.accuracy``.
        size = float(np.abs(W).max(initial=0.0))
        if size == 0.0:
            return 0.0
        W = W / size
        if float(np.abs(W - W.T).max()) > SETTINGS.accuracy:
            return math.inf
        least = float(np.linalg.eigvalsh(0.5 * (W + W.T))[0])
        return math.inf if least < -SETTINGS.accuracy * W.shape[0] else size * float(np.trace(W))

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Return the largest ``count`` eigenpairs of (Z + Z') / 2 with positive eigenvalues.

        Z is ``matrix`` (p, p). The best atoms are u u' with eigenvectors u. The bounds on
        the largest eigenvalue have about the relative gap ``accuracy``. It may be larger if
        that eigenvalue is below a third of the spectral norm. ``thorough`` changes nothing.
        """
        n = matrix.shape[0]
        symmetric = symmetric_part(matrix)
        if n * n <= SETTINGS.decomposed_entries:
            values, U = np.linalg.eigh(symmetric.dense())
            upper = float(values[-1])
        else:
            # Shift by an upper bound on the spectral norm: all eigenvalues become nonnegative, so
            # that the largest eigenvalue is the largest singular value.
            # The shift enlarges the values, so a smaller relative gap is requested: a quarter
            # suffices if the shift is at most three times the largest eigenvalue.
            shift = lanczos(symmetric, 1, 1e-2).upper
            shifted = lanczos(symmetric_part(matrix, shift), count, 0.25 * accuracy)
            U = shifted.right
            values = np.einsum("ij,ij->j", U, symmetric.dot(U))
            upper = max(shifted.upper - shift, 0.0) + SETTINGS.rounding * shift
        order = np.argsort(-values)[:count]
        order = order[values[order] > 0.0]
        lower = float(values[order].max(initial=0.0))
        return Found(U[:, order], U[:, order], values[order], lower, max(upper, lower))

    def _decomposed(self, W: Array) -> tuple[Array, Array, Array]:
        """Return the eigendecomposition of the symmetric part of W."""
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        return vectors, values, vectors

    def _jacobian(self, W: Array, amount: float, form: Form) -> ProxJacobian:
        """Return the generalized Jacobian of the proximal operator at W (p, p).

        ``amount`` is the regularization parameter in the form ``form``. The Jacobian is
        zero on skew-symmetric matrices.
        """
        vectors, values, _ = self._decomposed(W)
        inner = self.of_values.prox_point(values, amount, form)
        return _derivative(values, inner, vectors, vectors)


def square(norm: Square) -> Square:
    """Return the norm unchanged; raise ValueError if its shape is not square."""
    if norm.shape[0] != norm.shape[1]:
        raise ValueError(
            f"{type(norm).__name__} is for square matrices, got shape {tuple(norm.shape)}; use "
            "norms.TraceNorm() or norms.SparseRankOne(k, q) for others"
        )
    return norm


def _derivative(values: Array, inner: ProxPoint, left: Array, right: Array) -> ProxJacobian:
    """Return the Jacobian of the spectral map left diag(l) right' -> left diag(g(l)) right'.

    ``left`` (p, m) and ``right`` (q, m) have the columns u_i and v_i, l are ``values`` (m,), and g
    is the proximal operator with the result ``inner``. The map acts on two kinds of directions.
    Among the directions u_i v_i' it is the Jacobian of g. The direction u_i v_j' + u_j v_i' of a
    pair (i, j) is multiplied by the divided difference (g_i - g_j) / (l_i - l_j), or by the mean
    derivative if l_i = l_j. The result is a sum of rank-one terms over these directions.
    """
    jacobian = inner.jacobian()
    images = inner.point
    slopes = jacobian.diagonal
    # The first kind: eigenvectors of the Jacobian of g.
    eigenvalues, eigenvectors = np.linalg.eigh(jacobian.dense())
    # The second kind: all pairs i < j.
    i, j = np.triu_indices(values.size, 1)
    difference = values[i] - values[j]
    tie = np.abs(difference) <= 1e-12 * np.abs(values).max(initial=0.0)
    mean = 0.5 * (slopes[i] + slopes[j])
    quotients = np.where(tie, mean, (images[i] - images[j]) / np.where(tie, 1.0, difference))
    # Directions that are mapped to 0 are left out.
    nonzero = eigenvalues > 1e-15
    is_kept = quotients > 1e-15
    i = i[is_kept]
    j = j[is_kept]
    pairs = np.einsum("am,bm->abm", left[:, i], right[:, j])
    pairs += np.einsum("am,bm->abm", left[:, j], right[:, i])
    diagonal = np.einsum("ai,im,bi->abm", left, eigenvectors[:, nonzero], right)
    factors = np.concatenate([diagonal, np.sqrt(0.5) * pairs], axis=2)
    coefficients = np.minimum(np.append(eigenvalues[nonzero], quotients[is_kept]), 1.0)
    size = left.shape[0] * right.shape[0]
    return ProxJacobian(np.zeros(size), factors.reshape(size, -1), coefficients)
