"""The loop: stopping rules and their composition, observers, passes, interrupts, exhaustion."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import Callback, Counted, Progress, StoppingRule, WarmStart
from atomlearn.core.solvers.progress import Resumed, Stall
from atomlearn.designs import as_design
from atomlearn.interfaces import Solver, State
from atomlearn.losses import as_loss
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Certificate, Record, Status
from atomlearn.solvers import ColumnGeneration, PrintProgress, RunObserver, run, stopping
from atomlearn.testing.problems import Case
from tests.oracles.sums import solve_sum


def problem() -> Problem:
    return Case("logistic", "penalized", correlation=0.7, seed=1).problem(KSupport(3))


@dataclass(frozen=True)
class Scripted(Solver):
    """A solver that follows a script of (objective, gap); each step is one pass."""

    script: tuple[tuple[float, float], ...]
    interrupt_at: int = 10**9
    exhausted_at: int = 10**9
    made: list[int] = field(default_factory=list)

    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        return self._state(problem, 0)

    def step(self, problem: Problem, state: State) -> State:
        if state.iteration + 1 >= self.interrupt_at:
            raise KeyboardInterrupt
        return self._state(problem, state.iteration + 1)

    def _state(self, problem: Problem, number: int) -> State:
        self.made.append(number)
        problem.design.scores(np.ones(problem.design.shape[0]))
        objective, gap = self.script[min(number, len(self.script) - 1)]
        return State(
            columns=np.array([2, 0, 1]),
            weights=np.array([1.0 + number, 0.0, 0.5]),
            intercept=0.0,
            prediction=np.zeros(problem.design.shape[0]),
            certificate=Certificate(objective, gap, 1.0),
            iteration=number,
            exhausted=Status.STALLED if number >= self.exhausted_at else None,
        )


SCRIPT = ((10.0, 8.0), (6.0, 4.0), (5.0, 5.0), (4.0, 1.0), (3.5, 0.1), (3.4, 1e-9))


@pytest.mark.parametrize(
    ("rule", "status", "iterations"),
    [
        (stopping.RelativeGap(0.3), Status.CONVERGED, 3),
        (stopping.RelativeGap(0.25), Status.CONVERGED, 3),
        (stopping.Iterations(2), Status.ITERATION_LIMIT, 2),
        (stopping.Passes(3), Status.PASS_LIMIT, 2),
        (stopping.Seconds(0.0), Status.TIME_LIMIT, 0),
        (stopping.TargetObjective(5.5), Status.TARGET_REACHED, 2),
        (stopping.TargetObjective(5.0), Status.TARGET_REACHED, 2),
        (stopping.RelativeChange(1.0 / 6.0), Status.SMALL_CHANGE, 2),
        (stopping.RelativeChange(0.13), Status.SMALL_CHANGE, 4),
        (stopping.RelativeGap(0.3) | stopping.RelativeChange(0.2), Status.SMALL_CHANGE, 2),
        (stopping.RelativeGap(1.0) | stopping.RelativeChange(0.2), Status.CONVERGED, 0),
        (Callback(lambda progress: progress.state.iteration == 4), Status.STOPPED_BY_CALLBACK, 4),
        (
            stopping.RelativeGap(1e-12) | stopping.Iterations(3) | stopping.Passes(100),
            Status.ITERATION_LIMIT,
            3,
        ),
        (stopping.Iterations(3) | stopping.RelativeGap(0.3), Status.ITERATION_LIMIT, 3),
        (stopping.RelativeGap(0.3) | stopping.Iterations(3), Status.CONVERGED, 3),
    ],
)
def test_each_rule_stops_where_it_says(rule: StoppingRule, status: Status, iterations: int) -> None:
    result = run(problem(), Scripted(SCRIPT), rule)
    assert result.status is status
    assert len(result.history) == iterations + 1
    assert result.passes == iterations + 1
    assert [record.iteration for record in result.history] == list(range(iterations + 1))


def test_a_step_without_a_better_point_is_no_small_change() -> None:
    script = ((10.0, 8.0), (6.0, 4.0), (6.0, 4.0), (5.9, 4.0), (5.0, 1.0))
    result = run(problem(), Scripted(script), stopping.RelativeChange(0.05))
    assert len(result.history) == 4
    assert not result.converged


def test_a_limit_of_time_is_one_that_is_reached() -> None:
    at = Progress(problem(), Scripted(SCRIPT), seconds=2.0)
    assert stopping.Seconds(2.0).reason(at) is Status.TIME_LIMIT
    assert stopping.Seconds(2.5).reason(at) is None


def test_the_best_gap_is_returned_where_a_limit_cuts_the_run_short() -> None:
    """Iteration 2 has a worse gap than iteration 1, which is therefore what comes back."""
    result = run(problem(), Scripted(SCRIPT), stopping.Iterations(2))
    assert result.iterations == 1
    assert (result.objective, result.gap) == (6.0, 4.0)
    assert_array_equal(result.columns, [1, 2])
    assert_array_equal(result.weights, [0.5, 2.0])


def test_of_points_with_one_gap_the_last_is_returned() -> None:
    result = run(problem(), Scripted(((6.0, 2.0), (5.0, 2.0))), stopping.Iterations(1))
    assert result.objective == 5.0


@pytest.mark.parametrize("patience", [1, 2])
def test_nothing_left_to_minimize_is_no_progress(patience: int) -> None:
    stall, ended = Stall(), []
    for gap in (10.0, 9.0, 9.0, 9.0):
        certificate = Certificate(0.0, gap, 1.0)
        state = replace(Scripted(SCRIPT).start(problem()), certificate=certificate)
        state.patience = patience
        ended.append(stall.reason(state) is Status.STALLED)
    # A tenth off the gap is progress still.
    assert ended == [False, False, patience < 2, True]


@dataclass
class Known(RunObserver):
    """Knows a run that was cut short after so many seconds."""

    spent: float
    resumes = True

    def begin(self, problem: Problem, solver: Solver) -> Resumed:
        arrays = WarmStart(np.zeros(0, dtype=np.int64), np.zeros(0)).arrays()
        line = Record(6, 7.0, self.spent, 9.0, 5.0, 0.5, 2)
        return Resumed(arrays, 6, 7.0, self.spent, [replace(line, iteration=5), line])


def test_what_was_spent_before_counts() -> None:
    """Passes, seconds and history go on; the last line is that of the point priced again."""
    ends = stopping.Iterations(8) | stopping.Seconds(100.0)
    result = run(problem(), Scripted(SCRIPT), ends, [Known(50.0)])
    assert result.status is Status.ITERATION_LIMIT
    assert result.passes == 7 + 3
    assert 50.0 <= result.seconds < 60.0
    assert [record.iteration for record in result.history] == [5, 6, 7, 8]
    assert run(problem(), Scripted(SCRIPT), ends, [Known(150.0)]).status is Status.TIME_LIMIT


def test_what_no_state_can_be_made_of_is_refused() -> None:
    with pytest.raises(ValueError, match="no state from which Scripted can resume"):
        Resumed({}, 0, 0.0, 0.0, []).state(problem(), Scripted(SCRIPT))


def test_a_warm_start_reaches_the_solver_less_what_was_taken_off_the_targets() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), 1e3 + np.arange(20.0)
    level = Regularizer(KSupport(1), "penalized", 1.0)
    task = Problem.build(as_design(X), y, as_loss("squared"), level, fit_intercept=True)
    begun: list[float] = []

    class Noting(Scripted):
        def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
            assert warm is not None
            begun.append(warm.intercept + problem.origin)
            return super().start(problem, warm)

    warm = WarmStart(np.array([1]), np.array([0.5]), 1005.0)
    run(task, Noting(SCRIPT), stopping.Iterations(0), warm=warm)
    assert begun == [1005.0]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_interrupt_between_steps(at: int) -> None:
    result = run(problem(), Scripted(SCRIPT, interrupt_at=at), stopping.RelativeGap(1e-12))
    assert result.status is Status.INTERRUPTED
    assert len(result.history) == at
    assert result.gap == min(gap for _, gap in SCRIPT[:at])


def test_interrupt_in_an_observer() -> None:
    def observe(progress: Progress) -> None:
        if progress.state.iteration == 3:
            raise KeyboardInterrupt

    result = run(problem(), Scripted(SCRIPT), stopping.RelativeGap(1e-12), [observe])
    assert result.status is Status.INTERRUPTED
    assert result.gap == 1.0


def test_other_errors_are_not_swallowed() -> None:
    def observe(progress: Progress) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(problem(), Scripted(SCRIPT), stopping.Iterations(3), [observe])


def test_exhaustion_is_consulted_last() -> None:
    stalled = run(problem(), Scripted(SCRIPT, exhausted_at=2), stopping.RelativeGap(1e-12))
    assert stalled.status is Status.STALLED
    proved = run(problem(), Scripted(SCRIPT, exhausted_at=3), stopping.RelativeGap(0.3))
    assert proved.status is Status.CONVERGED


def test_observers_see_every_step_and_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only the observer moves."""
    seen: list[int] = []
    monkeypatch.setattr(time, "monotonic", lambda: 30.0 * len(seen))

    def slow(progress: Progress) -> None:
        seen.append(progress.state.iteration)

    result = run(problem(), Scripted(SCRIPT), stopping.Iterations(4), [slow])
    assert seen == [0, 1, 2, 3, 4]
    assert result.seconds == 0.0
    seconds = [record.seconds for record in result.history]
    assert seconds == sorted(seconds)


