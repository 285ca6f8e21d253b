"""GenotypeBlock: columns of genotypes that stay packed in memory during products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    Scores,
    Traits,
    affine_block,
    check_same_rows,
    counted_products,
)


class PackedColumns:
    """Packed columns that blocks share, so that each column is in memory once.

    The paths of cross-validation's folds use many columns in common. Columns are added at the end
    only, so their rows in ``data`` never change.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        """Store columns in PLINK's two-bit code, one in each row of ``data``."""
        self.data = data

    def add(self, data: NDArray[np.uint8]) -> None:
        """Add columns at the end, one in each row of ``data``."""
        self.data = np.concatenate([self.data, data])


class GenotypeBlock(Block):
    """An in-memory block with columns scale_j x_j - shift_j; x_j is packed in PLINK's two-bit code.

    A product reads 1/32 of the bytes of float64. Gram matrices unpack their columns. If all rows
    with a weight have the same one, float32 Gram matrices are counted from the bits instead.

    Parameters
    ----------
    packed : PackedColumns
        Genotypes in PLINK's two-bit code, four in a byte, which other blocks may share.
    n_samples : int
        Number of rows; the last byte of a column may have unused bits.
    means : (n_columns,) float64
        Value of missing genotypes, in copies of the counted allele.
    scale, shift : (n_columns,) float64
        Numbers of the standardization scale_j x_j - shift_j.
    rows : (n_columns,) int64, optional
        The row of ``packed`` that has each column of the block. Default: all rows, in order.
    """

    dtype = np.dtype(np.float64)
    traits = Traits(bytes_an_entry=0.25)

    def __init__(
        self,
        packed: PackedColumns,
        n_samples: int,
        means: Array,
        scale: Array,
        shift: Array,
        rows: Columns | None = None,
    ) -> None:
        """Store packed genotypes and the numbers of the standardization, all without a copy.

        ``means`` replace missing genotypes; the columns are scale_j x_j - shift_j. ``rows`` are
        those of ``packed`` that the block has.
        """
        self._packed = packed
        self._rows = np.arange(means.size) if rows is None else rows
        self._n_samples = n_samples
        self._means = means
        self._scale = scale
        self._shift = shift
        self.shape = n_samples, means.size

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        """The arrays with one row for each column, in the order of the constructor."""
        return self._rows, self._means, self._scale, self._shift

    def _bytes(self, columns: slice = slice(None)) -> NDArray[np.uint8]:
        """Return the packed genotypes of these columns, one after the other, as one array of bytes.

        They are copied unless their rows in memory are consecutive.
        """
        rows = self._rows[columns]
        data = self._packed.data
        if rows.size and (np.diff(rows) == 1).all():
            return data[rows[0] : rows[-1] + 1].ravel()
        return data[rows].ravel()

    def predict(self, weights: Array) -> Array:
        """Return A w, for standardized genotypes A and w = ``weights``, from the packed codes.

        A w = sum_j (w_j scale_j) x_j - shift'w, with the genotypes x_j.
        """
        scaled = weights * self._scale

        def product(columns: slice) -> Array:
            """Return sum_j (w_j scale_j) x_j over these columns j, an array (n_samples,)."""
            out = _kernels.padded(np.zeros(self._n_samples))
            packed = self._bytes(columns)
            piece_weights = np.ascontiguousarray(scaled[columns])
            _kernels.add_genotypes(
                packed, self._n_samples, self._means[columns], piece_weights, out
            )
            return out[: self._n_samples]

        # The last argument is the cost in operations, which decides the number of threads.
        n_columns = self.shape[1]
        total = _kernels.sum_of_pieces(product, n_columns, self._n_samples * n_columns / 8.0)
        return np.asarray(total - self._shift @ weights)

    def scores(self, v: Array) -> Scores:
        """Return a_j'v = scale_j x_j'v - shift_j sum_i v_i for the standardized genotypes a_j."""
        return ArrayScores(self._sums(v, False) * self._scale - self._shift * v.sum())

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i a_ij^2 for each column j of the standardized genotypes.

        With w = ``weights``, s_j = sum_i w_i x_ij and q_j = sum_i w_i x_ij^2, it is

        ``scale_j (scale_j q_j - 2 shift_j s_j) + shift_j^2 sum_i w_i``.
        """
        sums = self._sums(weights, False)
        squares = self._sums(weights, True)
        # Rounding errors must not make a sum of squares negative.
        norms = self._scale * (self._scale * squares - 2.0 * self._shift * sums)
        return np.asarray(np.maximum(norms + self._shift**2 * weights.sum(), 0.0))

    def _sums(self, v: Array, squared: bool) -> Array:
        """Return sum_i v_i x_ij for each column j of the genotypes x, or of x_ij^2 if ``squared``.

        The columns are shared between threads.
        """
        n_columns = self.shape[1]
        values = _kernels.padded(v)
        sums = np.empty(n_columns)
        pieces = LIMITS.pieces(n_columns, self._n_samples)

        def work(piece: int) -> None:
            """Compute the sums of one piece of the columns."""
            columns = pieces[piece]
            data = self._bytes(columns), self._n_samples, self._means[columns]
            sums[columns] = _kernels.scores_genotypes(*data, values, squared)

        # The last argument is the cost in operations, which decides the number of threads.
        _kernels.share_out(work, len(pieces), self._n_samples * n_columns / 8.0)
        return sums

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S for the columns S = ``positions`` (None: all).

        A has the standardized genotypes, ``curvature`` (n_samples,) a weight for each row. The
        columns are unpacked first.
        """
        block = self if positions is None else self.gather(positions)
        return DenseBlock(block.dense()).gram(curvature)

    def stored(self) -> Array | None:
        """Return the columns as numbers for kernels and BLAS if they are few, else None."""
        return self.dense() if self._n_samples * self.shape[1] <= LIMITS.most_dense else None

    def dense(self) -> Array:
        """Return the standardized genotypes as an array (n_samples, n_columns)."""
        data = self._bytes(), self._n_samples, self._means, np.float64
        array: Array = _kernels.gather_genotypes(*data)
        array *= self._scale
        array -= self._shift
        return array

    def gather(self, columns: Columns) -> GenotypeBlock:
        """Return the block of the columns with these numbers, which shares the packed genotypes."""
        rows, means, scale, shift = (array[columns] for array in self._parts)
        return GenotypeBlock(self._packed, self._n_samples, means, scale, shift, rows)

    def append(self, other: Block) -> Block:
        """Return the columns of this block followed by those of ``other``; packed if both are.

        Packed genotypes are copied unless both blocks share them.
        """
        check_same_rows(self, other)
        if not isinstance(other, GenotypeBlock):
            return DenseBlock(self.dense()).append(other)
        packed = self._packed
        rows = self._rows
        others = other._rows
        if other._packed is not packed:
            # The columns are added to the shared array, of which no row is ever removed. If this
            # block does not use all rows of it, a new array with only its rows is made first.
            if rows.size < len(packed.data):
                packed = PackedColumns(packed.data[rows])
                rows = np.arange(rows.size)
            others = np.arange(others.size) + len(packed.data)
            packed.add(other._packed.data[other._rows])
        pairs = zip(self._parts[1:], other._parts[1:], strict=True)
        means, scale, shift = (np.concatenate(pair) for pair in pairs)
        rows = np.concatenate([rows, others])
        return GenotypeBlock(packed, self._n_samples, means, scale, shift, rows)


