"""search_lattice: held-out scores over a parameter of a norm, its level and the norm's share.

Scores change little from one level to the next. So the search scores all values of the parameter
at levels far apart first, then the neighbors of the best point until none of them is better, and
finally the levels between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, CrossValidation, Norm, PathResult

#: Distance between the levels that are tried first. Mean scores are smoothed over neighboring
#: levels; if these are more distant, more of the noise of folds is removed. In twelve settings of
#: ``benchmarks.ksupport`` (8 to 30 draws) the mean R^2 is .7038 with 4 (24 points), .7008 with 3
#: (33 points), and .7094 for the best fixed value of the parameter.
LEVELS_APART = 4
#: Returns the scores of norms, each at its own row of levels and with its share of the penalty.
Scored = Callable[[Sequence[Norm], Array, Array], CrossValidation]
_Places = NDArray[np.int64]
#: The paths of a norm: for each fold, the path of each output.
_OfFolds = tuple[tuple[PathResult, ...], ...]


def search_lattice(
    scored: Scored, norms: Sequence[Norm], levels: Array, l1_ratios: Sequence[float] = (1.0,)
) -> CrossValidation:
    """Return held-out scores at the useful points of a grid of norms, shares and levels.

    The other scores are NaN, as most points are not tried.

    Parameters
    ----------
    scored : callable
        ``scored(norms, levels, l1_ratios)``, a row of levels and a share for each norm.
    norms : sequence of Norm
        Norms that differ in one parameter, in the order of its values.
    levels : (len(l1_ratios) * n_norms, n_levels)
        The most regularized level first. There is a row for each norm with the first share, then
        for each norm with the second share, and so on. The result has this order, too.
    l1_ratios : sequence of float
        Shares of the norm in the penalty.

    Returns
    -------
    CrossValidation
        Its choice is by mean scores that are smoothed over neighboring levels.
    """
    n_norms = len(norms)
    n_candidates, n_levels = levels.shape
    candidates = [*norms] * len(l1_ratios)
    ratios = np.repeat(l1_ratios, n_norms)
    # Rows are candidates: row i * n_norms + j is norm j with share i. Columns are levels. The first
    # round tries every fourth level. The first levels select almost no columns, the last levels and
    # the last norm nearly all: leave them out.
    values = np.arange(max(n_norms - 1, 1))
    rows = (n_norms * np.arange(len(l1_ratios))[:, None] + values).ravel()
    first = n_levels // 2
    columns = np.arange(first, max(n_levels - LEVELS_APART, first + 1), LEVELS_APART)
    tried = np.zeros(levels.shape, dtype=bool)
    found: CrossValidation | None = None
    while not tried[np.ix_(rows, columns)].all():
        tried[np.ix_(rows, columns)] = True
        tried_norms = [candidates[row] for row in rows.tolist()]
        # ``part`` has the scores of these rows and columns; put it into the whole grid.
        part = scored(tried_norms, levels[np.ix_(rows, columns)], ratios[rows])
        part = _placed(part, rows, columns, levels)
        part = replace(part, norms=tuple(candidates), l1_ratios=tuple(ratios.tolist()))
        found = part if found is None else _merged(found, part)
        if not found.status.is_converged:
            break
        # Next, the neighbors of the best point in parameter (row +- 1) and share (row +- n_norms)
        # that are not tried around its level; if there are none, the levels next to it.
        best, level = found.choose()
        nearby = slice(max(level - 1, 0), level + 2)
        same_share = [row for row in (best - 1, best + 1) if row // n_norms == best // n_norms]
        neighbors = [row for row in (*same_share, best - n_norms, best + n_norms) if row >= 0]
        fresh = [row for row in neighbors if row < n_candidates and not tried[row, nearby].any()]
        rows = np.array(fresh or [best])
        columns = level + np.array([-LEVELS_APART, 0, LEVELS_APART] if fresh else [-1, 1])
        columns = columns[(columns >= 0) & (columns < n_levels)]
    assert found is not None
    return found


def _placed(
    part: CrossValidation, rows: _Places, columns: _Places, levels: Array
) -> CrossValidation:
    """Return ``part`` extended to all candidates and levels, with NaN where nothing was tried.

    rows, columns : indices of the candidates and the levels of the part. levels : (n_candidates,
    n_levels), the whole grid.
    """

    def spread(values: Array) -> Array:
        """Return values (n_rows, n_columns, n_folds) in an array for all candidates and levels."""
        whole = np.full((*levels.shape, values.shape[2]), np.nan)
        whole[np.ix_(rows, columns)] = values
        return whole

    paths = dict(zip(rows.tolist(), part.paths, strict=True))
    return replace(
        part,
        levels=levels,
        scores=spread(part.scores),
        level_passes=spread(part.level_passes),
        n_selected=spread(part.n_selected),
        relative_gaps=spread(part.relative_gaps),
        paths=tuple(paths.get(number, ()) for number in range(len(levels))),
        smooth=True,
    )


def _merged(found: CrossValidation, more: CrossValidation) -> CrossValidation:
    """Return the scores of ``found``, completed by those of ``more``.

    Both are over the whole grid. If ``more`` lacks a fold, as after an interruption, only its
    status and its number of passes are used.
    """
    status = more.status
    if more.scores.shape != found.scores.shape:
        return replace(found, passes=found.passes + more.passes, status=status)

    def either(one: Array, other: Array) -> Array:
        """Return the entries of ``one``, and those of ``other`` where ``one`` is NaN."""
        return np.where(np.isnan(one), other, one)

    rows = zip(found.levels, found.paths, more.paths, strict=True)
    return replace(
        found,
        scores=either(found.scores, more.scores),
        level_passes=either(found.level_passes, more.level_passes),
        n_selected=either(found.n_selected, more.n_selected),
        relative_gaps=either(found.relative_gaps, more.relative_gaps),
        passes=found.passes + more.passes,
        paths=tuple(_joined_folds(*row) for row in rows),
        status=status,
    )


def _joined_folds(levels: Array, one: _OfFolds, other: _OfFolds) -> _OfFolds:
    """Return the paths of a norm for each fold and output, with the solutions of both parts.

    levels : (n_levels,), the grid of the norm. one, other : its paths in each part, empty if the
    part did not score the norm.
    """
    if not (one and other):
        return one or other
    folds = zip(one, other, strict=True)
    return tuple(
        tuple(_joined(levels, *output) for output in zip(*both, strict=True)) for both in folds
    )


def _joined(levels: Array, one: PathResult, other: PathResult) -> PathResult:
    """Return the path ``one`` with the solutions of ``other`` added, in the order of ``levels``."""
    known = []
    for level in levels:
        result = one.result_at(level / one.l1_ratio) or other.result_at(level / other.l1_ratio)
        if result is not None:
            known.append((level, result))
    return replace(
        one,
        levels=np.array([level for level, _ in known]),
        results=[result for _, result in known],
        passes=one.passes + other.passes,
        interrupted=one.interrupted or other.interrupted,
    )
