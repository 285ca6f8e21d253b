"""lift_of: the lift of a norm, through the norms made of norms; merging of lifted norms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from atomlearn.core.interfaces import Lift, Norm
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.lifting.blocks import Blocks
from atomlearn.lifting.expansion import Selection, stacked
from atomlearn.lifting.segments import Segments


def plain_lift(norm: Norm, n_features: int) -> Lift:
    """Return the lift of the norm; a norm without one is lifted by the identity."""
    lift = norm.lift(n_features)
    if lift is not None:
        return lift
    return Lift(Selection(np.arange(n_features, dtype=np.int64), n_features), norm)


def union(lifts: list[Lift]) -> Lift:
    """Return the lift of inf { sum_i gauge_i(w_i) : sum_i w_i = w }: coordinates side by side.

    Group norms, l1, l2 and scaled ones become one group norm; others keep a block each.
    """
    sizes = [lift.expansion.shape[1] for lift in lifts]
    expansion = stacked([lift.expansion for lift in lifts])
    parts = [lift.norm.as_groups(size) for lift, size in zip(lifts, sizes, strict=True)]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts):
        counts = [p.partition(size).n_groups for p, size in zip(known, sizes, strict=True)]
        return Lift(expansion, _joined(known, sizes), _names(lifts, counts))
    starts = np.cumsum([0, *sizes])
    columns = [np.arange(a, b) for a, b in pairwise(starts)]
    return Lift(expansion, Blocks([lift.norm for lift in lifts], columns))


def _names(lifts: list[Lift], sizes: list[int]) -> tuple[str, ...] | None:
    """Return the names of all sets one after the other, None where no norm has any."""
    if all(lift.names is None for lift in lifts):
        return None
    names: list[str] = []
    for lift, size in zip(lifts, sizes, strict=True):
        own = list(lift.names or ())
        names += own + [""] * (size - len(own))
    return tuple(names)


def _joined(parts: list[Groups], sizes: list[int]) -> Groups:
    """Return one group norm over the coordinates of all, one after the other."""
    read = [norm.parts(size) for norm, size in zip(parts, sizes, strict=True)]
    counts = [partition.n_groups for partition, _ in read]
    weights = [
        np.ones(partition.n_groups) if weight is None else weight for partition, weight in read
    ]
    shifts = np.cumsum([0, *counts])
    labels = np.concatenate(
        [partition.labels + shift for (partition, _), shift in zip(read, shifts[:-1], strict=True)]
    )
    n_groups = int(shifts[-1])
    runs = np.diff(labels, prepend=-1)
    if np.isin(runs, (0, 1)).all():  # set after set: runs of neighbours are summed faster
        starts = np.append(np.flatnonzero(runs), labels.size).astype(np.int64)
        return Groups(Segments(starts), np.concatenate(weights))
    return Groups(Partition(labels, n_groups, n_groups), np.concatenate(weights))
