"""Block coordinate descent: the group sub-problem, agreement with column generation, refusals."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn.core import Form
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, Groups, KSupport
from atomlearn.result import Status
from atomlearn.solvers import ColumnGeneration, run, stopping
from atomlearn.testing.problems import Case, all_cases
from atomlearn.testing.solvers import SolverChecks
from experiments.rivals import BlockCoordinateDescent, active_groups

Array = NDArray[np.float64]

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
NORMS = (L1(), Groups(GROUPS), Groups(GROUPS, weights=[1.0, 0.5, 2.0, 1.0]))


# The sub-problem of a group.


# The method.


class TestBlockCoordinateDescent(SolverChecks):
    norm = L1()
    solver = BlockCoordinateDescent(tol=1e-7)
    forms: ClassVar[tuple[Form, ...]] = ("penalized",)
    monotone = True

    def _norm(self, k: int) -> Norm:
        return self.norm

    def cases(self) -> list[Case]:
        """One of the two of each loss and form: steps know neither weights nor intercept."""
        return super().cases()[::2]


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@pytest.mark.parametrize("newton", [True, False])
def test_agrees_with_column_generation(norm: Groups | L1, newton: bool) -> None:
    """To 1e-9, on every loss, with intercept, weights and tau."""
    for case in all_cases(("penalized",)):
        problem = case.problem(norm)
        solver = BlockCoordinateDescent(newton, tol=1e-10)
        result = run(problem, solver, stopping.RelativeGap(1e-10) | stopping.Iterations(300))
        exact = run(problem, ColumnGeneration(tol=1e-10), stopping.RelativeGap(1e-10))
        assert result.status is Status.CONVERGED
        assert_allclose(result.objective, exact.objective, rtol=1e-9)


def test_the_hybrid_mixes_both_steps() -> None:
    """Groups above ``largest`` take the soft threshold, others the exact step: one optimum."""
    problem = Case("squared", "penalized", True, seed=41, strength=0.1).problem(NORMS[1])
    stop = stopping.RelativeGap(1e-9) | stopping.Iterations(300)
    found = [
        run(problem, BlockCoordinateDescent(largest=largest, tol=1e-9), stop)
        for largest in (0, 2, 500)
    ]
    assert all(result.converged for result in found)
    assert_allclose([r.objective for r in found], found[0].objective, rtol=2e-9)


def test_refusals_name_the_remedy() -> None:
    solver, stop = BlockCoordinateDescent(), stopping.Iterations(3)
    with pytest.raises(TypeError, match="ColumnGeneration"):
        run(Case(form="penalized").problem(KSupport(2)), solver, stop)
    with pytest.raises(ValueError, match="penalized"):
        run(Case(form="squared").problem(L1()), solver, stop)


# ACTIVE.


class TestActiveGroups(SolverChecks):
    solver = active_groups(tol=1e-7)
    monotone = True
