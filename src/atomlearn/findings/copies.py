"""Detection of duplicate and near-duplicate rows, which would leak between training and test rows.

Rows are compared before encoding and imputation: each string and each missing value counts as a
value. The key of a row is a vector of random linear combinations of its standardized columns. Rows
with equal keys are duplicates. Rows are near-duplicates if their distance is far smaller than those
to further neighbors. Let d_k be the distance to the k-th neighbor. Among independent rows in m
dimensions, k log(d_{k+1} / d_k) is exponential with mean 1 / m, for any density.

Rows with few columns, or few distinct values, coincide by chance. Therefore tables of independent
rows are simulated with the same columns. If they have a similar share of equal rows, the equal rows
of the data do not count as duplicates.

E. Facco, M. d'Errico, A. Rodriguez, A. Laio. Estimating the intrinsic dimension of datasets by a
minimal neighborhood information. Scientific Reports 7 (2017) 12140.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from atomlearn._support import TINY
from atomlearn.core import Array, Design, Rows, as_design, column_moments, dense_part
from atomlearn.findings.precision import connected_parts, standardized
from atomlearn.findings.ranking import MOST_DRAWN

#: Distance, relative to the median distance, below which rows may be near-duplicates: rows of one
#: subject with a tenth of the variance within the subject differ by 0.3.
NEAR = 0.35
#: ... and the distance in large tables, in which only neighbors along single keys are compared.
NEARER = 0.02
#: Number of neighbors that are compared: up to this number of rows of one subject are recognized.
MOST_ALIKE = 32
#: A gap between neighbors is significant if log(1 / p) exceeds log(n k) by at least this.
SURE = 4.0
#: ... and if d_{k+1} / d_k - 1 is at least this, because the density varies.
GAP = 0.25
#: If simulated tables have at least this share of the duplicates of the data, the duplicates are
#: chance.
BY_CHANCE = 0.25
#: Minimum number of columns for near-duplicates: points in a plane always have near neighbors.
LEAST_COLUMNS = 4
#: Number of random keys of each row, and the number in large tables.
SUMS = 32
FEW_SUMS = 8
#: Number of rows of which all distances are computed, and of columns of simulated tables.
MOST_ROWS = 3_000
MOST_COLUMNS = 256


def repeated_rows(X: Any) -> Rows | None:
    """Return cluster labels (n_rows,) shared by duplicate or near-duplicate rows; None if none.

    X may be anything that has rows: a design, an array with gaps, a table with words.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings.copies import repeated_rows
    >>> X = np.random.default_rng(0).standard_normal((8, 5))
    >>> X[0, 0] = np.nan
    >>> repeated_rows(X) is None
    True
    >>> found = repeated_rows(X[[0, 1, 2, 3, 4, 5, 6, 7, 0]])
    >>> np.flatnonzero(found == found[8])
    array([0, 8])
    """
    design = numbers_of_table(X)
    if not design.listable or min(design.shape) < 1 or design.shape[0] < 4:
        return None
    # Keys of all rows: random combinations of the columns in units of their standard deviations.
    rng = np.random.default_rng(1)
    deviations = column_moments(design)[1]
    varying = np.flatnonzero(deviations > 0)
    n_rows, n_columns = design.shape
    scale = np.divide(1.0, deviations, out=np.zeros(n_columns), where=deviations > 0)
    count = SUMS if n_rows * n_columns <= MOST_DRAWN else FEW_SUMS
    keys = _centered(design.product(rng.standard_normal((n_columns, count)) * scale[:, None]))
    if not varying.size or not np.ptp(keys, axis=0).all():
        return None
    sample = np.sort(rng.permutation(n_rows)[:MOST_ROWS])
    columns = np.sort(rng.permutation(varying)[:MOST_COLUMNS])
    # First exact duplicates, unless as many are expected by chance.
    exact = _exact_labels(keys)
    labels = np.arange(n_rows)
    if _share(exact):
        if _is_chance(design, sample, columns, _share(_exact_labels(keys[sample])), _exact_labels):
            return None
        labels = exact
    # Then near-duplicates among one row of each set of exact duplicates. Labels are 0, 1, ..., so
    # that ``firsts[label]`` is the first row with this label.
    firsts = np.unique(labels, return_index=True)[1]
    sampled_representatives = sample[np.isin(sample, firsts)]
    near_labels = (
        _near_labels(keys[firsts]) if varying.size >= LEAST_COLUMNS else np.arange(firsts.size)
    )
    if _share(near_labels) and not _is_chance(
        design,
        sampled_representatives,
        columns,
        _share(_near_labels(keys[sampled_representatives])),
        _near_labels,
    ):
        labels = near_labels[labels]
    return labels if _share(labels) else None


def joined(n_rows: int, *labels: Rows | None) -> Rows | None:
    """Return cluster labels (n_rows,) that join rows with an equal label in any of the arrays.

    labels : arrays (n_rows,) of any labels; None entries are ignored. None if all are None.
    """
    codes = [np.unique(values, return_inverse=True)[1] for values in labels if values is not None]
    if len(codes) < 2:
        return codes[0] if codes else None
    # A graph with one vertex per row and one per label; its connected components are the clusters.
    offsets = n_rows + np.cumsum([0, *(int(values.max()) + 1 for values in codes)])
    label_vertices = np.concatenate(
        [values + offset for values, offset in zip(codes, offsets, strict=False)]
    )
    return connected_parts(
        np.tile(np.arange(n_rows), len(codes)), label_vertices, int(offsets[-1])
    )[:n_rows]


def numbers_of_table(X: Any) -> Design:
    """Return X as a design; strings and missing values become numbers, equal for equal cells.

    A column of strings becomes three random coordinates per distinct string. Missing values become
    the mean, with an indicator column.
    """
    try:
        return as_design(X)
    except (TypeError, ValueError):
        table = np.asarray(X)
        # Neither strings nor gaps are the reason, if the table is complex or empty.
        if table.dtype.kind == "c" or not table.size:
            raise
    rng = np.random.default_rng(2)
    columns = list[Array]()
    for cells in table.reshape(len(table), -1).T:
        try:
            values = cells.astype(np.float64)
        except (TypeError, ValueError):  # strings: random points, none near another
            _, codes = np.unique(cells.astype(str), return_inverse=True)
            columns += [*rng.standard_normal((3, int(codes.max()) + 1))[:, codes]]
            continue
        is_missing = ~np.isfinite(values)
        observed = values[~is_missing]
        columns.append(np.where(is_missing, observed.mean() if observed.size else 0.0, values))
        columns += [is_missing.astype(np.float64)] if is_missing.any() else []
    return as_design(np.column_stack(columns))


def _centered(keys: Array) -> Array:
    """Return the keys minus their means over the rows."""
    return np.asarray(keys - keys.mean(axis=0))


def _share(labels: Rows) -> float:
    """Return the share of rows whose label occurs at least twice, for labels (n_rows,)."""
    return float(np.mean(np.bincount(labels)[labels] > 1))


def _exact_labels(keys: Array) -> Rows:
    """Return labels (n_rows,) that are equal for rows with equal keys (n_rows, n_keys).

    Two keys, rounded to six digits of the largest, are enough to distinguish rows.
    """
    rounded = np.round(keys[:, :2] / np.abs(keys[:, :2]).max(axis=0) / 1e-6)
    return np.unique(rounded, axis=0, return_inverse=True)[1].ravel()


def _near_labels(keys: Array) -> Rows:
    """Return labels (n_rows,) that are equal for rows connected by a chain of near-duplicates.

    keys : (n_rows, n_keys). In small tables all distances are computed, in large ones only those of
    neighbors along single keys.
    """
    rng = np.random.default_rng(3)
    n_rows = len(keys)
    if n_rows < 4:
        return np.arange(n_rows)
    # Distances are judged relative to the median distance in a sample of rows.
    sample = rng.permutation(n_rows)[:MOST_ROWS]
    median = float(np.median(cdist(keys[sample[:500]], keys[sample])))
    links = (
        _neighbors(keys, NEAR * median)
        if n_rows <= MOST_ROWS
        else _pairs_in_order(keys, NEARER * median)
    )
    return connected_parts(*links, n_rows)


def _neighbors(keys: Array, radius: float) -> tuple[Rows, Rows]:
    """Return pairs (row, neighbor), as two arrays, of rows whose neighbor is very near.

    keys : (n_rows, n_keys). A neighbor is very near if it is within ``radius`` and a significant
    gap of the distances separates it from further neighbors.
    """
    n_rows = len(keys)
    n_neighbors = max(1, min(MOST_ALIKE, n_rows // 4))
    # For each row its nearest neighbors and their distances, in increasing order.
    order, sorted_distances = np.empty((2, n_rows, n_neighbors + 1))
    for start in range(0, n_rows, 500):
        distances = cdist(keys[start : start + 500], keys)
        distances[np.arange(len(distances)), start + np.arange(len(distances))] = np.inf
        nearest = np.argpartition(distances, n_neighbors, axis=1)[:, : n_neighbors + 1]
        values = np.take_along_axis(distances, nearest, axis=1)
        sorting = np.argsort(values, axis=1)
        order[start : start + 500] = np.take_along_axis(nearest, sorting, axis=1)
        sorted_distances[start : start + 500] = np.take_along_axis(values, sorting, axis=1)
    # k log(d_{k+1} / d_k), and the dimension m from its medians: log(2) / m for an exponential.
    gaps = np.diff(np.log(np.maximum(sorted_distances, TINY)), axis=1)
    steps = gaps * np.arange(1, n_neighbors + 1)
    dimension = float(np.median(np.log(2) / np.maximum(np.median(steps, axis=0), 1e-9)))
    is_gap = steps * dimension > np.log(n_rows * n_neighbors) + SURE
    is_gap &= (sorted_distances[:, :-1] < radius) & (gaps > np.log1p(GAP))
    # The last significant gap of each row: all neighbors up to it are near.
    n_near = np.where(is_gap.any(axis=1), n_neighbors - np.argmax(is_gap[:, ::-1], axis=1), 0)
    is_near = np.arange(n_neighbors) < n_near[:, None]
    return np.nonzero(is_near)[0], order[:, :-1][is_near].astype(np.int64)


def _pairs_in_order(keys: Array, radius: float) -> tuple[Rows, Rows]:
    """Return pairs of rows within ``radius`` that are near in the order of a key.

    keys : (n_rows, n_keys). The result has two arrays, the first and the second row of each pair.
    """
    links = list[NDArray[np.int64]]()
    for sums in keys.T[:FEW_SUMS]:
        order = np.argsort(sums, kind="stable")
        # Both rows of a pair are at most 8 places apart.
        for step in range(1, 9):
            pairs = np.stack([order[:-step], order[step:]])
            distances = np.linalg.norm(keys[pairs[0]] - keys[pairs[1]], axis=1)
            links.append(pairs[:, distances < radius])
    rows, others = np.hstack(links)
    return rows, others


def _is_chance(design: Design, rows: Rows, columns: Rows, share: float, labels_of: Any) -> bool:
    """Return whether simulated tables of independent rows have a similar share of duplicates.

    rows, columns : the part of ``design`` that is simulated. share : the share of duplicates in the
    data. labels_of : function from keys to labels, ``_exact_labels`` or ``_near_labels``.
    """
    rng = np.random.default_rng(4)
    sampled_table = dense_part(design, columns)[rows]
    # Keys as in ``repeated_rows``: random combinations of the columns, each divided by its standard
    # deviation.
    weights = rng.standard_normal((columns.size, SUMS)) / standardized(sampled_table)[2][:, None]
    simulated_shares = [
        _share(labels_of(_centered(simulated(sampled_table, rng) @ weights)))
        for simulated in (surrogate, crossed)
    ]
    return max(simulated_shares) >= BY_CHANCE * max(share, 1e-9)


def surrogate(block: Array, rng: np.random.Generator) -> Array:
    """Return simulated independent rows with the margins and correlations of the columns.

    block : (n, m) some rows and columns of the data; the result has the same shape. Rows are drawn
    from the normal distribution with the covariance of the columns. Then the values of each column
    are replaced by those of the data, in the same order of ranks. ``rng`` is the random generator.
    """
    normal = rng.standard_normal((len(block), len(block))) @ standardized(block)[0]
    order = np.argsort(np.argsort(normal, axis=0), axis=0)
    return np.take_along_axis(np.sort(block, axis=0), order, axis=0)


def crossed(block: Array, rng: np.random.Generator) -> Array:
    """Return rows made of four groups of columns, each taken from a different row.

    block : (n, m) some rows and columns of the data; the result has the same shape. The groups end
    where adjacent columns have the smallest correlation, so that indicators of a category and
    powers of a variable mostly stay together. ``rng`` is the random generator.
    """
    mixed = np.empty_like(block)
    n_rows, n_columns = block.shape
    scaled = standardized(block)[0]
    correlations = np.abs(np.mean(scaled[:, 1:] * scaled[:, :-1], axis=0))
    cuts = np.sort(np.argsort(correlations, kind="stable")[:3]) + 1
    for columns in np.split(np.arange(n_columns), cuts):
        mixed[:, columns] = block[rng.permutation(n_rows)][:, columns]
    return mixed
