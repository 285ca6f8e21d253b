"""Warn about data that make held-out scores too optimistic (leakage) or selections arbitrary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.stats import mode, rankdata, t

from atomlearn.core import Array, Columns, Design, Mask, Rows, column_moments
from atomlearn.findings.ranking import LEVEL
from atomlearn.reports.drawing import MOST_NAMED

#: A column whose rank correlation with the target (2 AUC - 1 for classes) reaches this value may
#: have been made from the target (leakage), unless other columns are similarly strong.
LEAKING = 0.9
#: A column with this rank correlation or more has the order of the target in nearly every row.
COPIED = 0.999
#: Maximum number of columns whose union or intersection is compared with a target.
MOST_PARTS = 6
#: Minimum number of groups for the search for target encodings. A column whose group means deviate
#: from a line by less than NO_ERROR standard errors is a target encoding; chance produces one in a
#: million columns.
FEWEST_GROUPS = 10
NO_ERROR = 0.1
#: Maximum numbers of columns and rows that each check inspects.
MOST_COLUMNS = 500
MOST_ROWS = 2_000


def suspects(
    design: Design,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: Sequence[int],
    names: Sequence[str],
    target: str,
    missing: Mapping[str, int] = MappingProxyType({}),
) -> tuple[list[str], list[str]]:
    """Return warnings about leakage and degenerate columns, and questions to the reader.

    ``selected`` are the indices of the selected columns, ``names`` the names of all columns, and
    ``classes`` the labels of the codes ``y``, or None for a numeric target. ``missing`` maps a
    column to its number of imputed values. Large data are subsampled.
    """
    rng = np.random.default_rng(0)
    columns = np.unique(np.asarray(selected, dtype=np.int64)[:200])
    suspicions = list[str]()
    questions = list[str]()
    if columns.size and y.ndim == 1 and y.dtype.names is None:
        rows = np.sort(rng.permutation(y.size)[:MOST_ROWS])
        others = rng.permutation(design.shape[1])[:MOST_COLUMNS] if design.listable else columns
        looked = np.union1d(columns, others)
        X = _entries(design, looked, rows)
        known = [names[column] for column in looked]
        is_selected = np.isin(looked, columns)
        if classes is None:
            few = looked.size + 10 > rows.size  # too few rows: any target is a combination
            candidates = np.flatnonzero(is_selected) if few else np.arange(looked.size)
            suspicions += adding_up(
                X[:, candidates], y[rows], [known[number] for number in candidates], target
            )
        suspicions += parts_of_target(
            X, y[rows], classes, known, target, missing if rows.size == y.size else {}
        )
        suspicions += aggregates(X, y[rows], classes, known, target)
        for same, line in _leaks(X, y[rows], classes, is_selected, known, design.shape[1]):
            (suspicions if same else questions).append(line)
    if design.listable and design.shape[1] <= 2_000_000:
        deviations = column_moments(design)[1]
        constant = int(np.count_nonzero(deviations == 0))
        if constant:
            suspicions.append(f"{constant:,} columns are constant and can play no part")
        suspicions += _duplicates(design, np.flatnonzero(deviations > 0)[: 8 * MOST_COLUMNS])
    return suspicions, questions


def _entries(design: Design, columns: Columns, rows: Rows) -> Array:
    """Return the entries of these rows and columns as a dense array, (n_rows, n_columns).

    Columns are gathered 100 at a time, because all rows of all columns may not fit in memory.
    """
    parts = np.split(columns, range(100, columns.size, 100))
    return np.hstack([design.gather(part).dense()[rows] for part in parts]).astype(np.float64)


def _leaks(
    X: Array,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    selected: NDArray[np.bool_],
    names: Sequence[str],
    n_columns: int,
) -> list[tuple[bool, str]]:
    """Return sentences on selected columns that predict the target suspiciously well.

    Each pair is (is_copy, sentence): True for a column in the same order as a numeric target in
    nearly every row, False for a strong marker that may or may not be leakage. Columns are compared
    with the target by Spearman correlation or AUC, so that binned or monotonically transformed
    targets are found. A column is reported only if it is far stronger than the other columns, and
    significant after Bonferroni correction for ``n_columns`` columns. ``selected`` is the mask of
    selected columns of X.
    """
    ranks = rankdata(X, axis=0)
    n_rows = y.size
    ranks -= ranks.mean(axis=0)
    targets = {"the target": rankdata(y)}
    unit = "a rank correlation"
    if classes is not None:
        unit = "an AUC"
        targets = {label: (y == code).astype(np.float64) for code, label in enumerate(classes)}
        if len(classes) == 2:
            del targets[classes[0]]
    suspicions = list[tuple[bool, str]]()
    for label, values in targets.items():
        centered = values - values.mean()
        along = np.abs(centered @ ranks)
        sizes = np.sqrt(np.sum(ranks**2, axis=0) * (centered @ centered))
        strength = correlation = np.divide(along, sizes, out=np.zeros_like(along), where=sizes > 0)
        if classes is not None:
            strength = 2.0 * along / max(values.sum() * (n_rows - values.sum()), 1.0)
        far = np.arctanh(np.minimum(strength, 1.0 - 1e-12))
        usual = np.sort(far)[-min(4, far.size)] if far.size > 1 else 0.0
        square = np.maximum(1.0 - correlation**2, 1e-300)
        chance = 2.0 * t.sf(correlation * np.sqrt((n_rows - 2) / square), n_rows - 2)
        rare = chance * n_columns * len(targets) <= 0.05
        leaks = np.flatnonzero(selected & rare & (strength >= LEAKING) & (far >= 2.0 * usual))
        for column in leaks[np.argsort(-strength[leaks], kind="stable")].tolist():
            strength_shown = strength[column] if classes is None else 0.5 + 0.5 * strength[column]
            words = f"{names[column]} alone tells {label} with {unit} of {strength_shown:.3f}"
            if classes is None and strength[column] >= COPIED:
                suspicions.append((True, f"{words}, row by row: is it a copy of the target?"))
                continue
            asks = (
                f"{words}, far beyond other features: is it known before the target? Then it is a "
                "strong marker. If it was made from the target, or measured after it, leave it "
                "out; if the target was made from it, as clusters are, the scores are circular"
            )
            suspicions.append((False, asks))
    return suspicions[:10]


def parts_of_target(
    X: Array,
    y: NDArray[Any],
    classes: Sequence[str] | None,
    names: Sequence[str],
    target: str,
    missing: Mapping[str, int],
) -> list[str]:
    """Return sentences on few columns whose union or intersection equals the target.

    For each target class (or the most frequent value of a numeric target), a greedy set cover
    searches for at most ``MOST_PARTS`` conditions "column has its most frequent value" or "has
    another value" that together hold in exactly the rows of the class. An intersection is found as
    the union of the negated conditions. Columns with missing values in exactly these rows are
    reported, too. Covers that chance would produce with this number of columns are left out.
    """
    suspicions = list[str]()
    events = [(f"{target} is {c}", y == k) for k, c in enumerate(classes or ())]
    if classes is None:
        common = mode(y).mode
        events = [(f"{target} is {common:g}", y == common)]
    usual = np.asarray(mode(X, axis=0).mode)
    is_usual = usual == X
    explained = np.zeros(usual.size, dtype=bool)
    for event_words, rows in events:
        if not 0 < rows.sum() < y.size or rows.sum() < 5:
            continue
        gone = is_usual[rows].all(axis=0) & (is_usual.sum(axis=0) < y.size)
        gone[[missing.get(name) != rows.sum() for name in names]] = False
        for j in np.flatnonzero(gone).tolist():
            suspicions.append(
                f"{names[j]} is missing in just the rows in which {event_words}{_LEAVE_OUT}"
            )
        signs = np.hstack([is_usual, ~is_usual])
        explained |= gone
        inside = ~signs[~rows].any(axis=0) & signs.any(axis=0) & ~np.tile(explained, 2)
        for chosen in _covering_conditions(signs, rows, inside):
            parts = [_words(X, names, usual, column) for column in sorted(chosen)]
            suspicions.append(
                f"{event_words} in just the rows in which {' or '.join(parts)}{_LEAVE_OUT}"
            )
    return suspicions[:4]


def _covering_conditions(signs: Mask, rows: Mask, allowed: Mask) -> Iterator[list[int]]:
    """Yield sets of conditions whose union equals ``rows`` and is not explained by chance.

    ``signs``, shape (n_rows, n_conditions), holds which rows satisfy each condition, and
    ``allowed`` masks the conditions that hold only in ``rows``. Columns of a set are not used
    again.
    """
    allowed = allowed.copy()
    n_rows = int(rows.sum())
    while True:
        chosen = list[int]()
        uncovered = rows.copy()
        while uncovered.any() and len(chosen) < MOST_PARTS:
            gains = allowed * (uncovered.astype(np.int64) @ signs)
            if not gains.any():
                return
            chosen.append(int(gains.argmax()))
            uncovered &= ~signs[:, chosen[-1]]
        chance = np.log(n_rows / rows.size) * signs[:, chosen].sum()
        if uncovered.any() or chance + len(chosen) * np.log(signs.shape[1]) >= np.log(0.01):
            return
        yield chosen
        half = allowed.size // 2
        allowed[
            [column % half for column in chosen] + [half + column % half for column in chosen]
        ] = False


_LEAVE_OUT = ": if that is not known before the target, leave it out (--drop)"


def _words(X: Array, names: Sequence[str], modes: Array, column: int) -> str:
    """Return in words that a column has, or does not have, its most frequent value.

    ``modes`` holds the most frequent value of each column; ``column`` is the index of the
    condition, which is beyond the number of columns for a negated condition.
    """
    j = column % modes.size
    equals = column < modes.size
    others = np.unique(X[X[:, j] != modes[j], j])
    if equals or others.size == 1:
        return f"{names[j]} is {modes[j] if equals else others[0]:g}"
    return f"{names[j]} is not {modes[j]:g}"


def aggregates(
    X: Array, y: NDArray[Any], classes: Sequence[str] | None, names: Sequence[str], target: str
) -> list[str]:
    """Return sentences on columns that are group means of the target (target encoding).

    A group consists of the rows with one value of the column. Group means of the target usually
    deviate from a linear function of the column by their standard errors; a column whose group
    means are far closer than that, and closer than to their common mean, was computed from the
    target.
    """
    suspicions = list[str]()
    targets = {target: np.asarray(y, dtype=np.float64)}
    if classes is not None:
        targets = {f"{target} = {c}": (y == k) * 1.0 for k, c in enumerate(classes)}
        targets = dict([*targets.items()][1:]) if len(classes) == 2 else targets
    for j, column in enumerate(X.T):
        values, group = np.unique(column, return_inverse=True)
        if not FEWEST_GROUPS <= values.size <= y.size / 2:
            continue
        sizes = np.bincount(group)
        for words, numbers in targets.items():
            means = np.bincount(group, numbers) / sizes
            variance = float(np.sum((numbers - means[group]) ** 2)) / max(y.size - values.size, 1)
            line = np.polyfit(values - values.mean(), means, 1, w=np.sqrt(sizes))
            squared_residuals = np.sum(
                sizes * (means - np.polyval(line, values - values.mean())) ** 2
            )
            # Most groups have no row of a rare class, so that their means agree by chance.
            between = float(np.sum(sizes * (means - numbers.mean()) ** 2))
            usual = min(variance * (values.size - 2), between)
            if line[0] and squared_residuals < NO_ERROR**2 * usual:
                suspicions.append(
                    f"{names[j]} has one value in each of {values.size:,} groups of rows, and it "
                    f"is their mean of {words}, held-out rows included: leave it out (--drop)"
                )
                break
    return suspicions[:10]


def _duplicates(design: Design, columns: Columns) -> list[str]:
    """Return a warning if columns are copies of others, compared by two random projections."""
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
    """Return a sentence if a linear combination of columns equals a numeric target exactly.

    The columns are reduced to a basis by QR with pivoting, and the target is regressed on it by
    least squares; a residual at the level of rounding errors is exact. There must be at least 10
    more rows than columns.
    """
    if not 2 <= X.shape[1] <= len(X) - 10:
        return []
    X = X - X.mean(axis=0)
    values = y - y.mean()
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0] = 1.0
    R, order = qr(X / scale, mode="r", pivoting=True)
    # Copies of a column count once.
    basis = np.sort(order[: np.count_nonzero(np.abs(np.diag(R)) > 1e-10)])
    weights = np.linalg.lstsq(X[:, basis] / scale[basis], values, rcond=None)[0] / scale[basis]
    if np.abs(values - X[:, basis] @ weights).max() > 1e-7 * np.abs(values).max():
        return []
    is_used = np.abs(weights) * X[:, basis].std(axis=0) > 1e-7 * values.std()
    parts = [names[part] for part in basis[is_used].tolist()]
    if not 2 <= len(parts) <= MOST_NAMED:
        return []
    sentence = f"{target} can be computed exactly from {', '.join(parts)}"
    if np.abs(weights[is_used] - 1.0).max() <= 1e-6:
        sentence = f"{' + '.join(parts)} = {target}: these columns add up to the target"
    return [f"{sentence}; if they are not known before it, leave them out (--drop)"]


def imputed(names: Sequence[str], missing: Mapping[str, int], n_rows: int) -> list[str]:
    """Return a warning about columns of the model with filled values, else [].

    ``missing`` maps a column to its number of imputed values.
    """
    counts = {name: missing[name] for name in dict.fromkeys(names) if missing.get(name)}
    if not counts:
        return []
    frequent = sorted(counts, key=lambda name: -counts[name])
    shares = [
        f"{name} {counts[name] / n_rows:.1%} ({counts[name]:,})" for name in frequent[:MOST_NAMED]
    ]
    ending = f", and {len(frequent) - MOST_NAMED} more" if len(frequent) > MOST_NAMED else ""
    return [
        f"values of columns in the model were missing and filled in: {', '.join(shares)}{ending}; "
        "the coefficients take filled values for measured ones"
    ]


def recurring(known: NDArray[np.bool_]) -> list[str]:
    """Return a warning about held-out rows that duplicate training rows, else [].

    ``known`` is the mask of these held-out rows, which are excluded from all scores.
    """
    n_repeated = int(np.count_nonzero(known))
    if not n_repeated:
        return []
    return [
        f"{n_repeated:,} of {known.size:,} held-out rows are training rows too, exactly or nearly: "
        "neither the verdict nor a score counts them"
    ]


def repeating(repeated: Rows, folded: bool) -> str:
    """Return a note on duplicate rows.

    ``repeated`` holds an index that duplicate rows share; ``folded`` is whether duplicates are
    held out together.
    """
    sizes = np.bincount(repeated)
    n_repeated = int(np.sum(sizes[sizes > 1] - 1))
    what = "such rows are held out, folded and halved together, and count once for the verdict"
    if not folded:
        what = "held-out rows that repeat an earlier one do not count"
    return f"{n_repeated:,} of {repeated.size:,} rows repeat another one, exactly or nearly: {what}"


def drifting(p_value: float) -> list[str]:
    """Return a warning if a trend test finds that errors grow along a series, else []."""
    if p_value > LEVEL:
        return []
    return [
        f"errors of held-out rows grow along --order (p = {p_value:.2g}): intervals of "
        "`atomlearn predict --interval` hold fewer of later targets than they say"
    ]
