"""Every master ends when the problem's deadline has passed, with a certified point."""

from __future__ import annotations

import sys
import time
from contextvars import copy_context
from dataclasses import replace

import numpy as np
import pytest

from atomlearn import norms
from atomlearn._support import TimeIsUp
from atomlearn.core import CachedBlock, DenseBlock, objective_at
from atomlearn.core.masters.newton_system import _of_samples
from atomlearn.interfaces import Block, Deadline, Master, Norm, Solver, State
from atomlearn.losses import Multinomial, as_loss
from atomlearn.masters import (
    AcceleratedGradient,
    ModelNewton,
    ScalingNewton,
    SemismoothNewton,
    SequentialQP,
    WorkingSets,
)
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.solvers import ColumnGeneration, run, stopping

RAYS = norms.Nonnegative(norms.L1())


def hard(
    norm: Norm, loss: str, form: str = "penalized", rows: int = 300, size: int = 600
) -> Problem:
    """Correlated columns, many of them in use: no master finishes at once."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(rows, size)) + 2.0 * rng.normal(size=(rows, 1)))
    y = X[:, ::2].sum(axis=1) + rng.normal(size=rows)
    amount = 1e3 if form == "constrained" else 1e-3
    y = y if loss == "squared" else np.sign(y)
    block: Block = CachedBlock(DenseBlock(X))
    if loss == "multinomial":
        block = DenseBlock(np.asfortranarray(np.kron(X[:, : size // 3], np.eye(3))))
        y = np.eye(3)[rng.integers(0, 3, rows)].ravel()
    chosen = Multinomial(3) if loss == "multinomial" else as_loss(loss)
    return Problem.build(block, y, chosen, Regularizer(norm, form, amount))  # type: ignore[arg-type]


def pairs(size: int = 600) -> Norm:
    return norms.Groups(np.arange(size) // 2)


CASES = [
    (SemismoothNewton(), norms.KSupport(5), "squared"),
    (SemismoothNewton(), norms.L1(), "logistic"),
    (AcceleratedGradient(), norms.L1(), "squared"),
    (WorkingSets(), norms.KSupport(5), "squared"),
    (ScalingNewton(), pairs(), "squared"),
    (ScalingNewton(), pairs(), "logistic"),
    (ScalingNewton(), pairs(), "squared_hinge"),
    (ModelNewton(), norms.L1(), "multinomial"),
    (SequentialQP(), RAYS, "squared"),
    (SequentialQP(), RAYS, "logistic"),
    (ModelNewton(WorkingSets(SequentialQP(SemismoothNewton()))), norms.L1(), "multinomial"),
]
NAMES = [f"{type(master).__name__}-{type(norm).__name__}-{loss}" for master, norm, loss in CASES]


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize(("master", "norm", "loss"), CASES, ids=NAMES)
def test_after_the_deadline_the_start_comes_back_with_its_gap(
    master: Master, norm: Norm, loss: str, form: str
) -> None:
    small = pairs(60) if isinstance(norm, norms.Groups) else norm
    problem = hard(small, loss, form, rows=30, size=60)
    late = replace(problem, deadline=Deadline.after(-1.0))
    start = np.zeros(problem.design.shape[1])
    refit = master.solve(late, start, 0.0, 1e-12)
    assert refit.steps <= 1
    assert 0.0 <= refit.gap < np.inf
    assert refit.objective <= objective_at(problem, start, np.zeros(problem.y.size)) * (1 + 1e-12)
    # No point is below the bound that the gap proves.
    lower = refit.objective - refit.gap
    other = master.solve(problem, start, 0.0, 1e-3 * refit.objective)
    assert lower <= other.objective * (1 + 1e-9)


@pytest.mark.parametrize(("master", "norm", "loss"), CASES, ids=NAMES)
def test_hard_problems_end_soon_after_the_deadline(
    master: Master, norm: Norm, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seconds of the processor: other work on the same cores does not make a master late.
    monkeypatch.setattr(time, "monotonic", time.process_time)
    problem = hard(norm, loss)
    start = np.zeros(problem.design.shape[1])
    began, limit = time.process_time(), 0.2
    refit = master.solve(replace(problem, deadline=Deadline.after(limit)), start, 0.0, 0.0)
    # A matrix product and a factorization that were under way.
    assert time.process_time() - began <= 10 * limit
    assert 0.0 <= refit.gap < np.inf


PIECEWISE = [case for case in CASES if isinstance(case[0], ScalingNewton | SequentialQP)]


@pytest.mark.parametrize(("master", "norm", "loss"), PIECEWISE)
def test_a_deadline_far_away_changes_nothing(master: Master, norm: Norm, loss: str) -> None:
    """Kernels that are called piece by piece then find the same point."""
    small = pairs(60) if isinstance(norm, norms.Groups) else norm
    problem = hard(small, loss, rows=30, size=60)
    start, target = (
        np.zeros(60),
        1e-9 * objective_at(problem, np.zeros(60), np.zeros(problem.y.size)),
    )
    free = master.solve(problem, start, 0.0, target)
    timed = master.solve(replace(problem, deadline=Deadline.after(1e4)), start, 0.0, target)
    assert timed.gap <= max(target, 1.1 * free.gap)
    assert abs(timed.objective - free.objective) <= 2 * max(target, free.gap)


# --- long products, whose parts are no use ----------------------------------------------------


def test_the_current_deadline_is_the_soonest_of_the_steps_around() -> None:
    assert Deadline.current() == Deadline()
    soon, late = Deadline.after(1e4), Deadline.after(2e4)
    with late.kept():
        with soon.kept(), Deadline().kept():
            assert Deadline.current() == soon
        assert Deadline.current() == late
    assert Deadline.current() == Deadline()


@pytest.mark.parametrize("product", ["gram", "outer", "centered_gram"])
def test_a_long_product_ends_when_time_is_up(product: str) -> None:
    block = DenseBlock(np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    work = {
        "gram": lambda: block.gram(np.ones(4)),
        "outer": lambda: _of_samples(block, np.ones(3), np.arange(4)),
        "centered_gram": lambda: block.centered_gram(np.ones(4), np.ones(3)),
    }[product]
    with Deadline.after(1e4).kept():
        work()
    with Deadline.after(-1.0).kept(), pytest.raises(TimeIsUp):
        work()


class Endless(Solver):
    """Works on and on within its second step."""

    def start(self, problem: Problem, warm: object = None) -> State:
        return ColumnGeneration().start(problem)

    def step(self, problem: Problem, state: State) -> State:
        if state.iteration:
            while True:
                Deadline.current().check()
        return ColumnGeneration().step(problem, state)


def test_a_run_keeps_its_last_certified_point_where_time_ends_a_step() -> None:
    problem = hard(norms.L1(), "squared", rows=200, size=60)  # not a small one
    first = run(problem, ColumnGeneration(), stopping.Iterations(1))
    result = run(problem, Endless(), stopping.Seconds(0.05))
    assert result.status is Status.TIME_LIMIT
    assert result.iterations <= 1
    if result.iterations:
        assert result.objective == first.objective
        assert result.gap == first.gap


def test_ctrl_c_on_any_line_leaves_no_deadline_behind():
    """Else all later fits of the thread would end at once, with no word of why."""
    reached, place = [], 0

    def traced(frame, event, _):
        if event == "line" and frame.f_code.co_name == "kept":
            reached.append(frame.f_lineno)
            if len(reached) == place:
                raise KeyboardInterrupt
        return traced

    def interrupted():
        before = sys.gettrace()
        sys.settrace(traced)
        try:
            with Deadline().kept(), Deadline.after(-1.0).kept():  # as within ``drive``
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return Deadline.current()

    while len(reached) >= place:
        reached.clear()
        place += 1
        assert copy_context().run(interrupted) == Deadline(), place
    assert place > 8
