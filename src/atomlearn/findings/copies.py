"""Held-out rows that are training rows too, or nearly: of these a model knows the answer.

Rows are compared by random sums over their standardized columns. Rows of few columns, or of few
values, meet by chance; so a surrogate table is drawn, of as many rows with the same values a column
and the same correlations, but independent. Where it has as many such rows, they are no copies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Design
from atomlearn.findings.settings import SETTINGS

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def known_already(design: Design, train: Rows, test: Rows) -> Mask:
    """Return which held-out rows are, or nearly are, training rows, and not by chance.

    ``benchmarks/tuning/copies.py`` shows on which tables that is told, and on which it is not.
    """
    none = np.zeros(test.size, dtype=bool)
    if not design.listable or design.shape[1] > SETTINGS.most_compared_columns:
        return none
    if not train.size or not test.size:
        return none
    deviations = column_moments(design)[1]
    varying = np.flatnonzero(deviations > 0)
    scale = np.zeros(deviations.size)
    scale[varying] = 1.0 / deviations[varying]
    n_rows, n_columns = design.shape
    few = n_rows <= SETTINGS.most_compared_rows and n_rows * n_columns <= SETTINGS.most_drawn
    rng = np.random.default_rng(1)
    keys = np.array([design.predict(rng.standard_normal(n_columns) * scale)
                     for _ in range(SETTINGS.sums_of_rows if few else 2)])  # fmt: skip
    some = [rng.permutation(rows)[: SETTINGS.surrogate_rows * rows.size // n_rows + 1]
            for rows in (train, test)]  # fmt: skip
    columns = np.sort(rng.permutation(varying)[: SETTINGS.surrogate_columns])
    known, by_chance = none, None
    for alike in (_same, _near)[: 1 + few]:
        found = alike(keys, train, test)
        if found.mean() > SETTINGS.few_copies:
            if by_chance is None:
                block = design.gather(columns).dense()[np.concatenate(some)]
                by_chance = _keys_by_chance(np.asarray(block, dtype=np.float64), rng)
            there = float(alike(keys, *some).mean())
            rows = np.split(np.arange(some[0].size + some[1].size), [some[0].size])
            chance = max(float(alike(other, *rows).mean()) for other in by_chance)
            if chance >= SETTINGS.by_chance * max(there, 1e-9):
                continue
        if found.mean() > SETTINGS.many_copies and few:
            found = _near(keys, train, test, SETTINGS.many_near)
        known = known | found
    return known


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
    """Return the sums over rows of two tables that are as this one, but of independent rows."""
    scales = block.std(axis=0)
    weights = rng.standard_normal((block.shape[1], SETTINGS.sums_of_rows))
    weights /= np.where(scales > 0, scales, 1.0)[:, None]
    return [(table(block, rng) @ weights).T for table in (surrogate, shuffled)]


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


def shuffled(block: Array, rng: np.random.Generator) -> Array:
    """Return the columns with their rows in an order of their own; those of a category in one.

    Neighbors of two values each, of which no row has two, are taken for one category.
    """
    found, together = np.empty_like(block), np.ones(len(block), dtype=bool)
    order = rng.permutation(len(block))
    for column in range(block.shape[1]):
        values = block[:, column]
        inside = values > values.min()
        two = bool((values[inside] == values.max()).all())
        if not two or bool((together & inside).any()):
            order, together = rng.permutation(len(block)), np.zeros(len(block), dtype=bool)
        together = together | inside if two else np.ones(len(block), dtype=bool)
        found[:, column] = values[order]
    return found
