"""The problem over sums that are formed where the rows are: nothing of n_samples numbers travels.

f(X w + b), with b at its best, is a function F of the coefficients w. It is a loss like others, of
which the "predictions" are the coefficients themselves, over the identity as design: its gradient
is -X'v, its Hessian a matrix over the columns in use, and its conjugate at X'v is at most f* at v.
So every norm, form, master and solver of columns works on it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Block, Columns, Design, Loss, Scores
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Measured, growth
from atomlearn.storage.spread.asked import Asked, Look
from atomlearn.storage.spread.rows import Sums


class Summed(Loss):
    """F(w) = min over b of f(X w + b), or f(X w): the loss of coefficients, asked where rows are.

    base : f; rows : the columns that a restricted problem has, None: all.
    """

    task = "regression"
    coupled = 0

    def __init__(self, asked: Asked, base: Loss, rows: Columns | None = None) -> None:
        self.asked, self.base, self.rows = asked, base, rows
        self.name: str = base.name  # type: ignore[misc]
        self.smoothness: float = base.smoothness  # type: ignore[misc]

    def check_target(self, y: object) -> Array:
        return np.asarray(y, dtype=np.float64)

    def over(self, block: Block) -> Loss:
        return self if block.rows is None else Summed(self.asked, self.base, block.rows)

    def _look(self, u: Array, bend: bool = False) -> Look:
        columns = np.flatnonzero(u) if self.rows is None else self.rows
        return self.asked.look(columns, u[columns], bend or self.rows is not None)

    def _local(self, u: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian over the columns of a restricted problem.

        Of squared residuals, one look tells all points over its columns.
        """
        assert self.rows is not None
        if self.asked.quadratic:
            for look in reversed(self.asked.looks):
                places = look.places(self.rows)
                if places is not None:
                    start = np.zeros(u.size)
                    start[look.columns] = look.weights
                    # Where a column has left, the point of the look is not over these columns.
                    others = np.ones(look.columns.size, dtype=bool)
                    others[places] = False
                    if look.weights[others].any():
                        continue
                    gradient, H = look.model(places)
                    move = u[self.rows] - start[self.rows]
                    turned = H @ move
                    value = look.value + float(move @ (gradient + 0.5 * turned))
                    return value, gradient + turned, H
        look = self._look(u)
        places = look.places(self.rows)
        assert places is not None
        return look.value, *look.model(places)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return F(w)."""
        if self.rows is None:
            look = self._look(prediction)
            return look.value if look.price is None else float(look.price["value"])
        return max(self._local(prediction)[0], 0.0)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return -X'v; in a restricted problem only its columns, and 0 elsewhere."""
        if self.rows is None:
            slopes: Array = np.negative(self._price(prediction)["scores"])
            return slopes
        result = np.zeros(prediction.size)
        result[self.rows] = self._local(prediction)[1]
        return result

    def _price(self, u: Array) -> Sums:
        columns = np.flatnonzero(u)
        price = self.asked.price(columns, u[columns]).price
        assert price is not None
        return price

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return inf: nothing is known but along the gradient."""
        return math.inf

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return a bound from above on F*(factor u), u = F'(w): f* of factor v over all rows.

        In a restricted problem that of convexity, F* <= factor (<u, w> - F(w)), costs no round.
        """
        if self.rows is not None:
            return factor * (float(dual @ prediction) - self.value(y, prediction, weight))
        columns = np.flatnonzero(prediction)
        look = self.asked.price(columns, prediction[columns])
        assert look.price is not None
        if factor == 1.0:
            return float(look.price["conjugate"])
        point = {"weights": look.weights, "shift": look.shift, "kept": look.kept}
        return float(self.asked.ask("conjugate", look.columns, factor=factor, **point)["conjugate"])

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return a diagonal that bounds the Hessian from above, and the largest f'' of a row."""
        rows = np.flatnonzero(prediction) if self.rows is None else self.rows
        look = self._look(prediction)
        result = np.full(prediction.size, look.sums["curve"] or 1.0)
        if self.rows is not None:
            result[rows] += np.abs(self._local(prediction)[2]).sum(axis=1)
        return result

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return the diagonal of ``curvature``, and the Hessian itself for ``coupled_gram``."""
        assert self.rows is not None
        H = self._local(prediction)[2]
        return np.zeros(prediction.size), _Hessian(self.rows, H)

    def intercept_at(self, prediction: Array) -> float:
        return self._look(prediction).shift if self.asked.intercept else 0.0

    def steepness(self, dual: Array) -> tuple[float, int]:
        for look in reversed(self.asked.looks):
            if look.price is not None and np.array_equal(look.price["scores"], dual):
                return math.sqrt(look.price["squares"]), self.asked.shape[0]
        return math.inf, self.asked.shape[0]

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return what the sums over rows may be off by."""
        price = self._price(prediction)
        inner = math.sqrt(price["squares"] * price["predicted"])
        size = abs(price["value"]) + abs(price["conjugate"]) + inner
        return float(growth(self.asked.shape[0]) * size + price["slack"])


@dataclass(frozen=True, slots=True)
class _Hessian:
    """H over some columns."""

    columns: Columns
    matrix: Array

    def over(self, columns: Columns) -> Array:
        order = np.argsort(self.columns, kind="stable")
        places = order[np.searchsorted(self.columns, columns, sorter=order)]
        return self.matrix[np.ix_(places, places)]


class Coordinates(Design):
    """The identity over the columns of X, whose rows are elsewhere: X w is w itself."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    @property
    def shape(self) -> tuple[int, int]:
        return self.asked.shape[1], self.asked.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.asked.dtype

    @property
    def names(self) -> list[str] | None:
        return self.asked.names

    @property
    def sent(self) -> tuple[int, int]:
        return self.asked.sent

    def scores(self, v: Array) -> Scores:
        return ArrayScores(np.array(v))

    def gather(self, columns: Columns) -> Block:
        return CoordinateBlock(self.asked, np.asarray(columns, dtype=np.int64))


