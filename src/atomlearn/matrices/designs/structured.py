"""StructuredBlock: columns with a structure that products use."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from atomlearn.core.interfaces import Array, Block, Rows

if TYPE_CHECKING:
    from atomlearn.core.data.blocks import SparseBlock


class StructuredBlock(Block):
    """A block whose columns have a structure that products use, and need not be stored."""

    __slots__ = ()

    compresses = True

    @abstractmethod
    def explicit(self) -> SparseBlock:
        """Return the same columns with their entries stored."""

    def with_rows(self, rows: Rows) -> Block:
        return self.explicit().with_rows(rows)

    def rescaled(self, factors: Array) -> Block:
        return self.explicit().rescaled(factors)
