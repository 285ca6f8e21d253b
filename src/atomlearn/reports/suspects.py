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
    ``classes`` the labels of the codes ``y``, or None for a numeric target. ``target`` is the name
    of the target. ``missing`` maps a column to its number of imputed values. Large data are
    subsampled. ``design`` is the matrix of columns.
    """
    rng = np.random.default_rng(0)
    columns = np.unique(np.asarray(selected, dtype=np.int64)[:200])
    suspicions = list[str]()
    questions = list[str]()
    if columns.size and y.ndim == 1 and y.dtype.names is None:
        # Checks of rows and columns, of selected columns and a sample of the others.
        rows = np.sort(rng.permutation(y.size)[:MOST_ROWS])
        others = rng.permutation(design.shape[1])[:MOST_COLUMNS] if design.listable else columns
        inspected = np.union1d(columns, others)
        X = _entries(design, inspected, rows)
        titles = [names[column] for column in inspected]
        is_selected = np.isin(inspected, columns)
        if classes is None:
            few_rows = inspected.size + 10 > rows.size  # too few rows: any target is a combination
            candidates = np.flatnonzero(is_selected) if few_rows else np.arange(inspected.size)
            suspicions += adding_up(
                X[:, candidates], y[rows], [titles[number] for number in candidates], target
            )
        suspicions += parts_of_target(
            X, y[rows], classes, titles, target, missing if rows.size == y.size else {}
        )
        suspicions += aggregates(X, y[rows], classes, titles, target)
        for is_copy, sentence in _leaks(X, y[rows], classes, is_selected, titles, design.shape[1]):
            (suspicions if is_copy else questions).append(sentence)
    # Checks of all columns.
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
    ``design`` is the matrix of columns.
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
    selected columns of X. ``classes`` are the labels of the codes y, or None, and ``names`` the
    names of the columns of X.
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
        products = np.abs(centered @ ranks)
        sizes = np.sqrt(np.sum(ranks**2, axis=0) * (centered @ centered))
        strength = correlation = np.divide(
            products, sizes, out=np.zeros_like(products), where=sizes > 0
        )
        # For classes the strength is |2 AUC - 1| = 2 |sum of centered ranks in the class| / (a b),
        # with a rows inside and b rows outside of the class.
        if classes is not None:
            strength = 2.0 * products / max(values.sum() * (n_rows - values.sum()), 1.0)
        # Strengths are compared as z = arctanh(strength), Fisher's transformation. A leak must be
        # at least twice as large as the fourth largest.
        fisher_z = np.arctanh(np.minimum(strength, 1.0 - 1e-12))
        typical_z = np.sort(fisher_z)[-min(4, fisher_z.size)] if fisher_z.size > 1 else 0.0
        square = np.maximum(1.0 - correlation**2, 1e-300)
        # The p-value of the rank correlation, with Bonferroni's correction.
        chance = 2.0 * t.sf(correlation * np.sqrt((n_rows - 2) / square), n_rows - 2)
        is_rare = chance * n_columns * len(targets) <= 0.05
        leaks = np.flatnonzero(
            selected & is_rare & (strength >= LEAKING) & (fisher_z >= 2.0 * typical_z)
        )
        for column in leaks[np.argsort(-strength[leaks], kind="stable")].tolist():
            strength_shown = strength[column] if classes is None else 0.5 + 0.5 * strength[column]
            claim = f"{names[column]} alone tells {label} with {unit} of {strength_shown:.3f}"
            if classes is None and strength[column] >= COPIED:
                suspicions.append((True, f"{claim}, row by row: is it a copy of the target?"))
                continue
            question = (
                f"{claim}, far beyond other features: is it known before the target? Then it is a "
                "strong marker. If it was made from the target, or measured after it, leave it "
                "out; if the target was made from it, as clusters are, the scores are circular"
            )
            suspicions.append((False, question))
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
    reported, too; ``missing`` maps columns to numbers of imputed values. Covers that chance would
    produce with this number of columns are left out. ``names`` and ``target`` are the names of the
    columns of X and of the target. ``classes`` are the labels of the codes y, or None.
    """
    suspicions = list[str]()
    events = [(f"{target} is {label}", y == code) for code, label in enumerate(classes or ())]
    if classes is None:
        common = mode(y).mode
        events = [(f"{target} is {common:g}", y == common)]
    modes = np.asarray(mode(X, axis=0).mode)
    is_mode = modes == X
    explained = np.zeros(modes.size, dtype=bool)
    for event_words, rows in events:
        if not 0 < rows.sum() < y.size or rows.sum() < 5:
            continue
        # All rows of the class have the most frequent value, as imputed values have, and as many
        # are imputed.
        is_missing_exactly = is_mode[rows].all(axis=0) & (is_mode.sum(axis=0) < y.size)
        is_missing_exactly[[missing.get(name) != rows.sum() for name in names]] = False
        for number in np.flatnonzero(is_missing_exactly).tolist():
            suspicions.append(
                f"{names[number]} is missing in just the rows in which {event_words}{_LEAVE_OUT}"
            )
        # Column k is the condition "has its most frequent value" of column k, then the negations.
        conditions = np.hstack([is_mode, ~is_mode])
        explained |= is_missing_exactly
        allowed = ~conditions[~rows].any(axis=0) & conditions.any(axis=0) & ~np.tile(explained, 2)
        for chosen in _covering_conditions(conditions, rows, allowed):
            conditions_met = [
                _condition_in_words(X, names, modes, condition) for condition in sorted(chosen)
            ]
            suspicions.append(
                f"{event_words} in just the rows in which {' or '.join(conditions_met)}{_LEAVE_OUT}"
            )
    return suspicions[:4]


