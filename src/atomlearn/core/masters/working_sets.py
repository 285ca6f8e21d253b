"""WorkingSets: a master that solves subproblems over subsets of the block's columns.

A block has the columns that column generation gathered in memory. Most of them end with weight
zero. This master applies column generation again within the block. An inner master solves the
problem over a working set: the columns in use and the best of the others. The scores of the whole
block select the next working set, and the duality gap over the whole block decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.interfaces.norm import is_restrictable
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.master import (
    Candidate,
    Master,
    Refit,
    block_of,
    certified,
    check_restricted,
    finished,
)
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem, restrict, with_ridge


@dataclass(frozen=True, slots=True)
class WorkingSets(Master):
    """Solve the restricted problem by an inner master on growing working sets of columns.

    Parameters
    ----------
    master : Master
        The inner master, which solves over a working set.
    least : int
        A round adds about max(least, n_active / 4) columns to the n_active columns in use.
    smallest : int
        Blocks of at most this many columns are passed to ``master`` unchanged.

    References
    ----------
    M. Massias, A. Gramfort, J. Salmon 2018, Celer (working sets with dual certificates).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> refit = masters.WorkingSets(smallest=1).solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6)
    array([0.9, 1.9])
    """

    master: Master = field(default_factory=SemismoothNewton)
    least: int = 50
    smallest: int = TUNING.few_columns

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        check_restricted(problem)
        if not self.splits(problem):
            return self.master.solve(problem, weights, intercept, gap_target)
        size = problem.design.shape[1]
        best = certified(problem, weights, None, intercept)
        steps = 0
        stalled = 0
        for _ in range(TUNING.inner_steps):
            gap = best.refit.gap
            if gap <= gap_target or stalled >= 2 or problem.deadline.use_step():
                break
            # Solve over a working set, then certify the point over the whole block.
            working_set = self._chosen(problem, best)
            if 4 * working_set.size >= 3 * size:
                break  # ``finished`` solves over the whole block, which costs little more
            subproblem = restrict(problem, block_of(problem).gather(working_set), working_set)
            start = best.refit.weights[working_set]
            target = max(0.1 * gap, 0.7 * gap_target)
            # A guess is cheap, but its gap is not known. After a round that gained little, solve to
            # the target instead.
            solution = self.master.guess(subproblem, start, best.refit.intercept)
            if solution is None or stalled:
                refit = self.master.solve(subproblem, start, best.refit.intercept, target)
                solution = refit.weights, refit.intercept, refit.steps
            subset_weights, intercept_now, more_steps = solution
            all_weights = np.zeros(size)
            all_weights[working_set] = subset_weights
            steps += more_steps
            trial = certified(problem, all_weights, None, intercept_now)
            stalled = 0 if trial.refit.gap < 0.9 * gap else stalled + 1
            if trial.improves(best):
                best = trial
        best.refit.steps = steps
        return finished(best.refit, self.master, problem, gap_target)

    def splits(self, problem: Problem) -> bool:
        """Return whether the problem is solved over working sets rather than as a whole.

        Working sets are used if the block has more than ``smallest`` columns and the norm can be
        restricted to some of them.
        """
        n_columns = problem.design.shape[1]
        return n_columns > self.smallest and is_restrictable(problem.regularizer.norm, n_columns)

    def _chosen(self, problem: Problem, best: Candidate) -> Columns:
        """Return the columns of ``problem`` in the next working set, in increasing order.

        They are the n_active columns with a nonzero weight at the point ``best``, and those with
        the best scores there: n_active + max(least, n_active / 4) columns.
        """
        nonzero = np.flatnonzero(best.refit.weights)
        count = nonzero.size + max(self.least, nonzero.size // 4)
        scores = with_ridge(problem, ArrayScores(best.scores), None, best.refit.weights)
        # An upper bound on the gauge of the optimum, as amount * gauge <= objective there. It is
        # used only for the form "penalized".
        gauge_bound = best.refit.objective / problem.regularizer.amount
        best_scored = problem.regularizer.best_columns(scores, count, gauge_bound)
        return np.union1d(nonzero, best_scored)
