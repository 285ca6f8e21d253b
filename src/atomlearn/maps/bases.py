"""Basis functions of the inputs of an additive model: step functions, splines or tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from atomlearn import _kernels
from atomlearn._kernels import CodedColumns
from atomlearn.core import Array, Columns
from atomlearn.maps.curves import (
    AdditiveSettings,
    scales_to_one,
    shares_of,
    table_of,
    variance_of,
)
from atomlearn.maps.levels import Levels


@dataclass(frozen=True)
class Basis(ABC):
    """Basis functions phi_j of each input j, which are 0 at its origin.

    A subclass says how they are stored; ``basis_of`` makes one.

    Attributes
    ----------
    levels : Levels
        The levels of the inputs.
    """

    is_steps: ClassVar[bool] = False

    levels: Levels

    @property
    @abstractmethod
    def sizes(self) -> Columns:
        """Number of basis functions of each input, (d,); 0 for constant inputs."""

    @abstractmethod
    def table(self, j: int) -> Array:
        """Return phi_j at each level of input j, (n_levels, sizes[j])."""

    @abstractmethod
    def scores(self, x: CodedColumns, v: Array) -> Array:
        """Return sum_i v_i phi(x_i) for the coded rows ``x``, (n_columns,) or (n_columns, m).

        ``v`` is (n_rows,) or (n_rows, m).
        """

    @abstractmethod
    def squares(self, x: CodedColumns, weight: Array) -> Array:
        """Return sum_i weight_i phi(x_i)^2 for the coded rows ``x``, (n_columns,)."""

    @property
    def residual(self) -> Array:
        """Error of a low-rank kernel of each input, (d,): largest k(x, x) - ||phi(x)||^2."""
        return np.zeros(self.levels.n_inputs)

    def scales(self, x: CodedColumns, weight: Array) -> Array:
        """Return the factor of each input that makes the variances of its columns add up to 1.

        It is 1 for an input of variance 0. ``weight`` (n_rows,) are the weights of the rows ``x``.
        """
        total = float(weight.sum())
        means = self.scores(x, weight) / total
        variances = self.squares(x, weight) / total - means**2
        inputs = np.repeat(np.arange(self.levels.n_inputs), self.sizes)
        return scales_to_one(np.bincount(inputs, variances, self.levels.n_inputs))


@dataclass(frozen=True)
class Scaled(Basis):
    """Basis functions that are multiplied by one factor for each input.

    Attributes
    ----------
    factors : (d,) float64
    """

    factors: Array = field(kw_only=True)

    @cached_property
    def _factors_of_columns(self) -> Array:
        """The factor of each column, (n_columns,)."""
        return np.repeat(self.factors, self.sizes)


@dataclass(frozen=True)
class Steps(Scaled):
    """Step functions ("thermometer columns"), one between any two neighboring levels.

    Column c of an input is between its levels c and c + 1. If it is above the origin, it is
    sqrt(gap) above level c, else -sqrt(gap) up to level c, times the factor of the input, where gap
    is the distance of the two levels. Elsewhere it is 0.
    """

    is_steps = True

    @property
    def sizes(self) -> Columns:
        """Number of gaps between the levels of each input."""
        return self.levels.sizes - 1

    @cached_property
    def heights(self) -> Array:
        """The absolute value of the nonzero entries of each column, (n_columns,)."""
        # The differences between the last level of an input and the first one of the next are not
        # columns.
        gaps = np.delete(np.diff(self.levels.values), self.levels.starts[1:-1] - 1)
        heights: Array = np.sqrt(gaps) * self._factors_of_columns
        return heights

    def table(self, j: int) -> Array:
        """Return the step functions of input j at its levels, (n_levels, n_levels - 1)."""
        levels = self.levels.of(j)
        code, column = np.ogrid[: levels.size, : levels.size - 1]
        is_above = column >= int(self.levels.zero[j])
        steps = np.where(is_above, (code > column) * 1.0, -1.0 * (code <= column))
        table: Array = steps * (np.sqrt(np.diff(levels)) * self.factors[j])
        return table

    def scores(self, x: CodedColumns, v: Array) -> Array:
        """Return the scores, which are prefix sums of the histogram of v over the levels."""
        z = _kernels.thermometer_scores(x, self.levels.values, self.levels.zero, v)
        z.T[...] *= self._factors_of_columns
        return z

    def squares(self, x: CodedColumns, weight: Array) -> Array:
        """Return the sums of squares: the nonzero entries of a column are equal."""
        return np.asarray(np.abs(self.scores(x, weight)) * self.heights)


@dataclass(frozen=True)
class Splines(Scaled):
    """B-splines, which are computed at the levels whenever they are needed, not stored.

    Attributes
    ----------
    degree : int
        Their degree; that of an input with L levels is at most L - 1.
    knots : tuple of arrays
        Numbers of the levels at which the knots of each input are; see ``_kernels.spline_knots``.
    """

    degree: int
    knots: tuple[Columns, Columns]

    @cached_property
    def sizes(self) -> Columns:
        """Number of splines of each input: n_knots + degree - 1."""
        sizes: Columns = np.diff(self.knots[1]) - 1 + np.minimum(self.degree, self.levels.sizes - 1)
        return sizes

    def table(self, j: int) -> Array:
        """Return the splines of input j at its levels, (n_levels, n_splines)."""
        levels = self.levels.of(j)
        numbers, starts = self.knots
        knots = numbers[starts[j] : starts[j + 1]], np.array([0, starts[j + 1] - starts[j]])
        # The scores of rows, each of which is at another level, with unit vectors are the values.
        ends = np.array([0, levels.size])
        rows = CodedColumns(np.arange(levels.size, dtype=np.uint8), None, None, levels.size, ends)
        zero = self.levels.zero[j : j + 1]
        unit = np.eye(levels.size)
        values = _kernels.spline_scores(rows, levels, zero, knots, self.degree, unit)
        table: Array = values.T * self.factors[j]
        return table

    def scores(self, x: CodedColumns, v: Array) -> Array:
        """Return the scores, from the histogram of v over the levels."""
        z = self._sums(x, v, squared=False)
        z.T[...] *= self._factors_of_columns
        return z

    def squares(self, x: CodedColumns, weight: Array) -> Array:
        """Return the sums of squares, from the histogram of the weights over the levels."""
        return self._sums(x, weight, squared=True) * self._factors_of_columns**2

    def _sums(self, x: CodedColumns, v: Array, squared: bool) -> Array:
        """Return the sums of v times the splines, or their squares, before the factors."""
        levels = self.levels
        return _kernels.spline_scores(
            x, levels.values, levels.zero, self.knots, self.degree, v, squared
        )


@dataclass(frozen=True)
class Tables(Basis):
    """Basis functions that are stored: the columns of a low-rank kernel at the levels.

    Attributes
    ----------
    tables : array
        phi_j at the levels of each input, (n_levels, sizes[j]), one after the other.
    begins : (d + 1,) int64
        Position in ``tables`` at which the table of each input begins.
    errors : (d,) float64
        ``residual``.
    """

    tables: Array
    begins: Columns
    errors: Array

    @cached_property
    def sizes(self) -> Columns:
        """Number of columns of each input."""
        sizes: Columns = np.diff(self.begins) // self.levels.sizes
        return sizes

    @property
    def residual(self) -> Array:
        """Error of the kernel of each input, (d,)."""
        return self.errors

    def table(self, j: int) -> Array:
        """Return phi_j at each level of input j."""
        flat = self.tables[self.begins[j] : self.begins[j + 1]]
        return flat.reshape(int(self.levels.sizes[j]), int(self.sizes[j]))

    def scores(self, x: CodedColumns, v: Array) -> Array:
        """Return the scores, from the histogram of v over the levels."""
        return _kernels.table_scores(x, self.tables, self.begins, v)

    def squares(self, x: CodedColumns, weight: Array) -> Array:
        """Return the sums of squares, from the histogram of the weights over the levels."""
        return _kernels.table_scores(x, self.tables**2, self.begins, weight)


def basis_of(settings: AdditiveSettings, levels: Levels, x: CodedColumns, weight: Array) -> Basis:
    """Return the basis functions of all inputs.

    ``x`` are the codes (level numbers) of the data. With ``weight`` (n_samples,) they give weighted
    quantiles and variances. If ``settings.normalize``, the variances of the columns of each input
    add up to 1.
    """
    ones = np.ones(levels.n_inputs)
    if settings.kernel == "intersection":
        basis: Scaled = Steps(levels, factors=ones)
    elif settings.kernel == "splines":
        # A share that is reached up to rounding is reached.
        quantiles = np.linspace(0.0, 1.0, settings.n_knots)[1:-1] * (1 - 1e-12)
        knots = _kernels.spline_knots(x, levels.zero, quantiles, weight)
        basis = Splines(levels, settings.degree, knots, factors=ones)
    else:
        return _tables(settings, levels, shares_of(x, levels, weight))
    return replace(basis, factors=basis.scales(x, weight)) if settings.normalize else basis


def _tables(settings: AdditiveSettings, levels: Levels, shares: Array) -> Tables:
    """Return the tables of the kernel of ``settings``, shifted to 0 at the origin.

    ``shares`` are the fractions of the sample weight at the levels of all inputs, concatenated.
    """
    d = levels.n_inputs
    residual = np.zeros(d)
    begins = np.zeros(d + 1, dtype=np.int64)
    tables = []
    for j in range(d):
        of_input = shares[levels.starts[j] : levels.starts[j + 1]]
        table, residual[j] = table_of(settings, levels.of(j), of_input, j)
        table = table - table[levels.zero[j]]
        if settings.normalize:
            table *= scales_to_one(variance_of(table, of_input))
        tables.append(table.ravel())
        begins[j + 1] = begins[j] + table.size
    return Tables(levels, np.concatenate(tables), begins, residual)