def _covering_conditions(conditions: Mask, rows: Mask, allowed: Mask) -> Iterator[list[int]]:
    """Yield sets of conditions whose union equals ``rows`` and is not explained by chance.

    ``conditions``, shape (n_rows, n_conditions), holds which rows satisfy each condition, ``rows``
    is a mask (n_rows,), and ``allowed`` masks the conditions that hold only in ``rows``. Each set
    is found greedily. The columns of a set are not used again.
    """
    allowed = allowed.copy()
    n_rows = int(rows.sum())
    while True:
        chosen = list[int]()
        uncovered = rows.copy()
        while uncovered.any() and len(chosen) < MOST_PARTS:
            n_covered = allowed * (uncovered.astype(np.int64) @ conditions)
            if not n_covered.any():
                return
            chosen.append(int(n_covered.argmax()))
            uncovered &= ~conditions[:, chosen[-1]]
        # If rows of the class were random, all h rows of a cover would be in it with probability
        # (n_rows / n)^h. There are about c^k sets of k out of c conditions.
        chance = np.log(n_rows / rows.size) * conditions[:, chosen].sum()
        if uncovered.any() or chance + len(chosen) * np.log(conditions.shape[1]) >= np.log(0.01):
            return
        yield chosen
        # The condition and the negated condition of a column are half the length apart.
        half = allowed.size // 2
        allowed[
            [column % half for column in chosen] + [half + column % half for column in chosen]
        ] = False


_LEAVE_OUT = ": if that is not known before the target, leave it out (--drop)"


def _condition_in_words(X: Array, names: Sequence[str], modes: Array, column: int) -> str:
    """Return in words that a column has, or does not have, its most frequent value.

    ``names`` and ``modes`` hold the name and the most frequent value of each column of X.
    ``column`` is the index of the condition, which is beyond the number of columns for a negated
    condition.
    """
    j = column % modes.size  # the column of X
    has_mode = column < modes.size
    others = np.unique(X[X[:, j] != modes[j], j])
    if has_mode or others.size == 1:
        return f"{names[j]} is {modes[j] if has_mode else others[0]:g}"
    return f"{names[j]} is not {modes[j]:g}"


