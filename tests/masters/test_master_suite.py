"""Every master against the conformance suite: oracles, warm starts, awkward blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomlearn.masters import (
    AcceleratedGradient,
    LevelSearch,
    ScalingNewton,
    SemismoothNewton,
    WorkingSets,
)
from atomlearn.norms import L1, Groups, KSupport
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


class TestLevelSearch(MasterChecks):
    master = LevelSearch()
    norm = Groups([[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]])


class TestLevelSearchOfOneSupportedGroup(MasterChecks):
    master = LevelSearch()
    norm = KSupport(1, [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]])


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("strength", [0.01, 0.3, 0.9])
def test_levels_reach_the_target_on_repeated_groups(loss, strength):
    """Groups of the same columns, as kernels of nearby widths are: no Newton step is unique."""

    class Refused(SemismoothNewton):
        def solve(self, problem, weights, intercept, gap_target):
            raise AssertionError("the search did not reach its target")

    case = Case(loss, "squared", True, n_samples=60, n_features=40, strength=strength, seed=4)
    groups = np.repeat(np.arange(20), 4)
    problem = case.problem(Groups(np.arange(40) // 4))
    block = as_block(problem)
    twice = block.append(block)
    norm = Groups(groups)
    regularizer = replace(problem.regularizer, norm=norm)
    problem = replace(problem, design=twice, regularizer=regularizer)
    refit = LevelSearch(fallback=Refused()).solve(problem, np.zeros(80), 0.0, 1e-9)
    assert refit.gap <= 1e-9
    again = LevelSearch(fallback=Refused()).solve(problem, refit.weights, refit.intercept, 1e-9)
    assert again.steps == 0


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
