"""How rows that belong together are held out, folded, halved and permuted: here only.

``groups`` (n_rows,) : rows with one value belong together, as the visits of one patient do; no
group is ever cut. ``order`` (n_rows,) : dates or positions of a series, of which neighbors are
alike; the future is held out, never the past. Rows with one position belong together. At most one
of both is given; with neither, each row stands for itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import (
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils.validation import has_fit_parameter

from atomlearn.core import Fold, Rows, is_number

Seed = int | np.random.Generator


def unit_numbers(n_rows: int, groups: Any = None, order: Any = None) -> Rows:
    """Return the number of the group or position of each row, 0, 1, ... in increasing order.

    Raises
    ------
    ValueError
        Where both are given, one is not a value a row, values are missing, or all are the same.
    """
    if groups is not None and order is not None:
        raise ValueError("groups and order are both given; give one of them")
    if n_rows < 1:
        raise ValueError("there are no rows to divide; give at least 2")
    if groups is None and order is None:
        return np.arange(n_rows)
    name, given = ("groups", groups) if order is None else ("order", order)
    values = np.asarray(given)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must hold one value a row, shape ({n_rows},), got {values.shape}")
    if (values != values).any() or (values.dtype == object and None in values.tolist()):
        raise ValueError(f"{name} holds missing values; give each row one, or leave such rows out")
    try:
        kinds, units = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} holds values that cannot be compared ({error}); give them one type"
        ) from error
    if kinds.size < 2:
        raise ValueError(f"{name} holds one value only ({kinds[:1]}); at least 2 are needed")
    return np.asarray(units, dtype=np.int64)


def held_out(
    n_rows: int,
    fraction: float,
    rng: Seed,
    codes: Any = None,
    groups: Any = None,
    order: Any = None,
) -> Fold:
    """Return rows to fit to and rows to hold out, about ``fraction`` of them, both increasing.

    Whole groups, or the end of the series: there a tenth of the rows before it, which are like its
    first ones, are in neither. Classes (``codes``) keep their shares as far as groups
    allow, and none loses its last row to the held-out part, but where ``order`` is given. The
    held-out part is empty where each class is one group.
    """
    units = unit_numbers(n_rows, groups, order)
    if order is not None:
        ends = np.cumsum(np.bincount(units))[:-1]  # rows before each cut between two positions
        first = 1 + int(np.argmin(np.abs(ends - (1.0 - fraction) * n_rows)))
        last = np.sort(units)[int(0.9 * ends[first - 1])]
        return np.flatnonzero(units <= last), np.flatnonzero(units >= first)
    generator = np.random.default_rng(rng)
    labels = _rarest(units, codes)
    sizes = np.bincount(units)
    chosen = np.zeros(sizes.size, dtype=bool)
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        before = np.cumsum(sizes[members]) - sizes[members]
        wanted = round(fraction * int(sizes[members].sum()))
        taken = members[before + sizes[members] / 2 <= wanted]
        chosen[taken[: members.size - 1]] = True
    for code in np.unique(codes if codes is not None else np.zeros(0)):
        rows = np.flatnonzero(np.asarray(codes) == code)
        if chosen[units[rows]].all():  # in held-out groups only, beside rarer classes
            chosen[units[rows[0]]] = False
    test = chosen[units]
    return np.flatnonzero(~test), np.flatnonzero(test)


def folds(
    n_rows: int, n_folds: int, rng: int, codes: Any = None, groups: Any = None, order: Any = None
) -> list[Fold]:
    """Return at most so many (training rows, test rows): scikit-learn's splits.

    Of a series each fold is trained on what comes before its test rows. Folds without a training
    row of one of the classes (``codes``) are left out, for no model can be fitted to them.
    """
    units = unit_numbers(n_rows, groups, order)
    rows = np.arange(n_rows)
    n_units = int(units.max()) + 1
    labels = np.zeros(n_rows, dtype=np.int64) if codes is None else np.asarray(codes)
    if order is not None:
        cuts: Any = [([0], [1])]
        if n_units > 2:
            cuts = TimeSeriesSplit(min(n_folds, n_units - 1)).split(np.arange(n_units))
        found: list[Any] = [[np.flatnonzero(np.isin(units, part)) for part in cut] for cut in cuts]
    elif groups is not None:
        splitter: Any = StratifiedGroupKFold(min(n_folds, n_units), shuffle=True, random_state=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of classes of few rows: seen to below
            found = list(splitter.split(rows, labels, units))
    else:
        kind = KFold if codes is None else StratifiedKFold
        rarest = np.unique(labels, return_counts=True)[1].min()
        if rarest < n_folds:
            of = "there are" if codes is None else "a class has"
            raise ValueError(f"{of} {rarest} rows, and folds are {n_folds}; give more rows")
        found = list(kind(n_folds, shuffle=True, random_state=rng).split(rows, labels))
    n_classes = np.unique(labels).size
    kept = [
        (train, test)
        for train, test in found
        if test.size and np.unique(labels[train]).size == n_classes
    ]
    if len(kept) < (1 if order is not None else 2):
        of = "the series begins" if order is not None else "all groups but one leave rows"
        raise ValueError(f"no folds: a class is missing where {of}; give fewer folds or more rows")
    return kept


def splits(
    cv: Any, X: Any, y: Any, stratified: bool, groups: Any, order: Any, params: dict[str, Any]
) -> Iterable[Fold]:
    """Return the folds of a search; ``params`` : what a splitter is to be told.

    With groups or an order a number of folds (None: 5) is one of ``folds``.
    """
    if (groups is None and order is None) or not (cv is None or is_number(cv)):
        if order is not None:
            raise ValueError("order goes with a number of folds; with a splitter leave it out")
        splitter = check_cv(cv, y, classifier=stratified)
        try:
            return list(splitter.split(X, y, **params))
        except ValueError as error:
            if groups is not None or "groups" not in str(error):
                raise
            raise ValueError(
                f"cv={cv!r} keeps rows of a group together: give the group of each row, "
                "fit(X, y, groups=groups)"
            ) from error
    return folds(len(y), cv or 5, 0, y if stratified else None, groups, order)


def halves(
    n_rows: int, rng: Seed, codes: Any = None, groups: Any = None, order: Any = None
) -> tuple[Rows, Rows]:
    """Return two random halves without a row in common, increasing; classes keep their shares.

    Of whole groups; of a series, stretches as long as the square root of its length.
    """
    units = unit_numbers(n_rows, groups, order)
    if order is not None:
        units = units // max(1, round(np.sqrt(units.max() + 1)))
    labels = _rarest(units, codes)
    generator = np.random.default_rng(rng)
    dealt = generator.permutation(labels.size)
    if codes is None and groups is None and order is None:
        half = n_rows // 2
        return np.sort(dealt[:half]), np.sort(dealt[half : 2 * half])
    dealt = dealt[np.argsort(labels[dealt], kind="stable")]
    one = np.isin(units, dealt[::2])
    return np.flatnonzero(one), np.flatnonzero(~one)


def permuted_rows(n_rows: int, rng: Seed, groups: Any = None, order: Any = None) -> Rows:
    """Return for each row the row whose target it gets: ``y[permuted_rows(...)]`` is permuted.

    Each group gets the targets of another one, in their order; of fewer rows again from their
    first, of more the first ones. So a target that is constant within groups stays so, and groups
    of one size swap whole blocks. A series is moved on by a random number of positions, and its end
    comes to the beginning.
    """
    units = unit_numbers(n_rows, groups, order)
    generator = np.random.default_rng(rng)
    sizes = np.bincount(units)
    rows = np.argsort(units, kind="stable")
    starts = np.cumsum(sizes) - sizes
    whence = np.arange(sizes.size)
    if order is None:
        whence = generator.permutation(whence)
    else:
        whence = np.roll(whence, int(generator.integers(sizes.size)))
    source = whence[units[rows]]
    within = np.arange(n_rows) - starts[units[rows]]
    found = np.empty(n_rows, dtype=np.int64)
    found[rows] = rows[starts[source] + within % sizes[source]]
    return found


def fit_parameters(
    estimator: Any, rows: Rows | None = None, groups: Any = None, order: Any = None
) -> dict[str, Any]:
    """Return what ``estimator.fit`` is to be told of these rows (None: all), where it asks."""
    own = {"groups": groups, "order": order}
    told = {name: np.asarray(values) for name, values in own.items() if values is not None}
    return {
        name: values if rows is None else values[rows]
        for name, values in told.items()
        if has_fit_parameter(estimator, name)
    }


def _rarest(units: Rows, codes: Any) -> Rows:
    """Return of each unit its rarest class by number, of all rows; zeros where none are given."""
    found = np.zeros(int(units.max()) + 1, dtype=np.int64)
    if codes is not None:
        _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(-counts, kind="stable"))  # larger: rarer
        np.maximum.at(found, units, rank[codes])
    return found
