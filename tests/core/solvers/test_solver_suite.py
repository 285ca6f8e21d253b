"""Every solver against the conformance suite: oracles, awkward data, starts, interrupts."""

from __future__ import annotations

from atomlearn.masters import AcceleratedGradient
from atomlearn.solvers import (
    AtomGeneration,
    ColumnGeneration,
)
from atomlearn.testing.solvers import SolverChecks


class TestColumnGeneration(SolverChecks):
    solver = ColumnGeneration(batch=4, tol=1e-7)
    monotone = True


class TestColumnGenerationWithGradientMaster(SolverChecks):
    solver = ColumnGeneration(master=AcceleratedGradient(), batch=4, tol=1e-7)


class TestAtomGeneration(SolverChecks):
    solver = AtomGeneration(tol=1e-7)
    bounds_gauge = True
    monotone = True
