"""A Frank-Wolfe iterate as a convex combination of active atoms and zero, and its moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn._support import EPS
from atomlearn.core import Array, AtomSet, Problem, negative_gradient, optimal_intercept
from atomlearn.matrices.solver.factored_atoms import FactoredAtoms
from atomlearn.papers.line_search import LineProblem, best_step

#: The number of the vertex zero, whose entry is the last one in arrays over vertices. Atoms have
#: the numbers 0, 1, ...
ZERO = -1


@dataclass(frozen=True, slots=True)
class Move:
    """A direction ``change`` (t,) for the atom weights, with step sizes s in [0, ``longest``]."""

    change: Array
    longest: float


@dataclass(slots=True)
class Hull:
    """The point w = sum_h c_h a_h with c >= 0 and sum c <= reach, over t active atoms a_h.

    It is a convex combination of the vertices reach * a_h, with weights c_h / reach, and of zero,
    with weight 1 - sum c / reach.

    Attributes
    ----------
    atoms : AtomSet or FactoredAtoms
        The atoms a_h and their images X a_h.
    shares : (t,) float64
        The weights c.
    reach : float
        Largest allowed sum of c: the radius in the constrained form, else an upper bound on the
        gauge of the solution.
    intercept : float
        The intercept, as a start of its next minimization.
    """

    atoms: AtomSet | FactoredAtoms
    shares: Array
    reach: float
    intercept: float

    @property
    def share_of_zero(self) -> float:
        """The convex weight of the vertex zero, 1 - sum c / reach; 0 if only rounding is left."""
        share = 1.0 - float(self.shares.sum()) / self.reach if self.reach > 0 else 1.0
        return share if share > self._rounding else 0.0

    @property
    def _rounding(self) -> float:
        """The rounding error of the sum of all shares; smaller shares count as zero."""
        return float(EPS * (self.shares.size + 1))

    def used(self) -> tuple[AtomSet | FactoredAtoms, Array]:
        """Return the atoms with nonzero weight, and these weights."""
        kept = np.flatnonzero(self.shares)
        return self.atoms.take(kept), self.shares[kept]

    def add(self, problem: Problem, atom: Any) -> int:
        """Return the number of ``atom``, which is appended with weight 0 if it is new.

        None means the vertex zero, whose number is ZERO. ``problem`` has the data, from which the
        image X a of a new atom is computed.
        """
        if atom is None:
            return ZERO
        number = self.atoms.find(atom)
        if number < 0:
            self.atoms = self.atoms.append(problem.design, atom)
            self.shares = np.append(self.shares, 0.0)
            number = self.atoms.size - 1
        return number

    def extremes(self, problem: Problem) -> tuple[int, int, Array]:
        """Return the away vertex, the local Frank-Wolfe vertex, and the scores of all vertices.

        The score of a vertex is its inner product with the negative gradient of F, the objective of
        ``problem``. The array of scores (t + 1,) has the vertex zero last. Among the vertices with
        positive convex weight, the away vertex has the smallest score and the local Frank-Wolfe
        vertex the largest one. The stored images suffice: O(n_samples t) operations, and no pass
        over the data.
        """
        # The products of each atom with the negative gradient of loss and ridge term.
        linear = self.atoms.images.predict(self.shares)
        self.intercept = optimal_intercept(problem, linear, self.intercept)
        dual = negative_gradient(problem, linear + self.intercept)
        slopes = self.atoms.images.scores(dual).full()
        if problem.tau:
            slopes -= problem.tau * self.atoms.products(self.atoms.combine(self.shares))
        # A vertex reach * a_h also changes the penalty R(sum c), at the rate reach * R'(sum c).
        penalty_slope = slope_of_gauge(problem, float(self.shares.sum()))
        scores = np.append(self.reach * (slopes - penalty_slope), 0.0)
        # Choose among the vertices of positive weight; position t is the vertex zero.
        used = np.flatnonzero(np.append(self.shares > 0, self.share_of_zero > 0))
        if not used.size:
            return ZERO, ZERO, scores
        number_of = np.append(np.arange(self.shares.size), ZERO)
        worst = used[scores[used].argmin()]
        best = used[scores[used].argmax()]
        return int(number_of[worst]), int(number_of[best]), scores

    def mean(self, scores: Array) -> float:
        """Return the inner product of the point with -grad F: sum_h (c_h / reach) scores_h.

        ``scores`` (t + 1,) are those of the vertices, from ``extremes``; that of zero is 0.
        """
        return float(scores[:-1] @ self.shares) / self.reach if self.reach > 0 else 0.0

    def _share_of_vertex(self, vertex: int) -> float:
        """Return the convex weight of the vertex with this number."""
        return self.share_of_zero if vertex == ZERO else float(self.shares[vertex]) / self.reach

    def _weights_of_vertex(self, vertex: int) -> Array:
        """Return the atom weights (t,) of a vertex: reach at its atom, or all 0 for ZERO.

        ``vertex`` is its number.
        """
        unit = np.zeros(self.shares.size)
        if vertex != ZERO:
            unit[vertex] = self.reach
        return unit

    def toward(self, vertex: int) -> Move:
        """Return the Frank-Wolfe direction v - x, from the point x to the vertex v.

        ``vertex`` is the number of v. The step size is at most 1.
        """
        return Move(self._weights_of_vertex(vertex) - self.shares, 1.0)

    def away(self, vertex: int) -> Move:
        """Return the away direction x - u, from the vertex u to the point x.

        ``vertex`` is the number of u, whose convex weight is q. The longest step, q / (1 - q),
        reduces the weight of u to 0.
        """
        share = self._share_of_vertex(vertex)
        longest = share / (1.0 - share) if share < 1.0 else 0.0
        return Move(self.shares - self._weights_of_vertex(vertex), longest)

    def exchange(self, source: int, target: int) -> Move:
        """Return the pairwise direction v - u, for u = ``source`` and v = ``target``.

        The longest step moves the whole weight of the vertex u to v.
        """
        change = self._weights_of_vertex(target) - self._weights_of_vertex(source)
        return Move(change, self._share_of_vertex(source) if self.reach > 0 else 0.0)

    def move(self, problem: Problem, move: Move, length: float | None = None) -> None:
        """Take a step of size ``length`` along ``move``; None: the exact line search of F.

        F is the objective of ``problem``. Weights below rounding become 0.
        """
        if length is None:
            length = best_step(
                problem, self._line_problem(problem, move.change), move.longest, self.intercept
            )
        # Rounding must not leave tiny weights, nor a sum beyond the reach.
        shares = self.shares + length * move.change
        shares[shares <= self._rounding * self.reach] = 0.0
        total = float(shares.sum())
        self.shares = shares * (self.reach / total) if total > self.reach else shares

    def _line_problem(self, problem: Problem, change: Array) -> LineProblem:
        """Return the line search problem along ``change`` (t,) from the current point.

        ``problem`` has the penalty and the ridge term, which are quadratic along the line.
        """
        # Derivatives of the penalty at gauge sum(c), and of the ridge term.
        images = self.atoms.images
        penalty = problem.regularizer
        gauge_change = float(change.sum())
        slope = slope_of_gauge(problem, float(self.shares.sum())) * gauge_change
        curvature = 0.0
        if penalty.form == "squared":
            curvature = penalty.amount * gauge_change * gauge_change
        if problem.tau:
            point = self.atoms.combine(self.shares)
            direction = self.atoms.combine(change)
            slope += problem.tau * float(point @ direction)
            curvature += problem.tau * float(direction @ direction)
        return LineProblem(images.predict(self.shares), images.predict(change), slope, curvature)


def slope_of_gauge(problem: Problem, gauge: float) -> float:
    """Return the derivative R'(t) of the penalty R of ``problem`` at t = ``gauge``.

    R(t) is ``amount`` t in the penalized form, ``amount`` / 2 t^2 in the squared form, and a limit
    on t, thus of derivative 0, in the constrained form. ``amount`` is the strength of the penalty.
    """
    form = problem.regularizer.form
    amount = problem.regularizer.amount
    return {"penalized": amount, "squared": amount * gauge, "constrained": 0.0}[form]
