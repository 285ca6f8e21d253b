"""AnovaMap: the columns of single inputs, and of pairs of inputs the products of coarser ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels.codes import MOST_PAIR_LEVELS
from atomlearn.core.interfaces.design import Array, Columns
from atomlearn.maps.additive_map import AdditiveMap

#: Tables of pairs hold up to this many columns in all (512 MB of scores).
MOST_COLUMNS = 2**26


@dataclass(frozen=True, slots=True)
class AnovaMap:
    """phi_j(x_j) of each input, and psi_i(x_i) * psi_j(x_j) of each pair in use.

    main : the map of the single inputs; margin : the coarser one of the pairs; tables : (d, L, m)
    psi_j at each of the at most L = 16 levels, of weighted mean zero, padded with zeros; first,
    second : (n_pairs,) the inputs of each pair, first < second.
    """

    main: AdditiveMap
    margin: AdditiveMap
    tables: Array
    first: Columns
    second: Columns

    @classmethod
    def of(
        cls, main: AdditiveMap, margin: AdditiveMap, shares: list[Array], pairs: Columns
    ) -> AnovaMap:
        """Center the tables of ``margin`` under the shares of the weight at each level."""
        d = margin.levels.n_inputs
        n_levels = int(margin.levels.sizes.max(initial=1))
        tables = np.zeros((d, n_levels, int(margin.sizes.max(initial=0))))
        for j in range(d):
            table = margin.table(j)
            table = table - shares[j] @ table
            tables[j, : table.shape[0], : table.shape[1]] = table
        sizes = margin.sizes
        used = (sizes[pairs[:, 0]] > 0) & (sizes[pairs[:, 1]] > 0)
        result = cls(main, margin, tables, pairs[used, 0].copy(), pairs[used, 1].copy())
        if result.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"Anova: {result.first.size} pairs have {result.n_columns} columns together, more "
                f"than the {MOST_COLUMNS} whose scores are ever listed; name fewer pairs=, or use "
                "fewer n_knots, n_components or n_bins"
            )
        return result

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.main.levels.n_inputs

    @property
    def sizes(self) -> Columns:
        """Number of columns of each term: of the inputs, then of the pairs."""
        margin = self.margin.sizes
        pairs = margin[self.first] * margin[self.second]
        return np.concatenate([self.main.sizes, pairs]).astype(np.int64)

    @property
    def n_columns(self) -> int:
        """Number of columns of all terms."""
        return int(self.sizes.sum())

    def table(self, j: int) -> Array:
        """Return psi_j at the levels of input j, (n_levels, m_j)."""
        margin = self.margin
        table: Array = self.tables[j, : margin.levels.sizes[j], : margin.sizes[j]]
        return table

    def pair_table(self, pair: int) -> Array:
        """Return the columns of a pair at each code a * n_levels_j + b, n_levels_i n_levels_j."""
        i, j = int(self.first[pair]), int(self.second[pair])
        return np.asarray(np.kron(self.table(i), self.table(j)), dtype=np.float64)

    def surface(self, i: int, j: int, weights: Array) -> tuple[Array, Array, Array]:
        """Return the levels of two inputs, and f_ij at them, given all coefficients.

        Zero where the pair has no columns.
        """
        if i == j or not (0 <= i < self.n_inputs and 0 <= j < self.n_inputs):
            raise ValueError(
                f"a surface is of two different inputs in 0..{self.n_inputs - 1}, got {i} and {j}"
            )
        low, high = min(i, j), max(i, j)
        levels = self.margin.levels
        values = np.zeros((int(levels.sizes[low]), int(levels.sizes[high])))
        found = np.flatnonzero((self.first == low) & (self.second == high))
        if found.size:
            term = self.n_inputs + int(found[0])
            begin = int(self.sizes[:term].sum())
            mine = weights[begin : begin + int(self.sizes[term])]
            values = (self.pair_table(int(found[0])) @ mine).reshape(values.shape)
        return levels.of(i), levels.of(j), values if i < j else values.T


def checked_pairs(pairs: object, n_inputs: int) -> Columns:
    """Return the pairs (i, j), i < j, as (n_pairs, 2): all where None; raise with the remedy."""
    if pairs is None:
        i, j = np.triu_indices(n_inputs, 1)
        return np.stack([i, j], axis=1).astype(np.int64)
    if not isinstance(pairs, Iterable):
        raise TypeError(f"Anova: pairs must be a list of pairs of inputs, got {pairs!r}")
    given = np.asarray(list(pairs))
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise TypeError(
            f"Anova: pairs must be a list of pairs (i, j) of whole numbers, got dtype "
            f"{given.dtype} of shape {given.shape}"
        )
    ordered: NDArray[np.int64] = np.sort(given.astype(np.int64), axis=1)
    if ordered.min() < 0 or ordered.max() >= n_inputs or (ordered[:, 0] == ordered[:, 1]).any():
        raise ValueError(
            f"Anova: pairs must be of two different inputs in 0..{n_inputs - 1}; of one input "
            "there is a curve anyway"
        )
    unique = np.unique(ordered, axis=0)
    if len(unique) < len(ordered):
        raise ValueError("Anova: pairs names a pair twice; name each once")
    return ordered


def checked_bins(n_bins: object) -> int:
    """Return the bins of a margin: with the origin, two codes of a pair make one byte."""
    most = MOST_PAIR_LEVELS - 1
    if isinstance(n_bins, bool | np.bool_) or not isinstance(n_bins, int | np.integer):
        raise TypeError(f"Anova: n_bins must be a whole number, got {n_bins!r}")
    if not 1 <= n_bins <= most:
        raise ValueError(f"Anova: n_bins must lie between 1 and {most}, got {n_bins}")
    return int(n_bins)