def test_passes_are_those_of_this_run() -> None:
    """A design that was counted before keeps counting; the result has its own share."""
    counted = Counted(problem().design)
    counted.scores(np.ones(24))
    result = run(replace(problem(), design=counted), Scripted(SCRIPT), stopping.Iterations(2))
    assert result.passes == 3
    assert counted.passes == 4


def test_print_progress() -> None:
    stream = io.StringIO()
    run(problem(), Scripted(SCRIPT), stopping.Iterations(4), [PrintProgress(stream, every=2)])
    lines = stream.getvalue().splitlines()
    assert lines[0].split()[:4] == ["step", "passes", "seconds", "objective"]
    assert [line.split()[0] for line in lines[1:]] == ["0", "2", "4"]
    assert not any("skipped" in line for line in lines)


def test_progress_is_printed_at_every_step_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    said = PrintProgress()
    progress = Progress(problem(), Scripted(SCRIPT))
    state = progress.solver.start(progress.problem)
    assert (progress.passes, progress.seconds) == (0.0, 0.0)
    for state.iteration, skipped in ((0, None), (1, 0.9)):
        progress.record(state, 0.0, 0.0, 1, skipped)
        said(progress)
    assert capsys.readouterr().err.splitlines() == [
        " step   passes   seconds      objective  relative gap  columns",
        "    0      0.0      0.00             10      8.00e-01        2",
        "    1      0.0      0.00             10      8.00e-01        2  90% skipped",
    ]


