"""Anova: functional ANOVA with main effects and pairwise interactions, columns never stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn import _kernels
from atomlearn._kernels.codes import MOST_PAIR_LEVELS
from atomlearn._support import Deadline, check_weight, whole_number
from atomlearn.core import LIMITS, Array, Columns, as_design, feature_names
from atomlearn.maps.additive import Additive, AdditiveMap
from atomlearn.maps.curves import Kernel, shares_of
from atomlearn.maps.feature_map import Inputs, TermMap
from atomlearn.maps.features import FeatureEntry
from atomlearn.maps.levels import Binning, dense_codes
from atomlearn.maps.terms import TermDesign


@dataclass(frozen=True)
class AnovaMap(TermMap):
    """Feature map with basis functions phi_j(x_j) and, for pairs, products psi_ia(x_i) psi_jb(x_j).

    Attributes
    ----------
    main : AdditiveMap
        The map of the single inputs (main effects, curves).
    margin : AdditiveMap
        The map of the inputs in pairs, with fewer levels and basis functions.
    tables : (d, L, m) float64
        Basis functions psi_j of input j at each of its at most L = 16 levels, with weighted mean
        zero; padded with zeros to m columns.
    first, second : (n_pairs,) int64
        The inputs of each pair, first < second.
    """

    unit = "terms"
    has_pairs = True

    main: AdditiveMap
    margin: AdditiveMap
    tables: Array
    first: Columns
    second: Columns

    @classmethod
    def of(
        cls, main: AdditiveMap, margin: AdditiveMap, shares: list[Array], pairs: Columns
    ) -> AnovaMap:
        """Return the map with the basis functions of ``margin``, shifted to weighted mean zero.

        ``main`` is the map of the curves. ``shares[j]`` is the fraction of the sample weight at
        each level of input j in pairs. ``pairs`` (n_pairs, 2) are the pairs of inputs; those with a
        constant input are left out.
        """
        d = margin.levels.n_inputs
        n_levels = int(margin.levels.sizes.max(initial=1))
        tables = np.zeros((d, n_levels, int(margin.sizes.max(initial=0))))
        for j in range(d):
            # The weighted mean of each basis function is subtracted.
            table = margin.table(j)
            table = table - shares[j] @ table
            tables[j, : table.shape[0], : table.shape[1]] = table
        sizes = margin.sizes
        is_used = (sizes[pairs[:, 0]] > 0) & (sizes[pairs[:, 1]] > 0)
        result = cls(main, margin, tables, pairs[is_used, 0].copy(), pairs[is_used, 1].copy())
        if result.n_columns > LIMITS.most_dense:
            raise ValueError(
                f"Anova: {result.first.size} pairs have {result.n_columns} columns together, more "
                f"than the {LIMITS.most_dense} whose scores are ever listed; name fewer "
                "pairs=, or use fewer n_knots, n_components or n_bins"
            )
        return result

    @property
    def n_inputs(self) -> int:
        """Number of inputs; they are the first terms."""
        return self.main.levels.n_inputs

    def apply(self, X: object) -> Anova:
        """Return the columns of new rows X as a design."""
        return Anova.from_map(X, self)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return the inputs (i, j) of each term; j = -1 for a main effect."""
        inputs = Inputs(self.n_inputs).inputs_of(terms)
        # Terms after the inputs are the pairs, in order.
        pairs = inputs[:, 0] >= self.n_inputs
        numbers = inputs[pairs, 0] - self.n_inputs
        inputs[pairs] = np.stack([self.first[numbers], self.second[numbers]], axis=1)
        return inputs

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return the names of ``Additive`` for columns of curves, ``age:dose[2,3]`` for pairs.

        Column [a,b] of a pair is the product of basis functions a and b of its two inputs.
        """
        input_names = self.named_inputs(names)
        result = []
        columns = np.asarray(columns, dtype=np.int64)
        for term, column in zip(self.term_of(columns).tolist(), columns.tolist(), strict=True):
            if term < self.n_inputs:
                result += self.main.names([column], input_names)
                continue
            [name] = self.term_names([term], input_names)
            [(_, j)] = self.inputs_of([term])
            # Columns of a pair are in the order (0, 0), (0, 1), ..., after its first column.
            a, b = divmod(column - int(self.starts[term]), int(self.margin.sizes[j]))
            result.append(f"{name}[{a},{b}]")
        return result

    def curve(self, j: int, weights: Array) -> tuple[Array, Array]:
        """Return the levels of input j, and the curve f_j there; ``weights`` are of all columns."""
        return self.main.curve(j, weights[: self.main.n_columns])

    @cached_property
    def sizes(self) -> Columns:
        """Number of columns of each term: of the inputs, then of the pairs."""
        margin = self.margin.sizes
        pairs = margin[self.first] * margin[self.second]
        return np.concatenate([self.main.sizes, pairs]).astype(np.int64)

    def table(self, j: int) -> Array:
        """Return psi_j at the levels of input j, (n_levels, m_j)."""
        margin = self.margin
        table: Array = self.tables[j, : margin.levels.sizes[j], : margin.sizes[j]]
        return table

    def pair_table(self, pair: int) -> Array:
        """Return the values of the columns of a pair (i, j) at each code, (n_codes, m_i m_j).

        Levels a of i and b of j have the code a * n_levels_j + b.
        """
        i = int(self.first[pair])
        j = int(self.second[pair])
        return np.asarray(np.kron(self.table(i), self.table(j)), dtype=np.float64)

    def surface(self, i: int, j: int, weights: Array) -> tuple[Array, Array, Array]:
        """Return the levels of inputs i and j, and f_ij at all pairs of levels (n_i, n_j).

        ``weights`` are the coefficients of all columns; f_ij is zero if the pair has no columns.
        """
        if i == j or not (0 <= i < self.n_inputs and 0 <= j < self.n_inputs):
            raise ValueError(
                f"a surface is of two different inputs in 0..{self.n_inputs - 1}, got {i} and {j}"
            )
        # A pair has its smaller input first.
        low = min(i, j)
        high = max(i, j)
        levels = self.margin.levels
        values = np.zeros((int(levels.sizes[low]), int(levels.sizes[high])))
        pair = np.flatnonzero((self.first == low) & (self.second == high))
        if pair.size:
            term = self.n_inputs + int(pair[0])
            term_weights = weights[self.starts[term] : self.starts[term + 1]]
            values = np.reshape(self.pair_table(int(pair[0])) @ term_weights, values.shape)
        return levels.of(i), levels.of(j), values if i < j else values.T


class Anova(TermDesign):
    """Functional ANOVA design: f(x) = sum_j f_j(x_j) + sum_{i<j} f_ij(x_i, x_j), by groups.

    Each main effect f_j and each pairwise interaction f_ij is a group of columns. f_ij is linear in
    products psi_ia(x_i) psi_jb(x_j) of basis functions with mean zero over the data, so that
    interactions contain no main effects. Columns are neither stored nor formed. Inputs are binned
    to at most 16 levels for interactions (more for main effects). The scores of a pair are
    T_i' H_ij T_j, with H_ij the joint histogram of v over the levels of both inputs and T_j the
    table of psi_j at the levels. So a search among *all* pairs is exact.

    Parameters
    ----------
    X : array, sparse array, table or Design, shape (n_samples, d)
        See ``as_design``; it is read twice.
    kernel : str or callable, default="splines"
        Kernel of curves and pairs, see ``Additive``.
    pairs : list of (i, j), optional
        The pairs that have columns; default all.
    n_bins : int, 1 to 15, default=15
        Levels of an input in its pairs, in addition to the origin.
    n_knots, degree, n_components, length_scale, binning
        Parameters of the inputs in pairs, see ``Additive``; by default splines of 4 knots and
        degree 2, which makes 25 columns for each pair. Curves have the defaults of ``Additive``.
    normalize : bool, default=False
        Whether groups are scaled so that the variances of their columns add up to 1; for pairs as
        if their inputs were independent.
    sample_weight : (n_samples,) array, optional
        Weight of each row for levels, knots, means and variances.

    Attributes
    ----------
    map : AnovaMap
        ``Anova.from_map(X_new, map)`` applies it to new data.
    groups : (n_columns,) ndarray of int64
        The group of each column, for ``norms.Groups(design.groups)``: the inputs that are not
        constant, then the pairs.
    terms : list of tuples
        The input (j,) or the pair (i, j) of each group.

    Notes
    -----
    For each pair, a pass takes n additions and L m (L + m) operations for L levels and m columns of
    an input; memory is 2 n d bytes beyond X.

    References
    ----------
    C. Gu, "Smoothing spline ANOVA models" (2002); M. Stitson et al., "Support vector regression
    with ANOVA decomposition kernels" (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Anova
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 6))
    >>> design = Anova(X, normalize=True)
    >>> y = np.sign(X[:, 1] * X[:, 4])
    >>> r = solve(design, y, norm=norms.Groups(design.groups), alpha=0.2)
    >>> {design.terms[g] for g in design.groups[r.columns]}
    {(1, 4)}
    """

    map: AnovaMap

    def __init__(
        self,
        X: object,
        kernel: str | Kernel = "splines",
        pairs: object = None,
        n_bins: int = 15,
        *,
        n_knots: int = 4,
        degree: int = 2,
        n_components: int = 5,
        length_scale: float = 1.0,
        binning: Binning = "quantile",
        normalize: bool = False,
        sample_weight: object = None,
    ) -> None:
        """Check the parameters, and make the additive designs of curves and of inputs in pairs."""
        base = as_design(X)
        chosen = checked_pairs(pairs, base.shape[1])
        coarse = whole_number("Anova", "n_bins", n_bins, 1, MOST_PAIR_LEVELS - 1)
        # Curves have fine levels and the defaults of ``Additive``; the margin, the inputs in pairs,
        # has coarse levels and few basis functions.
        make = partial(
            Additive,
            base,
            kernel,
            binning=binning,
            length_scale=length_scale,
            normalize=normalize,
            sample_weight=sample_weight,
        )
        curves = make()
        margin = make(coarse, n_components=n_components, n_knots=n_knots, degree=degree)
        weight = check_weight(sample_weight, base.shape[0])
        levels = margin.map.levels
        shares = np.split(shares_of(margin.codes, levels, weight), levels.starts[1:-1])
        map = AnovaMap.of(curves.map, margin.map, shares, chosen)
        self._set(curves, margin, map, feature_names(X))

    @classmethod
    def from_map(cls, X: object, map: AnovaMap) -> Anova:
        """Return the design of other rows X of the same inputs, with the columns of ``map``.

        Values beyond the levels of an input are rounded to the outermost one.
        """
        base = as_design(X)
        design = cls.__new__(cls)
        curves = Additive.from_map(base, map.main)
        margin = Additive.from_map(base, map.margin)
        design._set(curves, margin, map, feature_names(X))
        return design

    def _set(
        self, curves: Additive, margin: Additive, map: AnovaMap, names: list[str] | None
    ) -> None:
        """Set the attributes from the additive designs of the same rows.

        ``curves`` has the main effects, ``margin`` the coarser codes for pairs, and ``names`` are
        the names of the inputs.
        """
        self.curves = curves
        all_inputs = np.arange(map.n_inputs, dtype=np.int64)
        self.codes = dense_codes(margin.codes, map.margin.levels.zero, all_inputs)
        self.map = map
        self._names = names
        self.shape = (self.codes.shape[0], map.n_columns)
        self.dtype = curves.dtype

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """The input, or the two inputs, of each group."""
        return [(i,) if j < 0 else (i, j) for i, j in self.map.inputs_of(self.map.used).tolist()]

    # --- the design -----------------------------------------------------------------------------

    def scores_of(self, v: Array) -> Array:
        """Return the scores Phi'v of the columns of main effects, then of pairs.

        They are (n_columns,), or (n_columns, m) for v (n_samples, m).
        """
        return np.concatenate([self.curves.scores_of(v), *self._pair_sums(v, self.map.tables)])

    def _pair_sums(self, v: Array, tables: Array) -> Iterator[Array]:
        """Yield the entries of T_i' H_ij T_j for consecutive groups of pairs (i, j).

        H_ij is the joint histogram of v (n_samples,) or (n_samples, m) over the levels of the
        inputs, and T_j = ``tables[j]``. Groups bound the memory of histograms.
        """
        map = self.map
        n_levels = tables.shape[1]
        width = tables.shape[2]
        # Rows and columns beyond the table of an input are padding.
        is_inside = np.arange(width) < map.margin.sizes[:, None]
        # The histograms of one pair have n_levels^2 entries for each vector.
        step = max(1, LIMITS.piece_entries * v.shape[0] // (v.size * n_levels**2))
        for start in range(0, map.first.size, step):
            Deadline.current().check()
            i = map.first[start : start + step]
            j = map.second[start : start + step]
            joint = _kernels.pair_histograms(self.codes, n_levels, i, j, v)
            # With several vectors, their axis is moved to the front for the product, then back.
            histograms = np.moveaxis(joint, 3, 0) if v.ndim == 2 else joint
            products = tables[i].transpose(0, 2, 1) @ (histograms @ tables[j])
            products = np.moveaxis(products, 0, 3) if v.ndim == 2 else products
            yield products[is_inside[i][:, :, None] & is_inside[j][:, None, :]]

    def coded(self, terms: Columns) -> tuple[NDArray[Any], list[Array]]:
        """Return the codes of these terms (n_samples, m), inputs first, and the table of each."""
        inputs = terms[terms < self.map.n_inputs]
        input_codes, tables = self.curves.coded(inputs)
        codes = [input_codes.T]
        for pair in (terms[inputs.size :] - self.map.n_inputs).tolist():
            codes.append(self._pair_codes(pair)[None, :])
            tables.append(self.map.pair_table(pair))
        return np.concatenate(codes).T, tables

    def _pair_codes(self, pair: int) -> NDArray[np.uint8]:
        """Return the code a * n_levels_j + b of each row with levels a and b of inputs i and j.

        ``pair`` is the number of the pair (i, j).
        """
        i = int(self.map.first[pair])
        j = int(self.map.second[pair])
        # At most 15 * 16 + 15, which fits into a byte.
        n_second = np.uint8(self.map.margin.levels.sizes[j])
        codes: NDArray[np.uint8] = self.codes[:, i] * n_second + self.codes[:, j]
        return codes

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i phi_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        main = self.curves.squared_norms(weights)
        return np.concatenate([main, *self._pair_sums(weights, self.map.tables**2)])


def checked_pairs(pairs: object, n_inputs: int) -> Columns:
    """Return ``pairs`` as an array (n_pairs, 2) with i < j, after checks; None means all pairs.

    Raise TypeError or ValueError unless they are pairs of different inputs in 0..n_inputs - 1, each
    named once.
    """
    if pairs is None:
        i, j = np.triu_indices(n_inputs, 1)
        return np.stack([i, j], axis=1).astype(np.int64)
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise TypeError(
            f"Anova: pairs must be a list of pairs (i, j) of whole numbers, got dtype "
            f"{array.dtype} of shape {array.shape}"
        )
    ordered: NDArray[np.int64] = np.sort(array.astype(np.int64), axis=1)
    is_in_range = ordered.min() >= 0 and ordered.max() < n_inputs
    is_unique = len(np.unique(ordered, axis=0)) == len(ordered)
    if not (is_in_range and is_unique) or (ordered[:, 0] == ordered[:, 1]).any():
        raise ValueError(
            f"Anova: pairs must be of two different inputs in 0..{n_inputs - 1}, each named once; "
            "of one input there is a curve anyway"
        )
    return ordered


def _anova(X: object, weight: Array | None, **settings: Any) -> Anova:
    """Return the design of the rows X for ``features="anova"``, normalized by default.

    ``weight`` (n_samples,) are the sample weights, and ``settings`` the parameters of
    ``Anova``.
    """
    return Anova(X, **{"normalize": True, **settings}, sample_weight=weight)


#: The entry of ``features="anova"``.
ANOVA = FeatureEntry(
    AnovaMap,
    _anova,
    (
        "kernel",
        "pairs",
        "n_bins",
        "n_knots",
        "degree",
        "n_components",
        "length_scale",
        "binning",
        "normalize",
    ),
)
