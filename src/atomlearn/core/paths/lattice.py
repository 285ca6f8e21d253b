"""search_lattice: held-out scores over a parameter of a norm and its level, near the best alone.

From one value of the parameter to the next, and from one level to the next, scores change little.
So a coarse lattice of both is scored first, then what is beside the best of it, until nothing is,
and then the levels in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Norm
from atomlearn.core.paths.cross_validation import CrossValidation
from atomlearn.core.paths.path import PathResult

#: How far apart values and levels of the coarse lattice are.
VALUES_APART = 3
LEVELS_APART = 2
#: Returns the scores of norms, each at its own row of levels.
Scored = Callable[[Sequence[Norm], Array], CrossValidation]
#: The same with the share of the norm in the penalty, the keyword ``l1_ratio``.
ScoredWith = Callable[..., CrossValidation]
_Places = NDArray[np.int64]
#: The paths of a norm: by fold, that of each output.
_OfFolds = tuple[tuple[PathResult, ...], ...]


def search_lattice(scored: Scored, norms: Sequence[Norm], levels: Array) -> CrossValidation:
    """Return the scores of norms that differ in one parameter, in its order; most are NaN.

    ``levels`` : (n_norms, n_levels), the most regularized first. The mean scores that are compared
    are smoothed over neighbouring levels.
    """
    n_norms, n_levels = levels.shape
    # The first levels select next to nothing, the last ones and the last value nearly all.
    rows = np.arange(0, max(n_norms - 1, 1), VALUES_APART)
    first = n_levels // 3
    columns = np.arange(first, max(n_levels - LEVELS_APART, first + 1), LEVELS_APART)
    tried = np.zeros(levels.shape, dtype=bool)
    found: CrossValidation | None = None
    while not tried[np.ix_(rows, columns)].all():
        tried[np.ix_(rows, columns)] = True
        part = scored([norms[r] for r in rows.tolist()], levels[np.ix_(rows, columns)])
        part = _placed(part, rows, columns, norms, levels)
        found = part if found is None else _merged(found, part)
        if not found.status.is_converged:
            break
        norm, level = found.choose()
        here = slice(max(level - 1, 0), level + 2)
        beside = [r for r in (norm - 1, norm + 1) if 0 <= r < n_norms and not tried[r, here].any()]
        rows = np.array(beside or [norm])
        columns = level + np.array([-LEVELS_APART, 0, LEVELS_APART] if beside else [-1, 1])
        columns = columns[(columns >= 0) & (columns < n_levels)]
    assert found is not None
    return found


def search_lattices(
    scored: ScoredWith, norms: Sequence[Norm], levels: Array, l1_ratios: Sequence[float]
) -> CrossValidation:
    """Return the scores of a lattice for each share of the norm in the penalty, in their order.

    ``levels`` : (len(l1_ratios) * n_norms, n_levels), those of all norms with the first share, then
    with the second, ...: the order of the candidates in the result. A search that is cut short has
    the first of them.
    """
    found: CrossValidation | None = None
    for l1_ratio, rows in zip(l1_ratios, np.split(levels, len(l1_ratios)), strict=True):
        part = search_lattice(partial(scored, l1_ratio=l1_ratio), norms, rows)
        found = part if found is None else _stacked(found, part)
        if not found.status.is_converged:
            break
    assert found is not None
    return found


def _stacked(found: CrossValidation, more: CrossValidation) -> CrossValidation:
    """Return the candidates of both; those of a part that was cut short if all folds are known."""
    found = replace(found, passes=found.passes + more.passes, status=more.status)
    if more.scores.shape[2] != found.scores.shape[2]:
        return found
    return replace(
        found,
        norms=found.norms + more.norms,
        l1_ratios=found.l1_ratios + more.l1_ratios,
        levels=np.vstack([found.levels, more.levels]),
        scores=np.vstack([found.scores, more.scores]),
        level_passes=np.vstack([found.level_passes, more.level_passes]),
        n_selected=np.vstack([found.n_selected, more.n_selected]),
        relative_gaps=np.vstack([found.relative_gaps, more.relative_gaps]),
        paths=found.paths + more.paths,
    )


def _placed(
    part: CrossValidation, rows: _Places, columns: _Places, norms: Sequence[Norm], levels: Array
) -> CrossValidation:
    """Return the scores of a part among those of all norms and levels."""

    def spread(values: Array) -> Array:
        whole = np.full((*levels.shape, values.shape[2]), np.nan)
        whole[np.ix_(rows, columns)] = values
        return whole

    paths = dict(zip(rows.tolist(), part.paths, strict=True))
    return replace(
        part,
        norms=tuple(norms),
        l1_ratios=part.l1_ratios[:1] * len(norms),
        levels=levels,
        scores=spread(part.scores),
        level_passes=spread(part.level_passes),
        n_selected=spread(part.n_selected),
        relative_gaps=spread(part.relative_gaps),
        paths=tuple(paths.get(number, ()) for number in range(len(norms))),
        smooth=True,
    )


def _merged(found: CrossValidation, more: CrossValidation) -> CrossValidation:
    """Return the scores of both; of a part that was cut short only where all folds are known."""
    status = more.status
    if more.scores.shape != found.scores.shape:
        return replace(found, passes=found.passes + more.passes, status=status)

    def either(one: Array, other: Array) -> Array:
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
    """Return the paths of the folds of a norm, each with the solutions of both parts.

    A norm that a part did not score has no paths there.
    """
    if not (one and other):
        return one or other
    folds = zip(one, other, strict=True)
    return tuple(
        tuple(_joined(levels, *output) for output in zip(*both, strict=True)) for both in folds
    )


def _joined(levels: Array, one: PathResult, other: PathResult) -> PathResult:
    """Return a path with the solutions of both, in the order of the levels of the grid."""
    known = [(at, r) for at in levels if (r := one.at(at) or other.at(at)) is not None]
    return replace(
        one,
        levels=np.array([at for at, _ in known]),
        results=[result for _, result in known],
        passes=one.passes + other.passes,
        interrupted=one.interrupted or other.interrupted,
    )
