"""MatrixDesign: a linear operator on matrices W (p, q), as a design with columns W[i, j].

The module also provides implicit matrices from the coordinates of a factored W to predictions, and
``Reshaped``, which treats an explicit design with p q columns as an operator on matrices (matrix
sensing).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from atomlearn._support import Deadline
from atomlearn.core import (
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    Design,
    Scores,
    Traits,
    unwrapped,
)
from atomlearn.matrices.scores import MatrixScores, Shape, score_matrix


class MatrixDesign(Design):
    """A linear operator X vec(W) for W (p, q) that avoids forming W = left right'.

    ``images(left)`` is computed once for each left factor. Then ``predictions(images, right)``
    returns the predictions of left right', and ``pulled`` is the adjoint. By default the images are
    the left factor itself. Subclasses may override the three methods.
    """

    @property
    def matrix_shape(self) -> Shape:
        """(p, q) of ``traits``; the design has p q columns."""
        return cast(Shape, self.traits.matrix_shape)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design | None:
        """Return the design of the mode-th unfolding of a tensor of this shape.

        The unfolding has shape[mode] rows; its columns run over the other modes in order. The
        result is None if the caller must reorder the columns of this design instead.
        """
        return None

    def dual_of(self, scores: Array) -> Array | None:
        """Return v (n_samples,) with X'v = ``scores`` (p, q).

        The result is None if some matrices of scores have no such v.
        """
        return None

    def ridge_steps(self) -> Callable[[Array], Any] | None:
        """Return a function from sample weights to alternating ridge regression steps.

        None if such steps for the factors of W would cost more than a few products.
        """
        return None

    @abstractmethod
    def predict(self, weights: Array) -> Array:
        """Return the predictions X w, (n_samples,), in one pass; w are the ``weights`` (p q,)."""

    def predictions(self, images: Array, right: Array) -> Array:
        """Return the predictions of W = left right', given the ``images`` of left."""
        return np.asarray(images @ right.T).reshape(-1)

    def pulled(self, v: Array, right: Array) -> Array:
        """Return P with images(left)' P = left' Z right for each left, Z (p, q) the scores of v.

        By default P = Z right, (p, s) for ``right`` (q, s).
        """
        return score_matrix(self.scores(v), self.matrix_shape).dot(right)

    def images(self, left: Array) -> Array:
        """Return the images of a left factor (p, r), the first argument of ``predictions``."""
        return left

    def span(self, left: Array, right: Array) -> Block:
        """Return the implicit matrix from S (r, s) to the predictions of left S right'."""
        return SpanBlock(self, self.images(left), right)

    def rays(self, left: Array, right: Array) -> Block:
        """Return the implicit matrix from c (m,) to the predictions of left diag(c) right'."""
        return RayBlock(self, self.images(left), right)


class OperatorBlock(Block):
    """An implicit matrix defined by ``predict`` and ``scores``; the array is formed if needed."""

    def column(self, number: int) -> Array:
        """Return the column of the block at position ``number``, (n_samples,)."""
        unit = np.zeros(self.shape[1])
        unit[number] = 1.0
        return self.predict(unit)

    def dense(self) -> Array:
        """Return the array, one column after the other; a deadline interrupts it."""
        result = np.empty(self.shape, order="F")
        deadline = Deadline.current()
        for number in range(self.shape[1]):
            deadline.check()
            result[:, number] = self.column(number)
        return result

    def _stored(self) -> DenseBlock:
        """Return the same columns as a dense block."""
        return DenseBlock(self.dense())

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A' diag(curvature) A for the columns at ``positions``, by the dense block."""
        return self._stored().gram(curvature, positions)

    def gather(self, columns: Columns) -> Block:
        """Return the columns at these positions as a dense block."""
        return self._stored().gather(columns)

    def append(self, other: Block) -> Block:
        """Return a dense block with the columns of this block and of ``other``."""
        return self._stored().append(DenseBlock(np.asarray(other.dense(), dtype=np.float64)))


