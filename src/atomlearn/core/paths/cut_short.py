"""A search that Ctrl-C or a time limit ended: what was known of it until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.paths.path import PathResult
from atomlearn.core.solvers.run import CUT


def ended_by(found: Sequence[Sequence[PathResult]]) -> Status:
    """Return why a search of these paths ended early, CONVERGED where it did not."""
    if any(not paths or any(path.interrupted for path in paths) for paths in found):
        return Status.INTERRUPTED
    cut = any(r.status in CUT for paths in found for path in paths for r in path.results)
    return Status.TIME_LIMIT if cut else Status.CONVERGED


def solved(paths: Sequence[PathResult]) -> tuple[PathResult, ...]:
    """Return the paths of all outputs up to the last level that each of them has.

    Where the time was out before the first level was solved, that one as it is.
    """
    counts = []
    for path in paths:
        cut = [result.status in CUT for result in path.results]
        late = cut[:1] == [True] and path.results[0].status is Status.TIME_LIMIT
        counts.append(cut.index(True) + late if True in cut else len(cut))
    n_levels = min(counts, default=0)
    return tuple(
        replace(path, levels=path.levels[:n_levels], results=path.results[:n_levels])
        for path in paths
    )


def padded_levels(values: NDArray[np.float64], n_levels: int) -> NDArray[np.float64]:
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
