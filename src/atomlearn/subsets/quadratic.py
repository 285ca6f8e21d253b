"""Second-order model of the objective around a ridge fit, for adding or swapping single columns.

Consider the ridge fit of the columns S. There C is the diagonal matrix of second derivatives of the
mean loss f, v = -grad f, and z = X'v are the scores of all columns. X_S has the columns S of X,
level is the weight of the ridge, and K = X_S'C X_S + level I. Adding a column x_j lowers the model
by

    z_j^2 / (2 q_j),    q_j = x_j'C x_j + level - c_j'K^-1 c_j,    c_j = X_S'C x_j.

The model is exact if f is quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from atomlearn._support import EPS, growth, without
from atomlearn.core import Array, Columns, free_columns
from atomlearn.subsets.fit import inverse_with_ridge
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint

#: Largest number of rows of X'CX that are cached, as a share of the number of rows of X.
KEPT = 0.05


class Products:
    """The diagonal and a cache of rows of X'CX, for one diagonal matrix C.

    ``curvature`` (n_samples,) is the diagonal of C, and ``relaxation`` has the data X. The columns
    of X are first projected onto the orthogonal complement of the constant column of the intercept,
    or of the unpenalized columns, in the inner product of C. ``squares`` (n_columns,) is the
    diagonal of X'CX with this projection, and ``plain`` is the diagonal without it.
    """

    def __init__(self, relaxation: Relaxation, curvature: Array) -> None:
        """Compute the diagonal of X'CX, before and after the projection of X."""
        self._relaxation = relaxation
        self._curvature = curvature
        self._rows: dict[int, Array] = {}
        problem = relaxation.problem
        free = free_columns(problem.loss)
        basis = np.ones((problem.y.size, int(problem.fit_intercept)))
        self._basis = basis if free is None else free.basis
        self.plain = problem.design.squared_norms(curvature)
        squares = np.array(self.plain)
        # The projection subtracts the squared products with an orthonormal basis, in the inner
        # product of C, from the diagonal.
        if self._basis.shape[1]:
            # With the basis B and B'CB = V diag(values) V', B V diag(values)^-1/2 is orthonormal.
            # Tiny values belong to columns of B that depend on others.
            weighted = curvature[:, None] * self._basis
            values, vectors = np.linalg.eigh(self._basis.T @ weighted)
            is_kept = values > 1e-13 * values[-1]
            for direction in (weighted @ (vectors[:, is_kept] / np.sqrt(values[is_kept]))).T:
                squares -= problem.design.scores(np.ascontiguousarray(direction)).full() ** 2
        self.squares = np.maximum(squares, 0.0)

    def of(self, columns: Columns) -> Array:
        """Return the rows of X'CX of these m columns, (m, n_columns).

        Each row that is not cached requires one pass over X.
        """
        n_kept = max(columns.size, int(KEPT * self._curvature.size))
        rows = {column: self._row(column) for column in columns.tolist()}
        # Only the rows that were used last stay in the cache.
        self._rows = dict(list(({**self._rows, **rows}).items())[-n_kept:])
        return np.array(list(rows.values())).reshape(columns.size, self.squares.size)

    def _row(self, column: int) -> Array:
        """Return the row X'C x of a column x, (n_columns,), and drop it from the cache.

        ``of`` puts it back at the end, so that the cache is in the order of last use.
        """
        row = self._rows.pop(column, None)
        if row is None:
            design = self._relaxation.problem.design
            x = design.gather(np.array([column])).predict(np.ones(1))[:, None]
            if self._basis.shape[1]:
                x = without(x, self._basis, self._curvature)
            row = design.scores(self._curvature * x[:, 0]).full()
        return row


class QuadraticModel:
    """The second-order model of the objective at the ridge fit ``point`` of columns S.

    Parameters
    ----------
    products : Products
        Rows of X'CX, with C the curvature of f at the fit.
    point : RelaxedPoint
        The ridge fit; S = ``point.columns``.
    scores : (n_columns,) float64
        X'v with v the negative gradient of f at the fit.
    level : float
        Weight of the ridge.
    """

    def __init__(
        self, products: Products, point: RelaxedPoint, scores: Array, level: float
    ) -> None:
        """Compute K^-1 and the denominators q_j of all columns, with the symbols of the module."""
        self._products = products
        self._point = point
        self._scores = scores
        self._level = level
        self._cross_products = products.of(point.columns)
        gram = self._cross_products[:, point.columns]  # X_S'C X_S
        # Column j of _cross_products is c_j, and column j of _solved is K^-1 c_j. _inverse is K^-1,
        # and _denominators has the q_j. _condition bounds the condition number of K.
        self._inverse = inverse_with_ridge(0.5 * (gram + gram.T), level)
        self._solved = self._inverse @ self._cross_products
        self._denominators = (
            products.squares + level - (self._cross_products * self._solved).sum(axis=0)
        )
        self._condition = 1.0 + float(np.trace(gram)) / level + point.columns.size

    def added(self) -> Array:
        """Return the decrease z_j^2 / (2 q_j) for each added column, (n_columns,); -inf in S."""
        gains = np.square(self._scores) / (2.0 * np.maximum(self._denominators, self._level))
        gains[self._point.columns] = -math.inf
        return np.asarray(gains)

    def most_added(self, gap: float, dual: Array) -> Array:
        """Return an upper bound on the exact decrease by each added column, (n_columns,).

        It holds for a quadratic f, and includes rounding and the error of the fit. ``gap`` is the
        duality gap of the fit, and ``dual`` (n_samples,) the vector v of the scores.
        """
        lengths = np.sqrt(self._products.plain)
        # The fit is not exact: with g the gradient over S, the exact score of column j differs by
        # c_j'K^-1 g, and g'K^-1 g <= 2 gap. So the difference is at most ``lengths`` sqrt(2 gap).
        # ``errors`` bounds the rounding of scores.
        errors = lengths * (2.0 * growth(dual.size) * float(np.linalg.norm(dual)))
        scores = np.abs(self._scores) + errors + lengths * math.sqrt(2.0 * gap)
        # The denominators are lowered by a bound on rounding. They are at least the ridge.
        denominators = self._denominators - 100.0 * EPS * self._condition * self._products.plain
        gains = np.square(scores) / (2.0 * np.maximum(denominators, self._level))
        gains[self._point.columns] = -math.inf
        return np.asarray(gains)

    def exchanged(self) -> Iterator[Array]:
        """Yield, for each column i of S, the decreases (n_columns,) if j replaces i, over all j.

        The entry of column i is the decrease (at most 0) if i is removed and no column is added.
        The entries of the other columns of S are -inf.

        Let r be row i of K^-1 X_S'CX, w_i the weight of column i, and h = (K^-1)_ii. Without i the
        scores are z + (w_i / h) r, and the denominators are q + r^2 / h. The removal of i raises
        the objective by w_i^2 / (2 h).
        """
        for position, column in enumerate(self._point.columns.tolist()):
            diagonal_entry = self._inverse[position, position]
            row = self._solved[position]
            multiple = self._point.weights[position] / diagonal_entry
            denominators = self._denominators + row * row / diagonal_entry
            gains = np.square(self._scores + multiple * row)
            gains /= 2.0 * np.maximum(denominators, self._level)
            gains[self._point.columns] = -math.inf
            gains[column] = 0.0
            yield gains - 0.5 * multiple * self._point.weights[position]
