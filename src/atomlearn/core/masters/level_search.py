"""The constrained and the squared form by way of the penalized one: a search for its level.

The optimum of either is that of the penalized form at some level, the root of a decreasing
function of it: gauge(w_level) - radius, or amount * gauge(w_level) - level; as in the root finding
of SPGL1 on the Pareto curve [van den Berg, Friedlander 2008]. Every point on the way is certified
for the form that was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Refit
from atomlearn.core.masters.candidate import Candidate, certified
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer

#: solve(problem, weights, intercept, gap target) of the penalized form.
Solve = Callable[[Problem, Array, float, float], Refit]


def by_level(
    problem: Problem, start: Candidate, gap_target: float, solve: Solve
) -> tuple[Candidate, int]:
    """Return the best point found for a constrained or squared problem, and the steps it took.

    Its gap may exceed ``gap_target``: where the constraint is not active, or by rounding.
    """
    search = _Search(problem, start, gap_target, solve)
    search.run()
    return search.best, search.steps


class _Search:
    """The function of the level, the solutions it has met, and the best point for this form."""

    def __init__(self, problem: Problem, start: Candidate, target: float, solve: Solve) -> None:
        self.problem, self.best, self.target, self.solve = problem, start, target, solve
        self.amount = problem.regularizer.amount
        self.constrained = problem.regularizer.form == "constrained"
        self.weights, self.intercept = start.refit.weights, start.refit.intercept
        self.steps = 0
        zero = np.zeros_like(self.weights)
        nothing = certified(problem, zero, None, self.intercept) if self.weights.any() else start
        #: From this level on, w = 0.
        self.largest = problem.regularizer.norm.polar(ArrayScores(nothing.scores))
        self.known = {self.largest: -self.amount if self.constrained else -self.largest}

    def run(self) -> None:
        """Secants, kept between the levels where the function is known to have different signs.

        In the logarithm of the level: where the loss has no minimum the gauge grows with it.
        """
        if not 0 < self.largest < np.inf:
            return
        low, high = 0.0, self.largest
        before, at = self.largest, self._first()
        for _ in range(TUNING.inner_steps):
            first, second = self.excess(before), self.excess(at)
            if self.best.refit.gap <= self.target or at <= TUNING.least_level * self.largest:
                return
            if self.problem.deadline.passed:
                return
            low, high = (max(low, at), high) if second >= 0 else (low, min(high, at))
            # Not far beyond what is known either: the function is curved.
            least, most = (
                max(low, at / TUNING.longest_level_step),
                min(high, float(np.sqrt(at * self.largest))),
            )
            power = -second / (second - first) if second != first else -np.inf
            secant = at * float(np.exp(np.clip(power * np.log(at / before), -700.0, 700.0)))
            if not least < secant < most:
                secant = least if secant <= least > low else float(np.sqrt(least * most))
            before, at = at, secant
            if at == before or high - low <= 1e-15 * high:
                return

    def excess(self, level: float) -> float:
        """Return what decreases with the level, and keep the point that was found for it."""
        if level in self.known:
            return self.known[level]
        norm = self.problem.regularizer.norm
        penalized = replace(self.problem, regularizer=Regularizer(norm, "penalized", level))
        refit = self.solve(
            penalized, self.weights, self.intercept, TUNING.level_share * self.target
        )
        self.steps += max(refit.steps, 1)
        self.weights, self.intercept = refit.weights, refit.intercept
        gauge = self.problem.gauge(None, refit.weights)
        self._certify(refit, gauge)
        self.known[level] = gauge - self.amount if self.constrained else self.amount * gauge - level
        return self.known[level]

    def _certify(self, refit: Refit, gauge: float) -> None:
        """Keep the point, drawn into the ball where there is one, if it is the best so far."""
        shrink = min(1.0, self.amount / gauge) if self.constrained and gauge > 0 else 1.0
        linear = shrink * (refit.prediction - refit.intercept)
        trial = certified(self.problem, shrink * refit.weights, linear, refit.intercept)
        # By the gap: next to the root a point drawn in may be the lower one, but proves less.
        if trial.refit.gap < self.best.refit.gap:
            self.best = trial

    def _first(self) -> float:
        """Return the level that the start solves, if it solves any; else a guess."""
        gauge = self.problem.gauge(None, self.weights) if self.weights.any() else 0.0
        inner = float(self.best.scores @ self.weights)
        level = self.problem.regularizer.multiplier(gauge, inner)
        return level if 0 < level < self.largest else 0.1 * self.largest
