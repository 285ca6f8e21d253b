"""Precision of columns from few rows: each column on the few that it is most correlated with.

Theta_jj = 1 / t_j^2 and Theta_ij = -b_ij / t_j^2 for x_j = sum_i b_ij x_i + noise of variance
t_j^2, over the neighbors i of j alone. No order of the columns is assumed, and no p x p matrix is
formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

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


def inverse_of(covariance: Array) -> Array | sp.csr_array | None:
    """Return the inverse of a positive definite matrix, None of another; sparse where it is so."""
    symmetric = np.add(covariance, covariance.T, order="F")
    factor, failed = la.lapack.dpotrf(symmetric, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    # Of twice the covariance; the other half stays 0. Rows of the transpose lie in one piece.
    half = la.lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
    half[np.diag_indices_from(half)] *= 0.5
    diagonal = half.diagonal()
    least = SETTINGS.rounding * np.sqrt(diagonal.max() * diagonal)
    at = np.nonzero(np.abs(half) > least[:, None])
    if at[0].size < SETTINGS.few_entries * half.size:  # products with it cost next to nothing
        half = sp.csr_array((half[at], at), shape=half.shape)
    found: Array | sp.csr_array = 2.0 * (half + half.T)
    return found


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
    # Half the digits: who is near does not hang on the others.
    rough = columns.astype(np.float32)
    found = np.empty((len(columns), count), dtype=np.int64)
    for first in range(0, len(columns), SETTINGS.columns_together):
        rows = slice(first, min(first + SETTINGS.columns_together, len(columns)))
        size = np.abs(rough[rows] @ rough.T)
        size[np.arange(rows.stop - first), np.arange(first, rows.stop)] = -1.0
        found[rows] = _largest(size, count)
    return found


def _largest(values: NDArray[np.float32], count: int) -> Columns:
    """Return the places of the largest of each row.

    They lie in as many pieces of a row at most: those with the largest maxima.
    """
    n_rows, n_columns = values.shape
    n_pieces = n_columns // SETTINGS.piece
    if n_pieces <= 2 * count:
        return np.argpartition(values, -count, axis=1)[:, -count:]
    starts = np.linspace(0, n_columns, n_pieces + 1).astype(np.int64)
    best = np.maximum.reduceat(values, starts[:-1], axis=1)
    pieces = np.argpartition(best, -count, axis=1)[:, -count:]
    width = int(np.diff(starts).max())
    places = starts[pieces][:, :, None] + np.arange(width)
    inside = places < starts[pieces + 1][:, :, None]
    places = np.minimum(places, n_columns - 1).reshape(n_rows, -1)
    some = np.take_along_axis(values, places, axis=1)
    some[~inside.reshape(n_rows, -1)] = -2.0
    at = np.argpartition(some, -count, axis=1)[:, -count:]
    return np.asarray(np.take_along_axis(places, at, axis=1))


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
    blocks = range(0, n_columns, SETTINGS.columns_together)
    # A share is known from some of the columns.
    looked_at = set(blocks[:: max(1, len(blocks) // SETTINGS.blocks_looked_at)])
    unexplained = n_looked_at = 0
    for first in blocks:
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
        if first not in looked_at:
            continue
        n_looked_at += stop - first
        least = SETTINGS.least_t * np.sqrt(np.maximum(np.sum(residuals**2, axis=1), 1e-300))
        far = np.abs(residuals.astype(np.float32) @ rough.T) > least[:, None].astype(np.float32)
        far[np.arange(stop - first), np.arange(first, stop)] = False
        unexplained += int(far.sum())
    half = sp.csr_array((data, graph.indices, graph.indptr), shape=graph.shape)
    matrix = 0.5 * (half + half.T) + sp.diags_array(1.0 / variances)
    return Precision(sp.csr_array(matrix), unexplained / max(n_looked_at * (n_columns - 1), 1))
