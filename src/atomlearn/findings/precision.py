"""Sparse precision matrix by regressing each column on its most correlated columns.

Theta_jj = 1 / t_j^2 and Theta_ij = -b_ij / t_j^2 for x_j = sum_i b_ij x_i + noise of variance
t_j^2, over only the neighbors i of j. No order of the columns is assumed, and no p x p matrix is
formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.utils import gen_batches

from atomlearn.core import Array, Columns, Groups, named_columns

#: Number of columns on which each column is regressed: those most correlated with it.
N_NEIGHBORS = 8
#: Minimum absolute t-statistic of a neighbor that is kept.
LEAST_T = 4.0
#: Share of pairs beyond ``LEAST_T`` that shows that few neighbors do not explain a column; without
#: dependence 6e-5 of them are.
MOST_UNEXPLAINED = 1e-3
#: Number of columns per batch, so that the working set fits in the cache of a laptop.
TOGETHER = 512
#: Correlation beyond which columns are near-duplicates.
NEAR = 0.95


def inverse_of(covariance: Array) -> Array:
    """Return the inverse of a positive definite ``covariance`` (p, p).

    Raises ValueError if it is not positive definite.
    """
    try:
        factor = la.cho_factor(covariance)
    except la.LinAlgError as error:
        raise ValueError(
            "covariance must be positive definite; add a small ridge to its diagonal, or let it be "
            'estimated: covariance="auto"'
        ) from error
    return np.asarray(la.cho_solve(factor, np.eye(len(covariance))))


def scaled_by(matrix: Any, root: Array) -> Any:
    """Return diag(root) M diag(root), for a dense or sparse ``matrix`` M (p, p) and root (p,)."""
    scaling = sp.diags_array(root)
    return scaling @ matrix @ scaling


def shrunk(matrix: Any, shift: float) -> Any:
    """Return (M + shift I) / (1 + shift), a matrix M shrunk towards the identity."""
    return (matrix + shift * sp.eye_array(matrix.shape[0])) / (1 + shift)


def sparse_precision(X: Array) -> tuple[Any, bool]:
    """Return the precision matrix of X (n, p), sparse (p, p), and whether it is adequate.

    X has standardized columns. The matrix is adequate if few neighbors per column explain the
    correlations: hardly any pair of a residual and another column is correlated by more than
    chance.
    """
    n_rows, n_columns = X.shape
    count = min(N_NEIGHBORS, n_columns - 1, max((n_rows - 2) // 2, 0))
    if count == 0:
        return sp.csr_array(sp.eye_array(n_columns)), True
    columns = np.ascontiguousarray(X.T)
    edges = _edges(columns, count)
    # The graph is symmetric: i and j are neighbors if either regression finds the other column.
    return _refitted(columns, sp.csr_array((edges + edges.T) > 0))


def _edges(columns: Array, count: int) -> sp.csr_array:
    """Return a sparse (p, p) matrix with a 1 for each pair (j, neighbor) that is related.

    columns : (p, n) standardized. Each column j is regressed on the ``count`` columns with the
    largest correlation with it. Those with a large t-statistic are its neighbors.
    """
    n_columns, n_rows = columns.shape
    sources = []
    targets = []
    # Single precision suffices to rank the correlations.
    single_precision = columns.astype(np.float32)
    for rows in gen_batches(n_columns, TOGETHER):
        absolute_correlations = np.abs(single_precision[rows] @ single_precision.T)
        numbers = np.arange(rows.start, rows.stop)
        absolute_correlations[np.arange(numbers.size), numbers] = -1.0
        neighbors = np.argpartition(absolute_correlations, -count, axis=1)[:, -count:]
        _, gram, correlations = _moments(columns, numbers, neighbors, 1e-10)
        # Slopes, residual variances and sqrt(n) times the standard errors of all regressions of the
        # batch.
        inverse = np.linalg.inv(gram)
        slopes = (inverse @ correlations)[:, :, 0]
        variance = np.maximum(1.0 - np.sum(slopes * correlations[:, :, 0], axis=1), 1e-8)
        errors = np.sqrt(np.maximum(np.einsum("jkk->jk", inverse), 0.0) * variance[:, None])
        is_large = np.abs(slopes) > LEAST_T * errors / np.sqrt(max(n_rows - count - 1, 1))
        sources.append(np.repeat(numbers, is_large.sum(axis=1)))
        targets.append(neighbors[is_large])
    pairs = np.concatenate(sources), np.concatenate(targets)
    return sp.csr_array((np.ones(pairs[0].size), pairs), shape=(n_columns, n_columns))


def _moments(
    columns: Array, indices: Columns, neighbors: Columns, ridge: float
) -> tuple[Array, Array, Array]:
    """Return neighbors (m, k, n), their Gram matrices (m, k, k), and cross-moments (m, k, 1).

    columns : (p, n) standardized. indices : (m,) column indices. neighbors : (m, k) indices of the
    neighbors of each. ridge : a number that is added to the diagonals of the Gram matrices. The
    cross-moments are the correlations of neighbors with their column.
    """
    neighbor_columns = columns[neighbors]
    n_rows = columns.shape[1]
    gram = neighbor_columns @ neighbor_columns.transpose(0, 2, 1) / n_rows + ridge * np.eye(
        neighbors.shape[1]
    )
    return neighbor_columns, gram, neighbor_columns @ columns[indices][:, :, None] / n_rows


def _refitted(columns: Array, graph: sp.csr_array) -> tuple[Any, bool]:
    """Return the precision matrix with the sparsity of ``graph`` (p, p); and if it is adequate.

    Each column is regressed on its neighbors; the matrix is symmetrized by averaging (i, j) and (j,
    i). It is adequate if hardly any residual is correlated with a column by more than chance.
    ``columns`` are the standardized columns (p, n).
    """
    n_columns, n_rows = columns.shape
    data = np.empty(graph.nnz)
    variances = np.ones(n_columns)
    # Single precision suffices to find large products.
    single_precision = columns.astype(np.float32)
    n_neighbors = np.diff(graph.indptr)
    n_unexplained = 0
    for rows in gen_batches(n_columns, TOGETHER):
        residuals = columns[rows].copy()
        # Columns with the same number of neighbors are regressed together.
        for count in np.unique(n_neighbors[rows]):
            same_count = np.flatnonzero(n_neighbors[rows] == count)
            indices = rows.start + same_count
            positions = graph.indptr[indices][:, None] + np.arange(count)
            neighbor_columns, gram, correlations = _moments(
                columns, indices, graph.indices[positions], 1e-6
            )
            slopes = np.linalg.solve(gram, correlations)[:, :, 0]
            remainder = residuals[same_count] - np.einsum("jk,jkn->jn", slopes, neighbor_columns)
            residuals[same_count] = remainder
            squares = np.sum(remainder**2, axis=1)
            variances[indices] = np.maximum(squares / max(n_rows - count, 1), 1e-6)
            data[positions] = -slopes / variances[indices][:, None]
        # Count the pairs of a residual and another column whose product is beyond chance.
        least_product = LEAST_T * np.sqrt(np.maximum(np.sum(residuals**2, axis=1), 1e-300))
        is_related = np.abs(residuals.astype(np.float32) @ single_precision.T) > least_product[
            :, None
        ].astype(np.float32)
        is_related[np.arange(len(is_related)), np.arange(rows.start, rows.stop)] = False
        n_unexplained += int(is_related.sum())
    one_sided = sp.csr_array((data, graph.indices, graph.indptr), shape=graph.shape)
    matrix = 0.5 * (one_sided + one_sided.T) + sp.diags_array(1.0 / variances)
    return sp.csr_array(matrix), n_unexplained <= MOST_UNEXPLAINED * n_columns * (n_columns - 1)


def near_duplicates(X: Array) -> Columns:
    """Return cluster labels (p,) by complete linkage: all correlations in a cluster exceed 0.95.

    X : (n, p) standardized columns; correlations count by their absolute values.
    """
    n_rows, n_columns = X.shape
    # Clusters are within connected components of the graph of large correlations.
    batches = gen_batches(n_columns, TOGETHER)
    single_precision = X.astype(np.float32)
    is_correlated = sp.vstack(
        [
            sp.csr_array(np.abs(single_precision[:, batch].T @ single_precision) > NEAR * n_rows)
            for batch in batches
        ]
    )
    components = connected_components(is_correlated)[1].astype(np.int64)
    labels = np.zeros(n_columns, dtype=np.int64)
    n_clusters = 0
    for columns in members_of(components):
        clusters = np.ones(1, dtype=np.int64)
        if columns.size > 1:
            # The distance 1 - |correlation|. That of equal columns may be negative by rounding.
            distances = np.maximum(1.0 - np.abs(X[:, columns].T @ X[:, columns]) / n_rows, 0.0)
            tree = linkage(squareform(distances, checks=False), "complete")
            clusters = fcluster(tree, 1.0 - NEAR, "distance").astype(np.int64)
        # ``fcluster`` counts from 1 within each component.
        labels[columns] = n_clusters + clusters - 1
        n_clusters += int(clusters.max())
    return labels


def connected_parts(rows: Columns, others: Columns, count: int) -> Columns:
    """Return the label (count,) of the connected component of each of ``count`` vertices.

    rows, others : (m,) both ends of the m edges.
    """
    links = sp.coo_array((np.ones(rows.size), (rows, others)), shape=(count, count))
    return connected_components(links, directed=False)[1].astype(np.int64)


def members_of(labels: Columns) -> list[Columns]:
    """Return the indices with each label 0, 1, ..., as a list of arrays; ``labels`` is (n,)."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def columns_named(columns: Any, names: Sequence[str] | None, n_columns: int) -> Columns:
    """Return columns as increasing indices, given by index or name, one or several.

    names : the names of all columns, None if they have none. n_columns : their number.
    """
    listed = [columns] if np.ndim(columns) == 0 else list(columns)
    numbers = np.unique(np.asarray(named_columns(listed, names, "columns"), dtype=np.int64))
    if not numbers.size or numbers[0] < 0 or numbers[-1] >= n_columns:
        raise ValueError(f"columns: {columns!r} is not among the {n_columns} columns of X")
    return numbers


