"""Exchange: subsets that were fitted, and exchanges of single columns while one of them helps.

Starts are improved by exchanges, and so is each subset that a search finds to be the best so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core import Array, Columns, negative_gradient
from atomlearn.subsets.quadratic import Products, QuadraticModel
from atomlearn.subsets.relaxation import Point, Relaxation

#: Moves that are tried in a step where f is not quadratic and their gains are estimates.
TRIED = 3
#: Relative: a smaller fall of the objective is no reason for an exchange.
LEAST_GAIN = 1e-12


@dataclass(slots=True)
class Subset:
    """A set of units with its ridge fit: the objective, and a bound from below on its minimum.

    perfect : whether the objective is 0 up to rounding.
    """

    units: Columns
    point: Point
    objective: float
    lower: float
    perfect: bool


class Exchange:
    """The subsets of a relaxed problem that were fitted, and the best one of them.

    Parameters
    ----------
    relaxation : Relaxation
    k : int
        Units of a subset, at most.
    barred : (m,) int64, optional
        Units that no exchange takes in.

    Attributes
    ----------
    known : dict
        All subsets that were fitted.
    fitted : float
        The least of the bounds from below on their objectives.
    """

    def __init__(self, relaxation: Relaxation, k: int, barred: Columns | None = None) -> None:
        self.relaxation = relaxation
        self.k = k
        self.price = relaxation.price
        self._barred = np.zeros(0, dtype=np.int64) if barred is None else barred
        self.best: Subset | None = None
        self.known: dict[bytes, Subset] = {}
        self.fitted = math.inf
        #: Subsets that no single exchange makes better.
        self._settled: set[bytes] = set()
        self._products: Products | None = None

    @property
    def upper(self) -> float:
        """The objective of the best subset that was found."""
        return math.inf if self.best is None else self.best.objective

    @property
    def is_perfect(self) -> bool:
        """Whether the objective of the best subset is 0 up to rounding."""
        return self.best is not None and self.best.perfect

    @property
    def is_settled(self) -> bool:
        """Whether no exchange of a single unit of the best subset lowers the objective."""
        return self.best is not None and self.best.units.tobytes() in self._settled

    def offer(self, units: Columns) -> Subset:
        """Fit a set, and keep it if it is the best so far."""
        units = np.sort(units)
        key = units.tobytes()
        subset = self.known.get(key)
        if subset is None:
            subset = self.known[key] = Subset(units, *self.relaxation.fit(units))
            self.fitted = min(self.fitted, subset.lower)
        if subset.objective < self.upper:
            self.best = subset
        return subset

    def settle(self) -> None:
        """Make the best subset better by exchanges, until none does or the time is up."""
        while self.best is not None and not self.is_settled:
            before = self.best
            self.exchange(before)
            if self.best is before:
                break

    def exchange(self, subset: Subset) -> Subset:
        """Exchange single columns of a subset for others for as long as that lowers its objective.

        Columns join while there are fewer than k; priced ones may leave, too.
        """
        deadline = self.relaxation.problem.deadline
        while self.relaxation.units.partition is None and not deadline.use_step():
            offered = [self.offer(units) for units in self._moves(subset)]
            best = min([subset, *offered], key=lambda each: each.objective)
            if not best.objective < subset.objective * (1.0 - LEAST_GAIN):
                if not deadline.passed:
                    self._settled.add(subset.units.tobytes())
                break
            subset = best
        return subset

    def _moves(self, subset: Subset) -> list[Columns]:
        """Return the subsets, one move from this one, that promise the largest gains."""
        r = self.relaxation
        units = subset.units
        moves = list[tuple[float, Columns]]()
        model = self.model(subset)[0]
        if units.size < min(self.k, r.units.count):
            gains = model.added() - self.price
            gains[self._barred] = -math.inf
            moves.append((float(gains.max()), np.append(units, gains.argmax())))
        if not moves or not moves[0][0] > 0.0:
            for unit, gains in zip(units.tolist(), model.exchanged(), strict=True):
                gains[self._barred] = -math.inf
                gains[unit] += self.price
                new = int(gains.argmax())
                rest = units[units != unit]
                moves.append((float(gains[new]), rest if new == unit else np.append(rest, new)))
        # Of moves whose gains are known exactly the best one will do.
        tried = 1 if r.quadratic else TRIED
        moves = sorted(moves, key=lambda move: -move[0])[:tried]
        return [units for gain, units in moves if gain > 0.0]

    def model(self, subset: Subset) -> tuple[QuadraticModel, Array]:
        """Return the quadratic model around a subset of columns, and v at its fit."""
        r = self.relaxation
        problem = r.problem
        point = subset.point
        prediction = r.prediction(subset.point)
        products = self._products
        if products is None:
            curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
            products = Products(r, curvature)
            if r.quadratic:
                self._products = products
        dual = negative_gradient(problem, prediction)
        scores = problem.design.scores(dual).full()
        return QuadraticModel(products, point, scores, r.level), dual
