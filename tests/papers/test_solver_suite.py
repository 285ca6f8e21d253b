"""Solvers over atoms against the conformance suite."""

from __future__ import annotations

from typing import ClassVar

from atomlearn.core import Form
from atomlearn.interfaces import Norm
from atomlearn.masters import SemismoothNewton
from atomlearn.norms import KSupport
from atomlearn.solvers import (
    FISTA,
    KFCFW,
    FeatureGeneration,
    FrankWolfe,
)
from atomlearn.testing.problems import Case
from atomlearn.testing.solvers import SolverChecks


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


class TestFISTA(SolverChecks):
    solver = FISTA()


class TestKFCFW(SolverChecks):
    solver = KFCFW()
    max_iter = 400
    forms: ClassVar[tuple[Form, ...]] = ("squared", "constrained")
    gap = 1e-4


class TestFeatureGeneration(SolverChecks):
    solver = FeatureGeneration()
    forms: ClassVar[tuple[Form, ...]] = ("squared",)
    takes_tau = False
    gap = 1e-6


class TestFeatureGenerationExact(TestFeatureGeneration):
    solver = FeatureGeneration(master=SemismoothNewton(), inner_tol=1e-8)
