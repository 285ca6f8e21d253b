"""SparsePairs: products of two sparse columns, row by row over the inputs that matter.

``products.py`` explains the finalists of a search, and their listing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import TINY
from atomlearn.core import LIMITS, Array, Block, Columns, Design, block_of_entries
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.products import PairProducts, peak_of
from atomlearn.maps.pairs.search import Finalists
from atomlearn.maps.settings import SETTINGS


class SparsePairs(PairProducts):
    """Pairs of the columns of a sparse array: only pairs with a common row are formed.

    It stores X by columns with sorted rows, and by rows for searches, in addition to the given
    array.
    """

    def __init__(self, base: Design) -> None:
        self.base = base

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the sparse array only; what is computed from it is computed again."""
        return SparsePairs, (self.base,)

    @cached_property
    def matrix(self) -> sp.csc_array:
        """X by columns, with sorted rows."""
        stored = self.base.stored()
        matrix: sp.csc_array = stored.tocsc() if stored.format == "csr" else stored
        if not matrix.has_sorted_indices:
            matrix = matrix.copy()
            matrix.sort_indices()
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def largest(self) -> float:
        """The largest absolute entry of X."""
        return peak_of(self.base.stored().data)

    @property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The entries of X by columns, their rows, and the first entry of each column."""
        return self.matrix.data, self.matrix.indices, self.matrix.indptr

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """min(0, min_j x_kj) and max(0, max_j x_kj) of each row k, two arrays (n_samples,)."""
        data, indices, _ = self._parts
        low, high = np.zeros((2, self.shape[0]))
        rows = indices.astype(np.intp)
        values = data.astype(np.float64)
        np.minimum.at(low, rows, values)
        np.maximum.at(high, rows, values)
        return low, high

    @cached_property
    def _ordered(self) -> _OrderedColumns:
        """X for searches, with its columns in decreasing order of their bounds.

        The bound of column i, sum_k |x_ki| max_j |x_kj|, is at least sum_k |x_ki x_kj| of each pair
        (i, j): a pair of columns with small bounds has a small score.
        """
        low, high = self._extremes
        data, indices, indptr = self._parts
        magnitudes = np.abs(data) if low.any() else data
        with np.errstate(over="ignore"):
            peaks = np.maximum(-low, high)
            sizes = _kernels.sparse_dots(magnitudes, indices, indptr, peaks) * SETTINGS.inflation
        sizes = np.minimum(sizes, np.finfo(np.float64).max)
        # Empty columns are left out; if there are very many columns, most may be empty.
        order = np.flatnonzero(sizes)
        order = order[np.argsort(-sizes[order], kind="stable")]
        positions_of = np.full(sizes.size, -1, dtype=np.int32)
        positions_of[order] = np.arange(order.size, dtype=np.int32)
        stored = self.base.stored()
        by_rows = stored if stored.format == "csr" else self.matrix.tocsr()
        parts = by_rows.data, by_rows.indices, by_rows.indptr
        table, costs = _kernels.pair_rows(parts, positions_of, order.size)
        return _OrderedColumns(order, positions_of, sizes[order], table, costs)

    def linear(self, v: Array) -> Array:
        """Return the scores X'v of the single inputs, (n_inputs,)."""
        # Products by columns take half the time if there are many columns.
        return _kernels.sparse_dots(*self._parts, v)

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        """Return the scores sum_k v_k x_ki x_kj of the pairs (i, j), (m,)."""
        return _kernels.pair_sums_csc(*self._parts, i, j, v)

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        """Return the columns scales * x_i * x_j, or scales * x_i for j = -1, as a block.

        i, j and ``scales`` have one entry for each column.
        """
        (n_samples, n_inputs) = self.shape
        paired = j >= 0
        inputs, positions = np.unique([i, np.where(paired, j, i)], return_inverse=True)
        first, second = positions.reshape(2, -1)
        # The products of two copies of columns, entry by entry.
        X = self.matrix[:, inputs].astype(np.float64)  # the inputs in use
        right = X[:, second]
        # Linear columns are x_i times one, in the pattern of x_i.
        right.data[np.repeat(~paired, np.diff(right.indptr))] = 1.0
        product = X[:, first].multiply(right).tocsc()
        data = product.data * np.repeat(scales, np.diff(product.indptr))
        # If X is nearly full, so are the products, and the block is stored as a dense one.
        is_full = self.base.stored().nnz >= LIMITS.dense_from * n_samples * n_inputs
        return block_of_entries((data, product.indices, product.indptr), n_samples, is_full)

    def uses_single(self) -> bool:
        """Return False: sums are computed in double precision."""
        return False

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        """Return the sum over samples of every pair, (m, n_pairs), by sparse products in threads.

        The sums are sum_k v_k x_ki x_kj for each column v of V (n_samples, m), or with
        x_ki^2 x_kj^2 if ``squared``. The pairs are in the order of ``index``.
        """
        result = np.zeros((V.shape[1], index.n_columns - index.n_inputs))
        matrix = self.matrix.astype(np.float64)
        if squared:
            matrix.data **= 2
        # The sums for v are the entries of (diag(v) X)' X.
        lefts = [_weighted(matrix, v) for v in V.T]
        right = matrix.tocsr()

        def work(lo: int, hi: int) -> None:
            """Compute the sums of pairs whose first input is in lo, ..., hi - 1."""
            for left, sums in zip(lefts, result, strict=True):
                product = (left[:, lo:hi].T @ right).tocoo()
                i = product.coords[0].astype(np.int64) + lo
                j = product.coords[1].astype(np.int64)
                # Keep each pair once, as i <= j, or as i < j if ``index`` has no squares.
                pairs = j >= i + index.shift
                positions = index.columns(i[pairs], j[pairs]) - index.n_inputs
                sums[positions] = product.data[pairs]

        _run_in_threads(work, _costs(matrix, right))
        return result

    def search(
        self, v: Array, change: Array, index: PairIndex, finalists: Finalists, square: float
    ) -> None:
        """Offer the pairs that bounds do not exclude, beginning with the inputs of largest bounds.

        Let u be ``change``. Two bounds hold for |sum_k u_k x_ki x_kj|. The first one is B_i. It
        replaces x_kj by any value x between the extremes of row k: B_i is the larger one of
        sum_k max_x max(u_k x_ki x, 0) and sum_k max_x max(-u_k x_ki x, 0). The second bound is
        r_i r_j with r_i^2 = sum_k |u_k| x_ki^2. If all entries of X have one sign, only terms with
        one sign of u_k add up, and r_i^2 is the larger one of both sums. Inputs with B_i below the
        threshold are left out. Inputs are ordered by B_i for |u| = 1, which does not depend on u.
        So partners j of input i with r_i r_j above the threshold are in a leading block, and
        entries of a row beyond it are not read.

        ``change`` is v minus the vector of the listing in ``finalists``, which receives the pairs,
        or v if there is no listing. ``index`` numbers the pairs. ``square`` is the weight of a
        square relative to a product.
        """
        ordered = self._ordered
        # Bounds on the rounding of sums, and on each sum of the leading inputs.
        slack = 4.0 * finalists.error.relative * float(ordered.sizes.max(initial=0.0))
        slack += 4.0 * finalists.error.absolute
        with np.errstate(over="ignore"):
            largest = ordered.sizes * float(np.abs(change).max(initial=0.0))
        count = int(np.searchsorted(-largest, -finalists.least_sum(slack), "right"))
        order = ordered.columns[:count]
        radii, input_bounds = self._bounds(change, order)
        if not math.isfinite(float(radii.max(initial=0.0)) ** 2):
            raise ValueError(
                "scores of pairs overflow: entries of X are too large for products of two "
                "columns; scale the columns of X"
            )
        # Without bounds, each row would take the products of all pairs of its entries: of a row
        # with l entries l (l + 1) / 2 with squares, l (l - 1) / 2 without.
        lengths = ordered.table[2][v != 0].astype(np.float64)
        finalists.count(possible=0.5 * float((lengths * (lengths + 1 - 2 * index.shift)).sum()))
        radii[input_bounds < finalists.least_sum(slack)] = 0.0
        # An input of which all sums are below the threshold costs nothing.
        costs = ordered.costs[:count]
        sizes = ordered.sizes[:count]
        costs = np.where(radii * radii.max(initial=0.0) < finalists.least_sum(slack), 0.0, costs)
        search_piece = _kernels.pair_search(
            self._parts, ordered.table, order, v, radii, input_bounds, sizes, costs
        )
        error = finalists.error

        def work(lo: int, hi: int) -> None:
            """Offer the pairs whose first input is at positions lo, ..., hi - 1 of the order."""
            # The kernel returns the position up to which it came, the pairs found and their sums.
            while lo < hi:
                threshold = finalists.threshold / finalists.scale
                limits = finalists.least_sum(slack), threshold, error.relative, error.absolute
                lo, i, j, sums, products = search_piece(lo, hi, *limits, square, index.shift)
                finalists.count(products=products)
                # |sum| of a pair is at most the bound of either column.
                bounds = np.minimum(
                    *(ordered.sizes[ordered.positions_of[positions]] for positions in (i, j))
                )
                finalists.offer(np.minimum(i, j), np.maximum(i, j), np.abs(sums), bounds)

        _run_in_threads(work, costs)

    def _bounds(self, change: Array, columns: Columns) -> tuple[Array, Array]:
        """Return the bounds r_i and B_i of the inputs i in ``columns``, rounded up, (m,) each.

        Let u = ``change`` (n_samples,). The sum sum_k u_k x_ki x_kj of a pair is at most r_i r_j,
        and at most B_i for any j. Here r_i^2 = sum_k |u_k| x_ki^2. If all entries of X have one
        sign, only terms with one sign of u_k are summed. See ``search`` for B_i.
        """
        low, high = self._extremes
        # ``upper`` and ``lower`` are the roots of the sums over u_k > 0 and over u_k < 0.
        input_bounds, upper, lower = _kernels.pair_bounds_csc(
            *self._parts, change, low, high, columns
        )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            one_sign = not low.any() or not high.any()
            radii = np.maximum(upper, lower) if one_sign else np.hypot(upper, lower)
            radii *= SETTINGS.inflation
            input_bounds *= SETTINGS.inflation
            input_bounds = np.minimum(input_bounds, radii * radii.max(initial=0.0))
        # In case of underflow a nonzero bound must not become zero.
        input_bounds[(input_bounds == 0.0) & (radii > 0)] = TINY
        return radii, input_bounds


