"""Blocks known by their products: the designs of the coordinates of a factored point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Deadline
from atomlearn.matrices.settings import SETTINGS

if TYPE_CHECKING:
    from atomlearn.matrices.designs.base import MatrixDesign


class OperatorBlock(Block):
    """A block with ``dot`` and ``transpose_dot``; the array is made where it is asked for."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @abstractmethod
    def dot(self, weights: Array) -> Array: ...

    @abstractmethod
    def transpose_dot(self, v: Array) -> Array: ...

    def dense(self) -> Array:
        result = np.empty(self.shape, order="F")
        deadline = Deadline.current()
        for column, unit in enumerate(np.eye(self.shape[1])):
            deadline.check()
            result[:, column] = self.dot(unit)
        return result

    def _stored(self) -> DenseBlock:
        return DenseBlock(self.dense())

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        return self._stored().gram(curvature, positions)

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        return self._stored().outer(diagonal, positions)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return self._stored().squared_norms(curvature)

    def take(self, positions: Columns) -> Block:
        return self._stored().take(positions)

    def append(self, other: Block) -> Block:
        return self._stored().append(DenseBlock(np.asarray(other.dense(), dtype=np.float64)))


class SpanBlock(OperatorBlock):
    """S -> predictions of left S right', S in row-major order; ``images`` stand for left."""

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        self._design, self._images, self._right = design, images, right

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.n_samples, self._images.shape[1] * self._right.shape[1]

    def dot(self, weights: Array) -> Array:
        return self._design.predictions(*self._factors(weights))

    def _factors(self, weights: Array) -> tuple[Array, Array]:
        """Return the images of left and right of W = left S right', with few columns."""
        S = weights.reshape(self._images.shape[1], self._right.shape[1])
        if SETTINGS.samples_a_number * S.size <= self._design.n_samples:
            P, sigma, Qt = np.linalg.svd(S, full_matrices=False)
            floor = max(S.shape) * float(np.finfo(np.float64).eps) * sigma.max(initial=0.0)
            rank = int(np.count_nonzero(sigma > floor))
            if rank < sigma.size:  # as proximal maps of the trace norm leave it
                return self._images @ (P[:, :rank] * sigma[:rank]), self._right @ Qt[:rank].T
        if S.shape[0] <= S.shape[1]:
            return self._images, self._right @ S.T
        return self._images @ S, self._right

    def transpose_dot(self, v: Array) -> Array:
        return np.asarray(self._images.T @ self._design.pulled(v, self._right)).reshape(-1)


class RayBlock(OperatorBlock):
    """c -> predictions of left diag(c) right'."""

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        self._design, self._images, self._right = design, images, right

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.n_samples, self._images.shape[1]

    def dot(self, weights: Array) -> Array:
        return self._design.predictions(self._images * weights, self._right)

    def transpose_dot(self, v: Array) -> Array:
        pulled = self._design.pulled(v, self._right)
        return np.asarray(np.einsum("ij,ij->j", self._images, pulled))

    def dense(self) -> Array:
        return self._design.predictions_of_each(self._images, self._right)


class SideBySide(OperatorBlock):
    """Blocks one beside the other: A w = sum_i A_i w_i."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = list(blocks)
        self._starts = np.cumsum([0, *(block.shape[1] for block in blocks)])

    @property
    def shape(self) -> tuple[int, int]:
        return self._blocks[0].shape[0], int(self._starts[-1])

    def dot(self, weights: Array) -> Array:
        total: Array | None = None
        for block, start in zip(self._blocks, self._starts[:-1], strict=True):
            if block.shape[1]:
                part = block.dot(weights[start : start + block.shape[1]])
                total = part if total is None else np.add(total, part, out=total)
        return np.zeros(self.shape[0]) if total is None else total

    def transpose_dot(self, v: Array) -> Array:
        return np.concatenate([block.transpose_dot(v) for block in self._blocks])

    def dense(self) -> Array:
        blocks = [np.asarray(block.dense(), dtype=np.float64) for block in self._blocks]
        return np.asfortranarray(np.hstack(blocks))
