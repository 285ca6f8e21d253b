"""The problem over sums that are formed on the machines of the rows; no vector over rows is sent.

f(X w + b), at the best b, is a function F of the coefficients w. This package treats F as a loss
whose "predictions" are the coefficients, with the identity as design: its gradient is -X'v, its
Hessian a matrix over the columns in use, and its conjugate at X'v is at most f* at v. So every
norm, form, master and solver of columns applies without changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky

from atomlearn.core import (
    Array,
    CachedBlock,
    Columns,
    DenseBlock,
    Design,
    Loss,
    Problem,
    RowAccess,
    SparseDesign,
    distinct_columns,
    free_columns,
    growth,
    is_quadratic,
    least_shift,
)
from atomlearn.storage.spread.points import Bent
from atomlearn.storage.spread.rows import NEAR, Sums, size_of

#: Number of points whose proofs are kept, and largest number of points in a question.
KEPT = 64
AT_ONCE = 16
#: Share of f by which the intercept may miss the best one: in steps, and in proofs, which count it.
IN_STEPS = 1e-4
IN_PROOFS = 1e-14
#: Sums that are the same for all points of a question.
SHARED = ("squares", "gradient", "pull", "hessian")


class OfCoefficients(Loss):
    """A loss of coefficients that is known at single points, with its slope there."""

    coupled = 0

    def check_target(self, y: object) -> Array:
        return np.asarray(y, dtype=np.float64)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return inf: the conjugate is known only along the gradient."""
        return math.inf


