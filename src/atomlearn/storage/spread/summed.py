"""The problem over sums that are formed where the rows are: nothing of n_samples numbers travels.

f(X w + b), with b at its best, is a function F of the coefficients w. It is a loss like others, of
which the "predictions" are the coefficients themselves, over the identity as design: its gradient
is -X'v, its Hessian a matrix over the columns in use, and its conjugate at X'v is at most f* at v.
So every norm, form, master and solver of columns works on it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from atomlearn.storage.spread.rows import NEAR, Sums, size_of

#: Priced points that are kept; points that one question has at most.
KEPT, AT_ONCE = 64, 16
#: What the intercept may leave of f, as a share: steps reckon with it, and in a proof it counts.
LEFT = {"bend": 1e-4, "price": 1e-14}
#: Sums that all points of a question share.
SHARED = ("squares", "gradient", "pull", "hessian")


@dataclass(frozen=True, slots=True)
class Bent:
    """F around a point: m numbers and a Hessian. Of squared residuals they tell it everywhere.

    columns (increasing), weights : the point; value, gradient, H : of F there, with the intercept
    ``shift`` at its best; pull : by how much it falls with each coefficient.
    """

    columns: Columns
    weights: Array
    value: float = 0.0
    gradient: Array = field(default_factory=lambda: np.zeros(0))
    H: Array = field(default_factory=lambda: np.zeros((0, 0)))
    shift: float = 0.0
    pull: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, columns: Columns, weights: Array, sums: Sums, intercept: bool) -> Bent:
        """Return F from the sums at an intercept that is near its best one."""
        value, gradient, H = sums["value"], sums["gradient"], sums["hessian"]
        shift, slope, curve, pull = (sums[x] for x in ("shift", "slope", "curve", "pull"))
        if not (intercept and curve > 0.0):
            return cls(columns, weights, value, gradient, H, shift, np.zeros(weights.size))
        step, pull = slope / curve, pull / curve
        return cls(
            columns,
            weights,
            value - 0.5 * slope * step,
            gradient - slope * pull,
            H - curve * np.outer(pull, pull),
            shift - step,
            pull,
        )

    def shift_at(self, columns: Columns, weights: Array) -> float:
        """Return the best intercept at another point, to first order."""
        return self.shift - float(self.pull @ self._move(columns, weights))

    def around(self, columns: Columns, weights: Array) -> tuple[Array, float, Array, Array]:
        """Return a point over some of the columns, with value, gradient and Hessian over them."""
        move, at = self._move(columns, weights), np.searchsorted(self.columns, columns)
        turned = self.H @ move
        value = self.value + float(move @ (self.gradient + 0.5 * turned))
        return weights.copy(), value, (self.gradient + turned)[at], self.H[np.ix_(at, at)]

    def is_at(self, columns: Columns, weights: Array) -> bool:
        """Return whether this is the very point."""
        return not self._move(columns, weights).any()

    def _move(self, columns: Columns, weights: Array) -> Array:
        known = np.isin(columns, self.columns)
        move = -self.weights
        move[np.searchsorted(self.columns, columns[known])] += weights[known]
        return move


class Priced:
    """What a proof takes of a point: v sums to 0 there, as the heavier of its sides is cut.

    sums : of the point, see ``HeldRows``; scores : X'v.
    """

    def __init__(self, sums: Sums) -> None:
        self.sums, halves, surplus = sums, sums["scores"], -sums["slope"]
        self._side, self._cut, self._whole = 0, 0.0, 1.0
        if len(halves) > 1:
            self._side = int(surplus < 0.0)
            self._cut = 2.0 * abs(surplus) / (sums["size"] + abs(surplus) or 1.0)
        if self._cut > NEAR:  # one side alone, or rounding: v = 0 proves what it can
            self._cut = self._whole = 0.0
        self.scores = self._whole * (halves.sum(axis=0) - self._cut * halves[self._side])

    def conjugate(self, factor: float) -> float:
        """Return a bound from above on f* at -factor v, by convexity and f*(0) <= 0."""
        whole, *sides, all_of_it = self.sums["conjugates"]
        t, cut = factor * self._whole, self._cut
        of_all, of_side = (1.0 - t) / NEAR, t * cut / NEAR
        if (rest := 1.0 - of_all - of_side) < 0.0:
            size, rest = t * (1.0 - cut) / (1.0 - NEAR), 0.0
            of_all = size * (NEAR - cut) / ((1.0 - cut) * NEAR)
            of_side = size - of_all
        return float(rest * whole + of_side * sides[self._side] + of_all * all_of_it)


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
        self._squares, self.sent = np.full(self.size, np.nan), (0, 0)
        self._asked, self._bent = asked, Bent(np.zeros(0, dtype=np.int64), np.zeros(0))
        self._priced: dict[tuple[bytes, bytes], Priced] = {}

    # --- what is asked ----------------------------------------------------------------------

    def ask(self, kind: str, columns: Columns, weights: Array, shifts: Array) -> list[Sums]:
        """Return the sums of all places at each point: weights (k, m), intercepts (k,)."""
        question = {"ask": kind, "columns": columns, "weights": weights, "shifts": shifts}
        found = self._asked(question | {"halves": self.intercept})
        size = size_of(question) + size_of(found)
        self.sent = self.sent[0] + 1, self.sent[1] + self.count * size
        self._squares[columns] = found["squares"]
        if "scores" in found:
            found["scores"] = np.reshape(found["scores"], (shifts.size, -1, self.size))
        return [
            {name: part if name in SHARED else part[k] for name, part in found.items()}
            | {"shift": shifts[k]}
            for k in range(shifts.size)
        ]

    def _at_best(self, kind: str, columns: Columns, u: Array, first: Sums) -> Sums:
        """Return the sums of a point whose intercept is at its best, from those at a guess.

        Nothing more is asked where the guess is as near as ``LEFT`` says.
        """
        looks = {first["shift"]: first}
        # Grids of levels begin where zero is optimal, to all digits.
        left = LEFT[kind] if u.any() else 0.0

        def slope(b: float) -> tuple[float, float]:
            if b not in looks:
                looks[b] = self.ask(kind, columns, u[None], np.array([b]))[0]
            steep, curve, value = (looks[b][name] for name in ("slope", "curve", "value"))
            near = steep * steep <= 2.0 * curve * left * value
            return 0.0 if near else steep, looks[b]["size"]

        if not self.intercept:
            return first
        return looks[least_shift(slope, lambda b: looks[b]["curve"], first["shift"], self.n_rows)]

    def foresee(self, points: Sequence[Array]) -> None:
        """Ask, at once, for what proofs take at these points."""
        keys = [key for key in dict.fromkeys(map(_key, points)) if key not in self._priced]
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            at = [_numbers(*key) for key in some]
            columns = np.unique(np.concatenate([own for own, _ in at]))
            W = np.zeros((len(some), columns.size))
            for row, (own, u) in zip(W, at, strict=True):
                row[np.searchsorted(columns, own)] = u
            shifts = np.array([self._bent.shift_at(*point) for point in at])
            for key, u, first in zip(some, W, self.ask("price", columns, W, shifts), strict=True):
                self._priced[key] = Priced(self._at_best("price", columns, u, first))
        for key in list(self._priced)[:-KEPT]:
            del self._priced[key]

    def price(self, u: Array) -> Priced:
        """Return what a proof takes of the point, with the scores of all columns."""
        self.foresee([u])
        return self._priced[_key(u)]

    def bend(self, columns: Columns, u: Array) -> tuple[Array, float, Array, Array]:
        """Return this point over the columns, with value, gradient and Hessian of F there.

        Nothing is asked where it is known of more columns, and the same at all points.
        """
        known = self._bent
        covers = np.isin(columns, known.columns).all()
        if not (covers and (self.quadratic or known.is_at(columns, u))):
            all_of_them = np.union1d(columns, known.columns if self.quadratic else columns)
            point = np.zeros(all_of_them.size)
            point[np.searchsorted(all_of_them, columns)] = u
            guess = np.array([known.shift_at(columns, u)])
            first = self.ask("bend", all_of_them, point[None], guess)[0]
            sums = self._at_best("bend", all_of_them, point, first)
            self._bent = known = Bent.of(all_of_them, point, sums, self.intercept)
        return known.around(columns, u)

    def lengths(self, columns: Columns) -> Array:
        """Return the lengths of these columns, over the rows that have a weight."""
        new = columns[np.isnan(self._squares[columns])]
        if new.size:
            self.ask("look", new, np.zeros((1, new.size)), np.zeros(1))
        found: Array = np.sqrt(self._squares[columns])
        return found

    # --- the loss ---------------------------------------------------------------------------

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return float(self.price(prediction).sums["value"])

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        return -self.price(prediction).scores

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return a bound from above on F*(factor u), u = F'(w): f* of factor v over all rows."""
        return self.price(prediction).conjugate(factor)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        return np.full(prediction.size, self.price(prediction).sums["curve"] or 1.0)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        raise TypeError(
            "rows that stay where they are answer about single columns: solve with "
            "ColumnGeneration, and a norm over columns"
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return what the sums over rows may be off by."""
        sums = self.price(prediction).sums
        inner = math.sqrt(sums["steepness"] * sums["predicted"])
        size = sums["value"] + np.abs(sums["conjugates"]).max() + inner
        return float(growth(self.n_rows) * size + sums["slack"])


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


def _key(u: Array) -> tuple[bytes, bytes]:
    columns = np.flatnonzero(u)
    return columns.tobytes(), u[columns].tobytes()


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
        # Scores are sums of two parts of v.
        return math.sqrt(2.0 * self.loss.price(prediction).sums["steepness"]), self.loss.n_rows

    def free_part(self, prediction: Array) -> tuple[Array, float]:
        return np.zeros(0), float(self.loss.price(prediction).sums["shift"])

    def value_at(self, columns: Columns, weights: Array, intercept: float) -> float:
        return float(
            self.loss.ask("look", columns, weights[None], np.array([intercept]))[0]["value"]
        )

    def foresee(self, predictions: Sequence[Array]) -> None:
        self.loss.foresee(predictions)

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
