"""What a run promises beside its point: time limits, deadlines, and warm starts in all parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from atomlearn import norms, paths, solve
from atomlearn.designs import as_design
from atomlearn.interfaces import Deadline, Norm, Solver
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.solvers import AtomGeneration, ColumnGeneration, Progress, run, stopping


def data(seed: int = 0, n: int = 40, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(n)


def problem_of(norm: Norm, amount: float, form: str = "penalized") -> Problem:
    X, y = data()
    regularizer = Regularizer(norm, form, amount)  # type: ignore[arg-type]
    return Problem.build(as_design(X), y, as_loss("squared"), regularizer)


def test_a_deadline_passes_once_its_moment_has_come() -> None:
    never, gone, ahead = Deadline.never(), Deadline.after(-1.0), Deadline.after(1e6)
    assert (never.passed, gone.passed, ahead.passed) == (False, True, False)
    assert never.left == np.inf
    assert gone.left == 0.0
    assert 0 < ahead.left <= 1e6
    assert never.sooner(ahead) is ahead
    assert ahead.sooner(gone) is gone
    assert not gone.later(10.0).passed
    assert never.later(10.0).at == np.inf


@dataclass(frozen=True)
class AskingForTheTime(Solver):
    """Column generation that notes which deadline its problems carry."""

    seen: list[Deadline]

    def start(self, problem, warm=None):  # type: ignore[no-untyped-def]
        self.seen.append(problem.deadline)
        return ColumnGeneration().start(problem, warm)

    def step(self, problem, state):  # type: ignore[no-untyped-def]
        self.seen.append(problem.deadline)
        return ColumnGeneration().step(problem, state)


def test_the_time_limit_reaches_the_problem_as_its_deadline() -> None:
    X, y = data()
    solver = AskingForTheTime([])
    solve(X, y, level=0.5, solver=solver)
    assert all(deadline.left == np.inf for deadline in solver.seen)
    solver.seen.clear()
    solve(X, y, level=0.5, solver=solver, time_limit=60.0)
    assert all(0 < deadline.left <= 60.0 for deadline in solver.seen)


def test_time_of_observers_does_not_count_against_the_deadline() -> None:
    X, y = data()
    solver = AskingForTheTime([])

    def slow(progress: Progress) -> None:
        moment = Deadline.after(0.02)
        while not moment.passed:
            pass

    solve(X, y, level=0.5, solver=solver, time_limit=60.0, observers=[slow])
    ends = [deadline.at for deadline in solver.seen]
    assert len(ends) > 1
    assert all(later - sooner >= 0.02 for sooner, later in pairwise(ends))


def test_a_solve_out_of_time_returns_its_first_point_with_its_gap() -> None:
    X, y = data()
    result = solve(X, y, level=0.01, time_limit=1e-9)
    assert result.status is Status.TIME_LIMIT
    assert result.iterations == 0
    assert np.isfinite(result.gap)
    with pytest.raises(ValueError, match="time_limit must be positive"):
        solve(X, y, level=0.01, time_limit=0.0)


def test_a_deadline_of_the_problem_itself_ends_the_run() -> None:
    problem = replace(problem_of(norms.L1(), 0.01), deadline=Deadline.after(-1.0))
    result = run(problem, ColumnGeneration(), stopping.RelativeGap(1e-9))
    assert result.status is Status.TIME_LIMIT


@pytest.mark.parametrize("solver", [None, AtomGeneration()])
def test_a_result_starts_another_solve_where_it_ended(solver: Solver | None) -> None:
    X, y = data()
    norm = norms.KSupport(3)
    cold = solve(X, y, norm=norm, level=2.0, solver=solver, gap=1e-9)
    again = solve(X, y, norm=norm, level=2.0, solver=solver, gap=1e-8, warm_start=cold)
    assert again.iterations == 0
    assert again.converged


def test_progress_says_where_another_solve_can_begin_also_in_lifted_coordinates() -> None:
    X, y = data()
    norm = norms.LatentGroups([[0, 1, 2], [2, 3, 4], [4, 5]])
    starts = []
    result = solve(
        X, y, norm=norm, level=1.0, observers=[lambda at: starts.append(at.warm_start())]
    )
    last = starts[-1]
    np.testing.assert_array_equal(np.sort(last.columns), result.columns)
    again = solve(X, y, norm=norm, level=1.0, warm_start=last)
    assert again.iterations == 0
    assert again.converged


def test_atoms_of_another_norm_are_not_taken_for_atoms_of_this_one() -> None:
    # Under the l1 norm an atom of the 3-support norm has a gauge up to sqrt(3): taking sum c for
    # the gauge would prove an objective that no point has.
    first = run(problem_of(norms.KSupport(3), 2.0), AtomGeneration(), stopping.RelativeGap(1e-9))
    other = problem_of(norms.L1(), 2.0)
    at = run(other, AtomGeneration(), stopping.Iterations(0), warm=first.warm_start())
    true = other.objective(at.coef, data()[0] @ at.coef)
    np.testing.assert_allclose(at.objective, true, rtol=1e-12)


@pytest.mark.parametrize("rows", [(8, 6)])
def test_paths_over_matrix_norms_start_where_the_level_before_ended(rows: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    p, q = rows
    W = rng.standard_normal((p, 2)) @ rng.standard_normal((2, q))
    X = rng.standard_normal((120, p * q))
    y = X @ W.ravel() + 0.1 * rng.standard_normal(120)
    norm = norms.TraceNorm((p, q))
    found = paths.path(X, y, norm=norm, levels=[20.0, 19.999], gap=1e-6)
    cold = solve(X, y, norm=norm, level=19.999, gap=1e-6)
    assert found.converged
    # A level next to the one before begins next to its solution.
    assert found.results[1].history[0].relative_gap < 1e-3 * cold.history[0].relative_gap
    assert found.results[1].iterations < cold.iterations
