"""Solver: start and step. The loop, the clock and the stopping rules belong to ``solvers.run``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Arrays, Atom, Columns, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.interfaces.factored import MatrixPart
from atomlearn.core.problem.problem import Problem


@dataclass(slots=True)
class State:
    """A point with the certificate of that very point. Solvers extend it with what they carry.

    columns : (m,) int64, the columns of X that may be non-zero, no duplicates; weights : (m,)
    float64; intercept : scalar; prediction : (n_samples,) = X[:, columns] @ weights + intercept;
    certificate : objective and gap there; iteration : steps made; exhausted : the reason, once
    the solver knows that no further step of its own can change the point; patience : steps without
    progress after which the run has stalled, infinite where there is something new to try;
    smoothing : the smooth problem that the state is of, where the loss has kinks; lengths : of the
    columns, where the solver knows them.
    """

    columns: Columns
    weights: Array
    intercept: float
    prediction: Array
    certificate: Certificate
    iteration: int = 0
    exhausted: Status | None = None
    patience: float = math.inf
    smoothing: Any = None
    lengths: Any = None

    def merit(self) -> float:
        """Return what the steps of the solver minimise: F here, unless it is a bound of F."""
        return self.certificate.objective

    def n_active(self) -> int:
        """Return the number of columns, or of terms of a factored point, that carry weight."""
        return int(np.count_nonzero(self.weights))

    def matrix_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of a matrix; None where ``columns`` and ``weights`` are all of w."""
        return None

    def selected_gap(self) -> float | None:
        """Return the proved relative gap over the active columns alone, where it is known apart."""
        return None

    def warm_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of a matrix with what the last pass says may enter them next."""
        return self.matrix_parts()

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        """Return atoms a_h with weights c_h > 0, w = sum c_h a_h, where the solver knows them."""
        return ()

    def warm_start(self) -> WarmStart:
        """Return this point as the place where another solve can begin, in all its parts."""
        used = np.flatnonzero(self.weights)
        return WarmStart(
            self.columns[used],
            self.weights[used],
            float(self.intercept),
            atoms=self.parts(),
            matrix_parts=self.matrix_parts(),
        )

    def check(self) -> None:
        """Raise AssertionError where an invariant fails (tests and debugging)."""
        assert self.columns.shape == self.weights.shape
        assert np.unique(self.columns).size == self.columns.size
        assert np.isfinite(self.weights).all()
        assert np.isfinite(self.prediction).all()


class Solver(ABC):
    """An algorithm: immutable settings here, everything that changes in its State.

    lifts : whether problems whose norm is lifted (latent groups, unions) reach the solver in their
    lifted coordinates; solvers over atoms work on the features themselves.
    observers : those that the solver brings to each of its runs.
    state_format : name of what ``saved`` gives, "" for the point and its atoms: a checkpoint goes
    on with solvers of the same format.
    """

    lifts: ClassVar[bool] = True
    observers: ClassVar[tuple[Any, ...]] = ()
    state_format: ClassVar[str] = ""

    @abstractmethod
    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        """Return the state of the warm start (or of zero), certificate included."""

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> State:
        """Return the state after one that this solver made; its certificate is of its own point."""

    def moved(self, problem: Problem, state: Any) -> State:
        """Return the state of the same point in a problem with a slightly different loss.

        ``state.certificate`` is about what it will be. One pass, unless the solver knows better.
        """
        return self.start(problem, state.warm_start())

    def saved(self, state: Any) -> Arrays:
        """Return what a state is made of, for a checkpoint: its point, and its atoms if any."""
        return WarmStart(
            state.columns, state.weights, state.intercept, atoms=state.parts()
        ).arrays()

    def restored(self, problem: Problem, arrays: Arrays) -> State:
        """Return the state that was saved, its certificate computed anew."""
        return self.start(problem, WarmStart.of_arrays(arrays))
