"""TaskSpan: the coordinates of a span of coefficients of several tasks, A kron B."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.matrices.designs.factor_blocks import SpanBlock
from atomlearn.matrices.settings import SETTINGS


class TaskSpan(SpanBlock):
    """S -> vec(A S B'), A (n_rows, r) the images of the left factor, B (n_tasks, s) the right one.

    Sample i * n_tasks + t is row i and task t, so the design of S is A kron B.
    """

    couples_by_structure = True

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return (A kron B)'(diag(c) - K K')(A kron B), (r s, r s), from the two factors.

        c : (n_samples,); K : sparse (n_samples, k). The part of c is
        sum_t (A'diag(c_t)A) kron (b_t b_t'), O(n_rows n_tasks r^2); that of K O(k r^2 s^2), where
        a column of K within one row i of the data is a_i kron (B'K_i), and others are summed.
        """
        A, B = self._images, self._right
        C = np.reshape(curvature, (A.shape[0], B.shape[0]))
        r, s = A.shape[1], B.shape[1]
        grams = np.stack([((A * c[:, None]).T @ A).reshape(-1) for c in C.T])
        outer = (B[:, :, None] * B[:, None, :]).reshape(B.shape[0], s * s)
        products = np.asarray(grams.T @ outer).reshape(r, r, s, s).transpose(0, 2, 1, 3)
        H: Array = np.ascontiguousarray(products).reshape(r * s, r * s)
        for rows in self._pulled_rows(coupling.tocsc()):
            H -= rows.T @ rows
        return H

    def _pulled_rows(self, K: Any) -> Iterator[Array]:
        """Yield the rows of K'(A kron B), in any order."""
        A, B = self._images, self._right
        n_tasks, size = B.shape[0], self.shape[1]
        counts = np.diff(K.indptr)
        owners = np.repeat(np.arange(K.shape[1]), counts)
        rows, tasks = K.indices // n_tasks, K.indices % n_tasks
        first = np.zeros(K.shape[1], dtype=np.int64)
        first[counts > 0] = rows[K.indptr[:-1][counts > 0]]
        spread = np.zeros(K.shape[1], dtype=bool)
        spread[owners[rows != first[owners]]] = True
        for column in np.flatnonzero(spread):
            V = K[:, [column]].toarray().reshape(-1, n_tasks)
            yield np.asarray(A.T @ (V @ B)).reshape(1, -1)
        single = np.flatnonzero(~spread & (counts > 0))
        step = max(1, SETTINGS.pulled_entries // max(size, 1))
        places: NDArray[np.int64] = np.full(K.shape[1], -1)
        for start in range(0, single.size, step):
            columns = single[start : start + step]
            places[columns] = np.arange(columns.size)
            mine = places[owners] >= 0
            U = np.zeros((columns.size, n_tasks))
            np.add.at(U, (places[owners[mine]], tasks[mine]), K.data[mine])
            places[columns] = -1
            left, right = A[first[columns]], U @ B
            yield (left[:, :, None] * right[:, None, :]).reshape(columns.size, size)