def labels_of(groups: Any, n_columns: int, names: Sequence[str] | None = None) -> Columns:
    """Return the group label of each column, (n_columns,).

    groups : lists of columns or their names, or labels. names : the names of all columns, or None.
    """
    norm: Any = Groups(groups)
    norm = (norm if names is None else norm.with_names(names)).on(n_columns)
    return np.asarray(norm.parts(n_columns)[0].labels)


def grouped(
    X: Array, groups: Any, names: Sequence[str] | None
) -> tuple[Array, Array, Array, Columns | None]:
    """Return standardized columns, their means and scales, and the group of each column.

    X : (n, p). names : the names of the columns, or None. groups : lists of columns, or labels. If
    it is "auto", the result has one column per cluster of near-duplicates, their mean; the labels
    (p,) are those of the clusters. If it is None, there are no labels, and a warning reports
    near-duplicates.
    """
    standard, means, scales = standardized(X)
    if groups is None:
        _warn_of_duplicates(standard)
        return standard, means, scales, None
    if isinstance(groups, str) and groups == "auto":
        labels = near_duplicates(standard)
        return *standardized(means_of(standard, labels)), labels
    return standard, means, scales, labels_of(groups, X.shape[1], names)


def standardized(X: Array) -> tuple[Array, Array, Array]:
    """Return the columns of X (n, p) with mean 0 and variance 1, their means and scales.

    Constant columns become 0, with scale 1.
    """
    # Scaled by powers of two, so that squares neither overflow nor underflow.
    _, powers = np.frexp(np.abs(X).max(axis=0, initial=0.0))
    scaled = np.ldexp(X, -powers)
    means = scaled.mean(axis=0)
    centered = scaled - means
    scales = np.sqrt(np.mean(centered**2, axis=0))
    is_constant = scales <= 1e-12 * np.abs(scaled).max(axis=0, initial=0.0)
    centered[:, is_constant] = 0.0
    standard = np.asarray(centered / np.where(is_constant, 1.0, scales))
    return standard, np.ldexp(means, powers), np.where(is_constant, 1.0, np.ldexp(scales, powers))


