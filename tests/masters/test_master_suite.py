"""Every master against the conformance suite: oracles, warm starts, awkward blocks."""

from __future__ import annotations

from atomlearn.masters import AcceleratedGradient, SemismoothNewton
from atomlearn.testing.masters import MasterChecks


class TestSemismoothNewton(MasterChecks):
    master = SemismoothNewton()


class TestAcceleratedGradient(MasterChecks):
    master = AcceleratedGradient()
