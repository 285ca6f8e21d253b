"""Entrants that are solvers of this package, built from problems of this package."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atomlearn.core.paths.levels import largest_useful_alpha
from atomlearn.core.solvers.stopping import RelativeGap, Seconds, StoppingRule
from atomlearn.interfaces import Solver
from atomlearn.problem import Problem
from atomlearn.solvers import run
from benchmarks.harness import Entrant, Outcome, solve_outcome


@dataclass
class Ours(Entrant):
    """One solver on one problem until the gap is proved, or until its time is over."""

    name: str
    problem: Problem
    solver: Solver
    gap: float = 1e-6
    limit_s: float | None = None

    @property
    def settings(self) -> str:
        limit = "" if self.limit_s is None else f", at most {self.limit_s:.3g} s"
        return f"gap {self.gap:g}{limit}"

    def run(self) -> Outcome:
        stop: StoppingRule = RelativeGap(self.gap)
        if self.limit_s is not None:
            stop = stop | Seconds(self.limit_s)
        return solve_outcome(run(self.problem, self.solver, stop))


def at_level(problem: Problem, fraction: float) -> Problem:
    """Return the problem with its level at this fraction of the largest useful one."""
    amount = fraction * largest_useful_alpha(problem)
    return replace(problem, regularizer=replace(problem.regularizer, amount=amount))
