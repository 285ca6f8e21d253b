"""Warnings about data: what often makes a held-out score too good, or a selection arbitrary."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata, t

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Array, Design

#: From here on one column alone tells the target so well that it may have been made from it, where
#: others do not: AUC, and correlation of ranks.
LEAKING_AREA, LEAKING_CORRELATION = 0.95, 0.93
#: Columns that are compared with each other, and with a leak; rows that a leak is looked for in.
MOST_COLUMNS, MOST_OTHERS, MOST_ROWS = 4_000, 500, 2_000
#: Share of the smallest class, below which balance is worth a word.
RARE = 0.1


def suspects(
    design: Design,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: Sequence[int],
    names: Sequence[str],
) -> list[str]:
    """Return sentences on leakage, balance, odd columns."""
    found = [*_leaks(design, y, classes, selected, names), *_balance(y, classes)]
    if design.listable and design.shape[1] <= 2_000_000:
        deviations = column_moments(design)[1]
        constant = int(np.count_nonzero(deviations == 0))
        if constant:
            found.append(f"{constant:,} columns are constant and can play no part")
        varying = np.flatnonzero(deviations > 0)[:MOST_COLUMNS]
        found += _duplicates(design, varying)
    return found


def _leaks(
    design: Design,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: Sequence[int],
    names: Sequence[str],
) -> list[str]:
    """Look at the selected columns, each by itself: a leak that helps is selected.

    By ranks, so that bins and growing functions of the target are seen; in comparison with what
    other columns tell; and not where among so many columns chance alone would do it.
    """
    columns = np.unique(np.asarray(selected, dtype=np.int64)[:200])
    if not columns.size or y.ndim != 1 or y.dtype.names is not None:
        return []
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(y.size)[:MOST_ROWS])
    found: list[str] = []
    for code, label in enumerate(classes or [""]):
        target = rankdata(y[rows]) if classes is None else (y[rows] == code).astype(np.float64)
        if target.std() == 0 or (classes is not None and code == 0 and len(classes) == 2):
            continue
        others = rng.permutation(design.shape[1])[:MOST_OTHERS] if design.listable else columns
        looked = np.union1d(columns, others)
        told = _told_by(design, looked, rows, target, classes is not None)
        usual = np.sort(told)[::-1][min(3, told.size - 1)] if told.size > 1 else 0.0
        mine = told[np.searchsorted(looked, columns)]
        least, unit = (
            (LEAKING_AREA, "AUC") if classes else (LEAKING_CORRELATION, "rank correlation")
        )
        for place in np.argsort(-mine, kind="stable"):
            strength = mine[place]
            far = _distance(strength, unit) >= 2 * _distance(usual, unit)
            by_chance = _chance(strength, target, unit) * design.shape[1] * len(classes or [""])
            if strength < least or not far or by_chance > 0.05:
                break
            name = names[list(selected).index(int(columns[place]))]
            found.append(
                f"{name} alone tells {label or 'the target'} with {'an' if unit == 'AUC' else 'a'} "
                f"{unit} of {strength:.3f}, far beyond other features: was it made from the "
                "target, or measured after it?"
            )
    return found[:10]


def _told_by(
    design: Design,
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    target: Array,
    is_class: bool,
) -> Array:
    """Return of each column its area for a class of 0 and 1, or its rank correlation."""
    found = np.zeros(columns.size)
    centered = target - target.mean()
    for place in range(0, columns.size, 100):
        some = columns[place : place + 100]
        block = np.asarray(design.gather(some).dense(), dtype=np.float64)[rows]
        ranks = rankdata(block, axis=0)
        ranks -= ranks.mean(axis=0)
        if is_class:
            positive = target.sum()
            found[place : place + 100] = 0.5 + np.abs(centered @ ranks) / (
                positive * (target.size - positive)
            )
        else:
            scale = np.sqrt(np.sum(ranks**2, axis=0) * (centered @ centered))
            found[place : place + 100] = np.abs(centered @ ranks) / np.where(scale > 0, scale, 1)
    return found


def _distance(strength: float, unit: str) -> float:
    """Return how far classes lie apart in their standard deviations, or Fisher's transform."""
    return float(norm.ppf(strength) if unit == "AUC" else np.arctanh(min(strength, 1 - 1e-12)))


def _chance(strength: float, target: Array, unit: str) -> float:
    """Return how likely one column without any connection tells as much."""
    n_rows = target.size
    if unit == "AUC":
        count = int(min(target.sum(), n_rows - target.sum()))
        spread = np.sqrt((n_rows + 1) / (12 * count * (n_rows - count)))
        limit = 2 * float(norm.sf((strength - 0.5) / spread))
        # Of a few rows of a class this is the share of perfect orders.
        return max(limit, 2 / comb(n_rows, count))
    square = max(1 - strength**2, 1e-300)
    return 2 * float(t.sf(strength * np.sqrt((n_rows - 2) / square), n_rows - 2))


def _balance(y: NDArray[Any], classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        return []
    counts = np.bincount(y, minlength=len(classes))
    rare = int(np.argmin(counts))
    if counts[rare] >= RARE * y.size:
        return []
    share = 100 * counts[rare] / y.size
    return [
        f"class {classes[rare]} has {counts[rare]:,} rows ({share:.1f}%): accuracy says little "
        "here, look at AUC and at the confusion matrix"
    ]


def _duplicates(design: Design, columns: NDArray[np.int64]) -> list[str]:
    """Find columns that are copies, by two random sums over the rows."""
    rng = np.random.default_rng(0)
    sums = np.array(
        [design.scores(rng.standard_normal(design.shape[0])).at(columns) for _ in range(2)]
    )
    scale = np.abs(sums).max(axis=1, keepdims=True, initial=0.0)
    if not columns.size or not scale.all():
        return []
    rounded = np.round(sums / scale / 1e-10).astype(np.int64)
    copies = columns.size - np.unique(rounded, axis=1).shape[1]
    if not copies:
        return []
    return [
        f"{copies:,} columns are copies of others: which one of the copies is selected is arbitrary"
    ]


def recurring(known: NDArray[np.bool_]) -> list[str]:
    """Return what to say of held-out rows that are training rows."""
    again = int(np.count_nonzero(known))
    if not again:
        return []
    return [
        f"{again:,} of {known.size:,} held-out rows are training rows too, or nearly: the verdict "
        "leaves them out, other held-out scores are too good by that; hold out whole groups of rows"
    ]
