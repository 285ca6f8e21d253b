"""lift_of: the lift of a norm, through the norms made of norms; merging of lifted norms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.lift import Lift
from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.norms.blocks import Blocks
from atomlearn.core.norms.combine import Scaled
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.l1 import L1
from atomlearn.core.norms.l2 import L2
from atomlearn.core.norms.partition import Partition
from atomlearn.lifting.expansion import Selection, stacked
from atomlearn.lifting.segments import Segments

Array = NDArray[np.float64]


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
    parts = [_as_groups(lift.norm, size) for lift, size in zip(lifts, sizes, strict=True)]
    if all(part is not None for part in parts):
        known = [part for part in parts if part is not None]
        return Lift(expansion, _joined(known), _names(lifts, [p.n_groups for p, _ in known]))
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


def _as_groups(norm: Norm, size: int) -> tuple[Partition, Array] | None:
    """Return the partition and the weights of a norm that is a group norm, else None."""
    if isinstance(norm, Groups):
        partition, weights = norm.parts(size)
        return partition, np.ones(partition.n_groups) if weights is None else weights
    if isinstance(norm, L1):
        return Segments(np.arange(size + 1, dtype=np.int64)), np.ones(size)
    if isinstance(norm, L2):
        return Segments(np.array([0, size], dtype=np.int64)), np.ones(1)
    if isinstance(norm, Scaled):
        inner = _as_groups(norm.norm, size)
        return None if inner is None else (inner[0], inner[1] * norm.factor)
    return None


def _joined(parts: list[tuple[Partition, Array]]) -> Groups:
    """Return one group norm over the coordinates of all, one after the other."""
    weights = np.concatenate([weight for _, weight in parts])
    if all(isinstance(partition, Segments) for partition, _ in parts):
        lengths = [np.diff(partition.starts) for partition, _ in parts]  # type: ignore[attr-defined]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        return Groups(Segments(starts), weights)
    shifts = np.cumsum([0, *(partition.n_groups for partition, _ in parts)])
    labels = [
        partition.labels + shift for (partition, _), shift in zip(parts, shifts[:-1], strict=True)
    ]
    n_groups = int(shifts[-1])
    return Groups(Partition(np.concatenate(labels), n_groups, n_groups), weights)
