"""Blocks known by their products: the designs of the coordinates of a factored point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Deadline


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
