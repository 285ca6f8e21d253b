"""A search that Ctrl-C ended: what was known of it until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.paths.path import PathResult
from atomlearn.core.problem.result import Status


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C in a search; found : what the search would return of what it tried.

    A ``CrossValidation`` has NaN for levels that were not reached; they are solved from the most
    regularized on. None: nothing was tried to its end.
    """

    def __init__(self, found: Any) -> None:
        super().__init__("a search was interrupted before it had chosen")
        self.found = found


def solved(paths: Sequence[PathResult]) -> tuple[PathResult, ...]:
    """Return the paths of all outputs up to the last level that each of them has."""
    counts = []
    for path in paths:
        cut = [result.status is Status.INTERRUPTED for result in path.results]
        counts.append(cut.index(True) if True in cut else len(cut))
    n_levels = min(counts, default=0)
    return tuple(
        replace(path, levels=path.levels[:n_levels], results=path.results[:n_levels])
        for path in paths
    )


def padded(values: NDArray[np.float64], n_levels: int) -> NDArray[np.float64]:
    """Return numbers of the first levels (last axis), with NaN for those that are not there."""
    shape = (*values.shape[:-1], n_levels - values.shape[-1])
    return np.concatenate([values, np.full(shape, np.nan)], axis=-1)


def known_folds(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the folds to go by: those that are whole, else those that have begun.

    scores : (n_norms, n_levels, n_folds), NaN where not known.
    """
    known = np.isfinite(scores)
    whole = np.flatnonzero(known.all(axis=(0, 1)))
    return whole if whole.size else np.flatnonzero(known[0].any(axis=0))