def test_results() -> None:
    result = run(
        problem(), ColumnGeneration(), stopping.RelativeGap(1e-7) | stopping.Iterations(100)
    )
    assert result.converged
    assert result.status.is_converged
    assert "proves" in str(result.status)
    assert result.coef.shape == (16,)
    assert_array_equal(np.flatnonzero(result.coef), result.columns)
    assert (np.diff(result.columns) > 0).all()
    assert result.relative_gap == result.gap / result.objective
    for status in Status:
        assert status.is_converged == (status in (Status.CONVERGED, Status.PERFECT_FIT))


def test_float32_coefficients() -> None:
    X, y, _ = Case(seed=3).data()
    single = Problem.build(
        as_design(X.astype(np.float32)),
        y,
        as_loss("squared"),
        Regularizer(KSupport(3), "squared", 2.0),
    )
    result = run(single, ColumnGeneration(), stopping.RelativeGap(1e-6) | stopping.Iterations(100))
    assert result.converged
    assert result.coef.dtype == np.float64  # what the gap is of, to the last digit
    assert result.weights.dtype == np.float64


def steps_before_the_stall(patience, merits, gaps) -> list[bool]:
    stall, said = Stall(), []
    for merit, gap in zip(merits, gaps, strict=True):
        certificate = SimpleNamespace(closable=gap)
        state = SimpleNamespace(certificate=certificate, patience=patience, merit=lambda m=merit: m)
        said.append(stall.reason(state) is Status.STALLED)
    return said


def test_a_run_has_stalled_after_as_many_steps_as_its_solver_may_need():
    ones = [1.0] * 4
    assert steps_before_the_stall(2, ones, ones) == [False, False, True, True]
    assert steps_before_the_stall(np.inf, ones, ones) == [False] * 4
    assert steps_before_the_stall(1, [4.0, 3.0, 2.0, 1.0], ones) == [False] * 4
    assert steps_before_the_stall(1, ones, [4.0, 3.0, 2.0, 1.9]) == [False, False, False, True]


def test_progress_is_relative_to_what_is_minimized():
    within, beyond = [1e20, 1e20 - 65536.0], [1e20, 1e20 - 1e6]
    assert steps_before_the_stall(1, within, [1.0, 1.0]) == [False, True]
    assert steps_before_the_stall(1, beyond, [1.0, 1.0]) == [False, False]


def test_a_point_on_the_way_is_one_of_the_problem_as_it_was_given():
    """Targets far from zero are fitted less their mean, and observers must not see that."""
    X = np.random.default_rng(3).normal(size=(20, 2))
    y, seen = 1e3 + X[:, 0], []
    solve_sum(
        X, y, level=0.1, fit_intercept=True, observers=[lambda p: seen.append(p.warm_start())]
    )
    assert_allclose(seen[-1].intercept, 1e3, atol=1.0)