class Summed(OfCoefficients):
    """F(w) = min over b of f(X w + b), or f(X w), computed from sums over rows.

    Parameters
    ----------
    problem : Problem
        The problem over the rows.
    count : int
        Number of machines that have rows.
    asked : callable
        Returns the sum of all answers to a question, see ``HeldRows``.

    Attributes
    ----------
    sent : (int, int)
        Number of questions so far, and bytes of questions and answers.
    """

    def __init__(self, problem: Problem, count: int, asked: Callable[[Sums], Sums]) -> None:
        self.name: str = problem.loss.name  # type: ignore[misc]
        self.quadratic = is_quadratic(problem.loss)
        self.intercept = problem.fit_intercept
        (self.n_rows, self.size) = problem.design.shape
        self.count = count
        self._squares = np.full(self.size, np.nan)
        self.sent = (0, 0)
        self._asked = asked
        none = np.zeros(0)
        nothing: Sums = {"pull": none, "gradient": none, "hessian": np.zeros((0, 0))}
        nothing |= dict.fromkeys(("slope", "curve", "shift", "value"), 0.0)
        self._bent = Bent(none.astype(np.int64), none, nothing, False)
        self._priced: dict[tuple[bytes, bytes], Sums] = {}
        #: The best intercepts of points, from the last sums at them.
        self._shifts: dict[tuple[bytes, bytes], float] = {}

    # --- questions ----------------------------------------------------------------------------

    def ask(
        self, kind: str, columns: Columns, weights: Array, shifts: Array, **more: Array
    ) -> list[Sums]:
        """Return the sums over all rows at each point: weights (k, m), intercepts (k,)."""
        question = {"ask": kind, "columns": columns, "weights": weights, "shifts": shifts, **more}
        found = self._asked(question)
        size = size_of(question) + size_of(found)
        self.sent = self.sent[0] + 1, self.sent[1] + self.count * size
        self._squares[columns] = found["squares"]
        return [
            {name: part if name in SHARED else part[k] for name, part in found.items()}
            | {"shift": shifts[k]}
            for k in range(shifts.size)
        ]

    def _at_best(self, kind: str, columns: Columns, u: Array, first: Sums, left: float) -> Sums:
        """Return the sums of a point at its best intercept, given those at a guess.

        If the guess misses the best value by less than the share ``left`` of f, no question is
        sent.
        """
        if not self.intercept:
            return first
        looks = {first["shift"]: first}

        def slope(b: float) -> tuple[float, float]:
            if b not in looks:
                looks[b] = self.ask(kind, columns, u[None], np.array([b]))[0]
            steep, curve, value = (looks[b][name] for name in ("slope", "curve", "value"))
            near = steep * steep <= 2.0 * curve * left * value
            return 0.0 if near else steep, looks[b]["size"]

        def curve(b: float) -> float:
            return float(looks[b]["curve"])

        def value(b: float) -> float:
            return float(looks[b]["value"])

        return looks[least_shift(slope, curve, value, first["shift"], self.n_rows)]

    def foresee(self, points: Sequence[Array]) -> None:
        """Send one question for the proofs at all these points.

        A proof needs a v that sums to 0. For points whose v does not, a second question is sent at
        their best intercepts, with the entries of one sign of v made smaller.
        """
        new = [u for u in points if _key(u) not in self._priced]
        for start in range(0, len(new), AT_ONCE):
            some = np.array(new[start : start + AT_ONCE])
            columns = np.flatnonzero(some.any(axis=0))
            keys = list(map(_key, some))
            W = some[:, columns]
            cuts = np.zeros(len(some))
            guess = self._bent.shift_at
            again = list[int]()
            shifts = np.array(
                [self._shifts.get(key, guess(columns, u)) for key, u in zip(keys, W, strict=True)]
            )
            found = self.ask("price", columns, W, shifts, cuts=cuts)
            for k, (u, first) in enumerate(zip(W, found, strict=True)):
                # Grids of levels begin at the level for which zero is optimal, to all digits.
                left = IN_PROOFS if u.any() else 0.0
                look = self._at_best("look", columns, u, first, left)
                shifts[k] = look["shift"]
                surplus = -look["slope"] if self.intercept else 0.0
                cuts[k] = 2.0 * surplus / (look["size"] + abs(surplus) or 1.0)
                if look is not first or abs(cuts[k]) > growth(self.n_rows):
                    again.append(k)
            if again:
                more = self.ask("price", columns, W[again], shifts[again], cuts=cuts[again])
                for k, sums in zip(again, more, strict=True):
                    found[k] = sums
            self._priced |= zip(keys, found, strict=True)
        for key in list(self._priced)[:-KEPT]:
            del self._priced[key]

    @cached_property
    def at_zero(self) -> float:
        """F(0)."""
        return float(self.price(np.zeros(self.size))["value"])

    def price(self, u: Array) -> Sums:
        """Return the sums for a proof at the point, with the scores of all columns."""
        self.foresee([u])
        return self._priced[_key(u)]

    def bend(self, columns: Columns, u: Array) -> Bent:
        """Return the model of F around this point over the columns.

        No question is sent if a model of more columns is known and still valid.
        """
        known = self._bent
        covers = np.isin(columns, known.columns).all()
        if not (covers and (self.quadratic or not known.move(columns, u).any())):
            every = np.union1d(columns, known.columns if self.quadratic else columns)
            point = np.zeros(every.size)
            guess = np.array([known.shift_at(columns, u)])
            point[np.searchsorted(every, columns)] = u
            first = self.ask("bend", every, point[None], guess)[0]
            found = self._at_best("bend", every, point, first, IN_STEPS)
            self._bent = known = Bent(every, point, found, self.intercept)
            used = np.flatnonzero(point)
            self._shifts[every[used].tobytes(), point[used].tobytes()] = known.shift
        return known

    def lengths(self, columns: Columns) -> Array:
        """Return the norms of these columns, over the rows that have a weight."""
        new = columns[np.isnan(self._squares[columns])]
        if new.size:
            self.ask("look", new, np.zeros((1, new.size)), np.zeros(1))
        found: Array = np.sqrt(self._squares[columns])
        return found

    def values_at(self, columns: Columns, W: Array, intercepts: Array) -> Array:
        """Return f at points given by their coefficients, W (k, m)."""
        return np.array([look["value"] for look in self.ask("look", columns, W, intercepts)])

    # --- the loss ---------------------------------------------------------------------------

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return float(self.price(prediction)["value"])

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        slopes: Array = np.negative(self.price(prediction)["scores"])
        return slopes

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return a bound from above on F*(factor u), u = F'(w): f* of factor v over all rows."""
        whole, less = self.price(prediction)["conjugates"]
        near = max(factor, 1.0 - NEAR)
        # It is convex, and at most 0 at 0.
        return float(factor / near * (whole + (1.0 - near) / NEAR * (less - whole)))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        return np.full(prediction.size, self.price(prediction)["curve"] or 1.0)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        raise TypeError(
            "rows that stay where they are answer about single columns: solve with "
            "ColumnGeneration, and a norm over columns"
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding of the sums over rows."""
        sums = self.price(prediction)
        inner = math.sqrt(sums["steepness"] * sums["predicted"])
        size = sums["value"] + np.abs(sums["conjugates"]).max() + inner
        return float(growth(self.n_rows) * size + sums["slack"])


class SummedOver(OfCoefficients):
    """F over some columns only, in their order.

    A gradient and a Hessian describe it around a point.
    """

    def __init__(self, whole: Summed, columns: Columns) -> None:
        self.name: str = whole.name  # type: ignore[misc]
        self.whole = whole
        self.columns = columns

    def _around(self, u: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian."""
        return self.whole.bend(self.columns, u).at(self.columns, u)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        return self._around(prediction)[0] if prediction.any() else self.whole.at_zero

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        return self._around(prediction)[1]

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return the bound of convexity, F*(factor u) <= factor (<u, w> - F(w)): no round."""
        return factor * (float(dual @ prediction) - self.value(y, prediction, weight))

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


class Coefficients(SparseDesign):
    """The identity, whose predictions are coefficients; ``row_access`` reaches the rows.

    reads_at_once : whether levels are solved together, with a pool of columns.
    """

    def __init__(self, loss: Summed, dtype: Any, reads_at_once: bool) -> None:
        super().__init__(sp.eye_array(loss.size, format="csc", dtype=dtype))
        self.row_access = SummedRows(loss)
        self.traits = replace(self.traits, reads_at_once=reads_at_once)


class SummedRows(RowAccess):
    """The rows of a problem over sums: bounds on rounding need lengths and slopes over them."""

    def __init__(self, loss: Summed) -> None:
        self.loss = loss

    @property
    def sent(self) -> tuple[int, int]:  # type: ignore[override]
        return self.loss.sent

    def foresee(self, predictions: Sequence[Array]) -> None:
        self.loss.foresee(predictions)

    def restrict(self, problem: Problem, block: Design) -> Problem:
        """Return the problem over the features of these columns only, with the Hessian of F."""
        features, places = _features(block)
        return Problem(
            SummedOver(self.loss, features),
            CachedBlock(DenseBlock(np.eye(features.size)[:, places])),
            np.zeros(features.size),
            np.ones(features.size),
            problem.regularizer,
            problem.tau,
            deadline=problem.deadline,
        )

    def intercept(self, prediction: Array) -> float:
        return float(self.loss.price(prediction)["shift"])

    def over_rows(
        self, design: Design, columns: Columns, prediction: Array
    ) -> tuple[Array, float, int]:
        features, places = _features(design.gather(columns))
        slope = math.sqrt(self.loss.price(prediction)["steepness"])
        return self.loss.lengths(features)[places], slope, self.loss.n_rows


def _features(block: Any) -> tuple[Columns, Columns]:
    """Return the features of which a block is made, and the number of that of each column."""
    base, places = distinct_columns(block)
    return base.stored().indices.astype(np.int64), places


def problem_of_sums(problem: Problem, count: int, asked: Callable[[Sums], Sums]) -> Problem:
    """Return the problem over sums, which needs no vector over rows; see ``Summed``."""
    loss = Summed(problem, count, asked)
    return Problem(
        loss,
        Coefficients(loss, problem.design.dtype, problem.design.traits.reads_at_once),
        np.zeros(loss.size),
        np.ones(loss.size),
        problem.regularizer,
        problem.tau,
        deadline=problem.deadline,
        origin=problem.origin,
    )


def sums_suffice(problem: Problem) -> bool:
    """Return whether sums over rows suffice to solve the problem.

    They do for smooth losses that are sums over rows, and for norms over single columns.
    """
    loss = problem.loss
    norm = problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1])
    columns = norm.over_columns if lift is None else lift.expansion.repeats
    smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return smooth and free_columns(loss) is None and problem.metric is None and columns
