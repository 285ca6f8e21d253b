"""Losses evaluated in pieces of samples, without temporary arrays of n_samples numbers.

A piece and the values computed from it stay in the processor's cache. Temporary arrays are
as small as a piece, which saves memory with millions of samples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.around import loss_of_rows

#: Number of samples in a piece: a vector over them takes 256 kB.
PIECE = 2**15


#: A piece: its rows, its loss, and its targets, predictions and weights.
Piece = tuple[slice, Loss, Array, Array, Array]


def each_piece(loss: Loss, y: Array, z: Array, s: Array, shift: float = 0.0) -> Iterator[Piece]:
    """Yield rows, loss, y, z + shift and s of consecutive pieces of samples.

    rows : the slice of a piece; loss : the loss restricted to it. y are targets, z predictions and
    s weights, each (n_samples,). f of all samples is the sum over the pieces. A loss that couples
    all samples has one piece.
    """
    n_in_piece = y.size
    # Pieces end between groups of ``coupled`` samples; 0 means that all samples are one group.
    if y.size > PIECE >= loss.coupled > 0:
        n_in_piece = PIECE - PIECE % loss.coupled
    for start in range(0, y.size, n_in_piece):
        rows = slice(start, start + n_in_piece)
        piece_loss = loss if n_in_piece == y.size else loss_of_rows(loss, rows)
        yield rows, piece_loss, y[rows], z[rows] + shift if shift else z[rows], s[rows]


def value(loss: Loss, y: Array, linear: Array, weight: Array, shift: float = 0.0) -> float:
    """Return f(linear + shift), the loss summed over all samples; ``weight`` are their weights.

    y : targets.
    """
    total = 0.0
    for _, piece_loss, target, z, s in each_piece(loss, y, linear, weight, shift):
        total += piece_loss.value(target, z, s)
    return total


def gradient(loss: Loss, y: Array, linear: Array, weight: Array, shift: float = 0.0) -> Array:
    """Return the gradient f'(linear + shift), (n_samples,); ``weight`` are the sample weights.

    y : targets.
    """
    result = np.empty(y.size)
    for rows, piece_loss, target, z, s in each_piece(loss, y, linear, weight, shift):
        result[rows] = piece_loss.gradient(target, z, s)
    return result


def conjugate(loss: Loss, y: Array, dual: Array, weight: Array, factor: float = 1.0) -> float:
    """Return f*(factor u), the conjugate of the loss, for u = ``dual`` and the sample weights.

    y : targets.
    """
    total = 0.0
    for _, piece_loss, target, u, s in each_piece(loss, y, dual, weight):
        total += piece_loss.conjugate(target, factor * u, s)
    return total


def slope(loss: Loss, y: Array, linear: Array, weight: Array, shift: float) -> tuple[float, float]:
    """Return the derivative of f(linear + shift) with respect to ``shift``, a sum over samples.

    The second number is the sum of the magnitudes of its terms; the rounding error of the sum is
    proportional to it. loss, y, weight : the loss, its targets and its sample weights.
    """
    total = 0.0
    magnitudes = 0.0
    for _, piece_loss, target, z, s in each_piece(loss, y, linear, weight, shift):
        slopes = piece_loss.gradient(target, z, s)
        total += float(slopes.sum())
        magnitudes += float(np.abs(slopes, out=slopes).sum())
    return total, magnitudes


def curvature(loss: Loss, y: Array, linear: Array, weight: Array, shift: float = 0.0) -> float:
    """Return the second derivative of f(linear + shift) with respect to ``shift``.

    loss, y, weight : the loss, its targets and its sample weights.
    """
    total = 0.0
    for _, piece_loss, target, z, s in each_piece(loss, y, linear, weight, shift):
        total += float(piece_loss.curvature(target, z, s).sum())
    return total


def squares(v: Array, weight: Array) -> float:
    """Return sum_i v_i^2 / s_i over the samples with s_i > 0; s = ``weight``.

    For the squared loss with the gradient v_i = s_i r_i, it is sum_i s_i r_i^2, the weighted sum of
    squared residuals.
    """
    total = 0.0
    for start in range(0, v.size, PIECE):
        piece = v[start : start + PIECE]
        s = weight[start : start + PIECE]
        total += float(piece @ np.divide(piece, s, out=np.zeros_like(piece), where=s > 0))
    return total
