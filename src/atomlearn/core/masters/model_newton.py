"""ModelNewton: Newton steps on models of f that another master minimizes, with a line search.

What the masters share that replace f by least squares: the loop, the step along the way to the
model's minimizer, and the hand-over of what steps leave undone. They differ in which problems
they take and in the model.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from atomlearn.core.interfaces import Array, Block, Master, Refit
from atomlearn.core.masters.candidate import Candidate, block_of, certified, finished
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class ModelNewton(Master):
    """Minimize least squares in the place of f, go toward that point as far as F falls, again.

    Parameters
    ----------
    master : Master
        Minimizes the models. It also gets the problems that are not taken, and what steps leave
        undone, as the problem is.
    """

    master: Master

    @abstractmethod
    def takes(self, problem: Problem) -> bool:
        """Return whether the problem is one for such models."""

    @abstractmethod
    def model(self, problem: Problem, block: Block, at: Candidate) -> Problem | None:
        """Return the model at a point as least squares; None where there is no curvature."""

    def prepared(self, problem: Problem) -> Block:
        """Return the block in the form that models are made of."""
        return block_of(problem)

    def is_exact(self, problem: Problem) -> bool:
        """Return whether the model is the problem itself, so that one step is enough."""
        return False

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        if not self.takes(problem):
            return self.master.solve(problem, weights, intercept, gap_target)
        refit = self.steps(problem, weights, gap_target)
        return finished(refit, self.master, problem, gap_target)

    def steps(self, problem: Problem, weights: Array, gap_target: float) -> Refit:
        """Return where Newton steps end."""
        best, steps = certified(problem, problem.inside(None, weights)), 0
        block: Block | None = None
        while best.refit.gap > gap_target and steps < TUNING.inner_steps:
            if problem.deadline.passed:
                break
            block = self.prepared(problem) if block is None else block
            steps += 1
            following = self._step(problem, block, best, gap_target)
            if following is None:
                break
            best = following
        best.refit.steps = steps
        return best.refit

    def candidates_for_free(self, problem: Problem) -> int:
        """As the master inside, of problems that are not taken; see Master."""
        return 0 if self.takes(problem) else self.master.candidates_for_free(problem)

    def _step(
        self, problem: Problem, block: Block, at: Candidate, gap_target: float
    ) -> Candidate | None:
        """Return a better point, or None where the model leads to none."""
        weights = at.refit.weights
        model = self.model(problem, block, at)
        if model is None:
            return None
        target = 0.5 * gap_target
        if not self.is_exact(problem):
            target = max(TUNING.coupled_share * at.refit.gap, 0.1 * gap_target)
        found = self.master.solve(model, weights, 0.0, target).weights
        length = 1.0
        for _ in range(TUNING.halvings):
            there = found if length == 1.0 else weights + length * (found - weights)
            trial = certified(problem, there)
            if trial.improves(at):
                return trial
            length *= 0.5
        return None
