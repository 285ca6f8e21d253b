"""Basis functions of the inputs of an additive model: step functions, splines or tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
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
    factors : (d,) float64
        The factor of the basis functions of each input.
    """

    is_steps: ClassVar[bool] = False

    levels: Levels
    factors: Array

    @property
    @abstractmethod
    def sizes(self) -> Columns:
        """Number of basis functions of each input, (d,); 0 for constant inputs."""

    @abstractmethod
    def table(self, j: int) -> Array:
        """Return phi_j at each level of input j, (n_levels, sizes[j])."""

    def scores(self, x: CodedColumns, v: Array) -> Array:
        """Return sum_i v_i phi(x_i) for the coded rows ``x``, (n_columns,) or (n_columns, m).

        ``v`` is (n_rows,) or (n_rows, m).
        """
        z = self._sums(x, v, squared=False)
        # The last axis of z.T is the columns, for one vector v and for several.
        z.T[...] *= self.factors_of_columns
        return z

    def squares(self, x: CodedColumns, weight: Array) -> Array:
        """Return sum_i weight_i phi(x_i)^2 for the coded rows ``x``, (n_columns,)."""
        return self._sums(x, weight, squared=True) * self.factors_of_columns**2

    @abstractmethod
    def _sums(self, x: CodedColumns, v: Array, squared: bool) -> Array:
        """Return the scores of the basis functions, or of their squares, before the factors."""

    @property
    def residual(self) -> Array:
        """Error of a low-rank kernel of each input, (d,): largest k(x, x) - ||phi(x)||^2."""
        return np.zeros(self.levels.n_inputs)

    @cached_property
    def factors_of_columns(self) -> Array:
        """The factor of each column, (n_columns,)."""
        return np.repeat(self.factors, self.sizes)

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
class Steps(Basis):
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

    def table(self, j: int) -> Array:
        """Return the step functions of input j at its levels, (n_levels, n_levels - 1)."""
        levels = self.levels.of(j)
        code, column = np.ogrid[: levels.size, : levels.size - 1]
        is_above = column >= int(self.levels.zero[j])
        steps = np.where(is_above, (code > column) * 1.0, -1.0 * (code <= column))
        table: Array = steps * (np.sqrt(np.diff(levels)) * self.factors[j])
        return table

    def _sums(self, x: CodedColumns, v: Array, squared: bool) -> Array:
        """Return prefix sums of the histogram of v over the levels, before the factors.

        The nonzero entries of a column are all sqrt(gap) or all -sqrt(gap). If ``squared``, v must
        be >= 0. The sum of v times gap is then sqrt(gap) times the magnitude of the first sum.
        """
        levels = self.levels
        z = _kernels.thermometer_scores(x, levels.values, levels.zero, v)
        if not squared:
            return z
        # The differences between the last level of an input and the first one of the next are not
        # columns.
        gaps = np.delete(np.diff(levels.values), levels.starts[1:-1] - 1)
        return np.asarray(np.abs(z) * np.sqrt(gaps))


@dataclass(frozen=True)
class Splines(Basis):
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
        # The values at a level are the scores of a row at this level, for a unit vector v. So there
        # is one row for each level.
        ends = np.array([0, levels.size])
        rows = CodedColumns(np.arange(levels.size, dtype=np.uint8), None, None, levels.size, ends)
        zero = self.levels.zero[j : j + 1]
        unit = np.eye(levels.size)
        values = _kernels.spline_scores(rows, levels, zero, knots, self.degree, unit)
        table: Array = values.T * self.factors[j]
        return table

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
        table = flat.reshape(int(self.levels.sizes[j]), int(self.sizes[j]))
        return np.asarray(table * self.factors[j])

    def _sums(self, x: CodedColumns, v: Array, squared: bool) -> Array:
        """Return the sums of v times the tables, or their squares, before the factors."""
        tables = self.tables**2 if squared else self.tables
        return _kernels.table_scores(x, tables, self.begins, v)


def basis_of(settings: AdditiveSettings, levels: Levels, x: CodedColumns, weight: Array) -> Basis:
    """Return the basis functions of all inputs.

    ``x`` are the codes (level numbers) of the data. With ``weight`` (n_samples,) they give weighted
    quantiles and variances. If ``settings.normalize``, the variances of the columns of each input
    add up to 1.
    """
    basis: Basis
    ones = np.ones(levels.n_inputs)
    if settings.kernel == "intersection":
        basis = Steps(levels, ones)
    elif settings.kernel == "splines":
        # The factor allows for rounding in the cumulative weights that are compared with these.
        quantiles = np.linspace(0.0, 1.0, settings.n_knots)[1:-1] * (1 - 1e-12)
        knots = _kernels.spline_knots(x, levels.zero, quantiles, weight)
        basis = Splines(levels, ones, settings.degree, knots)
    else:
        basis = _tables(settings, levels, shares_of(x, levels, weight))
    return replace(basis, factors=basis.scales(x, weight)) if settings.normalize else basis


def _tables(settings: AdditiveSettings, levels: Levels, shares: Array) -> Tables:
    """Return the tables of the kernel of ``settings``, shifted to 0 at the origin.

    ``shares`` are the fractions of the sample weight at the levels of all inputs, concatenated.
    """
    by_input = np.split(shares, levels.starts[1:-1])
    kernels = [table_of(settings, levels.of(j), by_input[j], j) for j in range(levels.n_inputs)]
    tables = [table - table[zero] for (table, _), zero in zip(kernels, levels.zero, strict=True)]
    begins = np.concatenate([[0], np.cumsum([table.size for table in tables])])
    errors = np.array([error for _, error in kernels])
    flat = np.concatenate([table.ravel() for table in tables])
    return Tables(levels, np.ones(levels.n_inputs), flat, begins, errors)
