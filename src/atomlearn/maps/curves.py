"""Settings of additive models, and low-rank kernel features of one input at its levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._kernels import CodedColumns, code_histograms
from atomlearn._kernels.codes import MOST_LEVELS
from atomlearn._support import positive, whole_number
from atomlearn.core import Array, Design, as_design, dense_part
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


def scales_to_one(variances: ArrayLike) -> Array:
    """Return 1 / sqrt(variance) for each of ``variances``, or 1 if that is zero."""
    positive_or_one = np.where(np.asarray(variances) > 0, variances, 1.0)
    scales: Array = 1.0 / np.sqrt(positive_or_one)
    return scales


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

    They are the table T of a low-rank approximation T T' of the kernel matrix of the levels, by a
    Cholesky factorization with pivots (``pivoted``). The error is the largest entry of the diagonal
    of K - T T'. ``settings`` has the kernel, ``levels`` (n_levels,) are the values, and ``shares``
    (n_levels,) the fraction of the sample weight at each. A constant input has no columns.
    ``column`` is the number of the input, for messages.
    """
    kernel = settings.kernel
    if kernel == "chi2" and levels[0] < 0:
        raise ValueError(
            f"Negative values in data: the chi2 kernel needs values >= 0, but column "
            f"{column} has {levels[0]}; shift it, or use kernel='gaussian'"
        )
    if levels.size == 1:
        return np.zeros((1, 0)), 0.0
    if kernel == "gaussian":
        # The length scale is in standard deviations of the input.
        levels = levels * (
            scales_to_one(variance_of(levels[:, None], shares)) / settings.length_scale
        )
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
