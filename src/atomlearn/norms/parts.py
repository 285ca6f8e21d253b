"""Parts: what a solution is the sum of, for norms with latent parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces.design import Columns
from atomlearn.interfaces.lift import Lift
from atomlearn.interfaces.norm import Norm
from atomlearn.norms.blocks import Blocks
from atomlearn.norms.groups import Groups

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
    for group in np.unique(labels):
        mine = labels == group
        columns, values = lift.expansion.apply(lifted[mine], weights[mine])
        used = np.flatnonzero(values)
        if used.size:
            names = lift.names
            name = names[group] if names is not None and group < len(names) else None
            result.append(Part(int(group), name or None, columns[used], values[used]))
    return result


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
