"""Held-out rows that are training rows too, or nearly: of these a model knows the answer.

Rows are compared by random sums over their standardized columns. Rows of few columns, or of few
values, meet by chance; so a surrogate table is drawn, of as many rows with the same values a column
and the same correlations, but independent. Where it has as many such rows, they are no copies.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from atomlearn.core.data.parts import dense_part
from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Array, Design, Mask, Rows
from atomlearn.findings.precision import standardized
from atomlearn.findings.ranking import MOST_DRAWN

#: Distance, over the median one, below which rows are nearly the same, which tells subjects where
#: this share of the held-out rows is: honest tables (USPS, tumors, heart patients) have up to 0.15.
NEAR_COPY = 0.2
#: Share of such rows by chance, of those there are, from which on they are no copies.
BY_CHANCE = 0.25
#: Random sums a row is compared by, ...
SUMS = 32
#: ... and rows and columns of what is compared beyond rows that are the same.
MOST_ROWS = 2_000
MOST_COLUMNS = 256


def known_already(design: Design, train: Rows, test: Rows) -> Mask:
    """Return which held-out rows are, or nearly are, training rows, and not by chance.

    ``benchmarks/tuning/copies.py`` shows on which tables that is told, and on which it is not.
    """
    (n_rows, n_columns), rows = design.shape, (train, test)
    none = np.zeros(test.size, dtype=bool)
    if not (design.listable and train.size and test.size):
        return none
    few = n_rows <= MOST_ROWS and n_rows * n_columns <= MOST_DRAWN
    deviations = column_moments(design)[1]
    scale = np.divide(1.0, deviations, out=np.zeros(n_columns), where=deviations > 0)
    rng = np.random.default_rng(1)
    sums = [
        design.predict(rng.standard_normal(n_columns) * scale) for _ in range(SUMS if few else 2)
    ]
    keys = np.array(sums)
    same = _same(keys, *rows)
    near = _near(keys, *rows) if few else none
    near = near if near.mean() > NEAR_COPY else none
    if not (same | near).any():
        return none
    some = [rng.permutation(of)[: MOST_ROWS * of.size // n_rows + 1] for of in rows]
    columns = np.sort(rng.permutation(np.flatnonzero(scale))[:MOST_COLUMNS])
    block = dense_part(design, columns)[np.concatenate(some)]
    by_chance = _keys_by_chance(block, rng)
    places = np.split(np.arange(len(block)), [some[0].size])
    for found, alike in ((same, _same), (near, _near)):
        if found.any():
            chance = max(float(alike(other, *places).mean()) for other in by_chance)
            found[:] &= chance < BY_CHANCE * max(float(alike(keys, *some).mean()), 1e-9)
    return same | _near(keys, *rows, 2.0) if near.any() else same


def _same(keys: Array, train: Rows, test: Rows) -> Mask:
    """Return which rows of ``test`` are rows of ``train``, or of ``test`` before them."""
    size = np.abs(keys[:2]).max(axis=1, keepdims=True, initial=0.0)
    if not size.all():
        return np.zeros(test.size, dtype=bool)
    rounded = np.round(keys[:2, np.concatenate([train, test])] / size / 1e-6)
    _, first, of = np.unique(rounded, axis=1, return_index=True, return_inverse=True)
    return np.asarray(first[of.ravel()] < np.arange(of.size))[train.size :]


def _near(keys: Array, train: Rows, test: Rows, wider: float = 1.0) -> Mask:
    """Return which rows of ``test`` are near one of ``train``, or of ``test`` before them."""
    rows = np.concatenate([train, test])
    distances = cdist(keys[:, test].T, keys[:, rows].T)
    least = wider * NEAR_COPY * np.median(distances[:, : train.size])
    distances[np.arange(rows.size) >= train.size + np.arange(test.size)[:, None]] = np.inf
    return np.asarray(distances.min(axis=1) < least)


def _keys_by_chance(block: Array, rng: np.random.Generator) -> list[Array]:
    """Return the sums over rows of tables that are as this one, but of independent rows."""
    weights = rng.standard_normal((block.shape[1], SUMS)) / standardized(block)[2][:, None]
    return [(table(block, rng) @ weights).T for table in (surrogate, crossed)]


def surrogate(block: Array, rng: np.random.Generator) -> Array:
    """Return independent rows with the values of each column, and correlations as between them.

    Normal numbers with the covariance of the columns give the order; the values of a column are
    put into it.
    """
    normal = rng.standard_normal((len(block), len(block))) @ standardized(block)[0]
    order = np.argsort(np.argsort(normal, axis=0), axis=0)
    return np.take_along_axis(np.sort(block, axis=0), order, axis=0)


def crossed(block: Array, rng: np.random.Generator) -> Array:
    """Return rows of four pieces, each of a row of its own.

    Pieces end where neighbors are least correlated: categories and powers mostly stay together.
    """
    found, (n_rows, n_columns) = np.empty_like(block), block.shape
    scaled = standardized(block)[0]
    alike = np.abs(np.mean(scaled[:, 1:] * scaled[:, :-1], axis=0))
    cuts = np.sort(np.argsort(alike, kind="stable")[:3]) + 1
    for piece in np.split(np.arange(n_columns), cuts):
        found[:, piece] = block[rng.permutation(n_rows)][:, piece]
    return found
