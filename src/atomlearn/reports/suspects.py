"""Warnings about data: what often makes a held-out score too good, or a selection arbitrary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Design

#: From here on one column alone tells the target so well that it may have been made from it.
LEAKING_AREA, LEAKING_CORRELATION = 0.995, 0.99
#: Columns that are compared.
MOST_COLUMNS = 4_000
#: Share of the smallest class, below which balance is worth a word.
RARE = 0.1


def suspects(
    design: Design,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: Sequence[int],
    names: Sequence[str],
) -> tuple[str, ...]:
    """Return sentences on leakage, balance, odd columns."""
    found = [*_leaks(design, y, classes, selected, names), *_balance(y, classes)]
    if design.listable and design.shape[1] <= 2_000_000:
        deviations = column_moments(design)[1]
        constant = int(np.count_nonzero(deviations == 0))
        if constant:
            found.append(f"{constant:,} columns are constant and can play no part")
        varying = np.flatnonzero(deviations > 0)[:MOST_COLUMNS]
        found += _duplicates(design, varying)
    return tuple(found)


def _leaks(
    design: Design, y: NDArray[Any], classes: Sequence[str] | None, selected: Sequence[int],
    names: Sequence[str],
) -> list[str]:  # fmt: skip
    """Look at the selected columns alone: a leak that helps is selected."""
    found: list[str] = []
    columns = np.asarray(selected, dtype=np.int64)[:200]
    if not columns.size or y.ndim != 1 or y.dtype.names is not None:
        return found
    order = np.argsort(columns)
    block = np.asarray(design.gather(columns[order]).dense(), dtype=np.float64)
    for place, at in enumerate(order):
        value = block[:, place]
        if classes is None:
            spread = value.std() * y.std()
            r = float(np.mean((value - value.mean()) * (y - y.mean())) / spread) if spread else 0.0
            if abs(r) >= LEAKING_CORRELATION:
                found.append(
                    f"{names[at]} alone is correlated {r:.3f} with the target: was it made from it?"
                )
            continue
        ranks = rankdata(value)
        for code, label in enumerate(classes):
            mine = y == code
            count = int(mine.sum())
            if not 0 < count < y.size:
                continue
            area = (ranks[mine].sum() - count * (count + 1) / 2) / (count * (y.size - count))
            if max(area, 1 - area) >= LEAKING_AREA:
                found.append(
                    f"{names[at]} alone tells {label} with an AUC of {max(area, 1 - area):.3f}: "
                    "was it made from the target, or measured after it?"
                )
                break
    return found[:10]


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
    sums = np.array([design.scores(rng.standard_normal(design.shape[0])).at(columns)
                     for _ in range(2)])  # fmt: skip
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
