"""Parts: what a solution is the sum of, for norms with latent parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.design import Columns
from atomlearn.core.interfaces.lift import Lift
from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.norms.blocks import Blocks
from atomlearn.core.norms.groups import Groups

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """z_B of w = sum_B z_B: non-zero on ``columns`` of the set number ``group``.

    group : number of the set, as the user listed them (features in none, or the norms of a union,
    are counted on); name : what the user calls it, or None; columns : (s,) int64 features,
    increasing; weights : (s,) float64.
    """

    group: int
    name: str | None
    columns: Columns
    weights: Array


def parts_of(lift: Lift, lifted: Columns, weights: Array) -> list[Part]:
    """Return the parts of the point u = ``weights`` at ``lifted``, by the number of their set."""
    labels = _labels(lift.norm, lift.expansion.shape[1], lifted)
    result = []
    for group, columns, values in _sums(lift, lifted, weights, labels):
        used = np.flatnonzero(values)
        if used.size:
            names = lift.names
            name = names[group] if names is not None and group < len(names) else None
            result.append(Part(int(group), name or None, columns[used], values[used]))
    return result


def _sums(
    lift: Lift, lifted: Columns, weights: Array, labels: Columns
) -> Iterator[tuple[int, Columns, Array]]:
    """Yield each set in use with the features and coefficients of its part of L u."""
    features, local = lift.expansion.columns(lifted)
    if not isinstance(local, np.ndarray):
        for group in np.unique(labels):
            mine = labels == group
            yield int(group), *lift.expansion.apply(lifted[mine], weights[mine])
        return
    # Coordinates are features: all sets by one sort.
    order = np.lexsort((local, labels))
    group_of, place = labels[order], local[order]
    new = np.ones(order.size, dtype=bool)
    new[1:] = (np.diff(group_of) != 0) | (np.diff(place) != 0)
    first = np.flatnonzero(new)
    if not first.size:
        return
    sums = np.add.reduceat(weights[order], first)
    group_of, columns = group_of[first], features[place[first]]
    cuts = np.flatnonzero(np.diff(group_of)) + 1
    for start, end in pairwise([0, *cuts.tolist(), first.size]):
        yield int(group_of[start]), columns[start:end], sums[start:end]


def _labels(norm: Norm, size: int, lifted: Columns) -> Columns:
    """Return to which set each lifted coordinate belongs; one set where the norm knows none."""
    inner = norm
    while not isinstance(inner, Groups | Blocks) and isinstance(getattr(inner, "norm", None), Norm):
        inner = inner.norm  # type: ignore[attr-defined]
    if isinstance(inner, Groups):
        return np.asarray(inner.partition(size).labels[lifted])
    if isinstance(inner, Blocks):
        return np.asarray(inner.owners(size)[lifted])
    return np.zeros(lifted.size, dtype=np.int64)
