"""Segments: a partition into runs of neighbours, for lifted coordinates set after set."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.norms.partition import Partition


class Segments(Partition):
    """Group g holds the coordinates starts[g] .. starts[g + 1] - 1; ``starts``: (n_groups + 1,)."""

    def __init__(self, starts: Columns) -> None:
        n_groups = starts.size - 1
        labels = np.repeat(np.arange(n_groups, dtype=np.int64), np.diff(starts))
        super().__init__(labels, n_groups, n_groups)
        self.starts = starts

    def norms_of_scores(self, scores: Scores) -> Array:
        """Return the l2 norm of z over each group; once for the scores of one pass."""
        if not self.n_groups:
            return np.zeros(0)
        return scores.once(self, lambda: segment_norms(scores.full(), self.starts))

    def restrict(self, columns: Columns) -> tuple[Partition, Columns]:
        """Return the partition of these columns, in segments where they come set after set."""
        labels = self.labels[columns]
        begins = np.flatnonzero(np.diff(labels, prepend=-1))
        kept = labels[begins]
        if (np.diff(kept) > 0).all():
            return Segments(np.append(begins, columns.size).astype(np.int64)), kept
        return super().restrict(columns)

    def members(self, numbers_of_groups: Columns) -> Columns:
        """Return the coordinates of these groups, group after group."""
        sizes = self.starts[numbers_of_groups + 1] - self.starts[numbers_of_groups]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if ends.size else 0
        shift = np.repeat(self.starts[numbers_of_groups] - (ends - sizes), sizes)
        return np.asarray(np.arange(total, dtype=np.int64) + shift)


def segment_norms(z: Array, starts: Columns) -> Array:
    """Return the l2 norm of z over each run, none of which is empty."""
    return np.sqrt(np.add.reduceat(z * z, starts[:-1]))
