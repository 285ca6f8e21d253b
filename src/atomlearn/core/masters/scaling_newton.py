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

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.candidate import Candidate, certified, finished
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.scaling_kernel import GroupBlock, free_columns, point_of_kernel
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

    All steps are made in one call of a kernel, on a block in memory or on its Gram matrix. A step
    costs a factorization with one unknown for each group in use: about ten steps from nothing, two
    or three from a warm start.

    Parameters
    ----------
    fallback : Master
        For other norms and forms, for losses that are straight somewhere, for blocks that are too
        large for the kernel, and where rounding ends the steps before the target.

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

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        if not self._takes(problem, weights, intercept):
            return self.fallback.solve(problem, weights, intercept, gap_target)
        best = self._reached(problem, weights, intercept, gap_target)
        return finished(best.refit, self.fallback, problem, gap_target)

    def _takes(self, problem: Problem, weights: Array, intercept: float) -> bool:
        """Return whether the loss has a curvature at every sample, and norm and form are right."""
        if not is_group_problem(problem) or problem.regularizer.form != "penalized":
            return False
        prediction = problem.design.predict(weights) + intercept
        curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
        return bool((curvature[problem.weight > 0.0] > 0.0).all())

    def _reached(
        self, problem: Problem, weights: Array, intercept: float, gap_target: float
    ) -> Candidate:
        """Return the start, or the point that the kernel reaches from it where that is better."""
        best: Candidate | None = None
        if weights.any() or not weights.size or problem.deadline.passed:
            best = certified(problem, weights, None, intercept)
            if best.refit.gap <= gap_target or not weights.size or problem.deadline.passed:
                return best
        partition, limit = groups_and_limits(problem)
        group_block = GroupBlock.of(problem, partition, limit)
        reached = point_of_kernel(group_block, weights, intercept, gap_target)
        if reached is not None and best is None and lower_than_nothing(problem, reached):
            return reached
        if best is None:
            best = certified(problem, weights, None, intercept)
        if reached is None or reached.improves(best):
            return reached or best
        best.refit.steps = reached.refit.steps
        return best

    def candidates_for_free(self, problem: Problem) -> int:
        """Return how many columns fill a small block; see Master."""
        return free_columns(problem) if is_group_problem(problem) else 0
