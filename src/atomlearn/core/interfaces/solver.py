"""Solver: start and step. The loop, the clock and the stopping rules belong to ``solvers.run``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.norm import Atom, Norm

if TYPE_CHECKING:
    from atomlearn.core.problem.problem import Problem
    from atomlearn.core.problem.result import Certificate, MatrixPart, Status

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


@dataclass(slots=True)
class State:
    """A point with the certificate of that very point. Solvers extend it with what they carry.

    columns : (m,) int64, the columns of X that may be non-zero, no duplicates; weights : (m,)
    float64; intercept : scalar; prediction : (n_samples,) = X[:, columns] @ weights + intercept;
    certificate : objective and gap there; iteration : steps made; exhausted : the reason, once
    the solver knows that no further step of its own can change the point.
    """

    columns: Columns
    weights: Array
    intercept: float
    prediction: Array
    certificate: Certificate
    iteration: int = 0
    exhausted: Status | None = None

    def n_active(self) -> int:
        """Return the number of columns, or of terms of a factored point, that carry weight."""
        return int(np.count_nonzero(self.weights))

    def matrix_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of a matrix; None where ``columns`` and ``weights`` are all of w."""
        return None

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


@dataclass(slots=True)
class WarmStart:
    """Where to begin: columns with weights, and an intercept. Empty means from zero.

    lifted : the lifted coordinates and weights of an earlier result, for norms with latent parts
    (their sum is w; without them each feature goes to the first set that has it).
    atoms : w as a sum of atoms *of the very norm of the problem to solve*, where they are known:
    solvers over atoms take sum c for a bound on the gauge, so atoms of another norm would make
    their certificate wrong. Empty is always right.
    norm : the norm whose atoms these are; ``run`` leaves them out for a problem of another norm.
    None: the caller vouches for them.
    matrix_parts : the terms of an earlier fit with the same kinds of matrix norms, in their order.
    """

    columns: Columns
    weights: Array
    intercept: float = 0.0
    lifted: tuple[Columns, Array] | None = None
    atoms: tuple[tuple[Atom, float], ...] = ()
    matrix_parts: tuple[MatrixPart, ...] | None = None
    norm: Norm | None = None


class Solver(ABC):
    """An algorithm: immutable settings here, everything that changes in its State.

    lifts : whether problems whose norm is lifted (latent groups, unions) reach the solver in their
    lifted coordinates; solvers over atoms work on the features themselves.
    """

    lifts: ClassVar[bool] = True

    @abstractmethod
    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        """Return the state of the warm start (or of zero), certificate included."""

    @abstractmethod
    def step(self, problem: Problem, state: State) -> State:
        """Return the next state; its certificate is of its own point."""