def aggregates(
    X: Array, y: NDArray[Any], classes: Sequence[str] | None, names: Sequence[str], target: str
) -> list[str]:
    """Return sentences on columns that are group means of the target (target encoding).

    A group consists of the rows with one value of the column. Group means of the target usually
    deviate from a linear function of the column by their standard errors. A column was computed
    from the target if its group means are far closer to a line than that, and closer than to their
    common mean. ``classes`` are the labels of the codes y, or None; ``names`` and ``target`` are
    the names of the columns of X and of the target.
    """
    suspicions = list[str]()
    targets = {target: np.asarray(y, dtype=np.float64)}
    if classes is not None:
        targets = {f"{target} = {label}": (y == code) * 1.0 for code, label in enumerate(classes)}
        targets = dict([*targets.items()][1:]) if len(classes) == 2 else targets
    for k, column in enumerate(X.T):
        values, group = np.unique(column, return_inverse=True)
        if not FEWEST_GROUPS <= values.size <= y.size / 2:
            continue
        sizes = np.bincount(group)
        for words, target_values in targets.items():
            means = np.bincount(group, target_values) / sizes
            variance = float(np.sum((target_values - means[group]) ** 2)) / max(
                y.size - values.size, 1
            )
            line = np.polyfit(values - values.mean(), means, 1, w=np.sqrt(sizes))
            squared_residuals = np.sum(
                sizes * (means - np.polyval(line, values - values.mean())) ** 2
            )
            # Most groups have no row of a rare class, so that their means agree by chance.
            between_groups = float(np.sum(sizes * (means - target_values.mean()) ** 2))
            expected_squares = min(variance * (values.size - 2), between_groups)
            if line[0] and squared_residuals < NO_ERROR**2 * expected_squares:
                suspicions.append(
                    f"{names[k]} has one value in each of {values.size:,} groups of rows, and it "
                    f"is their mean of {words}, held-out rows included: leave it out (--drop)"
                )
                break
    return suspicions[:10]


def _duplicates(design: Design, columns: Columns) -> list[str]:
    """Return a warning if columns are copies of others, else [].

    ``columns`` are the indices of the columns to compare, without constant ones. ``design`` is the
    matrix of columns. Copies have equal inner products with random vectors; two vectors are used.
    """
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

    X, y : (n, p) columns and target; ``names`` and ``target`` are their names. The columns are
    reduced to a basis by QR with pivoting, and the target is regressed on it by least squares; a
    residual at the level of rounding errors is exact. There must be at least 10 more rows than
    columns.
    """
    if not 2 <= X.shape[1] <= len(X) - 10:
        return []
    X = X - X.mean(axis=0)
    values = y - y.mean()
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0] = 1.0
    triangular_factor, order = qr(X / scale, mode="r", pivoting=True)
    # Copies of a column count once.
    basis = np.sort(order[: np.count_nonzero(np.abs(np.diag(triangular_factor)) > 1e-10)])
    weights = np.linalg.lstsq(X[:, basis] / scale[basis], values, rcond=None)[0] / scale[basis]
    if np.abs(values - X[:, basis] @ weights).max() > 1e-7 * np.abs(values).max():
        return []
    is_used = np.abs(weights) * X[:, basis].std(axis=0) > 1e-7 * values.std()
    used_names = [names[part] for part in basis[is_used].tolist()]
    if not 2 <= len(used_names) <= MOST_NAMED:
        return []
    sentence = f"{target} can be computed exactly from {', '.join(used_names)}"
    if np.abs(weights[is_used] - 1.0).max() <= 1e-6:
        sentence = f"{' + '.join(used_names)} = {target}: these columns add up to the target"
    return [f"{sentence}; if they are not known before it, leave them out (--drop)"]


def imputed(names: Sequence[str], missing: Mapping[str, int], n_rows: int) -> list[str]:
    """Return a warning about columns of the model with filled values, else [].

    ``names`` are the columns of the model, ``missing`` maps a column to its number of imputed
    values. ``n_rows`` is the number of rows.
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
    note = "such rows are held out, folded and halved together, and count once for the verdict"
    if not folded:
        note = "held-out rows that repeat an earlier one do not count"
    return f"{n_repeated:,} of {repeated.size:,} rows repeat another one, exactly or nearly: {note}"


def drifting(p_value: float) -> list[str]:
    """Return a warning if a trend test finds that errors grow along a series, else [].

    ``p_value`` is that of the test, see ``OutOfFold.drift``.
    """
    if p_value > LEVEL:
        return []
    return [
        f"errors of held-out rows grow along --order (p = {p_value:.2g}): intervals of "
        "`atomlearn predict --interval` hold fewer of later targets than they say"
    ]
