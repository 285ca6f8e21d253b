"""What a run promises beside its point: time limits, deadlines, and warm starts in all parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from atomlearn import norms
from atomlearn._support import Work
from atomlearn.core import Progress, objective_at
from atomlearn.designs import as_design
from atomlearn.interfaces import Deadline, Norm, Solver, WarmStart
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.solvers import AtomGeneration, ColumnGeneration, RunObserver, run, stopping
from atomlearn.testing.tolerances import ORACLE
from tests.oracles.sums import solve_sum


def data(seed: int = 0, n: int = 40, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(n)


def problem_of(norm: Norm, amount: float, form: str = "penalized") -> Problem:
    X, y = data()
    regularizer = Regularizer(norm, form, amount)  # type: ignore[arg-type]
    return Problem.build(as_design(X), y, as_loss("squared"), regularizer)


def test_a_deadline_passes_once_its_moment_has_come() -> None:
    never, gone, ahead = Deadline(), Deadline.after(-1.0), Deadline.after(1e6)
    assert (never.passed, gone.passed, ahead.passed) == (False, True, False)
    assert never.left == np.inf
    assert gone.left == 0.0
    assert 0 < ahead.left <= 1e6
    assert never.sooner(ahead) is ahead
    assert ahead.sooner(gone) is gone


def test_a_deadline_of_steps_passes_once_they_are_used_and_not_by_being_asked() -> None:
    steps = Deadline(work=Work(2))
    assert not any(steps.passed for _ in range(10))
    assert [steps.use_step() for _ in range(3)] == [False, False, True]
    assert steps.passed
    assert steps.exhausted
    assert not Deadline().use_step()


@dataclass(frozen=True)
class AskingForTheTime(Solver):
    """Column generation that notes which deadline its problems carry."""

    seen: list[Deadline]

    def start(self, problem, warm=None):  # type: ignore[no-untyped-def]
        self.seen.append(problem.deadline)
        return ColumnGeneration(batch=10).start(problem, warm)

    def step(self, problem, state):  # type: ignore[no-untyped-def]
        self.seen.append(problem.deadline)
        return ColumnGeneration(batch=10).step(problem, state)


def test_the_time_limit_reaches_the_problem_as_its_deadline() -> None:
    X, y = data()
    solver = AskingForTheTime([])
    solve_sum(X, y, level=0.5, solver=solver)
    assert all(deadline.left == np.inf for deadline in solver.seen)
    solver.seen.clear()
    solve_sum(X, y, level=0.5, solver=solver, time_limit=60.0)
    assert all(0 < deadline.left <= 60.0 for deadline in solver.seen)


def test_time_of_observers_does_not_count_against_the_deadline() -> None:
    X, y = data()
    solver = AskingForTheTime([])

    def slow(progress: Progress) -> None:
        moment = Deadline.after(0.02)
        while not moment.passed:
            pass

    solve_sum(X, y, level=0.5, solver=solver, time_limit=60.0, observers=[slow])
    ends = [deadline.at for deadline in solver.seen]
    assert len(ends) > 1
    assert all(later - sooner >= 0.02 for sooner, later in pairwise(ends))


def test_a_solve_out_of_time_returns_its_first_point_with_its_gap() -> None:
    X, y = data()
    result = solve_sum(X, y, level=0.01, time_limit=1e-9)
    assert result.status is Status.TIME_LIMIT
    assert result.iterations == 0
    assert np.isfinite(result.gap)
    with pytest.raises(ValueError, match="time_limit must be positive"):
        solve_sum(X, y, level=0.01, time_limit=0.0)


def test_a_deadline_of_the_problem_itself_ends_the_run() -> None:
    problem = replace(problem_of(norms.L1(), 0.01), deadline=Deadline.after(-1.0))
    result = run(problem, ColumnGeneration(), stopping.RelativeGap(1e-9))
    assert result.status is Status.TIME_LIMIT


@pytest.mark.parametrize("solver", [None, AtomGeneration()])
def test_a_result_starts_another_solve_where_it_ended(solver: Solver | None) -> None:
    X, y = data()
    norm = norms.KSupport(3)
    cold = solve_sum(X, y, norm=norm, level=2.0, solver=solver, tol=1e-9)
    again = solve_sum(X, y, norm=norm, level=2.0, solver=solver, tol=1e-8, warm_start=cold)
    assert again.iterations == 0
    assert again.converged


def test_atoms_of_another_norm_are_not_taken_for_atoms_of_this_one() -> None:
    # Under the l1 norm an atom of the 3-support norm has a gauge up to sqrt(3): taking sum c for
    # the gauge would prove an objective that no point has.
    first = run(problem_of(norms.KSupport(3), 2.0), AtomGeneration(), stopping.RelativeGap(1e-9))
    other = problem_of(norms.L1(), 2.0)
    at = run(other, AtomGeneration(), stopping.Iterations(0), warm=first.warm_start())
    true = objective_at(other, at.coef, data()[0] @ at.coef)
    np.testing.assert_allclose(at.objective, true, rtol=1e-12)


@pytest.mark.parametrize("solver", [ColumnGeneration(batch=10), AtomGeneration()])
def test_the_first_point_has_the_best_intercept_wherever_it_starts(solver: Solver) -> None:
    assert_starts_with_the_best_intercept(solver)


def assert_starts_with_the_best_intercept(solver: Solver) -> None:
    X, y = data()
    far = WarmStart(np.zeros(0, dtype=np.int64), np.zeros(0), 1e3)
    first = solve_sum(
        X, y, level=1.0, fit_intercept=True, max_iter=0, warm_start=far, solver=solver
    )
    assert first.iterations == 0
    np.testing.assert_allclose(first.intercept, y.mean())
    np.testing.assert_allclose(first.objective, 0.5 * np.sum((y - y.mean()) ** 2))


def test_a_fit_eleven_digits_below_the_loss_at_zero_is_still_proved() -> None:
    """Only an objective at the square of the rounding errors is as good as zero."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20)
    result = solve_sum(X, y, level=1e-10, tol=1e-3)
    assert result.converged
    assert result.objective < 1e-10 * 0.5 * float(y @ y)


