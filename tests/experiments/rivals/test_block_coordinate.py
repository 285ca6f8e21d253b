"""Block coordinate descent: the group sub-problem, agreement with column generation, refusals."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn.core.interfaces.norm import Form
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Counted, as_design
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, Groups, KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.solvers import ColumnGeneration, run
from atomlearn.testing import tolerances
from atomlearn.testing.problems import Case, all_cases, optimum
from atomlearn.testing.solvers import SolverChecks
from experiments.rivals import BlockCoordinateDescent, active_groups
from experiments.rivals.group_step import Spectrum, exact_step, majorized_step, newton_radius

Array = NDArray[np.float64]

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
NORMS = (L1(), Groups(GROUPS), Groups(GROUPS, weights=[1.0, 0.5, 2.0, 1.0]))


# The sub-problem of a group.


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("n_rows", [3, 8])
def test_exact_step_satisfies_its_optimality_conditions(size: int, n_rows: int) -> None:
    """M u - q + level u / ||u|| = 0, or u = 0 where ||q|| <= level, at any rank and scale."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n_rows, size)) * 10.0 ** rng.uniform(-3, 3)
        A[:, seed % size] *= 10.0 ** rng.uniform(-4, 0)
        M, q = A.T @ A, A.T @ rng.standard_normal(n_rows)
        level = float(np.linalg.norm(q)) * 10.0 ** rng.uniform(-6, 0.1)
        u = exact_step(Spectrum.of(M), q, level)
        scale = float(np.linalg.norm(q))
        if u.any():
            residual = M @ u - q + level * u / np.linalg.norm(u)
            assert np.linalg.norm(residual) <= 1e-9 * scale
        else:
            assert scale <= level * (1 + 1e-9)


def test_newton_radius_against_bisection() -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        m, p = 10.0 ** rng.uniform(-8, 3, 6), rng.standard_normal(6)
        level = float(np.linalg.norm(p)) * rng.uniform(0.01, 0.999)
        low, high = 0.0, 1e12
        for _ in range(200):
            middle = 0.5 * (low + high)
            phi = float(((p / (m * middle + level)) ** 2).sum())
            low, high = (middle, high) if phi > 1 else (low, middle)
        assert_allclose(newton_radius(m, p, level), low, rtol=1e-9)


def test_majorized_step() -> None:
    q = np.array([3.0, 4.0])
    assert_allclose(majorized_step(2.0, q, 1.0), q * 0.8 / 2.0)
    assert_array_equal(majorized_step(2.0, q, 5.0), [0.0, 0.0])


# The method.


class TestBlockCoordinateDescent(SolverChecks):
    norm = L1()
    solver = BlockCoordinateDescent(tolerance=1e-7)
    forms: ClassVar[tuple[Form, ...]] = ("penalized",)
    monotone = True

    def _norm(self, k: int) -> Norm:
        return self.norm

    def cases(self) -> list[Case]:
        """One of the two of each loss and form: steps know neither weights nor intercept."""
        return super().cases()[::2]


class TestBlockCoordinateDescentMajorized(TestBlockCoordinateDescent):
    solver = BlockCoordinateDescent(newton=False, tolerance=1e-7)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@pytest.mark.parametrize("newton", [True, False])
def test_agrees_with_column_generation(norm: Groups | L1, newton: bool) -> None:
    """To 1e-9, on every loss, with intercept, weights and tau."""
    for case in all_cases(("penalized",)):
        problem = case.problem(norm)
        solver = BlockCoordinateDescent(newton, tolerance=1e-10)
        result = run(problem, solver, RelativeGap(1e-10) | Iterations(300))
        exact = run(problem, ColumnGeneration(tolerance=1e-10), RelativeGap(1e-10))
        assert result.status is Status.CONVERGED
        assert_allclose(result.objective, exact.objective, rtol=1e-9)


