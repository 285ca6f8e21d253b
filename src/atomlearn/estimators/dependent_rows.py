"""Splits and permutations that keep dependent rows together.

Rows with the same value of ``groups`` (n_rows,) belong together, such as the visits of one patient;
no group is divided. ``order`` (n_rows,) has the dates or positions of a series, whose neighbors are
alike; later rows are held out, never earlier ones. Rows with the same position belong together.
Give at most one of both; without them all rows are independent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit, check_cv
from sklearn.utils.validation import has_fit_parameter

from atomlearn._support import is_number
from atomlearn.core import Fold, Rows

Seed = int | np.random.Generator


def unit_numbers(n_rows: int, groups: Any = None, order: Any = None) -> Rows:
    """Return the number (n_rows,) of the group or position of each row, 0, 1, ... in their order.

    groups, order : labels of groups, or positions in a series, (n_rows,) or None; without both each
    row has its own number.

    Raises
    ------
    ValueError
        If both are given, values are missing or all equal, or their number is not ``n_rows``.
    """
    if groups is not None and order is not None:
        raise ValueError("groups and order are both given; give one of them")
    if n_rows < 1:
        raise ValueError("there are no rows to divide; give at least 2")
    if groups is None and order is None:
        return np.arange(n_rows)
    name = "groups" if order is None else "order"
    values = np.asarray(groups if order is None else order)
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one value for each row, shape ({n_rows},), got {values.shape}"
        )
    if (values != values).any() or (values.dtype == object and None in values.tolist()):
        raise ValueError(
            f"{name} has missing values; give each row a value, or leave such rows out"
        )
    # Equal values get equal numbers, in the order of the values.
    try:
        kinds, units = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} has values that cannot be compared ({error}); give them one type"
        ) from error
    if kinds.size < 2:
        raise ValueError(f"{name} has one value only ({kinds[:1]}); at least 2 are needed")
    return np.asarray(units, dtype=np.int64)


def held_out(
    n_rows: int,
    fraction: float,
    rng: Seed,
    codes: Any = None,
    groups: Any = None,
    order: Any = None,
) -> Fold:
    """Return the rows of the fit and about ``fraction`` of the rows to hold out, both increasing.

    n_rows : number of rows. rng : seed or generator. codes : (n_rows,) class of each row, or None.
    Whole groups are held out, or the end of a series (``order``). The last tenth of the rows before
    this end is in neither part, because these rows are similar to the first held-out ones. Without
    ``order``, classes keep their shares as far as the groups allow, and each class keeps a row in
    the fit. The held-out part is empty if each class is one group.
    """
    units = unit_numbers(n_rows, groups, order)
    if order is not None:
        # A series is cut between two positions, where the share of rows is nearest to the fraction.
        ends = np.cumsum(np.bincount(units))[:-1]  # number of rows before each cut
        first = 1 + int(np.argmin(np.abs(ends - (1.0 - fraction) * n_rows)))
        # The last tenth of the rows before the cut is in neither part.
        last_unit = np.sort(units)[int(0.9 * ends[first - 1])]
        return np.flatnonzero(units <= last_unit), np.flatnonzero(units >= first)
    generator = np.random.default_rng(rng)
    # Each unit (a group, or a single row) counts for the rarest class that it has.
    labels = _rarest_class(units, codes)
    sizes = np.bincount(units)
    is_held_out = np.zeros(sizes.size, dtype=bool)
    # In each class, random groups are held out until they have the fraction of its rows.
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        rows_before = np.cumsum(sizes[members]) - sizes[members]
        n_wanted = round(fraction * int(sizes[members].sum()))
        chosen = members[rows_before + sizes[members] / 2 <= n_wanted]
        is_held_out[chosen[: members.size - 1]] = True
    # A class all of whose groups are held out with rarer classes keeps one group in the fit.
    for code in np.unique(codes if codes is not None else np.zeros(0)):
        rows = np.flatnonzero(np.asarray(codes) == code)
        if is_held_out[units[rows]].all():
            is_held_out[units[rows[0]]] = False
    test = is_held_out[units]
    return np.flatnonzero(~test), np.flatnonzero(test)


def folds(
    n_rows: int, n_folds: int, rng: int, codes: Any = None, groups: Any = None, order: Any = None
) -> list[Fold]:
    """Return at most ``n_folds`` pairs of training rows and test rows.

    rng : seed. codes : (n_rows,) class of each row, or None. groups, order : see the module. Rows
    without groups are split by scikit-learn. Groups stay together, and the shares of the classes in
    the folds are as equal as the groups allow. In a series each fold is trained on the rows before
    its test rows. Folds without a training row of one of the classes are left out, because no model
    can be fitted to them.
    """
    units = unit_numbers(n_rows, groups, order)
    rows = np.arange(n_rows)
    n_units = int(units.max()) + 1
    labels = np.zeros(n_rows, dtype=np.int64) if codes is None else np.asarray(codes)
    # A series is split in the order of its positions, groups as whole groups, other rows at random.
    if order is not None:
        cuts: Any = [([0], [1])]
        if n_units > 2:
            cuts = TimeSeriesSplit(min(n_folds, n_units - 1)).split(np.arange(n_units))
        folds: list[Any] = [[np.flatnonzero(np.isin(units, part)) for part in cut] for cut in cuts]
    elif groups is not None:
        fold_of_row = _folds_of_units(units, labels, min(n_folds, n_units), rng)[units]
        parts = [fold_of_row == fold for fold in range(min(n_folds, n_units))]
        folds = [(np.flatnonzero(~part), np.flatnonzero(part)) for part in parts]
    else:
        kind = KFold if codes is None else StratifiedKFold
        smallest_class = np.unique(labels, return_counts=True)[1].min()
        if smallest_class < n_folds:
            cause = "there are" if codes is None else "a class has"
            raise ValueError(
                f"{cause} {smallest_class} rows for {n_folds} folds; give more rows or fewer folds"
            )
        folds = list(kind(n_folds, shuffle=True, random_state=rng).split(rows, labels))
    # A model needs all classes in its training rows.
    n_classes = np.unique(labels).size
    usable = [
        (train, test)
        for train, test in folds
        if test.size and np.unique(labels[train]).size == n_classes
    ]
    if len(usable) < (1 if order is not None else 2):
        cause = "the series begins" if order is not None else "all groups but one leave rows"
        raise ValueError(
            f"no folds: a class is missing where {cause}; give fewer folds or more rows"
        )
    return usable


def _folds_of_units(units: Rows, labels: Any, n_folds: int, rng: int) -> Rows:
    """Return the fold of each unit, which keeps the shares of classes in the folds about equal.

    units : (n_rows,) the unit (group) of each row. labels : (n_rows,) classes. rng : seed. The
    units are assigned one by one, the largest first, in random order among equal sizes. Each is
    assigned to the fold for which sum_ic (n_ic / n_c)^2 increases least. Here n_ic is the number of
    rows of class c in fold i, and n_c their number in all folds. Among equal folds, the one with
    the fewest rows is chosen. ``n_folds`` is the number of folds.
    """
    _, codes, totals = np.unique(labels, return_inverse=True, return_counts=True)
    counts = np.zeros((int(units.max()) + 1, totals.size))
    np.add.at(counts, (units, codes), 1.0)
    sizes = counts.sum(axis=1)
    shuffled = np.random.default_rng(rng).permutation(sizes.size)
    fold_of_unit = np.zeros(sizes.size, dtype=np.int64)
    counts_of_folds = np.zeros((n_folds, totals.size))
    # A unit with c_c rows of class c increases the sum by 2 sum_c n_ic c_c / n_c^2 in fold i, plus
    # a term that is the same in all folds.
    shares = counts / totals**2.0
    for unit in shuffled[np.argsort(-sizes[shuffled], kind="stable")].tolist():
        increases = counts_of_folds @ shares[unit]
        best_folds = np.flatnonzero(increases <= increases.min() * (1.0 + 1e-9))
        fold = best_folds[np.argmin(counts_of_folds[best_folds].sum(axis=1))]
        counts_of_folds[fold] += counts[unit]
        fold_of_unit[unit] = fold
    return fold_of_unit


def splits(
    cv: Any, X: Any, y: Any, stratified: bool, groups: Any, order: Any, params: dict[str, Any]
) -> Iterable[Fold]:
    """Return the folds of a search, as (training rows, test rows).

    cv : a splitter, an iterable of folds, or their number (None: 5). X, y : the data. stratified :
    whether y has classes. groups, order : see the module. params : arguments of ``cv.split``. With
    groups or an order, a number of folds is split by ``folds``.
    """
    # Scikit-learn splits independent rows, and any rows by a splitter of the user.
    if (groups is None and order is None) or not (cv is None or is_number(cv)):
        if order is not None:
            raise ValueError(
                "order needs cv to be a number of folds; with a splitter leave order out"
            )
        splitter = check_cv(cv, y, classifier=stratified)
        try:
            return list(splitter.split(X, y, **params))
        except ValueError as error:
            if groups is not None or "groups" not in str(error):
                raise
            raise ValueError(
                f"cv={cv!r} keeps rows of a group together; give the group of each row, "
                "fit(X, y, groups=groups)"
            ) from error
    return folds(len(y), cv or 5, 0, y if stratified else None, groups, order)


def halves(
    n_rows: int, rng: Seed, codes: Any = None, groups: Any = None, order: Any = None
) -> tuple[Rows, Rows]:
    """Return two random disjoint halves of the rows, increasing; classes keep their shares.

    rng : seed or generator. codes : (n_rows,) class of each row, or None. With ``groups`` halves
    consist of whole groups. With ``order`` they consist of stretches of the series, whose length is
    the square root of the length of the series.
    """
    units = unit_numbers(n_rows, groups, order)
    if order is not None:
        units = units // max(1, round(np.sqrt(units.max() + 1)))
    labels = _rarest_class(units, codes)
    generator = np.random.default_rng(rng)
    shuffled = generator.permutation(labels.size)
    if codes is None and groups is None and order is None:
        size = n_rows // 2
        return np.sort(shuffled[:size]), np.sort(shuffled[size : 2 * size])
    # Units sorted by class, in random order within a class; every second one is in the first half.
    shuffled = shuffled[np.argsort(labels[shuffled], kind="stable")]
    first_half = np.isin(units, shuffled[::2])
    return np.flatnonzero(first_half), np.flatnonzero(~first_half)


def permuted_rows(n_rows: int, rng: Seed, groups: Any = None, order: Any = None) -> Rows:
    """Return the row whose target each row receives: ``y[permuted_rows(...)]`` is permuted.

    rng : seed or generator. Each group gets the targets of another group in their order, repeated
    from the first if there are too few. So a target that is constant within groups remains
    constant, and groups of equal size exchange their targets. A series (``order``) is shifted by a
    random number of positions, and its end moves to the beginning. ``n_rows`` is the number of
    rows.
    """
    units = unit_numbers(n_rows, groups, order)
    generator = np.random.default_rng(rng)
    sizes = np.bincount(units)
    # The rows sorted by unit; the rows of unit u begin at position starts[u].
    rows = np.argsort(units, kind="stable")
    starts = np.cumsum(sizes) - sizes
    source_unit = np.arange(sizes.size)
    if order is None:
        source_unit = generator.permutation(source_unit)
    else:
        source_unit = np.roll(source_unit, int(generator.integers(sizes.size)))
    # Row number i of a unit receives the target of row number i (modulo size) of its source unit.
    source = source_unit[units[rows]]
    number_in_unit = np.arange(n_rows) - starts[units[rows]]
    source_row = np.empty(n_rows, dtype=np.int64)
    source_row[rows] = rows[starts[source] + number_in_unit % sizes[source]]
    return source_row


def fit_parameters(
    estimator: Any, rows: Rows | None = None, groups: Any = None, order: Any = None
) -> dict[str, Any]:
    """Return the arguments groups and order of ``estimator.fit`` for these rows (None: all).

    An argument that is None, or that ``fit`` does not have, is left out.
    """
    arguments = {"groups": groups, "order": order}
    parameters = {
        name: np.asarray(values) for name, values in arguments.items() if values is not None
    }
    return {
        name: values if rows is None else values[rows]
        for name, values in parameters.items()
        if has_fit_parameter(estimator, name)
    }


def _rarest_class(units: Rows, codes: Any) -> Rows:
    """Return the rank of the rarest class in each unit (n_units,); zeros without classes.

    units : (n_rows,) the unit of each row. codes : (n_rows,) classes. Rarer classes have larger
    ranks.
    """
    rarest_ranks = np.zeros(int(units.max()) + 1, dtype=np.int64)
    if codes is not None:
        _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(-counts, kind="stable"))  # larger: rarer
        np.maximum.at(rarest_ranks, units, rank[codes])
    return rarest_ranks
