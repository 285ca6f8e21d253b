"""Master: a solver of the restricted master problem, the problem over the columns found so far.

These columns are in memory as a ``Block``: the matrix A, (n_samples, m). The coefficients w (m,)
minimize f(A w + b) + tau/2 ||w||^2 + R(w), with the loss f, the intercept b, the ridge weight tau
and the penalty R. The level is the strength of R. A duality gap is *certified* if it is computed
with a feasible dual point, so that it bounds the distance of the objective from the optimum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from atomlearn._support import growth
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem, negative_gradient, optimal_intercept
from atomlearn.core.problem.proof import prove_from


@dataclass(slots=True)
class Refit:
    """The result of a master.

    Attributes
    ----------
    weights : (m,) float64
        Coefficients w of the columns A.
    intercept : float
        The intercept b.
    prediction : (n_samples,) float64
        A w + b.
    gap : float
        Certified duality gap of the *restricted* problem at this point, absolute.
    objective : float
        Objective at this point.
    steps : int
        Number of Newton steps or gradient iterations.
    scores : (m,) float64, optional
        A'v, with v the negative gradient of the loss in the predictions at this point. None if the
        master does not keep them.
    """

    weights: Array
    intercept: float
    prediction: Array
    gap: float
    objective: float
    steps: int = 0
    scores: Array | None = None


class Master(ABC):
    """Solves a restricted problem: few columns, all in memory.

    ``takes_metric`` : whether it can solve problems with a ridge term (tau/2) w'Mw, where M is the
    matrix ``Problem.metric``.
    """

    takes_metric: ClassVar[bool] = False

    @abstractmethod
    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimize ``problem`` from a warm start until the absolute duality gap is ``gap_target``.

        The design of ``problem`` is a Block. ``weights`` (m,) and ``intercept`` are the warm start.
        The best point found is returned with its certified gap, also if the target is not reached.
        The objective of this point is never above that of the warm start.
        """

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return weights (m,), intercept and number of steps of a solution without a certified gap.

        On small problems the certified gap takes longer than the solution; the caller must compute
        it. ``problem`` is restricted to few columns. ``weights`` and ``intercept`` are the warm
        start. None: the master has no such fast solution, and ``solve`` must be called.
        """
        return None

    def guesses(
        self, problems: list[Problem], weights: Array, intercept: float, share: float
    ) -> list[tuple[Array, float]]:
        """Return solutions (weights, intercept) of several problems, without certified gaps.

        The ``problems`` differ only in their level, the strength of the penalty. ``weights`` and
        ``intercept`` are the warm start of the first problem. Each solution has an estimated
        relative duality gap of at most ``share``. The list ends at the first problem that is not
        solved. If it is empty, ``solve`` must be called.
        """
        return []


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point with its duality gap, and its scores A'v, (m,).

    v is the negative gradient of the loss in the predictions, and A are the columns.
    """

    refit: Refit
    scores: Array

    def improves(self, other: Candidate) -> bool:
        """Return whether this point is better than ``other``.

        A point is better if its objective is lower. If both objectives are equal up to rounding,
        the point with the smaller gap is better.
        """
        new = self.refit
        old = other.refit
        rounding = 1e-14 * abs(old.objective)
        if new.objective < old.objective - rounding:
            return True
        return new.objective <= old.objective + rounding and new.gap < old.gap


def check_restricted(problem: Problem) -> None:
    """Raise TypeError unless the problem's norm has a proximal map and its design is a Block."""
    norm = problem.regularizer.norm
    if not norm.proximal:
        raise TypeError(
            f"this master needs a norm with a prox, {type(norm).__name__} has none; "
            "use a solver over its atoms"
        )
    block_of(problem)


def block_of(problem: Problem) -> Block:
    """Return the restricted problem's design, or raise TypeError if it is no Block."""
    block = problem.design
    if not isinstance(block, Block):
        raise TypeError(
            f"a master works on a Block of gathered columns, got {type(block).__name__}; "
            "gather them first, or use ColumnGeneration, or solvers.FISTA over all columns"
        )
    return block


def finished(refit: Refit, master: Master, problem: Problem, gap_target: float) -> Refit:
    """Return ``refit``, or continue with another master if its gap is above ``gap_target``.

    refit : the best point for ``problem`` so far, from which ``master`` starts. ``master`` is not
    called after the deadline. It is not called either if the gap is below the rounding error of
    sums over the samples, since no smaller gap can be proved.
    """
    # ``growth`` is the relative rounding error of a sum of that number of terms.
    rounding = growth(problem.y.size) * abs(refit.objective)
    enough = refit.gap <= gap_target or refit.gap <= rounding < math.inf
    if enough or problem.deadline.passed:
        return refit
    further = master.solve(problem, refit.weights, refit.intercept, gap_target)
    further.steps += refit.steps
    return further


def toward(problem: Problem, at: Candidate, end: Array) -> Candidate | None:
    """Return a better point of ``problem`` on the segment from ``at`` to the weights ``end`` (m,).

    The intercept is optimal at each point. The full step is tried first, then half of it, and so
    on. None if no trial point is better than ``at``.
    """
    weights = at.refit.weights
    length = 1.0
    for _ in range(TUNING.halvings):
        moved = end if length == 1.0 else weights + length * (end - weights)
        trial = certified(problem, moved, None, at.refit.intercept)
        if trial.improves(at):
            return trial
        length *= 0.5
    return None


def certified(
    problem: Problem, weights: Array, linear: Array | None = None, intercept: float = 0.0
) -> Candidate:
    """Return the point with these weights and the optimal intercept, with its duality gap.

    problem : the restricted problem over the columns A. weights : w, (m,). linear : A w,
    (n_samples,), if it is known. intercept : where the search for the optimal intercept begins.
    """
    block = block_of(problem)
    if linear is None:
        linear = block.predict(weights)
    intercept = optimal_intercept(problem, linear, intercept)
    prediction = linear + intercept
    v = negative_gradient(problem, prediction)
    scores = block.scores(v)
    if not np.isfinite(scores.full()).all():
        # Sums over slopes near the largest float overflow: nothing can be proved at this point.
        unproved = Refit(weights, intercept, prediction, math.inf, math.inf)
        return Candidate(unproved, np.zeros(weights.size))
    certificate = prove_from(problem, None, weights, prediction, v, scores).certificate
    values = scores.full()
    bounds = certificate.gap, certificate.objective
    return Candidate(Refit(weights, intercept, prediction, *bounds, scores=values), values)
