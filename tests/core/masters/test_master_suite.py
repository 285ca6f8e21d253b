"""Every master against the conformance suite: oracles, warm starts, awkward blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomlearn.core import TUNING
from atomlearn.core.masters import sequential_qp
from atomlearn.masters import (
    AcceleratedGradient,
    ModelNewton,
    ScalingNewton,
    SemismoothNewton,
    WorkingSets,
)
from atomlearn.norms import L1, Groups
from atomlearn.testing.masters import MasterChecks
from atomlearn.testing.problems import Case, as_block


class TestSemismoothNewton(MasterChecks):
    master = SemismoothNewton()


class TestAcceleratedGradient(MasterChecks):
    master = AcceleratedGradient()


class TestWorkingSets(MasterChecks):
    master = WorkingSets(smallest=3, least=2)


class TestScalingNewton(MasterChecks):
    master = ScalingNewton()
    norm = Groups([[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]])


def test_rounds_work_on_parts_of_the_block():
    sizes = []

    class Spy(SemismoothNewton):
        def solve(self, problem, weights, intercept, gap_target):
            sizes.append(weights.size)
            return super().solve(problem, weights, intercept, gap_target)

    case = Case("squared", "penalized", True, n_samples=60, n_features=400, strength=0.3, seed=3)
    problem = case.problem(L1())
    problem = replace(problem, design=as_block(problem))
    whole = SemismoothNewton().solve(problem, np.zeros(400), 0.0, 1e-9)
    refit = WorkingSets(Spy(), smallest=50, least=20).solve(problem, np.zeros(400), 0.0, 1e-9)
    assert max(sizes) < 300
    assert refit.gap <= 1e-9
    np.testing.assert_allclose(refit.weights, whole.weights, atol=1e-5)


class TestModelNewton(MasterChecks):
    master = ModelNewton()


class TestLargeBlocks(MasterChecks):
    """Blocks that count as large, as here all do, are re-fitted by their Gram matrix."""

    master = ModelNewton()

    @pytest.fixture(autouse=True)
    def _all_are_large(self, monkeypatch):
        monkeypatch.setattr(sequential_qp, "TUNING", replace(TUNING, column_entries=0))
