"""TaskSpan: the coordinates of a span of coefficients of several tasks, A kron B."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import Array
from atomlearn.matrices.designs.base import OperatorBlock


class TaskSpan(OperatorBlock):
    """S -> vec(A S B'), A (n_rows, r) the images of the left factor, B (n_tasks, s) the right one.

    Sample i * n_tasks + t is row i and task t, so the design of S is A kron B.
    """

    couples_by_structure = True

    def __init__(self, images: Array, right: Array) -> None:
        self._images, self._right = images, right

    @property
    def shape(self) -> tuple[int, int]:
        A, B = self._images, self._right
        return A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]

    def dot(self, weights: Array) -> Array:
        A, B = self._images, self._right
        S = np.reshape(weights, (A.shape[1], B.shape[1]))
        if S.shape[0] <= S.shape[1]:
            return np.asarray(A @ (B @ S.T).T).reshape(-1)
        return np.asarray((A @ S) @ B.T).reshape(-1)

    def transpose_dot(self, v: Array) -> Array:
        V = np.reshape(v, (self._images.shape[0], self._right.shape[0]))
        return np.asarray(self._images.T @ (V @ self._right)).reshape(-1)

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return (A kron B)'(diag(c) - K K')(A kron B), (r s, r s), from the two factors.

        c : (n_samples,); K : sparse (n_samples, k). Of the columns of K those within a row of the
        data leave row i with a matrix C_i (s, s), and the block (a, b) is A'diag(C_ab)A: so many
        Gram matrices as C has different entries, O(n_rows r^2) each. Other columns are summed.
        """
        A, B = self._images, self._right
        (n_rows, r), (n_tasks, s) = A.shape, B.shape
        K = sparse.csc_array(coupling)
        owners = np.repeat(np.arange(K.shape[1]), np.diff(K.indptr))
        # Column i of K belongs to row i, in losses of several classes; others may follow.
        inside = (owners < n_rows) & (K.indices // n_tasks == owners)
        wide = np.unique(owners[~inside])
        inside &= ~np.isin(owners, wide)
        shares = np.zeros((n_rows, n_tasks))
        shares[owners[inside], K.indices[inside] % n_tasks] = K.data[inside]
        U = shares @ B
        C = np.einsum("it,ta,tb->iab", np.reshape(curvature, (n_rows, n_tasks)), B, B)
        C -= U[:, :, None] * U[:, None, :]
        blocks = np.empty((r, s, r, s))
        for a in range(s):
            for b in range(a, s):
                blocks[:, a, :, b] = _weighted(A, C[:, a, b])
                blocks[:, b, :, a] = blocks[:, a, :, b]
        H: Array = blocks.reshape(r * s, r * s)
        for column in wide:
            pulled = self.transpose_dot(K[:, [column]].toarray().ravel())
            H -= np.outer(pulled, pulled)
        return H


def _weighted(A: Array, weight: Array) -> Array:
    """Return A'diag(weight)A; where no weight is negative in half the time."""
    if weight.min(initial=0.0) < 0.0:
        return np.asarray((A * weight[:, None]).T @ A)
    rooted = A * np.sqrt(weight)[:, None]
    return np.asarray(rooted.T @ rooted)
