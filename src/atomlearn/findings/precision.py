"""Precision of columns from few rows: each column on the few that it is most correlated with.

Theta_jj = 1 / t_j^2 and Theta_ij = -b_ij / t_j^2 for x_j = sum_i b_ij x_i + noise of variance
t_j^2, over the neighbors i of j alone. No order of the columns is assumed, and no p x p matrix is
formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from atomlearn.core.interfaces import Array, Columns
from atomlearn.findings.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision matrix with few entries a column.

    matrix : (p, p) sparse; unexplained : share of pairs (residual of a column, another column)
    that are correlated by more than chance.
    """

    matrix: sp.csr_array
    unexplained: float

    @property
    def fits(self) -> bool:
        """Whether few neighbors a column explain the correlations."""
        return self.unexplained <= SETTINGS.most_unexplained


def inverse_of(covariance: Array) -> Array:
    """Return the inverse of a positive definite matrix."""
    factor, failed = la.lapack.dpotrf(0.5 * (covariance + covariance.T), lower=1, clean=1)
    if failed:
        raise ValueError(
            "covariance must be positive definite; add a small ridge to its diagonal, or let it be "
            'estimated: covariance="auto"'
        )
    half = la.lapack.dpotri(factor, lower=1)[0]
    return np.asarray(half + np.tril(half, -1).T)


def scaled_by(matrix: Any, root: Array) -> Any:
    """Return diag(root) M diag(root), of a dense matrix or one with few entries."""
    spread = sp.diags_array(root)
    return spread @ matrix @ spread


def shrunk(matrix: Any, shift: float) -> Any:
    """Return (M + shift I) / (1 + shift)."""
    return (matrix + shift * sp.eye_array(matrix.shape[0])) / (1 + shift)


def sparse_precision(X: Array) -> Precision:
    """Return the precision of standardized columns X (n, p)."""
    n_rows, n_columns = X.shape
    count = min(SETTINGS.n_neighbors, n_columns - 1, max((n_rows - 2) // 2, 0))
    columns = np.ascontiguousarray(X.T)
    if count == 0:
        return Precision(sp.csr_array(sp.eye_array(n_columns)), 0.0)
    edges = _edges(columns, _most_correlated(columns, count))
    # An edge that one end sees is looked at from both.
    graph = sp.csr_array((edges + edges.T) > 0)
    return _refitted(columns, graph)


def _most_correlated(columns: Array, count: int) -> Columns:
    # Half the digits are enough to tell who is near.
    rough = columns.astype(np.float32)
    found = np.empty((len(columns), count), dtype=np.int64)
    for first in range(0, len(columns), SETTINGS.columns_together):
        rows = slice(first, min(first + SETTINGS.columns_together, len(columns)))
        size = np.abs(rough[rows] @ rough.T)
        size[np.arange(rows.stop - first), np.arange(first, rows.stop)] = -1.0
        found[rows] = np.argpartition(size, -count, axis=1)[:, -count:]
    return found


def _edges(columns: Array, neighbors: Columns) -> sp.csr_array:
    """Return the pairs (j, neighbor) with a large |t| in the regression of j on its neighbors."""
    (n_columns, n_rows), count = columns.shape, neighbors.shape[1]
    keep = np.empty(neighbors.shape, dtype=bool)
    for first in range(0, n_columns, SETTINGS.columns_together):
        rows = slice(first, min(first + SETTINGS.columns_together, n_columns))
        around = columns[neighbors[rows]]
        gram = around @ around.transpose(0, 2, 1) / n_rows
        gram += 1e-10 * np.eye(count)
        right = around @ columns[rows][:, :, None] / n_rows
        inverse = np.linalg.inv(gram)
        slopes = (inverse @ right)[:, :, 0]
        variance = np.maximum(1.0 - np.sum(slopes * right[:, :, 0], axis=1), 1e-8)
        errors = np.sqrt(np.maximum(np.einsum("jkk->jk", inverse), 0.0) * variance[:, None])
        least = SETTINGS.least_t * errors / np.sqrt(max(n_rows - count - 1, 1))
        keep[rows] = np.abs(slopes) > least
    at = np.repeat(np.arange(n_columns), count)[keep.ravel()]
    to = neighbors.ravel()[keep.ravel()]
    return sp.csr_array((np.ones(at.size), (at, to)), shape=(n_columns, n_columns))


def _refitted(columns: Array, graph: sp.csr_array) -> Precision:
    """Return the precision over a symmetric graph, made symmetric by the mean of both ends."""
    n_columns, n_rows = columns.shape
    data, variances = np.empty(graph.nnz), np.ones(n_columns)
    rough, n_neighbors = columns.astype(np.float32), np.diff(graph.indptr)
    unexplained = 0
    for first in range(0, n_columns, SETTINGS.columns_together):
        stop = min(first + SETTINGS.columns_together, n_columns)
        residuals = columns[first:stop].copy()
        for count in np.unique(n_neighbors[first:stop]):
            js = first + np.flatnonzero(n_neighbors[first:stop] == count)
            places = graph.indptr[js][:, None] + np.arange(count)
            around = columns[graph.indices[places]]
            gram = around @ around.transpose(0, 2, 1) / n_rows + 1e-6 * np.eye(count)
            slopes = np.linalg.solve(gram, around @ columns[js][:, :, None] / n_rows)[:, :, 0]
            left = residuals[js - first] - np.einsum("jk,jkn->jn", slopes, around)
            residuals[js - first] = left
            freedom = max(n_rows - count, 1)
            variances[js] = np.maximum(np.sum(left**2, axis=1) / freedom, 1e-6)
            data[places] = -slopes / variances[js][:, None]
        least = SETTINGS.least_t * np.sqrt(np.maximum(np.sum(residuals**2, axis=1), 1e-300))
        far = np.abs(residuals.astype(np.float32) @ rough.T) > least[:, None].astype(np.float32)
        far[np.arange(stop - first), np.arange(first, stop)] = False
        unexplained += int(far.sum())
    half = sp.csr_array((data, graph.indices, graph.indptr), shape=graph.shape)
    matrix = 0.5 * (half + half.T) + sp.diags_array(1.0 / variances)
    return Precision(sp.csr_array(matrix), unexplained / max(n_columns * (n_columns - 1), 1))
