"""QuadraticModel: f around a ridge fit, and its changes if columns are added or exchanged.

With K = X_S'C X_S + level I, C the curvature of f at the fit of the columns S, and z the scores of
all columns there, adding a column j lowers the model of the objective by

    z_j^2 / (2 q_j),    q_j = x_j'C x_j + level - c_j'K^-1 c_j,    c_j = X_S'C x_j.

If f is quadratic the model is f itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from atomlearn.core import EPS, Array, Columns, free_columns, growth, without
from atomlearn.subsets.fit import inverse_with_ridge
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint

#: Number of rows of products that are kept, as a share of the rows of X.
KEPT = 0.05


class Products:
    """x_j'C x_i of all columns j with some columns i, and with themselves, for one curvature C.

    The intercept, or the free columns, are minimized out of C.
    """

    def __init__(self, relaxation: Relaxation, curvature: Array) -> None:
        self._relaxation = relaxation
        self._curvature = curvature
        self._rows: dict[int, Array] = {}
        problem = relaxation.problem
        free = free_columns(problem.loss)
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
        """Return (m, n_columns): a row for each of these columns; each new one takes a pass."""
        most = max(columns.size, int(KEPT * self._curvature.size))
        rows = {column: self._row(column) for column in columns.tolist()}
        # The last ones are kept.
        self._rows = dict(list(({**self._rows, **rows}).items())[-most:])
        return np.array(list(rows.values())).reshape(columns.size, self.squares.size)

    def _row(self, column: int) -> Array:
        row = self._rows.pop(column, None)
        if row is None:
            design = self._relaxation.problem.design
            x = design.gather(np.array([column])).predict(np.ones(1))[:, None]
            if self._basis.shape[1]:
                x = without(x, self._basis, self._curvature)
            row = design.scores(self._curvature * x[:, 0]).full()
        return row


class QuadraticModel:
    """The model around a fit of the columns S = ``point.columns``.

    scores : (n_columns,) X'v at the fit.
    """

    def __init__(
        self, products: Products, point: RelaxedPoint, scores: Array, level: float
    ) -> None:
        self._products = products
        self._point = point
        self._scores = scores
        self._level = level
        self._across = products.of(point.columns)
        own = self._across[:, point.columns]
        #: K^-1, and K^-1 c_j of all j.
        self._inverse = inverse_with_ridge(0.5 * (own + own.T), level)
        self._solved = self._inverse @ self._across
        self._left = products.squares + level - (self._across * self._solved).sum(axis=0)
        self._worst = 1.0 + float(np.trace(own)) / level + point.columns.size

    def added(self) -> Array:
        """Return the decrease of the objective if a column is added, (n_columns,)."""
        gains = np.square(self._scores) / (2.0 * np.maximum(self._left, self._level))
        gains[self._point.columns] = -math.inf
        return np.asarray(gains)

    def most_added(self, gap: float, dual: Array) -> Array:
        """Return an upper bound on this decrease, rounding included, for quadratic f.

        gap : of the fit; dual : v, from which the scores are computed.
        """
        lengths = np.sqrt(self._products.plain)
        # The remaining gap changes a score by c_j'K^-1 g, with g the slope and g'K^-1 g <= 2 gap.
        off = lengths * (2.0 * growth(dual.size) * float(np.linalg.norm(dual)))
        scores = np.abs(self._scores) + off + lengths * math.sqrt(2.0 * gap)
        left = self._left - 100.0 * EPS * self._worst * self._products.plain
        # The denominator is at least the ridge.
        gains = np.square(scores) / (2.0 * np.maximum(left, self._level))
        gains[self._point.columns] = -math.inf
        return np.asarray(gains)

    def exchanged(self) -> Iterator[Array]:
        """Yield, for each column of S, the decrease if it is removed and another is added.

        At the column itself it is the decrease if none is added; at others of S it is -inf. Given
        K^-1 and w, removing a column changes scores and denominators by its row of K^-1 C.
        """
        for at, column in enumerate(self._point.columns.tolist()):
            own = self._inverse[at, at]
            row = self._solved[at]
            leaves = self._point.weights[at] / own
            left = self._left + row * row / own
            gains = np.square(self._scores + leaves * row)
            gains /= 2.0 * np.maximum(left, self._level)
            gains[self._point.columns] = -math.inf
            gains[column] = 0.0
            yield gains - 0.5 * leaves * self._point.weights[at]
