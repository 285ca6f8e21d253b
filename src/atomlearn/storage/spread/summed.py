"""The problem over sums that are formed where the rows are: nothing of n_samples numbers travels.

f(X w + b), with b at its best, is a function F of the coefficients w. It is a loss like others, of
which the "predictions" are the coefficients themselves, over the identity as design: its gradient
is -X'v, its Hessian a matrix over the columns in use, and its conjugate at X'v is at most f* at v.
So every norm, form, master and solver of columns works on it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Columns, Design, Loss
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.losses.shift import least_shift
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Lengths, growth
from atomlearn.storage.spread.rows import Sums, size_of

#: Points whose answers are kept: those of a line search and of the last price.
KEPT = 8


class OfCoefficients(Loss):
    """A loss of coefficients that is known at points, with its slope there."""

    coupled = 0
    smoothness = math.inf

    def check_target(self, y: object) -> Array:
        return np.asarray(y, dtype=np.float64)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return inf: nothing is known but along the gradient."""
        return math.inf


class Summed(OfCoefficients):
    """F(w) = min over b of f(X w + b), or f(X w): the loss of coefficients, asked where rows are.

    problem : over the rows; count : of places where they are; asked : returns the sum of all
    answers to a question, see ``HeldRows``; sent : questions so far, and the bytes of them
    and of answers.
    """

    def __init__(self, problem: Problem, count: int, asked: Callable[[Sums], Sums]) -> None:
        self.name: str = problem.loss.name  # type: ignore[misc]
        self.quadratic, self.intercept = problem.loss.is_quadratic, problem.fit_intercept
        (self.n_rows, self.size), self.count = problem.design.shape, count
        self._squares, self._shift, self.sent = np.full(self.size, np.nan), 0.0, (0, 0)
        self._asked = asked
        nothing = np.zeros(0)
        self._bent = nothing.astype(np.int64), nothing, 0.0, nothing, np.zeros((0, 0))
        self._look, self._price = lru_cache(KEPT)(self._at_best), lru_cache(KEPT)(self._priced)

    # --- what is asked ----------------------------------------------------------------------

    def ask(self, kind: str, columns: Columns, weights: Array, shift: float, **more: float) -> Sums:
        """Return the sums that all places answer with."""
        question = {"ask": kind, "columns": columns, "weights": weights, "shift": shift, **more}
        found = self._asked(question)
        size = size_of(question) + size_of(found)
        self.sent = self.sent[0] + 1, self.sent[1] + self.count * size
        return found

    def look(self, u: Array) -> Sums:
        """Return what the rows say at coefficients, with the best intercept as "shift"."""
        columns = np.flatnonzero(u)
        return self._look(columns.tobytes(), u[columns].tobytes())

    def _at_best(self, *point: bytes) -> Sums:
        columns, weights = _numbers(*point)
        looks: dict[float, Sums] = {}

        def slope(b: float) -> tuple[float, float]:
            looks[b] = self.ask("look", columns, weights, b) | {"shift": b}
            self._squares[columns] = looks[b]["squares"]
            return looks[b]["slope"], looks[b]["size"]

        if self.intercept:
            self._shift = least_shift(slope, lambda b: looks[b]["curve"], self._shift, self.n_rows)
        else:
            slope(0.0)
            looks[0.0]["slope"] = 0.0
        return looks[self._shift]

    def price(self, u: Array, factor: float = 1.0) -> Sums:
        """Return what a proof takes of the point, with the scores of all columns."""
        columns = np.flatnonzero(u)
        return self._price(columns.tobytes(), u[columns].tobytes(), factor)

    def _priced(self, columns: bytes, weights: bytes, factor: float) -> Sums:
        look = self._look(columns, weights)
        more = {"slope": look["slope"], "size": look["size"], "factor": factor}
        return self.ask("price", *_numbers(columns, weights), look["shift"], **more)

    def bend(self, columns: Columns, u: Array) -> tuple[Array, float, Array, Array]:
        """Return this point over the columns, with value, gradient and Hessian of F there.

        Nothing is asked where it is known of more columns, and the same at all points.
        """
        if not (self.quadratic and np.isin(columns, self._bent[0]).all()):
            order = np.argsort(columns)
            self._bent = columns[order], u[order], *self._bends(columns[order], u[order])
        known, start, value, gradient, H = self._bent
        at, move = np.searchsorted(known, columns), -start
        move[at] += u
        turned = H @ move
        value += float(move @ (gradient + 0.5 * turned))
        return u.copy(), value, (gradient + turned)[at], H[np.ix_(at, at)]

    def _bends(self, columns: Columns, u: Array) -> tuple[float, Array, Array]:
        spread = np.zeros(self.size)
        spread[columns] = u
        look = self.look(spread)
        sums = self.ask("bend", columns, u, look["shift"])
        pull, curve, H = sums["pull"], sums["curve"], sums["hessian"]
        if self.intercept and curve > 0.0:
            H = H - np.outer(pull, pull / curve)
        return look["value"], sums["gradient"], H

    def lengths(self, columns: Columns) -> Array:
        """Return the lengths of these columns, over the rows that have a weight."""
        new = columns[np.isnan(self._squares[columns])]
        if new.size:
            self._squares[new] = self.ask("look", new, np.zeros(new.size), 0.0)["squares"]
        found: Array = np.sqrt(self._squares[columns])
        return found

    # --- the loss ---------------------------------------------------------------------------

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return float(self.look(prediction)["value"])

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        slopes: Array = np.negative(self.price(prediction)["scores"])
        return slopes

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return a bound from above on F*(factor u), u = F'(w): f* of factor v over all rows."""
        return float(self.price(prediction, factor)["conjugate"])

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        return np.full(prediction.size, self.look(prediction)["curve"] or 1.0)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        raise TypeError(
            "rows that stay where they are answer about single columns: solve with "
            "ColumnGeneration, and a norm over columns"
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return what the sums over rows may be off by."""
        look, price = self.look(prediction), self.price(prediction)
        inner = math.sqrt(price["steepness"] * price["predicted"])
        size = look["value"] + abs(price["conjugate"]) + inner
        return float(growth(self.n_rows) * size + price["slack"])


class SummedOver(OfCoefficients):
    """F over some columns alone, in their order: m numbers and a Hessian tell it around a point.

    Of squared residuals they tell it everywhere.
    """

    def __init__(self, whole: Summed, columns: Columns) -> None:
        self.name: str = whole.name  # type: ignore[misc]
        self.whole, self.columns = whole, columns
        self._known: tuple[Array, float, Array, Array] | None = None

    def _around(self, u: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian."""
        known = self._known
        if known is None or not (self.whole.quadratic or np.array_equal(known[0], u)):
            self._known = known = self.whole.bend(self.columns, u)
        start, value, gradient, H = known
        move = u - start
        turned = H @ move
        value += float(move @ (gradient + 0.5 * turned))
        return max(value, 0.0), gradient + turned, H

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return self._around(prediction)[0]

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        return self._around(prediction)[1]

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return the bound of convexity, F*(factor u) <= factor (<u, w> - F(w)): no round."""
        return factor * (float(dual @ prediction) - self._around(prediction)[0])

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        bound: Array = np.abs(self._around(prediction)[2]).sum(axis=1)
        return bound

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c and K of H = c I - K K', with c beyond the largest eigenvalue."""
        H = self._around(prediction)[2]
        c = 2.0 * float(np.abs(H).sum(axis=1).max(initial=0.0)) or 1.0
        return np.full(H.shape[0], c), cholesky(c * np.eye(H.shape[0]) - H, lower=True)


def _numbers(columns: bytes, weights: bytes) -> tuple[Columns, Array]:
    return np.frombuffer(columns, dtype=np.int64), np.frombuffer(weights)


class Coefficients(SparseDesign):
    """The identity, over which predictions are coefficients: each point is asked by itself."""

    reads_at_once = False

    def __init__(self, size: int, dtype: Any) -> None:
        super().__init__(sp.eye_array(size, format="csc", dtype=dtype))


@dataclass(frozen=True, slots=True)
class SummedProblem(Problem):
    """The problem over sums: predictions are coefficients, and what rounding takes is of rows."""

    loss: Summed

    def restricted_to(self, block: Design, columns: Columns) -> Problem:
        """Return the problem over the features of these columns alone, with the Hessian of F."""
        restricted = Problem.restricted_to(self, block, columns)
        features, places = _features(block)
        return Problem(
            SummedOver(self.loss, features),
            CachedBlock(DenseBlock(np.eye(features.size)[:, places])),
            np.zeros(features.size),
            np.ones(features.size),
            restricted.regularizer,
            self.tau,
            deadline=self.deadline,
        )

    def lost(
        self,
        certificate: Certificate,
        weights: Array,
        prediction: Array,
        dual: Array,
        columns: Columns | None,
        lengths: Lengths | None,
    ) -> float:
        """Return a bound on the rounding, from lengths of columns over the rows."""
        if columns is not None and lengths is not None:
            features, places = _features(self.design.gather(columns))
            of_rows = self.loss.lengths(features)[places]
            lengths = Lengths(of_rows, of_rows, np.zeros(places.size))
        return Problem.lost(self, certificate, weights, prediction, dual, columns, lengths)

    def steepness(self, prediction: Array, dual: Array) -> tuple[float, int]:
        return math.sqrt(self.loss.price(prediction)["steepness"]), self.loss.n_rows

    def free_part(self, prediction: Array) -> tuple[Array, float]:
        return np.zeros(0), self.loss.look(prediction)["shift"]

    def value_at(self, columns: Columns, weights: Array, intercept: float) -> float:
        return float(self.loss.ask("look", columns, weights, intercept)["value"])

    @property
    def sent(self) -> tuple[int, int]:
        return self.loss.sent


def _features(block: Any) -> tuple[Columns, Columns]:
    """Return the features that a block is made of, and which one each column is."""
    base, places = block.distinct()
    return base.stored().indices.astype(np.int64), places


def problem_of_sums(problem: Problem, count: int, asked: Callable[[Sums], Sums]) -> Problem:
    """Return the problem over sums, from which n_samples numbers never come; see ``Summed``."""
    size = problem.design.shape[1]
    return SummedProblem(
        Summed(problem, count, asked),
        Coefficients(size, problem.design.dtype),
        np.zeros(size),
        np.ones(size),
        problem.regularizer,
        problem.tau,
        deadline=problem.deadline,
        origin=problem.origin,
    )


def splits(problem: Problem) -> bool:
    """Return whether sums over rows are all that a solver needs of the problem.

    They are for losses that are sums over rows, smooth, and norms of nothing but single columns.
    """
    loss, norm = problem.loss, problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1])
    columns = norm.over_columns if lift is None else lift.expansion.repeats
    smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return smooth and loss.free is None and problem.metric is None and columns
