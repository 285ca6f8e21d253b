"""What one input becomes: a table of columns over its levels, from a kernel or from splines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import CodedColumns, code_histograms
from atomlearn._kernels.codes import MOST_LEVELS
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Columns, Deadline, is_whole
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
    n_bins: int | None
    binning: Binning
    n_components: int
    length_scale: float
    n_knots: int
    degree: int
    normalize: bool

    def __post_init__(self) -> None:
        kernel, most = self.kernel, MOST_LEVELS - 1
        if not (callable(kernel) or (isinstance(kernel, str) and kernel in KERNELS)):
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
            whole_between("Additive", "n_bins", self.n_bins, 1, most)
        whole_between("Additive", "n_components", self.n_components, 1, most)
        whole_between("Additive", "n_knots", self.n_knots, 2, most)
        whole_between("Additive", "degree", self.degree, 0, 10)

    @property
    def most_bins(self) -> int:
        """How many levels an input has at most, but for the origin."""
        if self.n_bins is not None:
            return self.n_bins
        return SETTINGS.thermometer_bins if self.kernel == "intersection" else MOST_LEVELS - 1

    @property
    def most_columns(self) -> int:
        """How many columns of a table an input has at most."""
        return self.n_knots + self.degree - 1 if self.kernel == "splines" else self.n_components


def whole_between(owner: str, name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number as an int, or raise where it is none or out of range."""
    if not is_whole(value):
        raise TypeError(f"{owner}: {name} must be a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{owner}: {name} must lie between {least} and {most}, got {value}")
    return int(value)


def shares_of(x: CodedColumns, levels: Levels, weight: Array) -> Array:
    """Return the share of the weight at each level of all inputs, one after the other."""
    counts, total = code_histograms(x, weight), float(weight.sum())
    # What is not stored stands at the origin.
    missing = total - np.add.reduceat(counts, levels.starts[:-1])
    counts[levels.starts[:-1] + levels.zero] += np.maximum(missing, 0.0)
    counts /= total
    return counts


