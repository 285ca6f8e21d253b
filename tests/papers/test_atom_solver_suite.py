"""Solvers over atoms against the conformance suite."""

from __future__ import annotations

from atomlearn.interfaces import Norm
from atomlearn.norms import KSupport
from atomlearn.solvers import AtomGeneration, FrankWolfe
from atomlearn.testing.problems import Case
from atomlearn.testing.solvers import SolverChecks


class TestAtomGeneration(SolverChecks):
    solver = AtomGeneration(tolerance=1e-7)
    bounds_gauge = True
    monotone = True


class OnPolytopes(SolverChecks):
    """Frank-Wolfe methods get close on polytopes only: l1, in a form the oracle solves well."""

    norm = KSupport(1)
    bounds_gauge = True
    monotone = True

    def _norm(self, k: int) -> Norm:
        return self.norm

    def cases(self) -> list[Case]:
        """One of the two of each loss and form: directions know neither weights nor intercept."""
        return super().cases()[::2]


class TestFrankWolfe(OnPolytopes):
    solver = FrankWolfe()
    gap = 1e-2
    max_iter = 5000


class TestAwaySteps(OnPolytopes):
    solver = FrankWolfe(direction="away")


class TestPairwiseSteps(OnPolytopes):
    solver = FrankWolfe(direction="pairwise")


class TestBlendedSteps(OnPolytopes):
    solver = FrankWolfe(direction="blended")
