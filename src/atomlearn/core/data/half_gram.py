"""The Gram matrix of thousands of packed columns, in float32, of which the lower half is stored."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.cached_block import GrowingGram, products_with_columns
from atomlearn.core.interfaces import Array, Block, Columns

#: Number of rows of a strip, and of rows and columns of its tiles.
STRIP = 256


class HalfGram(GrowingGram):
    """The Gram matrix H = A'CA of a block A in float32, stored in strips of rows.

    Strip k has the rows k STRIP, ..., (k + 1) STRIP - 1 of H and the columns up to the last of
    these rows, so that all strips together have half of the entries of H. It is an array of k + 1
    square tiles. New columns of A need new strips, and no strip is copied. Entries beyond ``size``
    are zero. ``descend_quadratic`` reads the strips.

    For genotypes that are packed in bits, A'CA is computed by counting bits. The means and the
    basis are then subtracted from the products, with D = [c, C^1/2 U] (n_samples, 1 + r): the
    columns of U are an orthonormal basis of C^1/2 [1, Q], so that H is A'CA minus the Gram matrix
    of the rows 1 to r of D'A. Row 0 of D'A has the sums of CA.
    """

    def __init__(self, curvature: Array, centered: bool, basis: Array | None = None) -> None:
        """Store the arguments, as in ``GrowingGram``, and start with no columns."""
        super().__init__(curvature, centered, basis)
        self.strips: list[NDArray[np.float32]] = []
        self._directions: Array | None = None  # D
        self._shares: Array = np.zeros((0, 0))  # D'A for the columns of H

    @property
    def matrix(self) -> Array:
        """A copy of H as one array (size, size)."""
        lower = np.zeros((len(self.strips) * STRIP, len(self.strips) * STRIP))
        for number, strip in enumerate(self.strips):
            rows = slice(number * STRIP, (number + 1) * STRIP)
            lower[rows, : rows.stop] = np.hstack([*strip])
        lower = np.tril(lower[: self.size, : self.size])
        return np.asarray(lower + np.tril(lower, -1).T)

    def _reserve(self, total: int) -> None:
        """Append strips of zeros until they have ``total`` rows."""
        while len(self.strips) * STRIP < total:
            shape = len(self.strips) + 1, STRIP, STRIP
            self.strips.append(np.zeros(shape, dtype=np.float32))

    def _store(self, products: NDArray[Any], start: int) -> None:
        """Store ``products``, the rows of H from ``start`` on, up to their own columns."""
        end = products.shape[1]
        for number in range(start // STRIP, -(-end // STRIP)):
            before = number * STRIP
            first = max(start, before)
            last = min(end, before + STRIP)
            rows = products[first - start : last - start, :last]
            for place, tile in enumerate(self.strips[number]):
                part = rows[:, place * STRIP : (place + 1) * STRIP]
                tile[first - before : last - before, : part.shape[1]] = part
            # The last tile has the columns of its own rows, and is stored whole.
            tile[: first - before, first - before : last - before] = rows[:, before:first].T

    def _new_rows(self, block: Block, chosen: Columns) -> NDArray[Any]:
        """Return the rows of H for the new columns of ``chosen``, from counts of bits if possible.

        chosen : the column numbers of H, of which the first ``size`` are known.
        """
        if self._directions is None:
            # U has the left singular vectors of C^1/2 [1, Q] with nonzero singular values. The
            # column of zeros keeps the matrix non-empty.
            root = np.sqrt(self.curvature)[:, None]
            weighted = [root] * self.centered + ([] if self.basis is None else [root * self.basis])
            u, s, _ = np.linalg.svd(np.hstack([0.0 * root, *weighted]), full_matrices=False)
            self._directions = np.hstack([root, u[:, s > 3e-7 * s[0]]]) * root
            self._shares = np.zeros((self._directions.shape[1], 0))
        new = block.gather(chosen[self.size :]).scores_many(self._directions)
        shares = np.hstack([self._shares, np.array([scores.full() for scores in new])])
        self._shares = shares
        products = counted_products(block, self.curvature, chosen, self.size, shares[0])
        if products is None:
            columns = self._weighted_columns(block, chosen[self.size :])
            return products_with_columns(block, columns.astype(np.float32), chosen)
        products -= shares[1:, self.size :].T @ shares[1:]
        return products

    def take(self, positions: Columns) -> Self:
        """Return the matrix of the known columns at increasing ``positions``; empties this one.

        Strips are dropped as soon as their rows are copied, since both matrices together would need
        too much memory.
        """
        subset = type(self)(self.curvature, self.centered, self.basis)
        for start in range(0, positions.size, STRIP):
            rows = positions[start : start + STRIP]
            self.strips[: rows[0] // STRIP] = [self.strips[0][:0]] * (rows[0] // STRIP)
            subset._reserve(start + rows.size)
            for row, position in enumerate(rows, start):
                known = self.strips[position // STRIP][:, position % STRIP].ravel()
                subset._store(known[positions[: row + 1]][None], row)
        subset.size = positions.size
        if self._directions is not None:
            subset._directions = self._directions
            subset._shares = self._shares[:, positions]
        self.strips = []
        self.size = 0
        return subset


@singledispatch
def counted_products(
    block: Block, curvature: Array, columns: Columns, start: int, sums: Array
) -> Array | None:
    """Return the rows of A'CA from ``start`` on, in float64, by counting bits, or None.

    A has the ``columns`` of the block, C is the diagonal matrix of ``curvature``, and ``sums`` are
    A'C1. The result is None unless the kind of block, packed in bits, registers a function for it.
    """
    return None
