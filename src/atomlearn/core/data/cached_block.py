"""A block with a cached Gram matrix and Cholesky factor, which grow with its columns."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._kernels import ActiveFactor
from atomlearn._support import without
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Design, Scores
from atomlearn.core.interfaces.forwarding import forward

#: The kind of Gram matrix that ``growing_part`` returns.
G = TypeVar("G", bound="GrowingGram")

#: A Gram matrix keeps columns that are not requested now, as they may be requested again. Their
#: number is at most this, plus the number of requested columns.
FORGOTTEN = 1000


class GrowingGram:
    """The Gram matrix H = A'CA of a block A, extended by O(n m) work for each new column.

    If ``centered``, the C-weighted column means are subtracted from A, which eliminates an
    intercept. With a ``basis`` Q (n_samples, r), A is replaced by its residual on Q in the metric
    C, which eliminates unpenalized columns. Both happen before any product, so that no digits
    cancel.

    curvature : (n_samples,), the diagonal of C.
    """

    def __init__(self, curvature: Array, centered: bool, basis: Array | None = None) -> None:
        """Store the arguments of the class, and start with no columns; ``extend_to`` adds them."""
        self.curvature = curvature
        self.centered = centered
        self.basis = basis
        self.size = 0
        #: An array with spare rows and columns, of which the first ``size`` are H.
        self._buffer: Array = np.zeros((0, 0))
        #: The factor of some columns of H, and the coupling, ridge and price it belongs to.
        self._factor = ActiveFactor()
        self._factored: tuple[float, float, Array] = (0.0, 0.0, np.zeros(0))

    @classmethod
    def known(cls, curvature: Array, matrix: Array) -> GrowingGram:
        """Return the object whose H = ``matrix`` (m, m) is known, for columns not centered.

        curvature : (n_samples,), the diagonal of C.
        """
        gram = cls(curvature, False)
        gram._buffer, gram.size = matrix, matrix.shape[0]
        return gram

    @property
    def matrix(self) -> Array:
        """H, (size, size); it must not be modified."""
        return self._buffer[: self.size, : self.size]

    def factor(self, coupling: float, ridge: float, price: Array) -> ActiveFactor:
        """Return the cached Cholesky factor of H + coupling p p' + ridge I, for some columns of H.

        coupling, ridge : numbers; price : p (m,), the weights of an l1 norm. Entries of p may have
        been appended since the last call. If anything else has changed, the factor is emptied.
        """
        old_coupling, old_ridge, old_price = self._factored
        is_unchanged = (old_coupling, old_ridge) == (coupling, ridge)
        if not is_unchanged or not np.array_equal(price[: old_price.size], old_price):
            self._factor.forget()
        self._factored = coupling, ridge, price
        return self._factor

    def extend_to(self, block: Block, columns: Columns | None = None) -> None:
        """Extend H to the columns of ``block``, or to ``columns`` of it.

        The first ``size`` of these columns must be those that H already has. Columns are copied in
        small batches, to limit memory.
        """
        start = self.size
        total = block.shape[1] if columns is None else columns.size
        if start == total:
            return
        self._reserve(total)
        # Packed columns (less than 4 bytes an entry) are copied in batches, as they cannot be
        # multiplied in place.
        packed = block.traits.bytes_an_entry < 4.0
        if start == 0 and self.basis is None and columns is None and not packed:
            self._buffer[:total, :total] = self._full_gram(block)
            self.size = total
            return
        # Batches of new columns, each of at most ``most_dense`` entries.
        chosen = np.arange(total) if columns is None else columns
        width = max(1, LIMITS.most_dense // (8 * block.shape[0]))
        while self.size < total:
            Deadline.current().check()
            end = min(self.size + width, total)
            self._extend(block, chosen[:end])

    def _extend(self, block: Block, chosen: Columns) -> None:
        """Compute and store the rows and columns of H for new columns of ``block``.

        chosen : the column numbers of H, of which the first ``size`` are known.
        """
        products = self._new_rows(block, chosen)
        # Rounding must not make the matrix asymmetric.
        corner = products[:, self.size :]
        products[:, self.size :] = 0.5 * (corner + corner.T)
        self._store(products, self.size)
        self.size = chosen.size

    def _reserve(self, total: int) -> None:
        """Enlarge the array to ``total`` columns; the first one has no spare columns."""
        if self._buffer.shape[0] >= total:
            return
        buffer = self._spare_array(total) if self.size else np.empty((total, total))
        buffer[: self.size, : self.size] = self.matrix
        self._buffer = buffer

    def _store(self, products: NDArray[Any], start: int) -> None:
        """Store ``products``, the rows of H from ``start`` on, and the columns equal to them."""
        end = products.shape[1]
        self._buffer[start:end, :end] = products
        self._buffer[:start, start:end] = products[:, :start].T

    def _new_rows(self, block: Block, chosen: Columns) -> NDArray[Any]:
        """Return the rows of H for the new columns of ``chosen``; see ``_extend``."""
        columns = self._weighted_columns(block, chosen[self.size :])
        return products_with_columns(block, columns, chosen)

    def _weighted_columns(self, block: Block, columns: Columns) -> Array:
        """Return C times these columns of the block, without their means and share of the basis."""
        array = np.array(block.gather(columns).dense(), dtype=np.float64, order="F")
        if self.centered:
            array -= self.curvature @ array / self.curvature.sum()
        if self.basis is not None:
            array = without(array, self.basis, self.curvature)
        array *= self.curvature[:, None]
        return array

    def take(self, positions: Columns) -> Self:
        """Return the Gram matrix of the known columns at ``positions``.

        The cached Cholesky factor is kept if all its columns are in the subset.
        """
        subset = type(self)(self.curvature, self.centered, self.basis)
        subset.size = positions.size
        # Extra capacity, since more columns usually follow, avoids the next copy.
        subset._buffer = self._spare_array(positions.size)
        subset.matrix[:] = self._buffer[np.ix_(positions, positions)]
        active = self._factor.active
        (coupling, ridge, price) = self._factored
        # The position of each known column in the subset, -1 for columns left out.
        position_of = np.full(self.size, -1)
        position_of[positions] = np.arange(positions.size)
        # Columns added after the factorization have no price yet, and must come last.
        priced = positions[: np.count_nonzero(positions < price.size)]
        if (priced < price.size).all() and (position_of[active] >= 0).all():
            subset._factor = self._factor.moved(position_of)
            subset._factored = coupling, ridge, price[priced]
        return subset

    def _spare_array(self, size: int) -> Array:
        """Return an empty square array for ``size`` rows and columns, with spare ones."""
        capacity = size + size // 2 + 8
        return np.empty((capacity, capacity))

    def _full_gram(self, block: Block) -> Array:
        """Return H of all columns of ``block``, computed by a single product.

        The weighted column means are subtracted if the matrix is ``centered``.
        """
        if not self.centered:
            return block.gram(self.curvature)
        means = block.scores(self.curvature).full() / self.curvature.sum()
        if isinstance(block, DenseBlock):
            return block.centered_gram(self.curvature, means)
        return CenteredBlock(block, means).gram(self.curvature)


def products_with_columns(block: Block, columns: NDArray[Any], chosen: Columns) -> NDArray[Any]:
    """Return B'A for dense B = ``columns``, with A the columns ``chosen`` of the block.

    The result has one row for each column of B. Dense blocks are multiplied in pieces by several
    threads, others column by column.
    """
    products = np.empty((columns.shape[1], chosen.size), columns.dtype)
    is_packed = block.traits.bytes_an_entry < 4.0
    is_dense = is_packed or (block.stored() is not None and not block.traits.is_sparse)
    # One product with a vector at a time, which reads the block in its format.
    if not is_dense or columns.shape[1] == 1:
        block = block.gather(chosen)
        for row, column in zip(products, columns.T, strict=True):
            row[:] = block.scores(np.ascontiguousarray(column)).full()
        return products
    pieces = LIMITS.pieces(chosen.size, block.shape[0], 4 * LIMITS.piece_entries)
    array = None if is_packed else block.stored()
    stored = array if array is not None and array.dtype == columns.dtype else None

    def work(piece: int) -> None:
        """Compute B'A for the columns of A in piece number ``piece``; B is ``columns``."""
        numbers = chosen[pieces[piece]]
        # Neighboring columns of the type of B need no copy.
        if stored is not None and np.array_equal(numbers, np.arange(numbers.size) + numbers[0]):
            products[:, pieces[piece]] = columns.T @ stored[:, numbers[0] : numbers[-1] + 1]
            return
        # Packed or float32 columns are converted in batches that stay in a processor's cache.
        dense = np.empty((block.shape[0], numbers.size), columns.dtype, order="F")
        for part in LIMITS.pieces(numbers.size, block.shape[0], LIMITS.piece_entries // 8):
            dense[:, part] = block.gather(numbers[part]).dense()
        products[:, pieces[piece]] = columns.T @ dense

    # ``share_out`` calls ``work`` for each piece, in several threads if there is enough work.
    _kernels.share_out(work, len(pieces), float(columns.size) * chosen.size)
    return products


class CachedBlock(Block):
    """A block that caches its Gram matrix for one curvature and extends it by new columns.

    The matrix is H = A'QA of [V] section 3.3. The matrix and its factor grow and shrink with the
    columns in use. The columns are the feature cache of [T] section 5.5. A block made by ``append``
    shares the cached arrays, so use only the latest block.

    Parameters
    ----------
    inner : Block
        The columns A.

    References
    ----------
    [V] M. Vinyes, G. Obozinski 2017, Fast column generation for atomic norm regularization.
    [T] M. Tan, I. W. Tsang, L. Wang 2014, Towards ultrahigh dimensional feature selection.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.cached_block import CachedBlock
    >>> from atomlearn.interfaces import DenseBlock
    >>> A = CachedBlock(DenseBlock(np.eye(2))).append(DenseBlock(np.ones((2, 1))))
    >>> A.gram(np.ones(2), np.array([0, 2]))
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, inner: Block) -> None:
        """Wrap ``inner`` with an empty cache; a CachedBlock is unwrapped first."""
        self.inner: Block = inner.inner if isinstance(inner, CachedBlock) else inner
        #: The Gram matrix of all columns, if it was requested.
        self._growing: GrowingGram | None = None
        #: The columns that were requested from ``growing_part`` so far, and their Gram matrix.
        self._part: tuple[Columns, GrowingGram] | None = None
        #: The Hessian that ``newton_qp`` keeps between calls.
        self.hessian = _kernels.KeptHessian()
        self.shape = self.inner.shape

    @classmethod
    def of(cls, block: Block) -> CachedBlock:
        """Return ``block`` if it is a CachedBlock, else a CachedBlock around it."""
        return block if isinstance(block, CachedBlock) else cls(block)

    @classmethod
    def with_gram(cls, block: Block, curvature: Array, gram: Array) -> CachedBlock:
        """Return the block with A' diag(curvature) A = ``gram`` (m, m) in its cache."""
        cached = cls(block)
        cached._growing = GrowingGram.known(curvature, gram)
        return cached

    def knows_gram(self, curvature: Array) -> bool:
        """Return whether A'CA of all columns is cached for C = diag(curvature).

        ``curvature`` must be the same array object, not only an equal one, which is faster to
        check.
        """
        cache = self._growing
        return cache is not None and cache.curvature is curvature and cache.size == self.shape[1]

    def predict(self, weights: Array) -> Array:
        """Return A w, (n_samples,), for w = ``weights`` and the columns A of the block."""
        return self.inner.predict(weights)

    def scores(self, v: Array) -> Scores:
        """Return A'v for v (n_samples,) and the columns A of the block."""
        return self.inner.scores(v)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self.inner.squared_norms(weights)

    def dense(self) -> Array:
        """Return the block as a dense array (n_samples, n_columns)."""
        return self.inner.dense()

    def gather(self, columns: Columns) -> CachedBlock:
        """Return these columns, with their cached Gram matrix if it contains all of them."""
        subset = CachedBlock(self.inner.gather(columns))
        if self._growing is not None and (columns < self._growing.size).all():
            subset._growing = self._growing.take(columns)
        return subset

    def append(self, other: Block) -> CachedBlock:
        """Return the columns of this block, followed by those of ``other``; the cache is kept."""
        return self.grown(self.inner.append(CachedBlock.of(other).inner))

    def grown(self, block: Block) -> CachedBlock:
        """Return ``block`` with the cached arrays of this one.

        The first columns of ``block`` must be those of this block. The kept Hessian moves to the
        new block, since only one of them may change it.
        """
        longer = CachedBlock(block)
        longer._growing = self._growing
        longer._part = self._part
        longer.hessian, self.hessian = self.hessian, _kernels.KeptHessian()
        return longer

    def growing_part(
        self,
        columns: Columns,
        curvature: Array,
        basis: Array | None,
        centered: bool,
        kind: type[G],
    ) -> tuple[Columns, G]:
        """Return the columns requested so far, new ones last, and their Gram matrix.

        columns : the columns requested now. curvature, basis, centered : as in ``GrowingGram``.
        kind : ``GrowingGram`` or its subclass ``HalfGram``. If one of these changes, the cache is
        cleared. The data of the columns is not copied, because several paths may share one array.
        If the matrix has too many columns that are not requested now, these are dropped.
        """
        known, gram = self._part or (columns[:0], None)
        # Start again if an argument has changed.
        if (
            not isinstance(gram, kind)
            or gram.curvature is not curvature
            or gram.basis is not basis
            or gram.centered != centered
        ):
            known = columns[:0]
            gram = kind(curvature, centered, basis)
        # The time limit may end the changes below; a matrix that is changed in part is not kept.
        self._part = None
        # Drop columns that are not requested if there are too many of them.
        kept = np.flatnonzero(np.isin(known, columns))
        if known.size - kept.size > FORGOTTEN + columns.size:
            known = known[kept]
            gram = gram.take(kept)
        known = np.append(known, np.setdiff1d(columns, known))
        gram.extend_to(self.inner, known)
        self._part = known, gram
        return known, gram

    def growing_gram(
        self, curvature: Array, centered: bool, basis: Array | None = None
    ) -> GrowingGram:
        """Return the Gram matrix of all columns; ``centered`` and ``basis`` as in ``GrowingGram``.

        It is cached for one array object ``curvature`` (n_samples,), and extended by appended
        columns.
        """
        # Start again if an argument has changed, or columns were dropped.
        growing = self._growing
        if (
            growing is None
            or growing.curvature is not curvature
            or growing.centered != centered
            or growing.basis is not basis
            or growing.size > self.shape[1]
        ):
            growing = GrowingGram(curvature, centered, basis)
            self._growing = growing
        growing.extend_to(self.inner)
        return growing

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, S = ``positions`` (None: all columns).

        It is read from the cache if the cache has all columns for this curvature.
        """
        cache = self._growing
        if cache is None or cache.centered or cache.basis is not None or cache.size < self.shape[1]:
            return self.inner.gram(curvature, positions)
        if not np.array_equal(cache.curvature, curvature):
            return self.inner.gram(curvature, positions)
        cached = cache.matrix
        return cached.copy() if positions is None else cached[np.ix_(positions, positions)]


forward(CachedBlock, "inner", Block, Design)


@singledispatch
def distinct_columns(block: Block) -> tuple[Block, Columns]:
    """Return the block of distinct columns, and the index in it of each column, (n_columns,)."""
    return block, np.arange(block.shape[1], dtype=np.int64)


@distinct_columns.register
def _distinct_cached(block: CachedBlock) -> tuple[Block, Columns]:
    """Return the distinct columns of a cached block, and the index in them of each column.

    The block itself, with its cache, is returned if all columns are distinct.
    """
    base, positions = distinct_columns(block.inner)
    return (block if base is block.inner else base), positions
