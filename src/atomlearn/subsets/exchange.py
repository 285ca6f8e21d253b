"""Local search over subsets by adding, removing and swapping single columns.

It improves the starting subsets, and each new best subset of the branch and bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core import Array, Columns, negative_gradient
from atomlearn.subsets.quadratic import Products, QuadraticModel
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint

#: Number of moves whose subsets are fitted in each step if f is not quadratic. The gains are only
#: estimates then, so the move with the largest gain may not be the best one.
TRIED = 3
#: Smallest relative decrease of the objective for which a move is accepted.
LEAST_GAIN = 1e-12


@dataclass(slots=True)
class Subset:
    """A set of units with its ridge fit.

    Attributes
    ----------
    units : (m,) int64
        Numbers of the units (columns, or groups of columns), in increasing order.
    point : RelaxedPoint
        The ridge fit over their columns.
    objective : float
        The objective of the ridge fit, with the price of each unit.
    lower : float
        A lower bound on the minimum over these units, from the duality gap of the fit.
    perfect : bool
        Whether the objective is 0 up to rounding.
    """

    units: Columns
    point: RelaxedPoint
    objective: float
    lower: float
    perfect: bool


class Exchange:
    """Local search for the best subset of at most k units, with a cache of all fitted subsets.

    Parameters
    ----------
    relaxation : Relaxation
        The data, and the fits of subsets.
    k : int
        Largest number of units (columns, or groups of columns) of a subset.
    barred : (m,) int64, optional
        Units that moves may not add.

    Attributes
    ----------
    known : dict
        All fitted subsets; the keys are the bytes of their sorted units.
    best : Subset or None
        The fitted subset with the smallest objective; ``upper`` is this objective.
    fitted : float
        The smallest lower bound of all fitted subsets.
    """

    def __init__(self, relaxation: Relaxation, k: int, barred: Columns | None = None) -> None:
        """Start without fitted subsets; ``barred`` are units that moves may not add."""
        self.relaxation = relaxation
        self.k = k
        self.price = relaxation.price
        self._barred = np.zeros(0, dtype=np.int64) if barred is None else barred
        self.best: Subset | None = None
        self.known: dict[bytes, Subset] = {}
        self.fitted = math.inf
        #: Keys of the subsets from which no single move lowers the objective.
        self._local_minima: set[bytes] = set()
        self._products: Products | None = None

    @property
    def upper(self) -> float:
        """The objective of the best subset so far."""
        return math.inf if self.best is None else self.best.objective

    @property
    def lower(self) -> float:
        """A lower bound on the objectives of all subsets: -inf, as local search proves none."""
        return -math.inf

    @property
    def is_perfect(self) -> bool:
        """Whether the objective of the best subset is 0 up to rounding."""
        return self.best is not None and self.best.perfect

    @property
    def is_local_minimum(self) -> bool:
        """Whether no exchange of a single unit of the best subset lowers the objective."""
        return self.best is not None and self.best.units.tobytes() in self._local_minima

    def offer(self, units: Columns) -> Subset:
        """Return the fitted subset of ``units``, from the cache if possible.

        If its objective is below ``upper``, the objective of the best subset so far, it becomes
        ``best``. ``fitted`` becomes the smallest lower bound of all subsets fitted so far.
        """
        units = np.sort(units)
        key = units.tobytes()
        subset = self.known.get(key)
        if subset is None:
            subset = Subset(units, *self.relaxation.fit(units))
            # After the deadline a fit ends early, and the bound of its duality gap is weak. The
            # branch and bound, a subclass, may have a better bound on all subsets.
            subset.lower = max(subset.lower, self.lower)
            self.known[key] = subset
            self.fitted = min(self.fitted, subset.lower)
        if subset.objective < self.upper:
            self.best = subset
        return subset

    def descend(self) -> None:
        """Run the local search from the best subset until it is a local minimum or time is up."""
        while self.best is not None and not self.is_local_minimum:
            previous = self.best
            self.exchange(previous)
            if self.best is previous:
                break

    def exchange(self, subset: Subset) -> Subset:
        """Return the local minimum that the local search reaches from ``subset``.

        A move adds a column if there are fewer than k, or replaces a column by another one; with a
        price it may also remove a column. Each step makes the move with the lowest objective among
        those that are tried. The search ends at the deadline, or if no move lowers the objective by
        the share LEAST_GAIN. With groups there are no moves, and the result is ``subset``.
        """
        deadline = self.relaxation.problem.deadline
        while self.relaxation.units.partition is None and not deadline.use_step():
            neighbors = [self.offer(units) for units in self._moves(subset)]
            lowest = min([subset, *neighbors], key=lambda each: each.objective)
            if not lowest.objective < subset.objective * (1.0 - LEAST_GAIN):
                # After the deadline fits end early, so that no local minimum is proved.
                if not deadline.passed:
                    self._local_minima.add(subset.units.tobytes())
                break
            subset = lowest
        return subset

    def _moves(self, subset: Subset) -> list[Columns]:
        """Return the units of the neighboring subsets with the largest positive estimated gains.

        The result has one array of units for each neighbor, at most TRIED. A gain is the decrease
        of the objective in the quadratic model at the fit of ``subset``. Replacements are tried
        only if no added column has a positive gain.
        """
        relaxation = self.relaxation
        units = subset.units
        # Each move is a pair: its gain, and the units after the move.
        moves = list[tuple[float, Columns]]()
        model = self.model(subset)[0]
        if units.size < min(self.k, relaxation.units.count):
            gains = model.added() - self.price
            gains[self._barred] = -math.inf
            moves.append((float(gains.max()), np.append(units, gains.argmax())))
        if not moves or not moves[0][0] > 0.0:
            # For each unit of the subset, the best unit that replaces it.
            for unit, gains in zip(units.tolist(), model.exchanged(), strict=True):
                gains[self._barred] = -math.inf
                gains[unit] += self.price  # the entry of ``unit`` itself is its removal
                new = int(gains.argmax())
                others = units[units != unit]
                moves.append((float(gains[new]), others if new == unit else np.append(others, new)))
        # If gains are exact, the best move suffices.
        tried = 1 if relaxation.quadratic else TRIED
        moves = sorted(moves, key=lambda move: -move[0])[:tried]
        return [units for gain, units in moves if gain > 0.0]

    def model(self, subset: Subset) -> tuple[QuadraticModel, Array]:
        """Return the quadratic model of the objective at the fit of ``subset``, and the dual point.

        The dual point (n_samples,) is the negative gradient of the loss f at the predictions of the
        fit. If f is quadratic, all models share the products of columns.
        """
        relaxation = self.relaxation
        problem = relaxation.problem
        point = subset.point
        prediction = relaxation.prediction(subset.point)
        products = self._products
        if products is None:
            curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
            products = Products(relaxation, curvature)
            if relaxation.quadratic:
                self._products = products
        dual = negative_gradient(problem, prediction)
        scores = problem.design.scores(dual).full()
        return QuadraticModel(products, point, scores, relaxation.level), dual
