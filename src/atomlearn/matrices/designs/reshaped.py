"""Reshaped: any explicit design of p q columns, read as a design of matrices (matrix sensing)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import MatrixScores
from atomlearn.matrices.shapes import Shape


class Reshaped(MatrixDesign):
    """The columns of a design in another order, as the entries of a matrix, row after row.

    order : (p q,) int64, the column of the design behind each entry; None: as they come. A
    product with a factored point forms W, which the design stores columns for anyway.
    """

    def __init__(self, base: Design, shape: Shape, order: Columns | None = None) -> None:
        self.base, self.order = base, order
        self._shape = shape

    @property
    def matrix_shape(self) -> Shape:
        """(p, q)."""
        return self._shape

    @property
    def listable(self) -> bool:
        return self.base.listable

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    def scores(self, v: Array) -> Scores:
        return self._matrix(self.base.scores(v).full())

    def scores_many(self, V: Array) -> Sequence[Scores]:
        return [self._matrix(z.full()) for z in self.base.scores_many(V)]

    def passes_of_many(self, count: int) -> float:
        return self.base.passes_of_many(count)

    def _matrix(self, z: Array) -> MatrixScores:
        return MatrixScores(np.reshape(z if self.order is None else z[self.order], self._shape))

    def gather(self, columns: Columns) -> Block:
        return self.base.gather(columns if self.order is None else self.order[columns])

    def predict(self, weights: Array) -> Array:
        """Return X w."""
        if self.order is not None:
            ordered = np.empty(weights.size)
            ordered[self.order] = weights
            weights = ordered
        return self.base.predict(np.ascontiguousarray(weights))

    def predictions(self, images: Array, right: Array) -> Array:
        """Return X vec(images right')."""
        return self.predict(np.asarray(images @ right.T).reshape(-1))

    def pulled(self, v: Array, right: Array) -> Array:
        """Return Z right for the matrix Z of X'v."""
        return np.asarray(np.reshape(self.scores(v).full(), self.matrix_shape) @ right)

    unfolds = True

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design of the entries of the mode-th unfolding."""
        order = np.arange(self.shape[1]) if self.order is None else self.order
        moved = np.ascontiguousarray(np.moveaxis(np.reshape(order, shape), mode, 0))
        return Reshaped(self.base, (shape[mode], moved.size // shape[mode]), moved.reshape(-1))


def as_matrix_design(
    design: Design, shape: Shape, tensor: tuple[int, ...] | None = None, mode: int = 0
) -> Design:
    """Return the design of matrices of this shape, or of the mode-th unfolding of a tensor.

    Raises
    ------
    TypeError, ValueError
        Where the design has other columns, or can neither multiply with factors nor with dense w.
    """
    if design.shape[1] != math.prod(shape):
        raise ValueError(
            f"a matrix of shape {shape} has {math.prod(shape)} entries and the design "
            f"{design.shape[1]} columns; give the norm the shape of the matrix"
        )
    known: MatrixDesign | None = design.of_matrix
    if tensor is not None and known is not None and known.unfolds:
        return known.unfolded(tensor, mode)
    if tensor is None and design.matrix_shape == shape:
        return design
    if not design.listable:
        raise TypeError(
            f"{type(design).__name__} cannot multiply with a matrix, which matrix norms need; use "
            "designs.Tasks, designs.Identity, designs.Entries, or an explicit X of p q columns"
        )
    plain = Reshaped(design, shape if tensor is None else (tensor[0], math.prod(tensor[1:])))
    return plain if tensor is None else plain.unfolded(tensor, mode)
