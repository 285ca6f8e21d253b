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
        return self.predict(super().predictions(images, right))


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
    if tensor is None and design.matrix_shape == shape:
        return design
    if tensor is not None and design.of_matrix is not None:
        unfolded: Design | None = design.of_matrix.unfolded(tensor, mode)
        if unfolded is not None:
            return unfolded
    if not design.listable:
        raise TypeError(
            f"{type(design).__name__} cannot multiply with a matrix, which matrix norms need; use "
            "designs.Tasks, designs.Identity, designs.Entries, or an explicit X of p q columns"
        )
    if tensor is None:
        return Reshaped(design, shape)
    order = np.moveaxis(np.arange(math.prod(tensor)).reshape(tensor), mode, 0)
    return Reshaped(design, shape, np.ascontiguousarray(order).reshape(-1))
