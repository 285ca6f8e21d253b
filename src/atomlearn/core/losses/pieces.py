"""Losses piece by piece: sums over many samples without temporary arrays of their number.

A piece and what is computed from it stay in the processor's cache, and a solver over millions of
samples holds the vectors it needs to keep, not those that a formula passes through.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atomlearn.core.interfaces import Array, Loss

#: Samples of a piece: 256 kB a vector.
PIECE = 2**15


def is_one(loss: Loss, n_samples: int) -> bool:
    """Return whether all samples are one piece, and nothing needs to be cut."""
    return n_samples <= PIECE or not 0 < loss.coupled <= PIECE


def each_piece(loss: Loss, n_samples: int) -> Iterator[tuple[slice, Loss]]:
    """Yield slices of the samples, and the loss of each, such that the loss is a sum over them."""
    size = n_samples if is_one(loss, n_samples) else PIECE - PIECE % loss.coupled
    for start in range(0, n_samples, size):
        piece = slice(start, start + size)
        yield piece, loss.part(piece)


def shifted(linear: Array, shift: float) -> Array:
    """Return linear + shift; the very array where there is no shift."""
    return linear + shift if shift else linear


def value(loss: Loss, y: Array, linear: Array, weight: Array, shift: float = 0.0) -> float:
    """Return f(linear + shift)."""
    if is_one(loss, y.size):
        return loss.value(y, shifted(linear, shift), weight)
    return sum(
        own.value(y[part], shifted(linear[part], shift), weight[part])
        for part, own in each_piece(loss, y.size)
    )


def gradient(
    loss: Loss,
    y: Array,
    linear: Array,
    weight: Array,
    shift: float = 0.0,
    out: Array | None = None,
) -> Array:
    """Return f'(linear + shift), (n_samples,); in ``out`` where it is given."""
    if out is None and is_one(loss, y.size):
        return loss.gradient(y, shifted(linear, shift), weight)
    result = np.empty(y.size) if out is None else out
    for part, own in each_piece(loss, y.size):
        result[part] = own.gradient(y[part], shifted(linear[part], shift), weight[part])
    return result


def conjugate(loss: Loss, y: Array, dual: Array, weight: Array, factor: float = 1.0) -> float:
    """Return f*(factor dual)."""
    if is_one(loss, y.size):
        return loss.conjugate(y, factor * dual, weight)
    return sum(
        own.conjugate(y[part], factor * dual[part], weight[part])
        for part, own in each_piece(loss, y.size)
    )


def slope(loss: Loss, y: Array, linear: Array, weight: Array, shift: float) -> tuple[float, float]:
    """Return the sum of f'(linear + shift), and that of its magnitudes."""
    total, size = 0.0, 0.0
    for part, own in each_piece(loss, y.size):
        slopes = own.gradient(y[part], shifted(linear[part], shift), weight[part])
        total += float(slopes.sum())
        size += float(np.abs(slopes, out=slopes).sum())
    return total, size


def curvature(loss: Loss, y: Array, linear: Array, weight: Array, shift: float = 0.0) -> float:
    """Return the sum of the curvatures at linear + shift."""
    total = 0.0
    for part, own in each_piece(loss, y.size):
        total += float(own.curvature(y[part], shifted(linear[part], shift), weight[part]).sum())
    return total


def squares(v: Array, weight: Array) -> float:
    """Return sum_i v_i^2 / s_i over the samples with a weight."""
    total = 0.0
    for start in range(0, v.size, PIECE):
        part, s = v[start : start + PIECE], weight[start : start + PIECE]
        total += float(part @ np.divide(part, s, out=np.zeros_like(part), where=s > 0))
    return total
