"""PairIndex: numbers of the columns of a degree-2 map, encoded and decoded in O(1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import LIMITS, Array, Columns


@dataclass(frozen=True, slots=True)
class PairIndex:
    """Columns 0 .. d-1 are the inputs; then come their products in lexicographic order.

    With squares the products are (0, 0), (0, 1), ..., (0, d-1), (1, 1), ...; without squares (0,
    1), (0, 2), ..., (1, 2), ... The pairs of one input i are consecutive.

    Attributes
    ----------
    n_inputs : int
        Number of inputs, d.
    squares : bool
        Whether (i, i) are columns.
    """

    n_inputs: int
    squares: bool

    def __post_init__(self) -> None:
        """Raise an error if there are too many inputs to number their pairs."""
        LIMITS.check_columns(self.n_inputs)  # the numbers of their pairs fit into 64 bits

    @property
    def shift(self) -> int:
        """0 with squares, else 1: the pairs of input i begin with j = i + shift."""
        return 0 if self.squares else 1

    @property
    def n_rows(self) -> int:
        """Number of inputs i that begin a pair."""
        return self.n_inputs - self.shift

    @property
    def n_columns(self) -> int:
        """Number of columns: d + d (d + 1) / 2 with squares, d + d (d - 1) / 2 without."""
        return self.n_inputs + self.n_rows * (self.n_rows + 1) // 2

    def starts(self, i: Columns) -> Columns:
        """Return the column of the first pair of each input i."""
        # i (i - 1) is even, so that the division is exact.
        first: Columns = self.n_inputs + i * self.n_rows - i * (i - 1) // 2
        return first

    def columns(self, i: Columns, j: Columns) -> Columns:
        """Return the columns of the pairs i <= j (i < j without squares); j = -1 means input i."""
        i = np.asarray(i, dtype=np.int64)
        j = np.asarray(j, dtype=np.int64)
        paired: Columns = np.where(j < 0, i, self.starts(i) + (j - i - self.shift))
        return paired

    def pairs(self, columns: Columns) -> tuple[Columns, Columns]:
        """Return (i, j) of each column, j = -1 for an input.

        The pairs of one input i are a row of a triangle. Counted from the last pair, row r begins
        at the triangular number t_r = r (r + 1) / 2. A floating-point square root gives r up to
        one, and integer arithmetic corrects it.
        """
        columns = np.asarray(columns, dtype=np.int64)
        from_end = self.n_columns - 1 - columns
        row = ((np.sqrt(8.0 * from_end + 1.0) - 1.0) * 0.5).astype(np.int64)
        row -= row * (row + 1) // 2 > from_end
        row += (row + 1) * (row + 2) // 2 <= from_end
        i = self.n_rows - 1 - row
        j = i + self.shift + row - (from_end - row * (row + 1) // 2)
        linear = columns < self.n_inputs
        return np.where(linear, columns, i), np.where(linear, -1, j)

    def names(self, columns: Columns, names: Sequence[str] | None = None) -> list[str]:
        """Return ``dose``, ``dose^2`` or ``age:dose`` for each column; by default of x0, x1, ..."""
        if names is not None and len(names) != self.n_inputs:
            raise ValueError(f"names must name the {self.n_inputs} inputs, got {len(names)} names")

        def input_name(j: int) -> str:
            """Return the name of input j."""
            return f"x{j}" if names is None else str(names[j])

        def column_name(i: int, j: int) -> str:
            """Return the name of the product of inputs i and j, or of input i if j = -1."""
            if j < 0:
                return input_name(i)
            return f"{input_name(i)}^2" if i == j else f"{input_name(i)}:{input_name(j)}"

        i, j = self.pairs(columns)
        return [column_name(*pair) for pair in zip(i.tolist(), j.tolist(), strict=True)]

    def checked(self, columns: Any) -> Columns:
        """Return column numbers as int64; raise TypeError or IndexError for invalid ones."""
        numbers = np.asarray(columns)
        if numbers.size == 0:
            return numbers.astype(np.int64)
        if numbers.dtype.kind not in "iu":
            raise TypeError(f"columns must be whole numbers, got dtype {numbers.dtype}")
        low = int(numbers.min())
        high = int(numbers.max())
        if low < 0 or high >= self.n_columns:
            raise IndexError(
                f"columns must be between 0 and {self.n_columns - 1}, got values from {low} to "
                f"{high}"
            )
        return numbers.astype(np.int64, copy=False)


def upper_part(i: NDArray[Any], j: NDArray[Any]) -> tuple[Columns, Columns]:
    """Return the pairs (i, j) with the smaller input first, as two arrays."""
    return np.minimum(i, j), np.maximum(i, j)


def put_tile(tile: NDArray[Any], lo: int, start: int, index: PairIndex, result: Array) -> None:
    """Write the sums of a tile to ``result`` (n_pairs,), in the order of ``index``.

    Entry (a, b) of the tile is the sum of inputs lo + a and start + b. Entries that are no pairs
    are skipped.
    """
    width = tile.shape[1]
    begins = index.starts(np.arange(lo, lo + tile.shape[0])) - index.n_inputs
    # The pairs of an input are consecutive, so that a row of the tile is written at once.
    for row, begin in enumerate(begins.tolist()):
        # The first pair of input lo + row has j = ``first``, and is written at ``begin``.
        first = lo + row + index.shift
        skip = max(first - start, 0)
        # The first pairs of later inputs are even farther to the right.
        if skip >= width:
            break
        position = begin + start + skip - first
        result[position : position + width - skip] = tile[row, skip:]
