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
from atomlearn.core import Array, positive, whole_number
from atomlearn.maps.kernel_map import pivoted
from atomlearn.maps.levels import Binning, Levels
from atomlearn.maps.settings import SETTINGS

#: k(x, y), elementwise with broadcasting, positive semidefinite.
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

    def __post_init__(self) -> None:
        kernel = self.kernel
        most = MOST_LEVELS - 1
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
            whole_number("Additive", "n_bins", self.n_bins, 1, most)
        whole_number("Additive", "n_components", self.n_components, 1, most)
        whole_number("Additive", "n_knots", self.n_knots, 2, most)
        whole_number("Additive", "degree", self.degree, 0, 10)

    @property
    def most_bins(self) -> int:
        """Largest number of levels of an input, not counting the origin."""
        if self.n_bins is not None:
            return self.n_bins
        return SETTINGS.thermometer_bins if self.kernel == "intersection" else MOST_LEVELS - 1


def shares_of(x: CodedColumns, levels: Levels, weight: Array) -> Array:
    """Return the fraction of the sample weight at each level, concatenated for all inputs."""
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
    """Return the sum of the variances of all columns (n_levels, m) of an input."""
    return float((shares @ (table - shares @ table) ** 2).sum())


def table_of(
    settings: AdditiveSettings, levels: Array, shares: Array, column: int
) -> tuple[Array, float]:
    """Return the m basis functions of an input at its levels, (n_levels, m), and their error.

    The error is the largest residual of the low-rank kernel approximation (0 for splines). A
    constant input has no columns. ``column`` is the number of the input, for messages.
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
    """k(x, y) = exp(-(x - y)^2 / 2), x and y in units of the length scale."""
    return np.asarray(np.exp(-0.5 * (x - y) ** 2))


def chi2(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """k(x, y) = 2 x y / (x + y), 0 at x = y = 0: the additive chi-squared kernel, x, y >= 0."""
    total = np.asarray(x + y, dtype=np.float64)
    return np.asarray(2.0 * x * (y / np.where(total > 0, total, 1.0)))


def splines(levels: Array, shares: Array, n_knots: int, degree: int) -> Array:
    """Return the B-splines of this degree at the levels, with knots at even quantiles."""
    last = levels.size - 1
    degree = min(degree, last)
    wanted = np.linspace(0.0, 1.0, n_knots)[1:-1] * (1 - 1e-12)
    inner = np.minimum(np.searchsorted(np.cumsum(shares), wanted), last)
    knots = np.unique(levels[[0, *inner, last]])
    ends = np.repeat(knots[0], degree), np.repeat(knots[-1], degree)
    padded = np.concatenate([ends[0], knots, ends[1]])
    return np.asarray(BSpline.design_matrix(levels, padded, degree).toarray())
