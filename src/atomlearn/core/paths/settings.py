"""Settings: how exactly each problem of a path is solved, and by which solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Solver, SupportsLift, SupportsRestriction
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.default import default_solver
from atomlearn.core.solvers.run import Observer, run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.papers.cogent import CoGEnT
from atomlearn.papers.frank_wolfe import FrankWolfe


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``solve`` takes beside the problem itself.

    gap : relative duality gap to prove; max_iter : bound on steps; solver : None means the
    default for the norm, see ``solvers.default_solver``.
    """

    gap: float = 1e-6
    max_iter: int = 1000
    solver: Solver | None = None

    def run(
        self,
        problem: Problem,
        warm: WarmStart | None = None,
        observers: Iterable[Observer] = (),
    ) -> Result:
        """Return the solution of ``problem`` from the warm start, without the solver's state.

        The state holds a copy of the active columns: a result kept for long must not.
        """
        result = self.solve(problem, warm, observers)
        result.state = None
        return result

    def solve(
        self, problem: Problem, warm: WarmStart | None, observers: Iterable[Observer]
    ) -> Result:
        """Return the solution of ``problem`` from the warm start, with the solver's state."""
        rules = RelativeGap(self.gap) | Iterations(self.max_iter)
        solver = self.solver or default_solver(problem.regularizer.norm, self.gap)
        # Solvers over atoms pull a start into the ball themselves, also where the norm has no
        # value to compare with the radius.
        if warm is not None and not isinstance(solver, AtomGeneration | CoGEnT | FrankWolfe):
            warm = feasible(problem, warm)
        return run(problem, solver, rules, observers, warm)


def feasible(problem: Problem, warm: WarmStart) -> WarmStart:
    """Return the warm start, shrunk into the ball where the form is "constrained"."""
    regularizer = problem.regularizer
    latent = isinstance(regularizer.norm, SupportsLift)  # the solver shrinks the parts itself
    if regularizer.form != "constrained" or not warm.columns.size or latent:
        return warm
    gauge = gauge_of(problem, warm)
    if gauge <= regularizer.amount:
        return warm
    return WarmStart(warm.columns, warm.weights * (regularizer.amount / gauge), warm.intercept)


def gauge_of(problem: Problem, warm: WarmStart) -> float:
    """Return gauge(w) of a point given by its non-zero coordinates."""
    norm, n_features = problem.regularizer.norm, problem.design.shape[1]
    if isinstance(norm, SupportsRestriction):
        return norm.restrict(warm.columns, n_features).value(warm.weights)
    dense = np.zeros(n_features)
    dense[warm.columns] = warm.weights
    return norm.value(dense)


def warm_start_of(result: Result) -> WarmStart:
    """Return the point of a result as the place to begin another problem of the same norm."""
    parts = () if result.state is None else result.state.parts()
    return WarmStart(result.columns, result.weights, result.intercept, result.lifted, parts)
