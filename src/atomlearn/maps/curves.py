"""Basis functions of one input, tabulated at its levels: B-splines or low-rank kernel features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from atomlearn._kernels import CodedColumns, code_histograms
from atomlearn._kernels.codes import MOST_LEVELS
from atomlearn.core import Array, Design, as_design, dense_part, positive, whole_number
from atomlearn.maps.kernel_map import pivoted
from atomlearn.maps.levels import Binning, Levels
from atomlearn.maps.settings import SETTINGS

#: A kernel k(x, y): elementwise with broadcasting, and positive semidefinite.
Kernel = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

#: Names of kernels, and of maps without a kernel.
KERNELS = ("intersection", "gaussian", "chi2", "splines")


@dataclass(frozen=True, slots=True)
class AdditiveSettings:
    """Parameters of ``designs.Additive``, checked."""

    kernel: str | Kernel
    n_bins: int | None
    binning: Binning
    n_components: int
    length_scale: float
    n_knots: int
    degree: int
    normalize: bool
    exponent: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError or TypeError if a parameter is invalid."""
        kernel = self.kernel
        limit = MOST_LEVELS - 1
        if not (callable(kernel) or kernel in KERNELS):
            raise ValueError(
                f"Additive: kernel must be one of {', '.join(KERNELS)} or a function k(x, y) of "
                f"two arrays, got {kernel!r}"
            )
        if self.binning not in ("quantile", "uniform"):
            raise ValueError(
                f"Additive: binning must be 'quantile' or 'uniform', got {self.binning!r}"
            )
        positive("Additive: length_scale", self.length_scale, "in deviations of each input")
        if self.n_bins is not None:
            whole_number("Additive", "n_bins", self.n_bins, 1, limit)
        whole_number("Additive", "n_components", self.n_components, 1, limit)
        whole_number("Additive", "n_knots", self.n_knots, 2, limit)
        whole_number("Additive", "degree", self.degree, 0, 10)
        if self.exponent is not None:
            positive("Additive: exponent", self.exponent, "a of min(|x|^a, |y|^a)")
            if kernel != "intersection":
                raise ValueError(
                    f"Additive: exponent is that of kernel='intersection', got {kernel!r}; leave "
                    "exponent out"
                )

    def powers(self, X: Design) -> Design:
        """Return |X|^exponent elementwise, or X itself if there is no exponent.

        Of sparse X only the stored entries are computed.
        """
        if self.exponent is None:
            return X
        stored = X.stored()
        if stored is not None and X.traits.is_sparse:
            copied = stored.copy()
            copied.data = np.abs(copied.data) ** self.exponent
            return as_design(copied)
        dense = dense_part(X, np.arange(X.shape[1])) if stored is None else stored
        return as_design(np.abs(dense) ** self.exponent)

    def roots(self, levels: Array) -> Array:
        """Return the levels of |x| given those of |x|^exponent; unchanged without an exponent."""
        return levels if self.exponent is None else levels ** (1.0 / self.exponent)

    @property
    def most_bins(self) -> int:
        """Largest number of levels of an input, not counting the origin."""
        if self.n_bins is not None:
            return self.n_bins
        return SETTINGS.thermometer_bins if self.kernel == "intersection" else MOST_LEVELS - 1


def shares_of(x: CodedColumns, levels: Levels, weight: Array) -> Array:
    """Return the fraction of the sample weight at each level, concatenated for all inputs.

    ``x`` are the codes (level numbers) of the data, and ``weight`` (n_samples,) the sample weights.
    """
    counts = code_histograms(x, weight)
    total = float(weight.sum())
    # Entries that are not stored are at the origin.
    missing = total - np.add.reduceat(counts, levels.starts[:-1])
    counts[levels.starts[:-1] + levels.zero] += np.maximum(missing, 0.0)
    counts /= total
    return counts


def unit_scale(variance: float) -> float:
    """Return 1 / sqrt(variance), or 1 if the variance is zero."""
    return 1.0 / math.sqrt(variance) if variance > 0 else 1.0


def variance_of(table: Array, shares: Array) -> float:
    """Return the sum of the variances of the columns of an input.

    ``table`` (n_levels, m) has their values at the levels, and ``shares`` (n_levels,) is the
    fraction of the sample weight at each level.
    """
    return float((shares @ (table - shares @ table) ** 2).sum())


def table_of(
    settings: AdditiveSettings, levels: Array, shares: Array, column: int
) -> tuple[Array, float]:
    """Return the m basis functions of an input at its levels, (n_levels, m), and their error.

    ``levels`` (n_levels,) are the values, and ``shares`` (n_levels,) the fraction of the sample
    weight at each. The error is the largest residual of the low-rank kernel approximation (0 for
    splines). A constant input has no columns. ``column`` is the number of the input, for messages.
    """
    kernel = settings.kernel
    if kernel == "chi2" and levels[0] < 0:
        raise ValueError(
            f"Negative values in data: the chi2 kernel needs values >= 0, but column "
            f"{column} has {levels[0]}; shift it, or use kernel='gaussian'"
        )
    if levels.size == 1:
        return np.zeros((1, 0)), 0.0
    if kernel == "splines":
        return splines(levels, shares, settings.n_knots, settings.degree), 0.0
    if kernel == "gaussian":
        # The length scale is in standard deviations of the input.
        levels = levels * (unit_scale(variance_of(levels[:, None], shares)) / settings.length_scale)
        kernel = gaussian
    k = chi2 if kernel == "chi2" else kernel
    assert callable(k)
    diagonal = np.asarray(k(levels, levels), dtype=np.float64)
    if diagonal.shape != levels.shape or not np.isfinite(diagonal).all():
        raise ValueError(
            "Additive: kernel(x, x) must give a finite number for each entry of x, of any "
            f"shape; for column {column} it gave shape {diagonal.shape}"
        )
    _, table, residual = pivoted(
        diagonal,
        lambda pivot: k(levels, levels[pivot : pivot + 1]),
        min(settings.n_components, levels.size),
        f"Additive: the kernel on column {column}",
    )
    return table, float(residual.max())


