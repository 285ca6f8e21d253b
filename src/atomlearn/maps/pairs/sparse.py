"""SparsePairs: products of two sparse columns, row by row over the inputs that matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.sparse import block_of_entries
from atomlearn.core.interfaces import Array, Block, Columns, Design
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.products import PairProducts, peak_of
from atomlearn.maps.pairs.search import Finalists
from atomlearn.maps.settings import SETTINGS


class SparsePairs(PairProducts):
    """Pairs of the columns of a sparse array: only pairs that meet in a row are ever formed.

    Keeps X by columns with sorted rows, and by rows: what was given, and one copy. Where few
    inputs can be among the best, which the first search tells, these are kept by rows once more.
    """

    def __init__(self, base: Design) -> None:
        self.base = base
        self._strongest: tuple[Columns, float] | None = None
        self._head: LeadingInputs | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SparsePairs, (self.base,)

    @cached_property
    def matrix(self) -> sp.csc_array:
        """X by columns, rows sorted."""
        given = self.base.stored()
        matrix: sp.csc_array = given.tocsc() if given.format == "csr" else given
        if not matrix.has_sorted_indices:
            matrix = matrix.copy()
            matrix.sort_indices()
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def _by_rows(self) -> sp.csr_array:
        given = self.base.stored()
        return given if given.format == "csr" else self.matrix.tocsr()

    @cached_property
    def _row_lengths(self) -> NDArray[np.int64]:
        return np.diff(self._by_rows.indptr).astype(np.int64)

    @cached_property
    def largest(self) -> float:
        return peak_of(self.base.stored().data)

    @property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.matrix.data, self.matrix.indices, self.matrix.indptr

    @cached_property
    def _fixed_bounds(self) -> tuple[Array, Array, Array]:
        """Return min(0, min_j x_kj) and max(0, max_j x_kj) of each row k, and of each column i
        sum_k |x_ki| max_j |x_kj|, which bounds its sums where |v| <= 1.
        """
        data, indices, indptr = self._parts
        low, high = np.zeros((2, self.shape[0]))
        rows, values = indices.astype(np.intp), data.astype(np.float64)
        np.minimum.at(low, rows, values)
        np.maximum.at(high, rows, values)
        sizes = np.abs(data) if low.any() else data
        with np.errstate(over="ignore"):
            peaks = np.maximum(-low, high)
            reach = _kernels.sparse_dots(sizes, indices, indptr, peaks) * SETTINGS.inflation
        return low, high, reach

    def _columns(self, inputs: Columns) -> sp.csc_array:
        """Return some inputs by columns, in float64; X is not turned for their sake."""
        if "matrix" in vars(self):
            found = self.matrix[:, inputs]
        else:
            block = self.base.gather(inputs)
            found = sp.csc_array(block.stored() if block.is_sparse else block.dense())
            found.sort_indices()
        return found.astype(np.float64)

    def linear(self, v: Array) -> Array:
        # By columns, which takes half the time where there are many.
        return _kernels.sparse_dots(*self._parts, v)

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        return _kernels.pair_sums_csc(*self._parts, i, j, v)

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        (n_samples, n_inputs), paired = self.shape, j >= 0
        inputs, places = np.unique([i, np.where(paired, j, i)], return_inverse=True)
        first, second = places.reshape(2, -1)
        X = self._columns(inputs)
        right = X[:, second]
        # One where there is nothing to multiply with: the pattern of x_i itself.
        right.data[np.repeat(~paired, np.diff(right.indptr))] = 1.0
        product = X[:, first].multiply(right).tocsc()
        data = product.data * np.repeat(scales, np.diff(product.indptr))
        full = self.base.stored().nnz >= LIMITS.dense_from * n_samples * n_inputs
        return block_of_entries((data, product.indices, product.indptr), n_samples, full)

    def uses_single(self) -> bool:
        return False

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.zeros((V.shape[1], index.n_columns - index.n_inputs))
        matrix = self.matrix.astype(np.float64)
        if squared:
            matrix.data **= 2
        lefts, right = [_weighted(matrix, v) for v in V.T], matrix.tocsr()

        def work(lo: int, hi: int) -> None:
            for left, sums in zip(lefts, result, strict=True):
                product = (left[:, lo:hi].T @ right).tocoo()
                i, j = product.coords[0].astype(np.int64) + lo, product.coords[1].astype(np.int64)
                pairs = j >= i + index.shift
                places = index.columns(i[pairs], j[pairs]) - index.n_inputs
                sums[places] = product.data[pairs]

        _share_out(work, _costs(matrix, right))
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        """Offer the pairs that bounds do not exclude, the strongest inputs first.

        |sum_k v_k x_ki x_kj| is at most B_i = sum_k max_x (v_k x_ki x)_+ (or _-, the larger sum)
        over x between the extremes of row k, and at most r_i r_j with r_i^2 = sum_k |v_k| x_ki^2;
        where X has one sign only terms of one sign of v add up, and r_i^2 is the larger half.
        Inputs with B_i below the threshold are left out. Sorted by r, the partners j of input i
        with r_i r_j above it are a leading block: what lies behind it in a row is never read.
        """
        head = self._leading(finalists.least_magnitude(0.0) - finalists.error.absolute)
        columns, radii, reach = self._bounds(v, finalists, head)
        if not math.isfinite(float(radii.max(initial=0.0)) ** 2):
            raise ValueError(
                "scores of pairs overflow: entries of X are too large for products of two "
                "columns; scale the columns of X"
            )
        lengths = self._row_lengths[v != 0].astype(np.float64)
        finalists.count(possible=0.5 * float((lengths * (lengths + 1 - 2 * index.shift)).sum()))
        chosen = np.flatnonzero((radii > 0) & (reach >= finalists.least_magnitude(0.0)))
        if head is not None and head.few(chosen.size):
            _sum_leading(head, chosen, v, radii, index, finalists, square)
            return
        chosen = chosen[np.argsort(-radii[chosen], kind="stable")]
        order = columns[chosen]
        by_rows = self._by_rows.data, self._by_rows.indices, self._by_rows.indptr
        costs, between = _kernels.pair_search(
            self._parts, by_rows, order, v, radii[chosen], reach[chosen]
        )
        # Of all columns, by their own numbers.
        of_columns = np.zeros(index.n_inputs)
        of_columns[order] = radii[chosen]
        error = finalists.error
        limits = error.relative, error.absolute, square, index.shift

        def work(lo: int, hi: int) -> None:
            while lo < hi:
                threshold = finalists.threshold / finalists.scale
                lo, i, j, sums, products = between(lo, hi, threshold, *limits)
                finalists.count(products=products)
                finalists.offer(np.minimum(i, j), np.maximum(i, j), np.abs(sums), of_columns)

        _share_out(work, costs)

    def _leading(self, level: float) -> LeadingInputs | None:
        """Return the inputs with sums that can reach the level, where they are few; remembered."""
        if self._strongest is None:
            self._strongest = strongest(self._fixed_bounds[2], np.diff(self.matrix.indptr))
        columns, others = self._strongest
        if others >= level:
            return None
        if self._head is None:
            self._head = LeadingInputs.of(self.matrix, columns)
        return self._head

    def _bounds(
        self, v: Array, finalists: Finalists, head: LeadingInputs | None
    ) -> tuple[Columns, Array, Array]:
        """Return the inputs that may matter, their r_i and their B_i."""
        low, high, fixed = self._fixed_bounds
        least = finalists.least_magnitude(0.0)
        columns = np.flatnonzero(fixed >= least) if head is None else head.columns
        reach, rising, falling = _kernels.pair_bounds_csc(*self._parts, v, low, high, columns)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            one_sign = not low.any() or not high.any()
            radii = np.maximum(rising, falling) if one_sign else np.hypot(rising, falling)
            radii *= SETTINGS.inflation
            reach *= SETTINGS.inflation
            reach = np.minimum(reach, radii * radii.max(initial=0.0))
        # Underflow: what is not zero must not look so.
        reach[(reach == 0.0) & (radii > 0)] = np.finfo(np.float64).tiny
        return columns, radii, reach


def _sum_leading(
    head: LeadingInputs,
    chosen: Columns,
    v: Array,
    radii: Array,
    index: PairIndex,
    finalists: Finalists,
    square: float,
) -> None:
    """Offer all pairs of the leading inputs at ``chosen``, summed in one go over the rows."""
    sums, products = head.sums(v, chosen)
    places = np.arange(chosen.size)
    sums[places, places] *= square if index.squares else 0.0
    finalists.count(products=products)
    bound = float(radii[chosen].max(initial=0.0)) ** 2
    least = finalists.least_magnitude(finalists.error.relative * bound + finalists.error.absolute)
    a, b = np.nonzero((np.abs(sums) >= least) & (sums != 0.0))
    first, second = head.columns[chosen[a]], head.columns[chosen[b]]
    of_columns = np.zeros(index.n_inputs)
    of_columns[head.columns] = radii
    i, j = np.minimum(first, second), np.maximum(first, second)
    finalists.offer(i, j, np.abs(sums[a, b]), of_columns)


def _weighted(matrix: sp.csc_array, v: Array) -> sp.csc_array:
    """Return diag(v) X, without the rows of weight 0."""
    weighted = matrix.copy()
    weighted.data *= v[weighted.indices]
    weighted.eliminate_zeros()
    return weighted


def _costs(matrix: sp.csc_array, by_rows: sp.csr_array) -> Array:
    """Return the multiplications that the pairs of each input take."""
    lengths = np.diff(by_rows.indptr).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(lengths[matrix.indices])])
    costs: Array = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    return costs


def _share_out(work: Any, costs: Array) -> None:
    """Call work(lo, hi) for runs of inputs of bounded cost, one input at least."""
    ends = np.cumsum(costs)
    cuts = [0]
    while cuts[-1] < costs.size:
        before = ends[cuts[-1] - 1] if cuts[-1] else 0.0
        stop = int(np.searchsorted(ends, before + SETTINGS.piece_products, side="right"))
        cuts.append(max(stop, cuts[-1] + 1))
    # A multiplication of sparse numbers takes as long as some twenty of dense ones.
    total = 20.0 * float(ends[-1]) if ends.size else 0.0
    _kernels.share_out(lambda piece: work(cuts[piece], cuts[piece + 1]), len(cuts) - 1, total)


def strongest(F: Array, lengths: NDArray[np.int64]) -> tuple[Columns, float]:
    """Return the inputs of the largest F, as many as may be kept apart, and max F of the others."""
    order = np.argsort(-F, kind="stable")
    most = SETTINGS.leading_share * float(lengths.sum())
    number = int(np.searchsorted(np.cumsum(lengths[order]), most, side="right"))
    return order[:number], float(F[order[number]]) if number < F.size else 0.0


@dataclass(frozen=True, slots=True)
class LeadingInputs:
    """The strongest inputs by F_i = sum_k |x_ki| max_j |x_kj|.

    While |v| <= 1 no sum of a pair with one of the others is larger than its F. columns : their
    numbers, those with most entries first; X : (n_samples, m), by rows.
    """

    columns: Columns
    X: sp.csr_array = field(repr=False)

    @classmethod
    def of(cls, X: sp.csc_array, columns: Columns) -> LeadingInputs:
        """Return these inputs of X, whose rows are sorted."""
        columns = columns[np.argsort(-np.diff(X.indptr)[columns], kind="stable")]
        # Turned from columns to rows, each row has its entries in the order of the columns.
        return cls(columns, X[:, columns].tocsr())

    def few(self, number: int) -> bool:
        """Return whether ``sums`` of this many inputs take little time and memory."""
        return number <= SETTINGS.most_summed and number**2 <= self.X.nnz

    def sums(self, v: Array, chosen: Columns) -> tuple[Array, int]:
        """Return sum_k v_k x_ki x_kj of the inputs at ``chosen`` (increasing), for i <= j.

        With how many multiplications that took: rows where v is zero take none.
        """
        X = self.X[:, chosen]
        lengths = np.diff(X.indptr)[v != 0].astype(np.int64)
        sums = _kernels.weighted_squares_csr(X.data, X.indices, X.indptr, v, chosen.size)
        return np.triu(sums), int((lengths * (lengths + 1) // 2).sum())
