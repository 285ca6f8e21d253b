"""Watched: any solver, with a progress line a step, a time limit, and who was found when."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.errors import CommandError
from atomlearn.core.interfaces import Solver, State
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Status
from atomlearn.core.solvers.checkpoint import Checkpoint
from atomlearn.core.solvers.feature_generation import GenerationState
from atomlearn.core.solvers.observed import Observed

_SEARCHES_A_LINE = 50
#: A bound this large says nothing worth a line.
_TRIVIAL = 0.5


@dataclass(slots=True)
class Watch:
    """What is seen of the fits that go on one after the other.

    labels : names of the outputs, in the order in which they are fitted; deadline : value of
    ``clock`` after which a fit ends; searches : number of fits of a cross-validation that come
    first and are not shown; found : for each output, column -> pass that found it; checkpoint :
    folder for the state of each fit, or None.
    """

    labels: tuple[str, ...] = ("",)
    deadline: float = np.inf
    quiet: bool = False
    stream: TextIO | None = None
    clock: Callable[[], float] = time.perf_counter
    searches: int = 0
    found: list[dict[int, int]] = field(default_factory=list)
    began: float = 0.0
    checkpoint: Path | None = None

    def over(self, solver: Solver) -> Solver:
        """Return the solver, watched, and checkpointed where a folder was given."""
        watched = Watched(solver, self)
        if self.checkpoint is None:
            return watched
        return Observed(watched, (Checkpoint(self.checkpoint, many=True),))

    def start(self, state: State) -> None:
        """Note that the fit of the next output begins."""
        self.began = self.clock()
        if self.searches > 0:
            self.searches -= 1
            if self.searches % _SEARCHES_A_LINE == 0:
                self.say(f"  cross-validation: {self.searches} fits to go")
            return
        self.found.append({})
        label = self.labels[(len(self.found) - 1) % len(self.labels)]
        if label:
            self.say(f"  {label}")
        self.note(state)

    def note(self, state: State) -> None:
        """Note one step: print its line, remember new columns, end the fit after the deadline."""
        if not self.found:
            self._search()
            return
        used = state.columns[state.weights != 0]
        found = self.found[-1]
        for column in used.tolist():
            found.setdefault(column, state.iteration)
        certificate = state.certificate
        self.say(
            f"  pass {state.iteration + 1:>3}  {used.size:>7,} features  "
            f"objective {certificate.objective:<11.6g}  "
            f"{_proved(state)}  "
            f"{self.clock() - self.began:.2f} s"
        )
        if self.clock() >= self.deadline and state.exhausted is None:
            state.exhausted = Status.TIME_LIMIT

    def say(self, line: str) -> None:
        """Print one line to the stream, unless quiet."""
        if not self.quiet:
            print(line, file=self.stream or sys.stderr, flush=True)

    def _search(self) -> None:
        if self.clock() >= self.deadline:
            raise CommandError(
                "the time limit ended cross-validation before an alpha was chosen; raise "
                "--time-limit, or give --alpha"
            )


def gap_on_selected(state: State) -> float | None:
    """Return the proved relative gap over the selected features alone, where a solver knows it."""
    if not isinstance(state, GenerationState) or not state.columns.size:
        return None
    return state.restricted_gap / max(abs(state.restricted_objective), 1e-300)


def _proved(state: State) -> str:
    selected = gap_on_selected(state)
    if selected is None or state.certificate.relative_gap < _TRIVIAL:
        return f"proved gap {state.certificate.relative_gap:.1e}"
    return f"proved gap on these {selected:.1e}"


@dataclass(frozen=True, slots=True)
class Watched(Solver):
    """A solver that reports each of its steps to a Watch. The steps themselves are unchanged."""

    state_format: ClassVar[str] = "Watched"

    solver: Solver
    watch: Watch

    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        state = self.solver.start(problem, warm)
        self.watch.start(state)
        return state

    def saved(self, state: State) -> dict[str, NDArray[Any]]:
        """Return what the solver inside keeps in a checkpoint."""
        return self.solver.saved(state)

    def restored(self, problem: Problem, arrays: dict[str, NDArray[Any]]) -> State:
        """Return the state of a checkpoint of the solver inside."""
        state = self.solver.restored(problem, arrays)
        self.watch.start(state)
        return state

    def step(self, problem: Problem, state: State) -> State:
        following = self.solver.step(problem, state)
        self.watch.note(following)
        return following
