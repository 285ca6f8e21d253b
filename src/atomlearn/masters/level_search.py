"""LevelSearch: the squared group norm through penalized ones, the form of multiple kernel learning.

The minimizer of f(w) + (lambda / 2) gauge(w)^2 is that of f(w) + mu gauge(w) for the one level
mu = lambda gauge(w_mu): the root of h(mu) = lambda gauge(w_mu) - mu, which decreases. At w_mu the
gap of the squared problem is the penalized one's plus h(mu)^2 / (2 lambda).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces import Master, Refit
from atomlearn.masters.newton import Candidate, SemismoothNewton, block_of, certified
from atomlearn.masters.scaling_newton import ScalingNewton
from atomlearn.norms import Groups, KSupport
from atomlearn.problem import Problem

Array = NDArray[np.float64]

#: A bracket this narrow (relative) holds nothing more than rounding.
NARROW = 1e-14


def penalized_norm(problem: Problem) -> Groups | None:
    """Return the group norm of a squared problem without ridge; None where it is another."""
    regularizer = problem.regularizer
    norm = regularizer.norm
    if regularizer.form != "squared" or problem.tau:
        return None
    if isinstance(norm, KSupport) and norm.k == 1 and norm.groups is not None:
        return Groups(norm.partition(problem.design.shape[1]))
    return norm if isinstance(norm, Groups) else None


@dataclass(frozen=True, slots=True)
class LevelSearch(Master):
    """Root of h by false position (Illinois), each level re-fitted from the one before.

    Parameters
    ----------
    master : Master
        Solves penalized problems; it also gets all problems that are not of squared groups.
    fallback : Master
        Goes on from the best point where the search ends before the target.
    max_levels : int
        Bound on the levels tried.
    """

    master: Master = field(default_factory=ScalingNewton)
    fallback: Master = field(default_factory=SemismoothNewton)
    max_levels: int = 50

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        norm = penalized_norm(problem)
        if norm is None or not weights.size:
            return self.master.solve(problem, weights, intercept, gap_target)
        best, steps = self._search(problem, norm, weights, intercept, gap_target)
        if best.refit.gap > gap_target:
            last = best.refit
            refit = self.fallback.solve(problem, last.weights, last.intercept, gap_target)
            refit.steps += steps
            return refit
        best.refit.steps = steps
        return best.refit

    def candidates_for_free(self, problem: Problem) -> int:
        """As the master inside."""
        return self.master.candidates_for_free(problem)

    def _search(
        self, problem: Problem, norm: Groups, weights: Array, intercept: float, gap_target: float
    ) -> tuple[Candidate, int]:
        level = problem.regularizer.amount
        best = certified(problem, weights, None, intercept)
        low, h_low = 0.0, math.inf
        # Above the polar at w = 0 the penalized solution is zero, so h < 0.
        nothing = certified(problem, np.zeros(weights.size), None, intercept)
        high = norm.polar(block_of(problem).scores(_dual(problem, nothing)))
        h_high = -high
        if nothing.improves(best):
            best = nothing
        mu = level * norm.value(best.refit.weights) or 0.5 * high
        steps, last_up, last_down = 0, False, False
        for _ in range(self.max_levels):
            if best.refit.gap <= gap_target or not low < mu < high * (1 - NARROW):
                break
            penalized = replace(
                problem, regularizer=replace(problem.regularizer, norm=norm, form="penalized",
                                             amount=mu)
            )  # fmt: skip
            start = best.refit
            refit = self.master.solve(penalized, start.weights, start.intercept, 0.3 * gap_target)
            steps += refit.steps
            linear = refit.prediction - refit.intercept
            trial = certified(problem, refit.weights, linear, refit.intercept)
            if trial.improves(best):
                best = trial
            h = level * norm.value(refit.weights) - mu
            # Illinois: the end that stays while the other moves twice counts half.
            if h > 0:
                low, h_low = mu, h
                h_high *= 0.5 if last_up else 1.0
            else:
                high, h_high = mu, h
                h_low *= 0.5 if last_down else 1.0
            last_up, last_down = h > 0, h <= 0
            if math.isinf(h_low):
                mu = max(0.1 * mu, mu + h)
            else:
                mu = (low * h_high - high * h_low) / (h_high - h_low)
        return best, steps


def _dual(problem: Problem, at: Candidate) -> Array:
    return problem.negative_gradient(at.refit.prediction)
