"""CoGEnT: the suite, right answers, and what its backward steps remove."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from atomlearn.interfaces import Norm
from atomlearn.norms import L1, L2, Groups, KSupport
from atomlearn.result import Status
from atomlearn.solvers import AtomGeneration, run, stopping
from atomlearn.testing import tolerances
from atomlearn.testing.problems import FORMS, LOSSES, Case, optimum
from atomlearn.testing.solvers import SolverChecks
from experiments.rivals import CoGEnT

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
NORMS = (L1(), L2(), KSupport(3), Groups(GROUPS, weights=[1.0, 0.5, 2.0, 1.0]))


class TestCoGEnT(SolverChecks):
    solver = CoGEnT(tol=1e-7)
    bounds_gauge = True
    monotone = True


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_agrees_with_the_oracle(norm: Norm) -> None:
    """Every loss and form, with intercept, weights and tau in turn."""
    for number, (loss, form) in enumerate(zip(LOSSES, FORMS, strict=True)):
        case = Case(
            loss, form, number % 2 == 0, number % 3 == 0, 0.3 * (number % 2), 0.5, seed=number
        )
        stop = stopping.RelativeGap(1e-8) | stopping.Iterations(3000)
        result = run(case.problem(norm), CoGEnT(tol=1e-8), stop)
        assert result.status is Status.CONVERGED, (str(case), result.relative_gap)
        best = optimum(case, norm)
        slack = tolerances.ORACLE * best
        assert -slack <= result.objective - best <= result.gap + slack


def test_truncation_removes_atoms() -> None:
    """Backward steps leave fewer atoms than forward steps alone, at the same optimum."""
    problem = Case("squared", "constrained", n_samples=80, n_features=60, seed=30).problem(
        KSupport(4)
    )
    stop = stopping.RelativeGap(1e-7) | stopping.Iterations(500)
    greedy, forward = run(problem, CoGEnT(eta=0.5), stop), run(problem, AtomGeneration(), stop)
    assert greedy.converged
    assert forward.converged
    assert greedy.state.truncated > 0
    assert greedy.state.shares.size <= forward.state.shares.size
    assert_allclose(greedy.objective, forward.objective, rtol=2e-7)
