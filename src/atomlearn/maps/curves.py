"""What one input becomes: a table of columns over its levels, from a kernel or from splines."""

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
from atomlearn.core.interfaces import Array, is_whole
from atomlearn.core.problem.checks import positive
from atomlearn.maps.levels import Binning, Levels
from atomlearn.maps.settings import SETTINGS

#: k(x, y), elementwise with broadcasting, positive semidefinite.
Kernel = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

#: Names of kernels, and of maps that are not made from one.
KERNELS = ("intersection", "gaussian", "chi2", "splines")


@dataclass(frozen=True, slots=True)
class AdditiveSettings:
    """Parameters of ``designs.Additive``, checked; see there."""

    kernel: str | Kernel
    n_bins: int
    binning: Binning
    n_components: int
    length_scale: float
    n_knots: int
    degree: int
    normalize: bool

    @classmethod
    def of(
        cls,
        kernel: str | Kernel,
        n_bins: int | None,
        binning: str,
        n_components: int,
        length_scale: float,
        n_knots: int,
        degree: int,
        normalize: bool,
    ) -> AdditiveSettings:
        """Check every parameter; raise with the remedy."""
        if not (callable(kernel) or (isinstance(kernel, str) and kernel in KERNELS)):
            raise ValueError(
                f"Additive: kernel must be one of {', '.join(KERNELS)} or a function k(x, y) of "
                f"two arrays, got {kernel!r}"
            )
        if binning not in ("quantile", "uniform"):
            raise ValueError(f"Additive: binning must be 'quantile' or 'uniform', got {binning!r}")
        most = MOST_LEVELS - 1
        if n_bins is None:
            n_bins = SETTINGS.thermometer_bins if kernel == "intersection" else most
        return cls(
            kernel,
            whole_between("Additive", "n_bins", n_bins, 1, most),
            "quantile" if binning == "quantile" else "uniform",
            whole_between("Additive", "n_components", n_components, 1, most),
            positive("Additive: length_scale", length_scale, "in deviations of each input"),
            whole_between("Additive", "n_knots", n_knots, 2, most),
            whole_between("Additive", "degree", degree, 0, 10),
            bool(normalize),
        )


def whole_between(owner: str, name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number as an int, or raise where it is none or out of range."""
    if not is_whole(value):
        raise TypeError(f"{owner}: {name} must be a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{owner}: {name} must lie between {least} and {most}, got {value}")
    return int(value)


def shares_of(x: CodedColumns, levels: Levels, j: int, weight: Array) -> Array:
    """Return the share of the weight at each level of input j."""
    counts = code_histograms(x, weight, np.array([j]))
    total = float(weight.sum())
    # What is not stored stands at the origin.
    counts[levels.zero[j]] += max(total - float(counts.sum()), 0.0)
    return counts / total


def normalizer(table: Array, shares: Array) -> float:
    """Return the factor that makes the variances of all columns sum to 1."""
    mean = shares @ table
    variance = float(shares @ ((table - mean) ** 2).sum(axis=1))
    return 1.0 / math.sqrt(variance) if variance > 0 else 1.0


def table_of(
    settings: AdditiveSettings, levels: Array, shares: Array, j: int
) -> tuple[Array, float]:
    """Return the map at each level and its residual; no columns where the input is constant."""
    if settings.kernel == "chi2" and levels[0] < 0:
        raise ValueError(
            f"Negative values in data: the chi2 kernel needs values >= 0, but column {j} has "
            f"{levels[0]}; shift it, or use kernel='gaussian'"
        )
    if levels.size == 1:
        return np.zeros((1, 0)), 0.0
    if settings.kernel == "splines":
        return _splines(levels, shares, settings.n_knots, settings.degree), 0.0
    if callable(settings.kernel):
        return pivoted_map(settings.kernel, levels, settings.n_components, j)
    if settings.kernel == "chi2":
        return pivoted_map(chi2, levels, settings.n_components, j)
    mean = float(shares @ levels)
    deviation = math.sqrt(float(shares @ (levels - mean) ** 2))
    unit = settings.length_scale * deviation

    def gaussian(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.exp(-0.5 * ((x - y) / unit) ** 2))

    return pivoted_map(gaussian, levels, settings.n_components, j)


def chi2(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """k(x, y) = 2 x y / (x + y), 0 at x = y = 0: the additive chi-squared kernel, x, y >= 0."""
    total = np.asarray(x + y, dtype=np.float64)
    share = np.divide(np.broadcast_to(y, total.shape), total, out=np.zeros_like(total),
                      where=total > 0)  # fmt: skip
    return np.asarray(2.0 * x * share)


def pivoted_map(kernel: Kernel, levels: Array, n_components: int, j: int) -> tuple[Array, float]:
    """Return T with T T' = K on the levels, up to the residual, by pivoted Cholesky steps.

    Each step takes the level that is described worst, so the kernel is exact between the pivots,
    and everywhere once n_components reaches the number of levels. O(levels n_components^2).
    [Fine, Scheinberg 2001, Efficient SVM training using low-rank kernel representations]
    """
    residual = np.asarray(kernel(levels, levels), dtype=np.float64).copy()
    if residual.shape != levels.shape or not np.isfinite(residual).all():
        raise ValueError(
            f"Additive: kernel(x, x) must give a finite number for each entry of x; for column "
            f"{j} it gave shape {residual.shape}"
        )
    largest = float(residual.max())
    table = np.zeros((levels.size, min(n_components, levels.size)))
    rank = 0
    while rank < table.shape[1]:
        pivot = int(np.argmax(residual))
        if residual[pivot] <= SETTINGS.negligible * largest:
            break
        column = np.asarray(kernel(levels, levels[pivot]), dtype=np.float64)
        column = column - table[:, :rank] @ table[pivot, :rank]
        table[:, rank] = column / math.sqrt(residual[pivot])
        residual -= table[:, rank] ** 2
        rank += 1
    if float(residual.min()) < -SETTINGS.indefinite * max(largest, 0.0) or largest < 0:
        raise ValueError(
            f"Additive: the kernel is not positive semidefinite on column {j}; use one that is"
        )
    return table[:, :rank], max(float(residual.max()), 0.0)


def _splines(levels: Array, shares: Array, n_knots: int, degree: int) -> Array:
    """Return the B-spline basis of this degree at the levels; knots at even quantiles."""
    degree = min(degree, levels.size - 1)
    reached = np.cumsum(shares)
    inner = np.searchsorted(reached, np.linspace(0.0, 1.0, n_knots)[1:-1] * (1 - 1e-12))
    knots = np.unique(np.concatenate([levels[[0, -1]], levels[inner]]))
    padded = np.concatenate([np.full(degree, knots[0]), knots, np.full(degree, knots[-1])])
    return np.asarray(BSpline.design_matrix(levels, padded, degree).toarray())
