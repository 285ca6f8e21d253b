"""Scores as matrices: stored in full, or at the observed entries only."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces.design import Array
from atomlearn.core.interfaces.matrix import DenseMatrix, ScoreMatrix, Shape

#: Entries of the largest matrix of scores that is ever made dense on request.
MAX_DENSE = 2**27


class SparseMatrix(ScoreMatrix):
    """Z stored at its non-zero entries, in compressed rows."""

    def __init__(self, Z: sparse.csr_array) -> None:
        super().__init__()
        self._Z = Z
        self._parts = Z.data, Z.indices, Z.indptr

    @property
    def shape(self) -> Shape:
        return self._Z.shape[0], self._Z.shape[1]

    def dot(self, other: Array) -> Array:
        if other.ndim == 1:
            return _kernels.predict_csr(*self._parts, other)
        return _kernels.matrix_product_csr(*self._parts, other)

    def transpose_dot(self, other: Array) -> Array:
        if other.ndim == 1:
            return _kernels.scores_csr(*self._parts, other, self._Z.shape[1])
        return np.asarray(self._Z.T @ other)

    def dense(self) -> Array:
        p, q = self.shape
        if p * q > MAX_DENSE:
            raise TypeError(
                f"a matrix of scores of shape {self.shape} is not made dense; use the trace norm, "
                "which only multiplies with it, or fewer rows and columns"
            )
        return self._Z.toarray()

    def frobenius(self) -> float:
        return float(np.linalg.norm(self._Z.data))


class MatrixScores(ArrayScores):
    """z stored in full, which is a matrix (p, q) row after row."""

    __slots__ = ("_matrix",)

    def __init__(self, Z: Array) -> None:
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        super().__init__(Z.reshape(-1))
        self._matrix = DenseMatrix(Z)

    def matrix(self) -> ScoreMatrix:
        """Return Z."""
        return self._matrix


class LessFactored(ScoreMatrix):
    """Z - amount U S V', known by its products: scores of a smooth part with a ridge term."""

    def __init__(self, Z: ScoreMatrix, amount: float, U: Array, S: Array, V: Array) -> None:
        super().__init__()
        self._Z, self._left, self._right = Z, amount * (U @ S), V

    @property
    def shape(self) -> Shape:
        return self._Z.shape

    def dot(self, other: Array) -> Array:
        return self._Z.dot(other) - self._left @ (self._right.T @ other)

    def transpose_dot(self, other: Array) -> Array:
        return self._Z.transpose_dot(other) - self._right @ (self._left.T @ other)

    def dense(self) -> Array:
        return self._Z.dense() - self._left @ self._right.T

    def frobenius(self) -> float:
        inner = float((self._left * self._Z.dot(self._right)).sum())
        own = float(((self._left.T @ self._left) * (self._right.T @ self._right)).sum())
        return float(np.sqrt(max(self._Z.frobenius() ** 2 - 2.0 * inner + own, 0.0)))