def test_agrees_with_the_oracle() -> None:
    for loss in ("squared", "logistic", "squared_hinge"):
        case = Case(loss, "penalized", True, True, seed=40)
        result = run(case.problem(NORMS[2]), BlockCoordinateDescent(), RelativeGap(1e-7))
        best = optimum(case, NORMS[2])
        assert abs(result.objective - best) <= tolerances.ORACLE * best + result.gap


def test_the_hybrid_mixes_both_steps() -> None:
    """Groups above ``largest`` take the soft threshold, others the exact step: one optimum."""
    problem = Case("squared", "penalized", True, seed=41, strength=0.1).problem(NORMS[1])
    stop = RelativeGap(1e-9) | Iterations(300)
    found = [
        run(problem, BlockCoordinateDescent(largest=largest, tolerance=1e-9), stop)
        for largest in (0, 2, 500)
    ]
    assert all(result.converged for result in found)
    assert_allclose([r.objective for r in found], found[0].objective, rtol=2e-9)
    # On correlated columns the exact steps pay: fewer sweeps to the same gap.
    problem = Case("squared", "penalized", correlation=0.95, seed=42, strength=0.02).problem(
        Groups([[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]])
    )
    exact = run(problem, BlockCoordinateDescent(tolerance=1e-9), stop).state.sweeps
    plain = run(problem, BlockCoordinateDescent(False, tolerance=1e-9), stop).state.sweeps
    assert exact < 0.5 * plain


def test_a_step_is_one_pass_and_gathers_no_more_than_it_needs() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 400))
    y = X[:, :4].sum(axis=1) + 0.1 * rng.standard_normal(50)
    design = Counted(as_design(X))
    loss = Case().problem(L1()).loss
    polar = Groups(np.arange(400) // 4).polar(design.scores(y))
    regularizer = Regularizer(Groups(np.arange(400) // 4), "penalized", 0.6 * polar)
    problem = Problem.build(design, y, loss, regularizer)
    result = run(problem, BlockCoordinateDescent(), RelativeGap(1e-6))
    assert result.converged
    assert result.passes == result.iterations + 1
    assert design.columns_gathered < 100
    assert_array_equal(result.columns, np.arange(4))


def test_states_before_are_left_alone() -> None:
    problem = Case("squared", "penalized", seed=43).problem(NORMS[1])
    solver = BlockCoordinateDescent(max_sweeps=1)
    state = solver.step(problem, solver.start(problem))
    before = [group.weights.copy() for group in state.groups]
    solver.step(problem, state)
    assert before
    for weights, group in zip(before, state.groups, strict=True):
        assert_array_equal(group.weights, weights)


def test_refusals_name_the_remedy() -> None:
    solver, stop = BlockCoordinateDescent(), Iterations(3)
    with pytest.raises(TypeError, match="ColumnGeneration"):
        run(Case(form="penalized").problem(KSupport(2)), solver, stop)
    with pytest.raises(ValueError, match="penalized"):
        run(Case(form="squared").problem(L1()), solver, stop)


# ACTIVE.


class TestActiveGroups(SolverChecks):
    solver = active_groups(tolerance=1e-7)
    monotone = True


def test_active_groups_lets_one_group_in_at_each_pass() -> None:
    problem = Case("squared", "penalized", seed=44, strength=0.1).problem(NORMS[1])
    solver = active_groups()
    state = solver.start(problem)
    for _ in range(4):
        sizes = state.columns.size
        assert state.candidates.size in (0, 1, 2, 3, 4)
        group = next((g for g in GROUPS if state.candidates[0] in g), [state.candidates[0]])
        assert_array_equal(np.sort(state.candidates), np.sort(group))
        state = solver.step(problem, state)
        assert state.columns.size == sizes + len(group)
    result = run(problem, solver, RelativeGap(1e-8))
    assert_allclose(
        result.objective, run(problem, ColumnGeneration(), RelativeGap(1e-8)).objective, rtol=2e-8
    )