@dataclass(frozen=True, slots=True)
class LevelRows:
    """Levels of some inputs, a row each, (b, L), the last one of each repeated to the end.

    first : the number of the first of them; sizes : (b,) how many levels they have; shares : (b, L)
    of the weight at each level, 0 for repeated ones.
    """

    first: int
    levels: Array
    sizes: Columns
    shares: Array

    @classmethod
    def pieces(cls, levels: Levels, shares: Array) -> Iterator[LevelRows]:
        """Yield all inputs, a bounded number of them at a time, until time is up."""
        count = max(1, LIMITS.piece_entries // MOST_LEVELS**2)
        for first in range(0, levels.n_inputs, count):
            Deadline.current().check()
            starts = levels.starts[first : first + count + 1]
            sizes = np.diff(starts)
            code = np.arange(sizes.max())
            at = starts[:-1, None] + np.minimum(code, sizes[:, None] - 1)
            of_levels = np.where(code < sizes[:, None], shares[at], 0.0)
            yield cls(first, levels.values[at], sizes, of_levels)

    def normalizers(self, tables: Array) -> Array:
        """Return the factors that make the variances of all columns (b, m, L) sum to 1, (b,)."""
        means = np.einsum("bl,bml->bm", self.shares, tables)
        squares = ((tables - means[:, :, None]) ** 2).sum(axis=1)
        return unit_factors(np.einsum("bl,bl->b", self.shares, squares))


def unit_factors(variances: Array) -> Array:
    """Return 1 / sqrt of each variance, 1 where there is none."""
    factors: Array = 1.0 / np.sqrt(np.where(variances > 0, variances, 1.0))
    return factors


def tables_of(settings: AdditiveSettings, inputs: LevelRows) -> tuple[Array, Columns, Array]:
    """Return the maps at each level, (b, m, L), their columns and residuals, (b,).

    Inputs that are constant have no columns.
    """
    levels = inputs.levels
    if settings.kernel == "chi2" and levels[:, 0].min() < 0:
        bad = int(np.argmin(levels[:, 0]))
        raise ValueError(
            f"Negative values in data: the chi2 kernel needs values >= 0, but column "
            f"{inputs.first + bad} has {levels[bad, 0]}; shift it, or use kernel='gaussian'"
        )
    if settings.kernel == "splines":
        tables, sizes = _splines(inputs, settings.n_knots, settings.degree)
        residual = np.zeros(sizes.size)
    else:
        kernel = settings.kernel
        if kernel == "gaussian":
            means = np.einsum("bl,bl->b", inputs.shares, levels)[:, None]
            squares = np.einsum("bl,bl->b", inputs.shares, (levels - means) ** 2)
            factors = unit_factors(squares) / settings.length_scale
            inputs, kernel = replace(inputs, levels=levels * factors[:, None]), gaussian
        named = chi2 if kernel == "chi2" else kernel
        assert callable(named)
        tables, sizes, residual = pivoted_map(named, inputs, settings.n_components)
    constant = inputs.sizes == 1
    return tables, np.where(constant, 0, sizes), np.where(constant, 0.0, residual)


def gaussian(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """k(x, y) = exp(-(x - y)^2 / 2), x and y in units of the length scale."""
    return np.asarray(np.exp(-0.5 * (x - y) ** 2))


def chi2(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """k(x, y) = 2 x y / (x + y), 0 at x = y = 0: the additive chi-squared kernel, x, y >= 0."""
    total = np.asarray(x + y, dtype=np.float64)
    return np.asarray(2.0 * x * (y / np.where(total > 0, total, 1.0)))


def pivoted_map(
    kernel: Kernel, inputs: LevelRows, n_components: int
) -> tuple[Array, Columns, Array]:
    """Return T (b, m, L) with T'T = K on the levels of each input, by pivoted Cholesky steps.

    And how many columns each has, and the residual. A step takes the level that is described
    worst, so the kernel is exact between the pivots, and everywhere once n_components reaches the
    number of levels. O(levels n_components^2) an input.
    [Fine, Scheinberg 2001, Efficient SVM training using low-rank kernel representations]
    """
    levels = inputs.levels
    residual = np.asarray(kernel(levels, levels), dtype=np.float64).copy()
    if residual.shape != levels.shape or not np.isfinite(residual).all():
        bad = 0 if residual.shape != levels.shape else np.argmin(np.isfinite(residual).all(axis=1))
        raise ValueError(
            "Additive: kernel(x, x) must give a finite number for each entry of x, of any "
            f"shape; for column {inputs.first + int(bad)} it gave shape {residual.shape}"
        )
    largest, sizes = residual.max(axis=1), np.zeros(len(levels), dtype=np.int64)
    tables = np.zeros((len(levels), min(n_components, levels.shape[1]), levels.shape[1]))
    every = np.arange(len(levels))
    for step in range(tables.shape[1]):
        pivot = np.argmax(residual, axis=1)
        worst = residual[every, pivot]
        going = (worst > SETTINGS.negligible * largest) & (sizes == step) & (step < inputs.sizes)
        if not going.any():
            break
        column = np.asarray(kernel(levels, levels[every, pivot][:, None]), dtype=np.float64)
        before = tables[:, :step]
        column = column - (before[every, :, pivot][:, None, :] @ before)[:, 0]
        column = np.where(going[:, None], column, 0.0)
        tables[:, step] = column / np.sqrt(np.where(going, worst, 1.0))[:, None]
        residual -= tables[:, step] ** 2
        sizes += going
    bad = residual.min(axis=1) < -SETTINGS.indefinite * np.maximum(largest, 0.0)
    bad |= largest < 0
    if bad.any():
        raise ValueError(
            "Additive: the kernel is not positive semidefinite on column "
            f"{inputs.first + int(np.argmax(bad))}; use one that is"
        )
    return tables, sizes, np.maximum(residual.max(axis=1), 0.0)


def _splines(inputs: LevelRows, n_knots: int, degree: int) -> tuple[Array, Columns]:
    """Return the B-splines of this degree at the levels, and their number; even quantile knots."""
    x, last = inputs.levels, inputs.sizes - 1
    reached = np.cumsum(inputs.shares, axis=1)
    wanted = np.linspace(0.0, 1.0, n_knots)[1:-1] * (1 - 1e-12)
    inner = np.minimum((reached[:, None, :] < wanted[:, None]).sum(axis=2), last[:, None])
    at = np.concatenate([np.zeros_like(last)[:, None], inner, last[:, None]], axis=1)
    # Each knot once, and the last one repeated to the end.
    place: Columns = np.cumsum(np.diff(at, axis=1, prepend=at[:, :1]) > 0, axis=1, dtype=np.int64)
    knots = np.repeat(x[:, -1:], n_knots, axis=1)
    np.put_along_axis(knots, place, np.take_along_axis(x, at, axis=1), axis=1)
    spans = place[:, -1]
    tables, degrees = np.zeros((len(x), n_knots + degree - 1, x.shape[1])), np.minimum(degree, last)
    for own in np.unique(degrees):
        some = np.flatnonzero(degrees == own)
        ends = knots[some][:, [0] * own], np.repeat(x[some, -1:], own, axis=1)
        padded = np.concatenate([ends[0], knots[some], ends[1]], axis=1)
        span = (knots[some][:, None, :] <= x[some][:, :, None]).sum(axis=2) - 1
        span = np.minimum(span, np.maximum(spans[some] - 1, 0)[:, None])
        for number, values in enumerate(_of_span(padded, x[some], span, int(own))):
            tables[some[:, None], span + number, np.arange(x.shape[1])] = values
    return tables, spans + degrees


def _of_span(knots: Array, x: Array, span: Columns, degree: int) -> list[Array]:
    """Return the ``degree`` + 1 B-splines that are not zero at x, a span's first one first.

    knots : (b, k), the first and the last one ``degree`` times more; span : (b, L), the interval of
    x among those that are left. [de Boor 1978, A Practical Guide to Splines, chapter X]
    """

    def to(shift: int) -> Array:
        return np.asarray(np.take_along_axis(knots, span + degree + shift, axis=1) - x)

    values = [np.ones(x.shape)]
    for order in range(1, degree + 1):
        saved, following = np.zeros(x.shape), []
        for number, value in enumerate(values):
            right, left = to(number + 1), -to(number + 1 - order)
            part = value / (right + left)
            following.append(saved + right * part)
            saved = left * part
        values = [*following, saved]
    return values
