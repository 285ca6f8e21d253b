"""Detection of duplicate and near-duplicate rows, which would leak between training and test rows.

Rows are compared as they were given, before anything is encoded or filled in: words and gaps count
as values. Each row is identified by random sums over its standardized columns. Rows with the same
sums are the same. Rows are nearly the same if the nearest few are far closer than the next ones:
among independent rows of a table with m dimensions, k log(d_{k+1} / d_k) of the distances d_k to
the k-th neighbor is exponential with mean 1 / m, whatever their density.

Rows of few columns, or of few values, meet by chance; so tables are drawn with the same number of
rows and the same columns, but independent rows. If these contain the same number of such rows, they
are no copies.

E. Facco, M. d'Errico, A. Rodriguez, A. Laio. Estimating the intrinsic dimension of datasets by a
minimal neighborhood information. Scientific Reports 7 (2017) 12140.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from atomlearn.core import TINY, Array, Design, Rows, as_design, column_moments, dense_part
from atomlearn.findings.precision import connected_parts, standardized
from atomlearn.findings.ranking import MOST_DRAWN

#: Distance, over the median one, up to which rows may be nearly the same: those of one subject with
#: a tenth of the variance for each row differ by 0.3.
NEAR = 0.35
#: ... and in large tables, where only neighbors along single sums are looked at.
NEARER = 0.02
#: Neighbors that are compared: the number of rows of one subject that are recognized.
MOST_ALIKE = 32
#: The logarithm of 1 / p from which on a gap between neighbors is none by chance, above log(n k).
SURE = 4.0
#: ... and the minimum of that gap: d_{k+1} / d_k - 1, for density differs from place to place.
GAP = 0.25
#: Share of such rows by chance, of those there are, from which on they are no copies.
BY_CHANCE = 0.25
#: Columns from which on rows can be nearly the same: points of a plane always are.
LEAST_COLUMNS = 4
#: Random sums by which each row is compared, and those of large data.
SUMS = 32
FEW_SUMS = 8
#: Rows whose distances are all computed, and columns of the tables that are drawn.
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
    rng = np.random.default_rng(1)
    deviations = column_moments(design)[1]
    used = np.flatnonzero(deviations > 0)
    n_rows, n_columns = design.shape
    scale = np.divide(1.0, deviations, out=np.zeros(n_columns), where=deviations > 0)
    count = SUMS if n_rows * n_columns <= MOST_DRAWN else FEW_SUMS
    keys = _centered(design.product(rng.standard_normal((n_columns, count)) * scale[:, None]))
    if not used.size or not np.ptp(keys, axis=0).all():
        return None
    some = np.sort(rng.permutation(n_rows)[:MOST_ROWS])
    columns = np.sort(rng.permutation(used)[:MOST_COLUMNS])
    same = _same(keys)
    found = np.arange(n_rows)
    if _share(same):
        if _by_chance(design, some, columns, _share(_same(keys[some])), _same):
            return None
        found = same
    first = np.unique(found, return_index=True)[1]
    few = some[np.isin(some, first)]
    near = _near(keys[first]) if used.size >= LEAST_COLUMNS else np.arange(first.size)
    if _share(near) and not _by_chance(design, few, columns, _share(_near(keys[few])), _near):
        found = near[found]
    return found if _share(found) else None


def joined(n_rows: int, *labels: Rows | None) -> Rows | None:
    """Return a number for each row, shared by rows that one of these labels joins; or None."""
    given = [np.unique(values, return_inverse=True)[1] for values in labels if values is not None]
    if len(given) < 2:
        return given[0] if given else None
    starts = n_rows + np.cumsum([0, *(int(values.max()) + 1 for values in given)])
    to = np.concatenate([values + start for values, start in zip(given, starts, strict=False)])
    return connected_parts(np.tile(np.arange(n_rows), len(given)), to, int(starts[-1]))[:n_rows]


def numbers_of_table(X: Any) -> Design:
    """Return X as a design, its words and gaps as numbers that are the same for the same cell."""
    try:
        return as_design(X)
    except (TypeError, ValueError):
        table = np.asarray(X)
        if table.dtype.kind == "c" or not table.size:  # no words and no gaps: no table at all
            raise
    rng = np.random.default_rng(2)
    columns = list[Array]()
    for cells in table.reshape(len(table), -1).T:
        try:
            values = cells.astype(np.float64)
        except (TypeError, ValueError):  # a word: levels are points in space, none near another
            _, level = np.unique(cells.astype(str), return_inverse=True)
            columns += [*rng.standard_normal((3, int(level.max()) + 1))[:, level]]
            continue
        gaps = ~np.isfinite(values)
        known = values[~gaps]
        columns.append(np.where(gaps, known.mean() if known.size else 0.0, values))
        columns += [gaps.astype(np.float64)] if gaps.any() else []
    return as_design(np.column_stack(columns))


def _centered(keys: Array) -> Array:
    return np.asarray(keys - keys.mean(axis=0))


def _share(labels: Rows) -> float:
    """Return the share of rows that have a number in common with another row."""
    return float(np.mean(np.bincount(labels)[labels] > 1))


def _same(keys: Array) -> Rows:
    """Return a number for each row, the same for rows whose sums are the same."""
    rounded = np.round(keys[:, :2] / np.abs(keys[:, :2]).max(axis=0) / 1e-6)
    return np.unique(rounded, axis=0, return_inverse=True)[1].ravel()


def _near(keys: Array) -> Rows:
    """Return a number for each row, the same for rows that are nearly the same."""
    rng = np.random.default_rng(3)
    n_rows = len(keys)
    if n_rows < 4:
        return np.arange(n_rows)
    some = rng.permutation(n_rows)[:MOST_ROWS]
    median = float(np.median(cdist(keys[some[:500]], keys[some])))
    links = (
        _neighbors(keys, NEAR * median) if n_rows <= MOST_ROWS else _along(keys, NEARER * median)
    )
    return connected_parts(*links, n_rows)


def _neighbors(keys: Array, radius: float) -> tuple[Rows, Rows]:
    """Return edges of each row to its nearest neighbors, if a gap separates them from the rest."""
    n_rows = len(keys)
    most = max(1, min(MOST_ALIKE, n_rows // 4))
    order, near = np.empty((2, n_rows, most + 1))
    for start in range(0, n_rows, 500):
        apart = cdist(keys[start : start + 500], keys)
        apart[np.arange(len(apart)), start + np.arange(len(apart))] = np.inf
        part = np.argpartition(apart, most, axis=1)[:, : most + 1]
        values = np.take_along_axis(apart, part, axis=1)
        by = np.argsort(values, axis=1)
        order[start : start + 500] = np.take_along_axis(part, by, axis=1)
        near[start : start + 500] = np.take_along_axis(values, by, axis=1)
    gaps = np.diff(np.log(np.maximum(near, TINY)), axis=1)
    steps = gaps * np.arange(1, most + 1)
    dimension = float(np.median(np.log(2) / np.maximum(np.median(steps, axis=0), 1e-9)))
    apart = steps * dimension > np.log(n_rows * most) + SURE
    apart &= (near[:, :-1] < radius) & (gaps > np.log1p(GAP))
    count = np.where(apart.any(axis=1), most - np.argmax(apart[:, ::-1], axis=1), 0)
    linked = np.arange(most) < count[:, None]
    return np.nonzero(linked)[0], order[:, :-1][linked].astype(np.int64)


def _along(keys: Array, radius: float, reach: int = 8) -> tuple[Rows, Rows]:
    """Return links of rows that are next to each other along one of the sums, and that near."""
    links = list[NDArray[np.int64]]()
    for sums in keys.T[:FEW_SUMS]:
        order = np.argsort(sums, kind="stable")
        for step in range(1, reach + 1):
            pairs = np.stack([order[:-step], order[step:]])
            apart = np.linalg.norm(keys[pairs[0]] - keys[pairs[1]], axis=1)
            links.append(pairs[:, apart < radius])
    rows, others = np.hstack(links)
    return rows, others


def _by_chance(design: Design, rows: Rows, columns: Rows, share: float, alike: Any) -> bool:
    """Return whether simulated tables of independent rows have a similar share of such rows."""
    rng = np.random.default_rng(4)
    block = dense_part(design, columns)[rows]
    weights = rng.standard_normal((columns.size, SUMS)) / standardized(block)[2][:, None]
    chance = [
        _share(alike(_centered(table(block, rng) @ weights))) for table in (surrogate, crossed)
    ]
    return max(chance) >= BY_CHANCE * max(share, 1e-9)


def surrogate(block: Array, rng: np.random.Generator) -> Array:
    """Return independent rows with the values of each column, and correlations as between them.

    Normal numbers with the covariance of the columns give the order; the values of a column are
    put into it.
    """
    normal = rng.standard_normal((len(block), len(block))) @ standardized(block)[0]
    order = np.argsort(np.argsort(normal, axis=0), axis=0)
    return np.take_along_axis(np.sort(block, axis=0), order, axis=0)


def crossed(block: Array, rng: np.random.Generator) -> Array:
    """Return rows of four pieces, each from a different row.

    Pieces end at the smallest correlation between neighbors: categories and powers mostly stay
    together.
    """
    found = np.empty_like(block)
    (n_rows, n_columns) = block.shape
    scaled = standardized(block)[0]
    alike = np.abs(np.mean(scaled[:, 1:] * scaled[:, :-1], axis=0))
    cuts = np.sort(np.argsort(alike, kind="stable")[:3]) + 1
    for piece in np.split(np.arange(n_columns), cuts):
        found[:, piece] = block[rng.permutation(n_rows)][:, piece]
    return found
