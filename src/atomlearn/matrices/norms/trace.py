"""TraceNorm: the sum of singular values, whose atoms are all u v' of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Design, Form, ProxPoint, Term
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.l1 import L1
from atomlearn.matrices.designs.reshaped import as_matrix_design
from atomlearn.matrices.found import Found
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.lanczos import top_singular
from atomlearn.matrices.norms.spectral import singular_jacobian
from atomlearn.matrices.scores import ScoreMatrix
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.spans import Span


class TraceNorm(MatrixNorm, VectorNorm):
    """gauge(W) = sum_i sigma_i(W) (nuclear norm); its polar is sigma_1(Z). Atoms u v', unit.

    The proximal maps are soft thresholds of singular values: one SVD, O(p q min(p, q)). The polar
    and the best atoms come from Lanczos where the matrix is large; see
    ``norms.matrices.lanczos`` for the bound. [Fazel, Hindi, Boyd 2001; Cai, Candes, Shen 2010]

    Parameters
    ----------
    shape : (p, q), optional
        Of W; None: that of the design, or of a 2-d array.

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

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    def value(self, w: NDArray[Any]) -> float:
        """sum_i sigma_i(W), of a 2-d array or of a vector of p q numbers."""
        return float(np.linalg.svd(self._as_matrix(w), compute_uv=False).sum())

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """The top singular triplets."""
        return top_singular(matrix, count, accuracy)

    def at_zero(self, term: Term, design: Design) -> Span:
        """An empty span: W = U S V', whose trace norm is that of S."""
        p, q = self.matrix_shape or ()
        view = as_matrix_design(design, (p, q), self.tensor, self.mode)
        return Span(term, view, np.zeros(0), np.zeros((p, 0)), np.zeros((q, 0)))

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """The singular value decomposition of the sum, without its zeros."""
        P, A = np.linalg.qr(left * weights)
        Q, B = np.linalg.qr(right)
        U, values, Vt = np.linalg.svd(A @ B.T, full_matrices=False)
        kept = values > SETTINGS.rounding * values.max(initial=0.0)
        return P @ U[:, kept], values[kept], Q @ Vt[kept].T

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        W = self._as_matrix(v)
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        inner = L1().prox_point(s, amount, form)
        if np.array_equal(inner.point, s):
            point = v.copy()
        else:
            rank = int(np.count_nonzero(inner.point))
            point = ((U[:, :rank] * inner.point[:rank]) @ Vt[:rank]).reshape(v.shape)
        return ProxPoint(point, inner.gauge, lambda: singular_jacobian(W, inner))
