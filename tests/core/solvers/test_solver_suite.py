"""Every solver against the conformance suite: oracles, awkward data, starts, interrupts."""

from __future__ import annotations

from typing import ClassVar

from atomlearn.core.interfaces.norm import Form
from atomlearn.masters import AcceleratedGradient, SemismoothNewton
from atomlearn.solvers import FISTA, KFCFW, ColumnGeneration, FeatureGeneration
from atomlearn.testing.solvers import SolverChecks


class TestColumnGeneration(SolverChecks):
    solver = ColumnGeneration(batch=4, tolerance=1e-7)
    monotone = True


class TestColumnGenerationWithGradientMaster(SolverChecks):
    solver = ColumnGeneration(master=AcceleratedGradient(), batch=4, tolerance=1e-7)


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
    solver = FeatureGeneration(master=SemismoothNewton(), inner_tolerance=1e-8)
