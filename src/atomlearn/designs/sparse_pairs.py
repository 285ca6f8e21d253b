"""SparsePairs: products of two sparse columns, by sparse products over the inputs that matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.designs.blocks import DENSE_FROM, DenseBlock, SparseBlock, prefers_dense
from atomlearn.designs.compressed import take_compressed
from atomlearn.designs.pair_index import PairIndex
from atomlearn.designs.pair_products import PairProducts
from atomlearn.designs.pair_search import INFLATION, Finalists
from atomlearn.designs.sparse import SparseDesign
from atomlearn.interfaces.design import Array, Block, Columns

#: Multiplications of one piece of a sparse product: bounds what it may bring forth (64 MB).
PIECE_PRODUCTS = 2**22
#: The first piece is this small, and each at most twice the last: a threshold is found early.
FIRST_PRODUCTS = 2**14
#: Non-zeros of columns taken apart at a time.
PIECE_NONZEROS = 2**21


class SparsePairs(PairProducts):
    """Pairs of the columns of a sparse array: only pairs that meet in a row are ever formed.

    Keeps X by columns with sorted rows: a copy of X where it was given by rows or unsorted.
    """

    def __init__(self, base: SparseDesign) -> None:
        matrix = base.matrix()
        if matrix.format == "csr":
            matrix = matrix.tocsc()
        elif not matrix.has_sorted_indices:
            matrix = matrix.copy()
        matrix.sort_indices()
        matrix.has_canonical_format = True
        self.matrix: sp.csc_array = matrix
        self._lengths = np.diff(matrix.indptr).astype(np.int64)
        self._full = matrix.nnz >= DENSE_FROM * matrix.shape[0] * matrix.shape[1]
        self._largest = float(np.abs(matrix.data).max(initial=0.0))

    def __reduce__(self) -> tuple[Any, ...]:
        return SparsePairs, (SparseDesign(self.matrix),)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_inputs)"""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def _take(self, columns: Columns) -> sp.csc_array:
        """Return columns, repeats allowed, in float64."""
        matrix = self.matrix
        parts = take_compressed(matrix.data, matrix.indices, matrix.indptr, columns)
        taken = sp.csc_array(parts, shape=(matrix.shape[0], columns.size))
        taken.has_sorted_indices = taken.has_canonical_format = True
        return taken

    def _products(self, i: Columns, j: Columns) -> sp.csc_array:
        """Return x_i * x_j, or x_i where j = -1: entries in the order of the rows."""
        paired = j >= 0
        right = self._take(np.where(paired, j, i))
        if not paired.all():
            # One where there is nothing to multiply with: the pattern of x_i itself.
            right.data[np.repeat(~paired, np.diff(right.indptr))] = 1.0
        product: sp.csc_array = self._take(i).multiply(right).tocsc()
        return product

    def _pieces(self, i: Columns, j: Columns) -> Iterator[slice]:
        """Yield runs of pairs with a bounded number of non-zeros, one pair at least."""
        ends = np.cumsum(self._lengths[i] + self._lengths[j])
        start = 0
        while start < i.size:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + PIECE_NONZEROS, side="right"))
            stop = max(stop, start + 1)
            yield slice(start, stop)
            start = stop

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        matrix = self.matrix
        return _kernels.pair_sums_csc(matrix.data, matrix.indices, matrix.indptr, i, j, v)

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        n_samples = self.shape[0]
        product = self._products(i, j)
        data = product.data * np.repeat(scales, np.diff(product.indptr))
        block = SparseBlock(data, product.indices, product.indptr, n_samples)
        if self._full:
            return DenseBlock(block.dense())
        if prefers_dense(n_samples, i.size, data.size):
            return DenseBlock(block.dense(), nonzeros=data.size)
        return block

    def largest(self) -> float:
        return self._largest

    def uses_single(self) -> bool:
        return False

    def all_sums(self, v: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.zeros(index.n_columns - index.n_inputs)
        matrix = self.matrix.astype(np.float64)
        if squared:
            matrix.data **= 2
        left, right = _weighted(matrix, v), matrix.tocsr()

        def work(lo: int, hi: int) -> None:
            product = (left[:, lo:hi].T @ right).tocoo()
            i, j = product.coords[0].astype(np.int64) + lo, product.coords[1].astype(np.int64)
            pairs = j >= i + index.shift
            places = index.columns(i[pairs], j[pairs]) - index.n_inputs
            result[places] = product.data[pairs]

        _share_out(work, _costs(matrix, right))
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        """Offer the pairs of inputs in the order of their bounds, until no bound is left.

        |sum_k v_k x_ki x_kj| <= B_i = min(sum_k |v_k x_ki| max_l |x_kl|, r_i max_l r_l) for
        every j. Once B_i falls below the threshold, input i and all after it are done with.
        """
        matrix = self.matrix.astype(np.float64)
        radii = _radii(matrix, np.abs(v))
        bounds = _input_bounds(matrix, np.abs(v), radii)
        order = np.argsort(-bounds, kind="stable")
        order = order[bounds[order] > 0]
        bounds = bounds[order]
        matrix = matrix[:, order]
        left, right = _weighted(matrix, v), _Narrowing(matrix)

        def work(lo: int, hi: int) -> None:
            reach = finalists.threshold / finalists.scale
            cut = int(np.searchsorted(-bounds, -reach, side="right"))
            hi = min(hi, cut)
            if hi <= lo:
                return
            begin, others = right.between(lo, cut)
            product = (left[:, lo:hi].T @ others).tocoo()
            first = product.coords[0].astype(np.int64) + lo
            second = product.coords[1].astype(np.int64) + begin
            pairs = np.flatnonzero(second >= first + index.shift)
            finalists.count_computed(pairs.size)
            i, j = order[first[pairs]], order[second[pairs]]
            magnitudes = np.abs(product.data[pairs])
            if not np.isfinite(magnitudes).all():
                raise ValueError(
                    "scores of pairs overflow: entries of X are too large for products of two "
                    "columns; scale the columns of X"
                )
            magnitudes[i == j] *= square
            finalists.offer(np.minimum(i, j), np.maximum(i, j), magnitudes, radii)

        _share_out(work, _costs(matrix, right.matrix))

    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        result = np.zeros(self.shape[0])
        used = np.flatnonzero(weights)
        for start in range(0, used.size, PIECE_NONZEROS):
            places = used[start : start + PIECE_NONZEROS]
            i, j = index.pairs(places + index.n_inputs)
            values = weights[places] * np.where(i == j, square, 1.0)
            for part in self._pieces(i, j):
                result += self._products(i[part], j[part]) @ values[part]
        return result


class _Narrowing:
    """X by rows, cut to a range of columns that only ever gets narrower."""

    def __init__(self, matrix: sp.csc_array) -> None:
        self.matrix: sp.csr_array = matrix.tocsr()
        self._starts = matrix.indptr
        self._current = (0, int(matrix.shape[1]), self.matrix)

    def between(self, lo: int, hi: int) -> tuple[int, sp.csr_array]:
        """Return columns begin <= lo up to hi at least, and begin: cut once half is not needed."""
        begin, end, current = self._current
        if begin > lo:  # another thread is ahead
            return 0, self.matrix
        held = int(self._starts[end] - self._starts[begin])
        if 2 * int(self._starts[hi] - self._starts[lo]) <= held:
            begin, end, current = lo, hi, current[:, lo - begin : hi - begin]
            self._current = (begin, end, current)
        return begin, current


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
    cuts, size = [0], min(FIRST_PRODUCTS, PIECE_PRODUCTS)
    while cuts[-1] < costs.size:
        before = ends[cuts[-1] - 1] if cuts[-1] else 0.0
        stop = int(np.searchsorted(ends, before + size, side="right"))
        cuts.append(max(stop, cuts[-1] + 1))
        size = min(2 * size, PIECE_PRODUCTS)
    # A multiplication of sparse numbers takes as long as some twenty of dense ones.
    total = 20.0 * float(ends[-1]) if ends.size else 0.0
    _kernels.share_out(lambda piece: work(cuts[piece], cuts[piece + 1]), len(cuts) - 1, total)


def _owners(matrix: sp.csc_array) -> NDArray[np.int64]:
    return np.repeat(np.arange(matrix.shape[1], dtype=np.int64), np.diff(matrix.indptr))


def _radii(matrix: sp.csc_array, weights: Array) -> Array:
    """Return r_i >= sqrt(sum_k |v_k| x_ki^2), and not much more; 0 where all terms are."""
    parts = matrix.data, matrix.indices, matrix.indptr
    with np.errstate(over="ignore", invalid="ignore"):
        norms = _kernels.squared_norms_csc(*parts, matrix.shape[0], weights)
    doubtful = np.flatnonzero(~((norms > 1e-200) & (norms < 1e200)) & (np.diff(matrix.indptr) > 0))
    norms[doubtful] = 0.0
    radii: Array = np.sqrt(norms)
    part = matrix[:, doubtful]
    owners, sizes = _owners(part), np.abs(part.data) * (weights[part.indices] > 0)
    peaks = np.zeros(doubtful.size)
    np.maximum.at(peaks, owners, sizes)
    shares = sizes / np.where(peaks > 0, peaks, 1.0)[owners]
    squares = np.bincount(owners, weights[part.indices] * shares**2, minlength=doubtful.size)
    radii[doubtful] = np.maximum(np.sqrt(squares), 1e-150) * peaks
    radii *= INFLATION
    return radii


def _input_bounds(matrix: sp.csc_array, weights: Array, radii: Array) -> Array:
    """Return B_i, at least the magnitude of every sum that input i takes part in."""
    sizes = np.abs(matrix.data)
    peaks = np.zeros(matrix.shape[0])
    np.maximum.at(peaks, matrix.indices, sizes)
    parts = sizes, matrix.indices, matrix.indptr
    sums = _kernels.scores_csc(*parts, weights * peaks) * INFLATION
    bounds: Array = np.minimum(sums, radii * float(radii.max(initial=0.0)))
    # Underflow: what is not zero must not look so.
    bounds[(bounds == 0.0) & (radii > 0)] = np.finfo(np.float64).tiny
    return bounds