class SideBySide(OperatorBlock):
    """The horizontal concatenation [A_1, A_2, ...] of blocks: A w = sum_i A_i w_i."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        """Store the blocks, which have the same rows, and the first column of each."""
        self._blocks = list(blocks)
        self._starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
        self.shape = self._blocks[0].shape[0], int(self._starts[-1])

    def predict(self, weights: Array) -> Array:
        """Return A w = sum_i A_i w_i for ``weights`` w, where w_i are the weights of block i."""
        parts = zip(self._blocks, np.split(weights, self._starts[1:-1]), strict=True)
        return sum((block.predict(w) for block, w in parts if w.size), np.zeros(self.shape[0]))

    def scores(self, v: Array) -> Scores:
        """Return A'v, the concatenation of all A_i'v."""
        return ArrayScores(np.concatenate([block.scores(v).full() for block in self._blocks]))

    def dense(self) -> Array:
        """Return the array A (n_samples, m)."""
        blocks = [np.asarray(block.dense(), dtype=np.float64) for block in self._blocks]
        return np.asfortranarray(np.hstack(blocks))


class FactorBlock(OperatorBlock):
    """An implicit matrix from coordinates of W = left M right' to its predictions, with M varying.

    It stores ``images``, those of the left factor, and ``right`` (q, s).
    """

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        """Store the design, the images of the left factor, and the right factor (q, s)."""
        self._design = design
        self._images = images
        self._right = right
        self.shape = design.shape[0], images.shape[1]


class SpanBlock(FactorBlock):
    """The implicit matrix of the map from S (r, s), row-major, to predictions of left S right'.

    ``images`` are the images of the left factor under ``design``, and ``right`` is (q, s).
    """

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        """Store the design, the images of the left factor, and right (q, s): r s columns."""
        super().__init__(design, images, right)
        self.shape = design.shape[0], images.shape[1] * right.shape[1]

    def predict(self, weights: Array) -> Array:
        """Return the predictions of left S right' for the core S = ``weights``, row-major."""
        # The smaller basis is multiplied with S.
        S = weights.reshape(self._images.shape[1], self._right.shape[1])
        if S.shape[0] <= S.shape[1]:
            return self._design.predictions(self._images, self._right @ S.T)
        return self._design.predictions(self._images @ S, self._right)

    def scores(self, v: Array) -> Scores:
        """Return the adjoint: left'Z right for the scores Z (p, q) of v, row-major."""
        pulled = self._images.T @ self._design.pulled(v, self._right)
        return ArrayScores(pulled.reshape(-1))


class RayBlock(FactorBlock):
    """The implicit matrix of the map from c (m,) to the predictions of left diag(c) right'."""

    def predict(self, weights: Array) -> Array:
        """Return the predictions of left diag(c) right' for c = ``weights``."""
        return self._design.predictions(self._images * weights, self._right)

    def scores(self, v: Array) -> Scores:
        """Return the adjoint: u_h'Z v_h for each pair of columns u_h of left and v_h of right.

        Z (p, q) are the scores of v.
        """
        pulled = self._design.pulled(v, self._right)
        return ArrayScores(np.einsum("ij,ij->j", self._images, pulled))

    def column(self, number: int) -> Array:
        """Return the predictions of the pair of columns at position ``number``."""
        pair = slice(number, number + 1)
        return self._design.predictions(self._images[:, pair], self._right[:, pair])


class Reshaped(MatrixDesign):
    """A design with p q columns as a linear operator on matrices W (p, q), row by row.

    Products with factors form W, which is no larger than one row of the design.

    Parameters
    ----------
    base : Design
        The design.
    shape : (p, q)
        Shape of the matrix.
    order : (p q,) int64, optional
        Column of the design for each entry of W, row-major; None: the same order.
    """

    def __init__(self, base: Design, shape: Shape, order: Columns | None = None) -> None:
        """Store the design, the shape (p, q) of W, and the column of each entry of W."""
        self.base = base
        self.order = order
        self.traits = Traits(base.traits.reads_at_once, matrix_shape=shape)
        self.shape = self.base.shape
        self.dtype = self.base.dtype

    @property
    def listable(self) -> bool:
        """Whether the columns are few enough to be listed."""
        return self.base.listable

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v as a matrix (p, q)."""
        return self._matrix(self.base.scores(v).full())

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of V (n_samples, m), in one pass."""
        return [self._matrix(z.full()) for z in self.base.scores_many(V)]

    def _matrix(self, z: Array) -> MatrixScores:
        """Return the scores z of the base design as a matrix (p, q), in the order of W."""
        return MatrixScores(
            np.reshape(z if self.order is None else z[self.order], self.matrix_shape)
        )

    def gather(self, columns: Columns) -> Block:
        """Return the columns of these entries of W, a block of the base design."""
        return self.base.gather(columns if self.order is None else self.order[columns])

    def predict(self, weights: Array) -> Array:
        """Return the predictions X w, (n_samples,), for ``weights`` w (p q,) in the order of W."""
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
    """Return the design as an operator on matrices of this shape, or on a tensor's unfolding.

    If ``tensor`` is its shape (d_1, ..., d_M), the matrix is the unfolding along ``mode``: d_mode
    rows, and the other modes in order as columns.

    Raises
    ------
    TypeError, ValueError
        If the design has another number of columns, or cannot multiply with factors or dense w.
    """
    if design.shape[1] != math.prod(shape):
        raise ValueError(
            f"a matrix of shape {shape} has {math.prod(shape)} entries and the design "
            f"{design.shape[1]} columns; give the norm the shape of the matrix"
        )
    if tensor is None and design.traits.matrix_shape == shape:
        return design
    # A design of matrices may know its unfoldings. Wrappers around it, such as counters, do not.
    if tensor is not None and design.traits.matrix_shape is not None:
        unfolded: Design | None = unwrapped(design).unfolded(tensor, mode)
        if unfolded is not None:
            return unfolded
    if not design.listable:
        raise TypeError(
            f"{type(design).__name__} cannot multiply with a matrix, which matrix norms need; use "
            "designs.Tasks, designs.Identity, designs.Entries, or an explicit X of p q columns"
        )
    if tensor is None:
        return Reshaped(design, shape)
    # The entries of the tensor in the order of the unfolding.
    order = np.moveaxis(np.arange(math.prod(tensor)).reshape(tensor), mode, 0)
    return Reshaped(design, shape, np.ascontiguousarray(order).reshape(-1))