def _warn_of_duplicates(X: Array) -> None:
    """Warn how many of the standardized columns X (n, p) are near-duplicates, with remedies."""
    counts = np.bincount(near_duplicates(X))
    is_cluster = counts > 1
    if is_cluster.any():
        warnings.warn(
            f"{counts[is_cluster].sum():,} columns are in {is_cluster.sum():,} clusters whose "
            "columns are all correlated by more than 0.95, so single columns can hardly be "
            'distinguished or selected; groups="auto" tests each of these clusters as one feature',
            UserWarning,
            stacklevel=4,
        )


def means_of(X: Array, labels: Columns) -> Array:
    """Return the mean (n, q) of the columns with each of q labels, with signs aligned.

    X : (n, p). labels : (p,) from 0 to q - 1. A column that correlates negatively with the first
    column of its label enters the mean with a minus sign.
    """
    _, first_columns = np.unique(labels, return_index=True)
    signs = np.where(np.einsum("ij,ij->j", X, X[:, first_columns[labels]]) < 0, -1.0, 1.0)
    columns = np.arange(labels.size)
    return np.asarray(X @ sp.csr_array((signs / np.bincount(labels)[labels], (columns, labels))))


def independent(X: Array, labels: Columns) -> tuple[sp.csr_array | None, Columns]:
    """Return the matrix that whitens the columns of each linearly dependent group.

    X : (n, p) standardized. labels : (p,) groups. The k indicators of a category sum to one, so
    that no knockoff could differ from its column. They become k - 1 columns of variance one that
    span the same space. Returns the matrix (p, q) by which X is multiplied, None if no group is
    linearly dependent, and the group labels of the q columns.
    """
    blocks = list[Array]()
    rows = list[Columns]()
    labels_of_blocks = list[Columns]()
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        whitening = np.eye(members.size)
        if 1 < members.size < len(X):
            # Whitening by the eigenvectors of the group that have a nonzero eigenvalue.
            eigenvalues, vectors = np.linalg.eigh(X[:, members].T @ X[:, members] / len(X))
            is_nonzero = eigenvalues > 1e-8 * eigenvalues[-1]
            if is_nonzero.any() and not is_nonzero.all():
                whitening = vectors[:, is_nonzero] / np.sqrt(eigenvalues[is_nonzero])
        blocks.append(whitening)
        rows.append(members)
        labels_of_blocks.append(np.full(whitening.shape[1], label))
    new_labels = np.concatenate(labels_of_blocks)
    if new_labels.size == labels.size:
        return None, labels
    # The rows of the block-diagonal matrix are in the order of the groups; sort them back.
    return sp.csr_array(sp.block_diag(blocks, "csr")[np.argsort(np.concatenate(rows))]), new_labels
