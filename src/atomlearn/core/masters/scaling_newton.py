"""ScalingNewton: Newton's method on the scalings of groups, for group norms of any kind.

The penalty of a group is a minimum over its scaling t_g >= 0,

    level delta_g ||u_g|| = min over t_g >= 0 of  1/2 ||u_g||^2 / t_g + 1/2 level^2 delta_g^2 t_g,

so the re-fit is a smooth convex problem with one unknown for each *group*, t >= 0,

    phi(t) = min over u, b of  f(A u + b) + 1/2 sum_g ||u_g||^2 / t_g  +  1/2 level^2 sum delta^2 t,

whose inner problem is a ridge regression: u_g = t_g q_g with q = A'v, v = -f'(A u + b). With
V_g = A_g q_g and P the inverse of D^-1 + sum t_g A_g A_g' (D = f'', intercept projected out),

    d phi / d t_g = (level^2 delta_g^2 - ||q_g||^2) / 2,      d^2 phi = V' P V.

A step minimises the quadratic model over t >= 0, which is where groups enter and leave. Its right
side is that of the secular equation 1 / ||q_g|| = 1 / (level delta_g), which is nearly linear in t
(the idea of trust-region sub-problems, More and Sorensen 1983): full steps are good from far away.
The scaling is that of [T] section 3 and of multiple kernel learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from atomlearn.core.interfaces import Array, Master, Refit, TimeIsUp
from atomlearn.core.masters.candidate import Candidate, block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.nonnegative import nonnegative_minimum
from atomlearn.core.masters.ridge_of_groups import GroupRidge, RidgePoint
from atomlearn.core.masters.scaling_kernel import GroupBlock, free_columns, steps_by_kernel
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem


def is_group_problem(problem: Problem) -> bool:
    """Return True where ScalingNewton is made for the problem: groups, no ridge."""
    groups = problem.regularizer.norm.as_groups(problem.design.shape[1])
    return groups is not None and problem.tau == 0.0


def groups_and_limits(problem: Problem) -> tuple[Partition, Array]:
    """Return the groups of a group problem and level * delta_g of each."""
    size = problem.design.shape[1]
    groups = cast(Groups, problem.regularizer.norm.as_groups(size))
    partition, weights = groups.parts(size)
    ones = np.ones(partition.n_groups) if weights is None else weights
    return partition, problem.regularizer.amount * ones


def lower_than_nothing(problem: Problem, point: Candidate) -> bool:
    """Return True where the objective is not above that of zero weights."""
    linear = np.zeros(problem.y.size)
    prediction = linear + problem.optimal_intercept(linear, point.refit.intercept)
    nothing = problem.loss.value(problem.y, prediction, problem.weight)
    return point.refit.objective <= nothing


@dataclass(frozen=True, slots=True)
class ScalingNewton(Master):
    """Newton steps on the scalings of groups; for ``Groups``, and l2, which is one.

    For the penalized form and losses that are curved at every sample: the ridge regressions inside
    have no good models where a loss is straight, and the other forms would need a search for the
    level, of which each point costs as much as the semismooth steps for the form itself.

    A step costs a factorization of the size of the sample or of the columns in use, whichever is
    smaller, and a small non-negative quadratic program with one unknown for each group in use.
    About ten steps from nothing, two or three from a warm start.

    Parameters
    ----------
    fallback : Master
        For other norms and forms, for losses that are straight somewhere, for linear systems beyond
        4000 unknowns, and where rounding ends the steps before the target.
    max_steps : int
        Bound on Newton steps.

    References
    ----------
    [T] M. Tan, I. W. Tsang, L. Wang 2014, section 3, for the scalings.
    J. J. More, D. C. Sorensen 1983, doi:10.1137/0904038, for the secular equation.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.Groups([[0, 1]]), "penalized", 1.0)
    >>> restricted = problem.Problem.build(block, [3.0, 4.0], losses.Squared(), regularizer)
    >>> refit = masters.ScalingNewton().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6)
    array([2.4, 3.2])
    """

    fallback: Master = field(default_factory=SemismoothNewton)
    max_steps: int = 100

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        if not self._takes(problem, weights, intercept):
            return self.fallback.solve(problem, weights, intercept, gap_target)
        best, steps = self._start(problem, weights, intercept, gap_target)
        if best.refit.gap > gap_target and weights.size and not problem.deadline.passed:
            descent = _Descent(problem, best)
            try:
                steps += descent.run(gap_target, self.max_steps)
            except TimeIsUp:
                # Within a large system: the points before it are as good as they were.
                steps += 1
            best = descent.best
        best.refit.steps = steps
        return finished(best.refit, self.fallback, problem, gap_target)

    def _takes(self, problem: Problem, weights: Array, intercept: float) -> bool:
        """Return whether the loss has a curvature at every sample, and norm and form are right."""
        if not is_group_problem(problem) or problem.regularizer.form != "penalized":
            return False
        prediction = problem.design.predict(weights) + intercept
        curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
        return bool((curvature[problem.weight > 0.0] > 0.0).all())

    def _start(
        self, problem: Problem, weights: Array, intercept: float, gap_target: float
    ) -> tuple[Candidate, int]:
        """Return the start, or the point that the kernel reaches from it where that is better."""
        best: Candidate | None = None
        if weights.any() or not weights.size or problem.deadline.passed:
            best = certified(problem, weights, None, intercept)
            if best.refit.gap <= gap_target or not weights.size or problem.deadline.passed:
                return best, 0
        partition, limit = groups_and_limits(problem)
        group_block = GroupBlock.of(problem, partition, limit)
        reached = steps_by_kernel(group_block, weights, intercept, gap_target)
        if reached is not None and best is None and lower_than_nothing(problem, reached[0]):
            return reached
        if best is None:
            best = certified(problem, weights, None, intercept)
        if reached is None:
            return best, 0
        return (reached[0] if reached[0].improves(best) else best), reached[1]

    def candidates_for_free(self, problem: Problem) -> int:
        """Return how many columns fill a small block; see Master."""
        return free_columns(problem) if is_group_problem(problem) else 0


class _Descent:
    """One call: the scalings, the ridge regression they stand for, the best certified point."""

    def __init__(self, problem: Problem, best: Candidate) -> None:
        self.problem = problem
        self.best = best
        partition, self.limit = groups_and_limits(problem)
        self.ridge = GroupRidge(problem, block_of(problem), partition)
        # At the optimum u_g = t_g q_g with ||q_g|| = limit_g.
        self.scalings = partition.norms(best.refit.weights) / self.limit

    def run(self, gap_target: float, max_steps: int) -> int:
        """Descend, and return the number of steps; ``best`` is the best point, also if raised."""
        refit = self.best.refit
        if self.ridge.system_size(self.scalings) > TUNING.largest_system:
            return 0
        linear = refit.prediction - refit.intercept
        at = self.ridge.solve(self.scalings, linear, refit.intercept)
        for step in range(1, max_steps + 1):
            following = None if at is None else self._step(at)
            if following is None:
                return step
            at = following
            trial = certified(self.problem, at.weights, at.linear, at.intercept)
            stalled = trial.refit.gap >= self.best.refit.gap
            if trial.improves(self.best):
                self.best = trial
            elif stalled and step > 20:
                return step
            if self.best.refit.gap <= gap_target or self.problem.deadline.passed:
                return step
        return max_steps

    def _step(self, at: RidgePoint) -> RidgePoint | None:
        """Return the next point, or None where no step descends (rounding) or systems are large."""
        limit, t = self.limit, at.scalings
        lengths = at.group_norms
        free = np.flatnonzero((t > 0) | (lengths > limit))
        if not free.size or self.ridge.system_size(lengths > limit) > TUNING.largest_system:
            return None
        norms, bounds, now = lengths[free], limit[free], t[free]
        slope = 0.5 * (bounds**2 - norms**2)
        hessian = self.ridge.hessian(at, free)
        hessian[np.diag_indices(free.size)] *= 1.0 + 1e-10
        hessian[np.diag_indices(free.size)] += 1e-14 * float(np.trace(hessian)) / free.size
        secular = norms**2 * (bounds - norms) / bounds
        for gradient, trials in ((secular, 4), (slope, 20)):
            target = nonnegative_minimum(hessian, hessian @ now - gradient, now > 0)
            if target is None:
                continue
            promised = float(slope @ (target - now))
            if promised >= 0:
                continue
            following = self._search(at, free, target, promised, trials)
            if following is not None:
                return following
        return None

    def _search(
        self, at: RidgePoint, free: NDArray[np.int64], target: Array, promised: float, trials: int
    ) -> RidgePoint | None:
        """Return the first point between here and the target that descends enough."""
        cost = 0.5 * self.limit**2
        before = at.value + float(cost @ at.scalings)
        length = 1.0
        for _ in range(trials):
            t = at.scalings.copy()
            t[free] = (1.0 - length) * t[free] + length * target
            trial = self.ridge.solve(t, at.linear, at.intercept)
            if trial is None or self.problem.deadline.passed:
                return None
            after = trial.value + float(cost @ t)
            if after <= before + TUNING.armijo * length * promised + 1e-14 * abs(before):
                return trial
            length *= 0.4
        return None


def factor(matrix: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of a positive definite matrix, which it overwrites."""
    lower: tuple[Array, bool] = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return lower


def solved(lower: tuple[Array, bool], right: Array) -> Array:
    """Return the solution for the factor."""
    return np.asarray(cho_solve(lower, right, check_finite=False))
