"""The pairs of inputs that ``designs.Anova`` takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Columns


def checked_pairs(pairs: object, n_inputs: int) -> Columns:
    """Return the pairs (i, j), i < j, as (n_pairs, 2): all where None; raise with the remedy."""
    if pairs is None:
        i, j = np.triu_indices(n_inputs, 1)
        return np.stack([i, j], axis=1).astype(np.int64)
    if not isinstance(pairs, Iterable):
        raise TypeError(f"Anova: pairs must be a list of pairs of inputs, got {pairs!r}")
    given = np.asarray(list(pairs))
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise TypeError(
            f"Anova: pairs must be a list of pairs (i, j) of whole numbers, got dtype "
            f"{given.dtype} of shape {given.shape}"
        )
    ordered: NDArray[np.int64] = np.sort(given.astype(np.int64), axis=1)
    if ordered.min() < 0 or ordered.max() >= n_inputs or (ordered[:, 0] == ordered[:, 1]).any():
        raise ValueError(
            f"Anova: pairs must be of two different inputs in 0..{n_inputs - 1}; of one input "
            "there is a curve anyway"
        )
    unique = np.unique(ordered, axis=0)
    if len(unique) < len(ordered):
        raise ValueError("Anova: pairs names a pair twice; name each once")
    return ordered
