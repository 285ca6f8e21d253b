"""Additive: the design of additive models, one group of basis functions per input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._kernels import CodedColumns
from atomlearn._support import check_weight
from atomlearn.core import Array, Columns, Design, as_design, dense_part, feature_names
from atomlearn.maps.bases import Basis, basis_of
from atomlearn.maps.curves import AdditiveSettings, Kernel
from atomlearn.maps.feature_map import Inputs, TermMap
from atomlearn.maps.features import FeatureEntry
from atomlearn.maps.levels import (
    Binning,
    Levels,
    dense_codes,
    encoded,
    levels_and_codes,
    nearest,
)
from atomlearn.maps.terms import TermDesign


@dataclass(frozen=True)
class AdditiveMap(TermMap):
    """Feature map of an additive model: basis functions phi_j of input j, 0 at its origin.

    phi_j is known at the levels of input j, the values to which its entries are rounded. A
    "thermometer column" is a step function of the input: one constant below a level, another above.

    Attributes
    ----------
    settings : AdditiveSettings
        Parameters of the map.
    levels : Levels
        Levels of the inputs.
    basis : Basis
        The basis functions at the levels.
    """

    unit = "inputs"

    settings: AdditiveSettings
    levels: Levels
    basis: Basis

    @property
    def sizes(self) -> Columns:
        """Number of columns of each input."""
        return self.basis.sizes

    @property
    def is_steps(self) -> bool:
        """Whether curves are step functions."""
        return self.basis.is_steps

    @property
    def residual(self) -> Array:
        """Error of a low-rank kernel of each input, (d,): largest k(x, x) - ||phi(x)||^2."""
        return self.basis.residual

    def table(self, j: int) -> Array:
        """Return phi_j at each level of input j, (n_levels, sizes[j])."""
        return self.basis.table(j)

    # --- the map of features --------------------------------------------------------------------

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.levels.n_inputs

    def apply(self, X: object) -> Additive:
        """Return the columns of new rows X as a design."""
        return Additive.from_map(X, self)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return (j, -1) for each term j, since terms are inputs."""
        return Inputs(self.n_inputs).inputs_of(terms)

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``age>=41`` or ``age<=-1`` for thermometer columns, ``age[3]`` for others.

        ``names`` are the names of the inputs, by default x0, x1, ...
        """
        input_names = self.named_inputs(names)
        result = []
        columns = np.asarray(columns, dtype=np.int64)
        for j, column in zip(self.term_of(columns).tolist(), columns.tolist(), strict=True):
            # ``number`` is that of the column within its input.
            # A thermometer column above the origin is named by the level above it, a column below
            # the origin by the level below it. With an exponent, levels are those of |x|.
            number = column - int(self.starts[j])
            levels = self.settings.roots(self.levels.of(j))
            name = input_names[j] if self.settings.exponent is None else f"|{input_names[j]}|"
            if not self.is_steps:
                result.append(f"{name}[{number}]")
            elif number >= self.levels.zero[j]:
                result.append(f"{name}>={levels[number + 1]:.6g}")
            else:
                result.append(f"{name}<={levels[number]:.6g}")
        return result

    def curve(self, j: int, weights: Array) -> tuple[Array, Array]:
        """Return the levels of input j and the values of its curve f_j there, (n_levels,) each.

        ``weights`` are the coefficients of input j, or of all columns.
        """
        if weights.size != self.sizes[j]:
            weights = weights[self.starts[j] : self.starts[j + 1]]
        levels = self.settings.roots(self.levels.of(j))
        return levels, self.table(j) @ np.asarray(weights, dtype=np.float64)


class Additive(TermDesign):
    """Design of additive models f(x) = sum_j f_j(x_j): input j is a group of basis functions.

    f_j(x_j) = w_j'phi_j(x_j), with phi_j the basis functions of input j and w_j their coefficients.
    f_j is zero at the origin of the input, and the intercept contains the constant part. The origin
    is 0 if the input has values on both sides of 0, else its value nearest to 0.
    Columns are neither stored nor formed. Each entry of X is stored as one byte, the number of the
    level that it is rounded to. Scores are computed from sums of v over each level.

    Parameters
    ----------
    X : array, sparse array, table or Design, shape (n_samples, d)
        See ``as_design``. It is read once; CSC arrays share their row indices.
    kernel : {"intersection", "gaussian", "chi2", "splines"} or callable
        "intersection": min(x, y) above the origin, and min(-x, -y) below, exactly, by one
        step function between any two neighboring levels ([1]_ section 6). "gaussian":
        exp(-(x - y)^2 / (2 (length_scale * deviation)^2)). "chi2": 2 x y / (x + y), x, y >= 0.
        "splines": B-splines of ``degree`` over ``n_knots`` quantiles. A callable k(x, y) works on
        arrays elementwise and must be positive semidefinite.
    n_bins : int, 1 to 255, optional
        An input with more than n_bins + 1 distinct values is rounded to n_bins levels; other inputs
        are kept exactly. Default 100 for "intersection", else 255.
    binning : {"quantile", "uniform"}
        Levels of evenly spaced rank, or of even distance.
    n_components : int, default=11
        Number of columns of an input for gaussian, chi2 and callables: steps of a pivoted Cholesky
        factorization of the kernel over the levels, whose error is ``map.residual``.
    length_scale : float, default=1.0
        Length scale of the gaussian kernel, in standard deviations of each input.
    n_knots, degree : int, default=8 and 3
        Knots and degree of the splines; an input has n_knots + degree - 1 columns.
    exponent : float > 0, optional
        a of the general intersection kernel min(|x|^a, |y|^a), exactly, for "intersection": levels
        are those of |x|^a. X is copied. None: signs count, as described above.
    normalize : bool, default=False
        Whether each group is scaled so that the variances of its columns add up to 1, so that norms
        over groups treat inputs of different units alike.
    sample_weight : (n_samples,) array, optional
        Weight of each row for levels, knots and variances; rows of weight 0 are left out.

    Attributes
    ----------
    map : AdditiveMap
        Levels and columns of every input: those of input j are map.starts[j] .. map.starts[j + 1] -
        1, map.used lists the inputs that have any. ``Additive.from_map(X_new, map)`` applies them
        to new data.
    groups : (n_columns,) ndarray of int64
        The group of each column, for ``norms.Groups(design.groups)`` and ``norms.KSupport(k,
        design.groups)``; inputs that are constant have no column.

    Notes
    -----
    Group norms over the inputs take one addition for each entry of X and two for each level;
    ``full``, ``at`` and ``top`` are of the same order; smooth maps also take O(levels * columns)
    for each input. Memory beyond X: a byte for each entry (and, for CSR, its row), 8 bytes for each
    level. With an intercept the choice of the origin does not change the problem.

    References
    ----------
    .. [1] M. Tan, I. W. Tsang, L. Wang, "Towards ultrahigh dimensional feature selection for big
       data", JMLR 15 (2014). S. Maji, A. C. Berg, "Max-margin additive classifiers for
       detection", ICCV 2009. Levels: S. N. Wood, Z. Li, G. Shaddick, N. H. Augustin,
       "Generalized additive models for gigadata", JASA 112 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Additive
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 5))
    >>> design = Additive(X, "splines")
    >>> norm = norms.Groups(design.groups)
    >>> r = solve(design, np.sin(2 * X[:, 3]), norm=norm, alpha=0.01)
    >>> np.unique(design.map.term_of(r.columns))
    array([3])
    """

    map: AdditiveMap
    _base: Design

    def __init__(
        self,
        X: object,
        kernel: str | Kernel = "intersection",
        n_bins: int | None = None,
        *,
        binning: Binning = "quantile",
        n_components: int = 11,
        length_scale: float = 1.0,
        n_knots: int = 8,
        degree: int = 3,
        exponent: float | None = None,
        normalize: bool = False,
        sample_weight: object = None,
    ) -> None:
        """Check the parameters, read X once, and tabulate the basis functions."""
        settings = AdditiveSettings(
            kernel,
            n_bins,
            binning,
            n_components,
            length_scale,
            n_knots,
            degree,
            normalize,
            exponent,
        )
        # One pass over X: the levels of each input, and the code (level number) of each entry.
        base = settings.powers(as_design(X))
        weight = check_weight(sample_weight, base.shape[0])
        levels, codes = levels_and_codes(base, settings.most_bins, settings.binning, weight)
        self.codes = codes
        map = AdditiveMap(settings, levels, basis_of(settings, levels, codes, weight))
        self._set(map, base, feature_names(X))

    @classmethod
    def from_map(cls, X: object, map: AdditiveMap) -> Additive:
        """Return the design of other rows of the same inputs, with the columns of ``map``.

        Values beyond the levels are rounded to the outermost one.
        """
        base = as_design(X)
        if base.shape[1] != map.levels.n_inputs:
            raise ValueError(
                f"X has {base.shape[1]} columns, but the map is of {map.levels.n_inputs} inputs"
            )
        design = cls.__new__(cls)
        design._base = map.settings.powers(base)
        design._set(map, base, feature_names(X))
        return design

    def _set(self, map: AdditiveMap, base: Design, names: list[str] | None) -> None:
        """Set the attributes of the rows ``base``: their map, and the names of the inputs."""
        self.dtype = base.dtype
        self.map = map
        self._names = names
        self.shape = base.shape[0], map.n_columns

    @cached_property
    def codes(self) -> CodedColumns:
        """The codes of all inputs; those of new rows are computed when a pass needs them."""
        return encoded(self._base, self.map.levels)

    # --- the design -----------------------------------------------------------------------------

    def scores_of(self, v: Array) -> Array:
        """Return Phi'v, (n_columns,), or for v (n, m) the scores of each column, (n_columns, m)."""
        return self.map.basis.scores(self.codes, v)

    def coded(self, terms: Columns) -> tuple[NDArray[Any], list[Array]]:
        """Return the codes of these inputs (n_samples, m), and the table of each.

        The codes are numbers of levels. A table (n_levels, number of columns) has the
        values of the columns of an input at its levels.
        """
        tables = [self.map.table(j) for j in terms.tolist()]
        levels = self.map.levels
        if "codes" in vars(self):
            return dense_codes(self.codes, levels.zero, terms), tables
        # New rows: a prediction needs the codes of few inputs.
        values = dense_part(self._base, terms).T
        codes = [nearest(levels.of(j), x) for j, x in zip(terms.tolist(), values, strict=True)]
        return np.array(codes, dtype=np.uint8).reshape(terms.size, self.shape[0]).T, tables

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i phi_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self.map.basis.squares(self.codes, weights)


def _entry(kernel: str, *more: str) -> FeatureEntry:
    """Return the entry of ``features=`` for the curves of a kernel, normalized by default.

    ``more`` are the names of the settings that only this kernel has.
    """

    def make(X: object, weight: Array | None, **settings: Any) -> Additive:
        """Return the design of the rows X with these sample weights and settings."""
        return Additive(X, kernel, **{"normalize": True, **settings}, sample_weight=weight)

    return FeatureEntry(AdditiveMap, make, ("n_bins", "binning", "normalize", *more))


SPLINES = _entry("splines", "n_knots", "degree")
INTERSECTION = _entry("intersection", "exponent")
GAUSSIAN = _entry("gaussian", "n_components", "length_scale")
CHI2 = _entry("chi2", "n_components")
