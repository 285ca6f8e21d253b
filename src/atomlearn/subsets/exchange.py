"""Exchange: subsets that were fitted, and improvements by exchanging single columns.

Starts are improved by exchanges, and so is each new best subset of a search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core import Array, Columns, negative_gradient
from atomlearn.subsets.quadratic import Products, QuadraticModel
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint

#: Number of moves tried in a step if f is not quadratic, so that gains are estimates.
TRIED = 3
#: Smallest relative decrease of the objective for an exchange.
LEAST_GAIN = 1e-12


@dataclass(slots=True)
class Subset:
    """A set of units with its ridge fit.

    Attributes
    ----------
    units : array of int64
        The units.
    point : RelaxedPoint
        The ridge fit.
    objective : float
        Its objective.
    lower : float
        A lower bound on the minimum over these units.
    perfect : bool
        Whether the objective is 0 up to rounding.
    """

    units: Columns
    point: RelaxedPoint
    objective: float
    lower: float
    perfect: bool


class Exchange:
    """The subsets of a relaxed problem that were fitted, and the best one of them.

    Parameters
    ----------
    relaxation : Relaxation
        The relaxed problem.
    k : int
        Largest number of units of a subset.
    barred : (m,) int64, optional
        Units that exchanges may not add.

    Attributes
    ----------
    known : dict
        All subsets that were fitted.
    fitted : float
        The smallest of the lower bounds on their objectives.
    """

    def __init__(self, relaxation: Relaxation, k: int, barred: Columns | None = None) -> None:
        self.relaxation = relaxation
        self.k = k
        self.price = relaxation.price
        self._barred = np.zeros(0, dtype=np.int64) if barred is None else barred
        self.best: Subset | None = None
        self.known: dict[bytes, Subset] = {}
        self.fitted = math.inf
        #: Subsets that no single exchange improves.
        self._settled: set[bytes] = set()
        self._products: Products | None = None

    @property
    def upper(self) -> float:
        """The objective of the best subset so far."""
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
        """Improve the best subset by exchanges until none helps or the time is up."""
        while self.best is not None and not self.is_settled:
            before = self.best
            self.exchange(before)
            if self.best is before:
                break

    def exchange(self, subset: Subset) -> Subset:
        """Exchange single columns of a subset as long as that lowers its objective.

        Columns are added while there are fewer than k; with a price they may also be removed.
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
        """Return the subsets, one move from this one, with the largest estimated gains."""
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
        # If gains are exact, the best move suffices.
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
