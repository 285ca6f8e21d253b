"""QuadraticModel: f around a ridge fit, and what one more column, or another one, would make of it.

With K = X_S'C X_S + level I, C the curvature of f at the fit of the columns S, and z the scores of
all columns there, a column j that joins lowers the model of the objective by

    z_j^2 / (2 q_j),    q_j = x_j'C x_j + level - c_j'K^-1 c_j,    c_j = X_S'C x_j.

Where f is quadratic the model is f itself.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from atomlearn.core.data.cached_block import without
from atomlearn.core.interfaces import EPS, Array, Columns
from atomlearn.subsets.relaxation import Point, Relaxation


class Products:
    """x_j'C x_i of all columns j with some columns i, and with themselves, for one curvature C.

    C is taken with the intercept, or the free columns, minimized out.
    """

    def __init__(self, relaxation: Relaxation, curvature: Array) -> None:
        self._relaxation, self._curvature = relaxation, curvature
        self._rows: dict[int, Array] = {}
        problem = relaxation.problem
        free = problem.loss.free
        basis = np.ones((problem.y.size, int(problem.fit_intercept)))
        self._basis = basis if free is None else free.basis
        self.plain = problem.design.squared_norms(curvature)
        squares = np.array(self.plain)
        if self._basis.shape[1]:
            weighted = curvature[:, None] * self._basis
            values, vectors = np.linalg.eigh(self._basis.T @ weighted)
            kept = values > 1e-13 * values[-1]
            for each in (weighted @ (vectors[:, kept] / np.sqrt(values[kept]))).T:
                squares -= problem.design.scores(np.ascontiguousarray(each)).full() ** 2
        self.squares = np.maximum(squares, 0.0)

    def of(self, columns: Columns) -> Array:
        """Return (m, n_columns): a row for each of these columns; one pass for each new one."""
        rows = [self._row(column) for column in columns.tolist()]
        return np.array(rows).reshape(columns.size, self.squares.size)

    def _row(self, column: int) -> Array:
        row = self._rows.get(column)
        if row is None:
            design = self._relaxation.problem.design
            x = design.gather(np.array([column])).dot(np.ones(1))[:, None]
            if self._basis.shape[1]:
                x = without(x, self._basis, self._curvature)
            row = design.scores(self._curvature * x[:, 0]).full()
            self._rows[column] = row
        return row


class QuadraticModel:
    """The model around a fit of the columns S = ``point.columns``, all of which have weights.

    scores : (n_columns,) X'v at the fit.
    """

    def __init__(self, products: Products, point: Point, scores: Array, level: float) -> None:
        self._products, self._point, self._scores, self._level = products, point, scores, level
        self._across = products.of(point.columns)
        self._own = self._across[:, point.columns] + level * np.eye(point.columns.size)

    def added(self) -> Array:
        """Return by how much the objective falls, at the most, if a column joins, (n_columns,)."""
        return self._gains(self._across, self._own, self._scores, rounded=True)

    def swapped(self, position: int) -> Array:
        """Return by how much it falls if the column at a position leaves, and another joins.

        At the column itself: if none joins; -inf for others that are in the set.
        """
        rest = np.delete(np.arange(self._point.columns.size), position)
        across, own, weights = (
            self._across[rest],
            self._own[np.ix_(rest, rest)],
            self._point.weights,
        )
        moved = -weights
        if rest.size:
            moved[rest] += np.linalg.solve(own, (self._own @ weights)[rest])
        loss = 0.5 * float(moved @ self._own @ moved)
        scores = self._scores - moved @ self._across
        gains = self._gains(across, own, scores)
        gains[self._point.columns[position]] = 0.0
        return gains - loss

    def _gains(self, across: Array, own: Array, scores: Array, rounded: bool = False) -> Array:
        squares = self._products.squares + self._level
        if own.shape[0]:
            factor = cho_factor(own, lower=True, check_finite=False)
            squares = squares - (across * cho_solve(factor, across, check_finite=False)).sum(axis=0)
        if rounded:
            worst = 1.0 + float(np.trace(own)) / self._level
            squares = squares - 100.0 * EPS * worst * self._products.plain
        # What is left of a column has the ridge at least.
        gains = np.square(scores) / (2.0 * np.maximum(squares, self._level))
        gains[self._point.columns] = -math.inf
        return np.asarray(gains)