@dataclass(frozen=True, slots=True)
class _OrderedColumns:
    """X for searches: its columns in decreasing order of a bound on the sums of their pairs.

    Attributes
    ----------
    columns : Columns
        The column at each position.
    positions_of : NDArray[np.int32]
        The position of each column, -1 of an empty one.
    sizes : (m,) float64
        By position: the bound sum_k |x_ki| max_j |x_kj|, which holds if |v_k| <= 1.
    table : tuple
        The rows of X in this order of columns, as made by the kernel ``pair_rows``; its third array
        has the length of each row.
    costs : (m,) float64
        By position: the number of multiplications that the pairs of a column take.
    """

    columns: Columns
    positions_of: NDArray[np.int32]
    sizes: Array
    table: Any
    costs: Array


def _weighted(matrix: sp.csc_array, v: Array) -> sp.csc_array:
    """Return diag(v) X for X = ``matrix``, without the rows in which v is 0."""
    weighted = matrix.copy()
    weighted.data *= v[weighted.indices]
    weighted.eliminate_zeros()
    return weighted


def _costs(matrix: sp.csc_array, by_rows: sp.csr_array) -> Array:
    """Return the number of multiplications that the pairs of each input take, (n_inputs,).

    It is the sum of the lengths of the rows in which the input has entries; ``by_rows`` is the same
    matrix.
    """
    lengths = np.diff(by_rows.indptr).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(lengths[matrix.indices])])
    costs: Array = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    return costs


def _run_in_threads(work: Any, costs: Array) -> None:
    """Call work(lo, hi) on consecutive pieces of the inputs, in several threads.

    ``costs`` (n_inputs,) are the multiplications of each input. A piece costs at most
    ``SETTINGS.piece_products``, or it is one input.
    """
    ends = np.cumsum(costs)
    cuts = [0]
    while cuts[-1] < costs.size:
        cost_before = ends[cuts[-1] - 1] if cuts[-1] else 0.0
        stop = int(np.searchsorted(ends, cost_before + SETTINGS.piece_products, side="right"))
        cuts.append(max(stop, cuts[-1] + 1))
    # A multiplication of sparse numbers takes as long as some twenty of dense ones.
    total = 20.0 * float(ends[-1]) if ends.size else 0.0
    _kernels.share_out(lambda piece: work(cuts[piece], cuts[piece + 1]), len(cuts) - 1, total)
