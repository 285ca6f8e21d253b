"""TraceNorm: the sum of singular values, whose atoms are all u v' of unit vectors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.matrix import Found, ScoreMatrix
from atomlearn.core.interfaces.norm import Form, ProxPoint
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.l1 import L1
from atomlearn.matrices.norms.base import ACCURACY, Coordinates, MatrixNorm
from atomlearn.matrices.norms.lanczos import top_singular
from atomlearn.matrices.norms.spectral import singular_jacobian

Array = NDArray[np.float64]


class TraceNorm(MatrixNorm, VectorNorm):
    """gauge(W) = sum_i sigma_i(W) (nuclear norm); its polar is sigma_1(Z). Atoms u v', unit.

    The proximal maps are soft thresholds of singular values: one SVD, O(p q min(p, q)). The polar
    and the best atoms come from Lanczos where the matrix is large; see
    ``norms.matrices.lanczos`` for the bound. [Fazel, Hindi, Boyd 2001; Cai, Candes, Shen 2010]

    Parameters
    ----------
    shape : (p, q), optional
        Of W; None: that of the design, or of a 2-d array.
    """

    coordinates: ClassVar[Coordinates] = "span"

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    def value(self, w: NDArray[Any]) -> float:
        """sum_i sigma_i(W), of a 2-d array or of a vector of p q numbers."""
        return float(np.linalg.svd(self._as_matrix(w), compute_uv=False).sum())

    def search(
        self,
        matrix: ScoreMatrix,
        count: int = 1,
        accuracy: float = ACCURACY,
        thorough: bool = False,
    ) -> Found:
        """The top singular triplets."""
        return top_singular(matrix, count, accuracy)

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
