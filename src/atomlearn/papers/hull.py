"""Hull: a point as a convex combination of atoms in use and zero, and the moves it can make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import EPS, Array, AtomSet, Problem, negative_gradient, optimal_intercept
from atomlearn.matrices.solver.factored_atoms import FactoredAtoms
from atomlearn.papers.line_search import Way, best_step

#: The vertex zero, in arrays whose last entry is its own; atoms are numbered from 0 on.
ZERO = -1


@dataclass(frozen=True, slots=True)
class Move:
    """c + s change (t,) for s in [0, longest]."""

    change: Array
    longest: float


@dataclass(slots=True)
class Hull:
    """w = U c with c >= 0, sum c <= reach: shares c_h / reach of the vertices reach * a_h.

    Reach less the sum is the share of zero. ``intercept`` follows along.
    """

    atoms: AtomSet | FactoredAtoms
    shares: Array
    reach: float
    intercept: float

    @property
    def share_of_zero(self) -> float:
        """1 - sum c / reach."""
        rest = 1.0 - float(self.shares.sum()) / self.reach if self.reach > 0 else 1.0
        return rest if rest > self._rounding else 0.0

    @property
    def _rounding(self) -> float:
        """A share up to which a vertex is not in use: the error of the sum of all."""
        return float(EPS * (self.shares.size + 1))

    def used(self) -> tuple[AtomSet | FactoredAtoms, Array]:
        """Return the atoms with a share, and their weights."""
        kept = np.flatnonzero(self.shares)
        return self.atoms.take(kept), self.shares[kept]

    def add(self, problem: Problem, atom: Any) -> int:
        """Return the number of this atom (ZERO for None), appended if it is new."""
        if atom is None:
            return ZERO
        number = self.atoms.find(atom)
        if number < 0:
            self.atoms = self.atoms.append(problem.design, atom)
            self.shares = np.append(self.shares, 0.0)
            number = self.atoms.size - 1
        return number

    def extremes(self, problem: Problem) -> tuple[int, int, Array]:
        """Return the worst and the best vertex in use, and all scores <vertex, -F'>, zero's last.

        O(n_samples t) from the images: no pass over the data.
        """
        z = self.atoms.images.predict(self.shares)
        self.intercept = optimal_intercept(problem, z, self.intercept)
        v = negative_gradient(problem, z + self.intercept)
        slopes = self.atoms.images.scores(v).full()
        if problem.tau:
            slopes -= problem.tau * self.atoms.products(self.atoms.combine(self.shares))
        level = slope_of_gauge(problem, float(self.shares.sum()))
        scores = np.append(self.reach * (slopes - level), 0.0)
        numbers = np.flatnonzero(np.append(self.shares > 0, self.share_of_zero > 0))
        if not numbers.size:
            return ZERO, ZERO, scores
        number_of = np.append(np.arange(self.shares.size), ZERO)
        worst = numbers[scores[numbers].argmin()]
        best = numbers[scores[numbers].argmax()]
        return int(number_of[worst]), int(number_of[best]), scores

    def mean(self, scores: Array) -> float:
        """Return <x, -F'> from the scores of the vertices."""
        return float(scores[:-1] @ self.shares) / self.reach if self.reach > 0 else 0.0

    def _share(self, vertex: int) -> float:
        return self.share_of_zero if vertex == ZERO else float(self.shares[vertex]) / self.reach

    def _unit(self, vertex: int) -> Array:
        unit = np.zeros(self.shares.size)
        if vertex != ZERO:
            unit[vertex] = self.reach
        return unit

    def toward(self, vertex: int) -> Move:
        """x + s (v - x), s <= 1."""
        return Move(self._unit(vertex) - self.shares, 1.0)

    def away(self, vertex: int) -> Move:
        """x + s (x - u), until u has no share left."""
        share = self._share(vertex)
        longest = share / (1.0 - share) if share < 1.0 else 0.0
        return Move(self.shares - self._unit(vertex), longest)

    def exchange(self, giving: int, taking: int) -> Move:
        """x + s (v - u), until u has no share left."""
        change = self._unit(taking) - self._unit(giving)
        return Move(change, self._share(giving) if self.reach > 0 else 0.0)

    def move(self, problem: Problem, move: Move, length: float | None = None) -> None:
        """Go so far along the move; None: to the exact minimum of F."""
        if length is None:
            length = best_step(
                problem, self._way(problem, move.change), move.longest, self.intercept
            )
        shares = self.shares + length * move.change
        shares[shares <= self._rounding * self.reach] = 0.0
        total = float(shares.sum())
        self.shares = shares * (self.reach / total) if total > self.reach else shares

    def _way(self, problem: Problem, change: Array) -> Way:
        images = self.atoms.images
        penalty = problem.regularizer
        grown = float(change.sum())
        slope = slope_of_gauge(problem, float(self.shares.sum())) * grown
        bend = 0.0
        if penalty.form == "squared":
            bend = penalty.amount * grown * grown
        if problem.tau:
            w = self.atoms.combine(self.shares)
            d = self.atoms.combine(change)
            slope += problem.tau * float(w @ d)
            bend += problem.tau * float(d @ d)
        return Way(images.predict(self.shares), images.predict(change), slope, bend)


def slope_of_gauge(problem: Problem, gauge: float) -> float:
    """Return R'(t) inside the cone: level, level * t, or 0 in the constrained form."""
    form = problem.regularizer.form
    amount = problem.regularizer.amount
    return {"penalized": amount, "squared": amount * gauge, "constrained": 0.0}[form]
