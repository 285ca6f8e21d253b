"""Warnings about data: what often makes a held-out score too good, or a selection arbitrary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.stats import rankdata, t

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Array, Columns, Design, Rows
from atomlearn.reports.drawing import MOST_NAMED

#: From this correlation of ranks on (2 AUC - 1 for classes) one column alone tells the target so
#: well that it may have been made from it, where others do not.
LEAKING = 0.9
#: Columns that are looked at in each way, and rows that they are looked at in.
MOST_COLUMNS, MOST_ROWS = 500, 2_000


def suspects(
    design: Design,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: Sequence[int],
    names: Sequence[str],
    target: str,
) -> list[str]:
    """Return sentences on leakage and odd columns; ``names`` : of all columns."""
    rng, columns = np.random.default_rng(0), np.unique(np.asarray(selected, dtype=np.int64)[:200])
    found: list[str] = []
    if columns.size and y.ndim == 1 and y.dtype.names is None:
        rows = np.sort(rng.permutation(y.size)[:MOST_ROWS])
        others = rng.permutation(design.shape[1])[:MOST_COLUMNS] if design.listable else columns
        looked = np.union1d(columns, others)
        X = _entries(design, looked, rows)
        known, mine = [names[column] for column in looked], np.isin(looked, columns)
        if classes is None:
            few = looked.size + 10 > rows.size  # more columns than rows make up any target
            among = np.flatnonzero(mine) if few else np.arange(looked.size)
            found += adding_up(X[:, among], y[rows], [known[at] for at in among], target)
        found += _leaks(X, y[rows], classes, mine, known, design.shape[1])
    if design.listable and design.shape[1] <= 2_000_000:
        deviations = column_moments(design)[1]
        constant = int(np.count_nonzero(deviations == 0))
        if constant:
            found.append(f"{constant:,} columns are constant and can play no part")
        found += _duplicates(design, np.flatnonzero(deviations > 0)[: 8 * MOST_COLUMNS])
    return found


def _entries(design: Design, columns: Columns, rows: Rows) -> Array:
    """Return some rows of columns, which are gathered 100 at a time: all may not fit in memory."""
    parts = np.split(columns, range(100, columns.size, 100))
    return np.hstack([design.gather(part).dense()[rows] for part in parts]).astype(np.float64)


def _leaks(
    X: Array,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: NDArray[np.bool_],
    names: Sequence[str],
    n_columns: int,
) -> list[str]:
    """Look at the selected columns, each by itself: a leak that helps is selected.

    By ranks, so that bins and growing functions of the target are seen; in comparison with what
    other columns tell; and not where among so many columns chance alone would do it.
    """
    ranks, n_rows = rankdata(X, axis=0), y.size
    ranks -= ranks.mean(axis=0)
    targets, unit = {"the target": rankdata(y)}, "a rank correlation"
    if classes is not None:
        unit = "an AUC"
        targets = {label: (y == code).astype(np.float64) for code, label in enumerate(classes)}
        if len(classes) == 2:
            del targets[classes[0]]
    found: list[str] = []
    for label, values in targets.items():
        centered = values - values.mean()
        along = np.abs(centered @ ranks)
        sizes = np.sqrt(np.sum(ranks**2, axis=0) * (centered @ centered))
        told = correlation = np.divide(along, sizes, out=np.zeros_like(along), where=sizes > 0)
        if classes is not None:
            told = 2.0 * along / max(values.sum() * (n_rows - values.sum()), 1.0)
        far = np.arctanh(np.minimum(told, 1.0 - 1e-12))
        usual = np.sort(far)[-min(4, far.size)] if far.size > 1 else 0.0
        square = np.maximum(1.0 - correlation**2, 1e-300)
        chance = 2.0 * t.sf(correlation * np.sqrt((n_rows - 2) / square), n_rows - 2)
        rare = chance * n_columns * len(targets) <= 0.05
        leaks = np.flatnonzero(selected & rare & (told >= LEAKING) & (far >= 2.0 * usual))
        for at in leaks[np.argsort(-told[leaks], kind="stable")].tolist():
            shown = told[at] if classes is None else 0.5 + 0.5 * told[at]
            found.append(
                f"{names[at]} alone tells {label} with {unit} of {shown:.3f}, far beyond other "
                "features: was it made from the target, or measured after it?"
            )
    return found[:10]


def _duplicates(design: Design, columns: Columns) -> list[str]:
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


def adding_up(X: Array, y: NDArray[Any], names: Sequence[str], target: str) -> list[str]:
    """Return a sentence where two or more columns make up a target of numbers exactly.

    By least squares over columns that are not made of each other, on more rows than columns: a
    combination that leaves nothing.
    """
    if not 2 <= X.shape[1] <= len(X) - 10:
        return []
    X, values = X - X.mean(axis=0), y - y.mean()
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0] = 1.0
    R, order = qr(X / scale, mode="r", pivoting=True)
    basis = np.sort(order[: np.count_nonzero(np.abs(np.diag(R)) > 1e-10)])  # of copies one
    weights = np.linalg.lstsq(X[:, basis] / scale[basis], values, rcond=None)[0] / scale[basis]
    if np.abs(values - X[:, basis] @ weights).max() > 1e-7 * np.abs(values).max():
        return []
    used = np.abs(weights) * X[:, basis].std(axis=0) > 1e-7 * values.std()
    own = [names[part] for part in basis[used].tolist()]
    if not 2 <= len(own) <= MOST_NAMED:
        return []
    told = f"{target} can be computed exactly from {', '.join(own)}"
    if np.abs(weights[used] - 1.0).max() <= 1e-6:
        told = f"{' + '.join(own)} = {target}: these columns add up to the target"
    return [f"{told}; if they are not known before it, leave them out (--drop)"]


def recurring(known: NDArray[np.bool_]) -> list[str]:
    """Return what to say of held-out rows that are training rows."""
    again = int(np.count_nonzero(known))
    if not again:
        return []
    return [
        f"{again:,} of {known.size:,} held-out rows are training rows too, or nearly: the verdict "
        "leaves them out, other held-out scores are too good by that; hold out whole groups of rows"
    ]
