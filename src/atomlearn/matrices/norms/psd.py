"""PSD: the trace of positive semidefinite matrices, whose atoms are u u' of unit vectors."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Design, Form, ProxPoint, Term
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.l1 import L1
from atomlearn.matrices.designs.reshaped import as_matrix_design
from atomlearn.matrices.found import Found, positive_part
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.lanczos import lanczos
from atomlearn.matrices.norms.spectral import eigen_jacobian
from atomlearn.matrices.scores import ScoreMatrix, SymmetricPart
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.shapes import Shape
from atomlearn.matrices.solver.spans import SymmetricSpan

Square = TypeVar("Square", bound=MatrixNorm)


class PSD(MatrixNorm, VectorNorm):
    """gauge(W) = trace(W) where W is symmetric positive semidefinite, infinite elsewhere.

    The polar is the largest eigenvalue of (Z + Z')/2, or 0 where it is negative. Proximal maps are
    those of the symmetric part: a non-negative soft threshold of eigenvalues. [V] section 2.1.

    Parameters
    ----------
    shape : (p, p), optional
        Of W; None: that of the design, or of a 2-d array.

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

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    def on(self, n_features: int, shape: Shape | None = None) -> PSD:
        """Return the same norm for matrices of this shape, which must be square."""
        return square(super().on(n_features, shape))

    def value(self, w: NDArray[Any]) -> float:
        """trace(W), or infinity where W is not symmetric positive semidefinite."""
        W = self._as_matrix(w)
        if W.shape[0] != W.shape[1]:
            raise ValueError(f"PSD is for square matrices, got shape {W.shape}")
        size = float(np.abs(W).max(initial=0.0))
        if size == 0.0:
            return 0.0
        W = W / size
        if float(np.abs(W - W.T).max()) > SETTINGS.accuracy:
            return math.inf
        least = float(np.linalg.eigvalsh(0.5 * (W + W.T))[0])
        return math.inf if least < -SETTINGS.accuracy * W.shape[0] else size * float(np.trace(W))

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """The largest eigenpairs with positive eigenvalues."""
        n = matrix.shape[0]
        if n * n <= SETTINGS.decomposed_entries:
            values, vectors = np.linalg.eigh(SymmetricPart(matrix).dense())
            top, U = values[::-1][:count], vectors[:, ::-1][:, :count]
            lower = upper = max(float(values[-1]), 0.0)
            return positive_part(U, top, lower, upper)
        # Shifted by a bound on -l_min the largest eigenvalue is the largest singular value.
        reach = lanczos(SymmetricPart(matrix), 1, 1e-2).upper
        shifted = lanczos(SymmetricPart(matrix, reach), count, 0.25 * accuracy)
        symmetric = SymmetricPart(matrix)
        U = shifted.right
        values = np.einsum("ij,ij->j", U, symmetric.dot(U))
        order = np.argsort(-values)
        upper = max(shifted.upper - reach, 0.0) + SETTINGS.rounding * reach
        lower = max(float(values.max(initial=0.0)), 0.0)
        return positive_part(U[:, order], values[order], lower, max(upper, lower))

    def at_zero(self, term: Term, design: Design) -> SymmetricSpan:
        """An empty span: W = U S U', whose trace is that of S."""
        p, q = self.matrix_shape or ()
        nothing = np.zeros((p, 0))
        return SymmetricSpan(term, as_matrix_design(design, (p, q)), nothing, nothing)

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """The eigenvectors of the sum, without zeros."""
        P, A = np.linalg.qr(left)
        values, U = np.linalg.eigh((A * weights) @ A.T)
        kept = values > SETTINGS.rounding * values.max(initial=0.0)
        vectors = P @ U[:, kept]
        return vectors, values[kept], vectors

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        W = self._as_matrix(v)
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        inner = L1().prox_point(np.maximum(values, 0.0), amount, form)
        if np.array_equal(inner.point, values) and np.array_equal(W, W.T):
            point = v.copy()
        else:
            used = np.flatnonzero(inner.point)
            U = vectors[:, used]
            point = ((U * inner.point[used]) @ U.T).reshape(v.shape)
        return ProxPoint(point, inner.gauge, lambda: eigen_jacobian(values, vectors, inner))


def square(norm: Square) -> Square:
    """Return the norm; raise where its shape is not that of a square matrix."""
    if norm.shape[0] != norm.shape[1]:
        raise ValueError(
            f"{type(norm).__name__} is for square matrices, got shape {tuple(norm.shape)}; use "
            "norms.TraceNorm() or norms.SparseRankOne(k, q) for others"
        )
    return norm