@affine_block.register
def _genotypes(block: GenotypeBlock, means: Array, factors: Array) -> GenotypeBlock:
    """Return the block with columns (a_j - means_j) factors_j for the columns a_j of ``block``.

    ``means`` and ``factors`` are (n_columns,). The genotypes stay packed: only scale and shift
    change.
    """
    arrays = block._scale * factors, (block._shift + means) * factors
    return GenotypeBlock(block._packed, block._n_samples, block._means, *arrays, block._rows)


@counted_products.register
def _counted_genotypes(
    block: GenotypeBlock, curvature: Array, columns: Columns, start: int, sums: Array
) -> Array | None:
    """Return rows of A'CA from counts of bits; None unless all nonzero curvatures are equal.

    A column is a_j = s_j (x_j - 1) + r_j, with its scale s_j and r_j = s_j - shift_j. With equal
    curvatures c over the rows of nonzero curvature,

        a_j'C a_k = c s_j s_k (x_j - 1)'(x_k - 1) + r_j (S_k - r_k W / 2) + r_k (S_j - r_j W / 2),

    with the column sums S_j = sum_i C_i a_ij, and W = sum_i C_i. The products are counted.

    Parameters
    ----------
    block : GenotypeBlock
        The columns.
    curvature : (n_samples,)
        The diagonal of C.
    columns : (m,) int64
        The columns of the product.
    start : int
        The rows of A'CA from this position in ``columns`` on are returned, (m - start, m).
    sums : (m,)
        S_j of these columns.
    """
    common_curvature = float(curvature.max(initial=0.0))
    if not np.isin(curvature, (0.0, common_curvature)).all():
        return None
    new = block.gather(columns[start:])
    new_bytes = new._bytes()
    products = np.empty((columns.size, new.shape[1]))
    pieces = LIMITS.pieces(columns.size, block.shape[0], 16 * LIMITS.piece_entries)

    def work(piece: int) -> None:
        """Count the products (x_j - 1)'(x_k - 1) of one piece of the columns j."""
        part = block.gather(columns[pieces[piece]])
        products[pieces[piece]] = _kernels.multiply_genotypes(
            part._bytes(), part._means, new_bytes, new._means, curvature
        )

    # The last argument is the cost in operations, which decides the number of threads.
    _kernels.share_out(work, len(pieces), products.size * block.shape[0] / 16.0)
    scale = block._scale[columns]
    r = scale - block._shift[columns]
    products *= common_curvature * scale[:, None]
    products *= new._scale
    half = sums - 0.5 * r * curvature.sum()  # S - r W / 2
    products += np.outer(r, half[start:]) + np.outer(half, r[start:])
    return products.T
