"""Master: the re-fit of all weights over the columns found so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from atomlearn.core.interfaces import Array
from atomlearn.core.problem.problem import Problem


@dataclass(slots=True)
class Refit:
    """What a master gives back.

    weights : (m,) coefficients over the block's columns; intercept : scalar; prediction :
    (n_samples,) A w + b at that very point; gap : certified duality gap of the *restricted*
    problem there (absolute); objective : F there; steps : Newton steps or gradient iterations.
    """

    weights: Array
    intercept: float
    prediction: Array
    gap: float
    objective: float
    steps: int = 0


class Master(ABC):
    """Solves a restricted problem: few columns, all in memory."""

    @abstractmethod
    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise ``problem`` (its design is a Block) from the warm start to ``gap_target``.

        Returns the best point found, which is never worse in objective than the warm start, with
        its certified gap, also where the target could not be reached.
        """

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return weights, intercept and steps of what is likely the optimum, where that is quick.

        Nothing is proved of it, which on small problems takes longer than finding it: who asks
        prices the point. None: solve.
        """
        return None