def gaussian(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return k(x, y) = exp(-(x - y)^2 / 2), with x and y in units of the length scale."""
    return np.asarray(np.exp(-0.5 * (x - y) ** 2))


def chi2(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return the additive chi-squared kernel k(x, y) = 2 x y / (x + y) for x, y >= 0.

    At x = y = 0 it is 0.
    """
    total = np.asarray(x + y, dtype=np.float64)
    return np.asarray(2.0 * x * (y / np.where(total > 0, total, 1.0)))


def splines(levels: Array, shares: Array, n_knots: int, degree: int) -> Array:
    """Return the B-splines of this degree at the levels, (n_levels, m), knots at even quantiles.

    ``levels`` (n_levels,) increase, and ``shares`` (n_levels,) is the fraction of the sample weight
    at each. Knots at the same level are merged, so that m is at most n_knots + degree - 1.
    """
    end = levels.size - 1
    degree = min(degree, end)
    quantiles = np.linspace(0.0, 1.0, n_knots)[1:-1] * (1 - 1e-12)
    inner = np.minimum(np.searchsorted(np.cumsum(shares), quantiles), end)
    knots = np.unique(levels[[0, *inner, end]])
    # The first and the last knot are repeated, as usual.
    ends = np.repeat(knots[0], degree), np.repeat(knots[-1], degree)
    padded = np.concatenate([ends[0], knots, ends[1]])
    return np.asarray(BSpline.design_matrix(levels, padded, degree).toarray())


def spline_tables(levels: Array, shares: Array, n_knots: int, degree: int) -> list[Array]:
    """Return ``splines`` of several inputs with the same number of levels.

    Parameters
    ----------
    levels, shares : (n_inputs, n_levels) float64
        Levels of each input in increasing order, and the fraction of the sample weight at each.
    n_knots, degree : int
        Knots and degree of the splines.

    Returns
    -------
    list of (n_levels, m) float64
        B-splines at the levels. The recursion of Cox and de Boor runs for all inputs at once.
    """
    n_inputs, n_levels = levels.shape
    last = n_levels - 1
    degree = min(degree, last)
    # The level at which each knot is: the first level, inner quantiles, the last level.
    quantiles = np.linspace(0.0, 1.0, n_knots)[1:-1] * (1 - 1e-12)
    n_below = np.cumsum(shares, axis=1)[:, :, None] < quantiles
    inner = np.minimum(n_below.sum(axis=1), last)
    ends = np.zeros((n_inputs, 1), dtype=np.int64)
    knot_levels = np.hstack([ends, inner, ends + last])
    # Inputs with two knots at one level have fewer columns.
    is_distinct = np.all(np.diff(knot_levels, axis=1) > 0, axis=1)
    tables = [np.zeros((0, 0))] * n_inputs
    for j in np.flatnonzero(~is_distinct).tolist():
        tables[j] = splines(levels[j], shares[j], n_knots, degree)
    regular = np.flatnonzero(is_distinct)
    if not regular.size:
        return tables
    x = levels[regular]
    knots = np.take_along_axis(x, knot_levels[regular], axis=1)
    low, high = (np.repeat(knots[:, end, None], degree, axis=1) for end in (0, -1))
    padded = np.hstack([low, knots, high])
    # The interval of each level: t_i <= x < t_(i+1), and the last one for the last level.
    n_knots_below = (knot_levels[regular, 1:-1, None] <= np.arange(n_levels)).sum(axis=1)
    interval = degree + n_knots_below
    # ``values`` are the splines of the present order that are not 0 at each level; ``left`` and
    # ``right`` are the distances of the level from the knots on both sides.
    values = [np.ones_like(x)]
    for order in range(1, degree + 1):
        left = [x - np.take_along_axis(padded, interval + 1 - r, 1) for r in range(1, order + 1)]
        right = [np.take_along_axis(padded, interval + r, 1) - x for r in range(1, order + 1)]
        carried = np.zeros_like(x)
        for r in range(order):
            ratio = values[r] / (right[r] + left[order - 1 - r])
            values[r] = carried + right[r] * ratio
            carried = left[order - 1 - r] * ratio
        values.append(carried)
    # At each level the degree + 1 values go to consecutive columns, the first of which is the
    # number of the interval.
    width = knots.shape[1] + degree - 1
    result = np.zeros((regular.size, n_levels, width))
    first = (np.arange(x.size) * width).reshape(x.shape) + (interval - degree)
    for r, values_of_degree in enumerate(values):
        result.reshape(-1)[first + r] = values_of_degree
    for j, table in zip(regular.tolist(), result, strict=True):
        tables[j] = table
    return tables