def test_a_nearly_exact_fit_is_not_taken_for_a_perfect_one() -> None:
    """Its optimum is far above what rounding leaves of the loss at zero, whatever is proved."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X @ np.ones(5) + 1e-7 * rng.normal(size=40)
    result = solve_sum(X, y, level=1e-13, tol=0.1, form="squared", norm="l2")
    assert result.status is not Status.PERFECT_FIT
    stacked = np.vstack([X, np.sqrt(1e-13) * np.eye(5)])
    residual = np.append(y, np.zeros(5))
    residual -= stacked @ np.linalg.lstsq(stacked, residual, rcond=None)[0]
    np.testing.assert_allclose(result.objective, 0.5 * residual @ residual, rtol=ORACLE)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize(
    ("norm", "tau"), [(norms.L1(), 0.7), (norms.KSupport(3), 0.7), (norms.L2(), 0.0)]
)
def test_the_jacobian_of_the_proximal_map_is_its_derivative(
    norm: Norm, form: str, tau: float
) -> None:
    regularizer = Regularizer(norm, form, 0.8)  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    v, direction = 3.0 * rng.standard_normal(8), rng.standard_normal(8)
    h = 1e-6
    after, before = (
        regularizer.prox_point(v + sign * h * direction, 0.9, tau).point for sign in (1, -1)
    )
    jacobian = regularizer.prox_point(v, 0.9, tau).jacobian()
    np.testing.assert_allclose(jacobian.apply(direction), (after - before) / (2 * h), atol=1e-6)


def test_a_summary_never_prints_whole_arrays() -> None:
    X, y = data()
    result = solve_sum(X, y, level=0.1, fit_intercept=True)
    text = str(result)
    assert len(text.splitlines()) <= 10
    assert str(result.status) in text
    assert f"{result.columns.size:,}" in text
    assert len(repr(result)) < 300


def test_a_result_predicts_what_it_fitted() -> None:
    assert_predicts_what_it_fitted(norms.L1())


def assert_predicts_what_it_fitted(norm: Norm) -> None:
    X, y = data()
    result = solve_sum(X, y, norm=norm, level=1.0, fit_intercept=True)
    np.testing.assert_allclose(result.predict(X), X @ result.coef + result.intercept, atol=1e-12)
    with pytest.raises(ValueError, match="60 columns"):
        result.predict(X[:, :7])


def test_observers_are_told_of_begin_and_end() -> None:
    X, y = data()
    told: list[str] = []

    class Telling(RunObserver):
        def begin(self, problem: Problem, solver: Solver) -> None:
            told.append("begin")

        def __call__(self, progress: Progress) -> None:
            told.append("step")

        def end(self, progress: Progress) -> None:
            told.append("end")

    result = solve_sum(X, y, level=0.5, observers=[Telling()])
    assert told == ["begin", *["step"] * (result.iterations + 1), "end"]