class CoordinateBlock(Block):
    """Columns of the identity."""

    couples_by_structure = True

    def __init__(self, asked: Asked, rows: Columns) -> None:
        self.asked = asked
        self._rows = rows

    @property
    def rows(self) -> Columns:  # type: ignore[override]
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        return self.asked.shape[1], self._rows.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def dot(self, weights: Array) -> Array:
        result = np.zeros(self.shape[0])
        result[self._rows] = weights
        return result

    def transpose_dot(self, v: Array) -> Array:
        return v[self._rows]

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        rows = self._rows if positions is None else self._rows[positions]
        return np.diag(curvature[rows])

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        found: Array = coupling.over(self._rows)
        return found

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return those of the identity; without a curvature those of the columns of X.

        The second are what rounding in sums over the rows of X depends on.
        """
        if curvature is not None:
            return curvature[self._rows]
        if not self._rows.size:
            return np.zeros(0)
        squares: Array = self.asked.ask("squares", self._rows)["squares"]
        return squares

    def gather(self, columns: Columns) -> Block:
        return CoordinateBlock(self.asked, self._rows[columns])

    def append(self, other: Block) -> Block:
        assert other.rows is not None
        return CoordinateBlock(self.asked, np.append(self._rows, other.rows))

    def dense(self) -> Array:
        result = np.zeros(self.shape, order="F")
        result[self._rows, np.arange(self._rows.size)] = 1.0
        return result


def problem_of_sums(problem: Problem, make: Callable[[], Asked], heaviest: float) -> Problem | None:
    """Return the problem over sums, from which n_samples numbers never come; None: there is none.

    There is one for losses that are sums over rows, smooth, of nothing but single columns.
    heaviest : the largest weight of a row.
    """
    if not splits(problem):
        return None
    asked = make()
    asked.intercept, asked.quadratic = problem.fit_intercept, problem.loss.is_quadratic
    size = asked.shape[1]
    return replace(
        problem,
        loss=Summed(asked, problem.loss),
        design=Coordinates(asked),
        y=np.zeros(size),
        weight=np.broadcast_to(heaviest, (size,)),
        fit_intercept=False,
        offset=None,
        measured=Measured(),
    )


def splits(problem: Problem) -> bool:
    """Return whether sums over rows are all that a solver needs of the problem."""
    loss, norm = problem.loss, problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1])
    columns = norm.over_columns if lift is None else lift.expansion.repeats
    smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return smooth and loss.free is None and problem.metric is None and columns
