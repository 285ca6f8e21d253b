"""Held-out rows that are training rows too, or nearly: of these a model knows the answer.

Rows are compared by random sums over their standardized columns. Rows of few columns, or of few
values, meet by chance; so a surrogate table is drawn, of as many rows with the same values a column
and the same correlations, but independent. Where it has as many such rows, they are no copies.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Array, Design, Mask, Rows
from atomlearn.findings.settings import SETTINGS


def known_already(design: Design, train: Rows, test: Rows) -> Mask:
    """Return which held-out rows are, or nearly are, training rows, and not by chance.

    ``benchmarks/tuning/copies.py`` shows on which tables that is told, and on which it is not.
    """
    none = np.zeros(test.size, dtype=bool)
    n_rows, n_columns = design.shape
    comparable = design.listable and n_columns <= SETTINGS.most_compared_columns
    if not (comparable and train.size and test.size):
        return none
    few = n_rows <= SETTINGS.most_compared_rows and n_rows * n_columns <= SETTINGS.most_drawn
    deviations = column_moments(design)[1]
    scale = np.divide(1.0, deviations, out=np.zeros(n_columns), where=deviations > 0)
    rng = np.random.default_rng(1)
    keys = np.array([design.predict(rng.standard_normal(n_columns) * scale)
                     for _ in range(SETTINGS.sums_of_rows if few else 2)])  # fmt: skip
    same = _same(keys, train, test)
    near = _near(keys, train, test) if few else none
    if near.mean() <= SETTINGS.many_copies:
        near = none
    doubtful = [(found, alike) for found, alike in ((same, _same), (near, _near))
                if found.mean() > SETTINGS.few_copies]  # fmt: skip
    if doubtful:
        some = [rng.permutation(rows)[: SETTINGS.surrogate_rows * rows.size // n_rows + 1]
                for rows in (train, test)]  # fmt: skip
        columns = np.sort(rng.permutation(np.flatnonzero(scale))[: SETTINGS.surrogate_columns])
        block = np.asarray(design.gather(columns).dense(), dtype=np.float64)
        by_chance = _keys_by_chance(block[np.concatenate(some)], rng)
    for found, alike in doubtful:
        rows = np.split(np.arange(len(by_chance[0][0])), [some[0].size])
        chance = max(float(alike(other, *rows).mean()) for other in by_chance)
        found[:] &= chance < SETTINGS.by_chance * max(float(alike(keys, *some).mean()), 1e-9)
    return same | _near(keys, train, test, SETTINGS.many_near) if near.any() else same


def _same(keys: Array, train: Rows, test: Rows) -> Mask:
    """Return which rows of ``test`` are rows of ``train``, or of ``test`` before them."""
    size = np.abs(keys[:2]).max(axis=1, keepdims=True, initial=0.0)
    if not size.all():
        return np.zeros(test.size, dtype=bool)
    rounded = np.round(keys[:2] / size / 1e-6).astype(np.int64)
    seen = set(map(tuple, rounded[:, train].T.tolist()))
    found = np.zeros(test.size, dtype=bool)
    for place, key in enumerate(map(tuple, rounded[:, test].T.tolist())):
        found[place] = key in seen
        seen.add(key)
    return found


def _near(keys: Array, train: Rows, test: Rows, near: float | None = None) -> Mask:
    """Return which rows of ``test`` are near one of ``train``, or of ``test`` before them."""
    rows = np.concatenate([train, test])
    distances = cdist(keys[:, test].T, keys[:, rows].T)
    near = SETTINGS.near_copy if near is None else near
    least = near * np.median(distances[:, : train.size])
    distances[np.arange(rows.size) >= train.size + np.arange(test.size)[:, None]] = np.inf
    return np.asarray(distances.min(axis=1) < least)


def _keys_by_chance(block: Array, rng: np.random.Generator) -> list[Array]:
    """Return the sums over rows of tables that are as this one, but of independent rows."""
    scales = block.std(axis=0)
    weights = rng.standard_normal((block.shape[1], SETTINGS.sums_of_rows))
    weights /= np.where(scales > 0, scales, 1.0)[:, None]
    return [(table(block, rng) @ weights).T for table in (surrogate, crossed, crossed, crossed)]


def surrogate(block: Array, rng: np.random.Generator) -> Array:
    """Return independent rows with the values of each column, and correlations as between them.

    Normal numbers with the covariance of the columns give the order; the values of a column are
    put into it.
    """
    centered = block - block.mean(axis=0)
    scales = centered.std(axis=0)
    centered /= np.where(scales > 0, scales, 1.0)
    normal = rng.standard_normal((len(block), len(block))) @ centered
    order = np.argsort(np.argsort(normal, axis=0), axis=0)
    return np.asarray(np.take_along_axis(np.sort(block, axis=0), order, axis=0))


def crossed(block: Array, rng: np.random.Generator) -> Array:
    """Return rows of a few pieces, each of a row of its own.

    Pieces end where neighbors are least correlated: categories and powers mostly stay together.
    """
    found, (n_rows, n_columns) = np.empty_like(block), block.shape
    scaled = (block - block.mean(axis=0)) / np.maximum(block.std(axis=0), 1e-300)
    alike = np.abs(np.mean(scaled[:, 1:] * scaled[:, :-1], axis=0))
    cuts = np.sort(np.argsort(alike, kind="stable")[: SETTINGS.pieces - 1]) + 1
    for piece in np.split(np.arange(n_columns), cuts):
        found[:, piece] = block[rng.permutation(n_rows)][:, piece]
    return found
