"""Solver: start and step. ``solvers.run`` has the loop, the clock and the stopping rules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Arrays, Atom, Columns, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.interfaces.factored import MatrixPart
from atomlearn.core.problem.problem import Problem

#: Default of the relative gap to prove.
TOLERANCE = 1e-6
#: Default of the most steps of a solver.
MAX_ITER = 1000
#: Share of the gap to which a step solves its restricted problem. At 0.05 a k-support norm does not
#: need most of the columns that enter in a second pass, and takes a third one.
INNER_RATIO = 0.01
#: Steps without progress after which a run has stalled, if nothing new can enter.
PATIENCE = 3


@dataclass(slots=True)
class State:
    """A point with its certificate. Subclasses add the data of their solvers.

    Attributes
    ----------
    columns : (m,) int64
        The columns of X that may be non-zero, without duplicates.
    weights : (m,) float64
    intercept : float
    prediction : (n_samples,)
        X[:, columns] @ weights + intercept.
    certificate : Certificate
        Objective and gap of this point.
    iteration : int
        Steps so far.
    exhausted : Status, optional
        The reason, once the solver knows that no further step can change the point.
    patience : float
        Steps without progress after which the run has stalled; infinite if there is something new
        to try.
    smoothing : Smoothing, optional
        The smooth problem of the state, if the loss has kinks.
    lengths : Lengths, optional
        Of the columns, if the solver knows them.
    master_steps : int
        Steps (pivots) of the master so far.
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
    master_steps: int = 0

    def merit(self) -> float:
        """Return the value that the solver minimizes: F, or a bound on F."""
        return self.certificate.objective

    def n_active(self) -> int:
        """Return the number of columns, or of terms of a factored point, that carry weight."""
        return int(np.count_nonzero(self.weights))

    def matrix_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of a matrix; None if ``columns`` and ``weights`` are all of w."""
        return None

    def selected_gap(self) -> float | None:
        """Return the proved relative gap over the active columns only; None if not known."""
        return None

    def warm_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of a matrix with the candidates of the last pass."""
        return self.matrix_parts()

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        """Return atoms a_h with weights c_h > 0, w = sum c_h a_h, if the solver has them."""
        return ()

    def warm_start(self) -> WarmStart:
        """Return this point, with all its parts, as the start of another solve."""
        used = np.flatnonzero(self.weights)
        return WarmStart(
            self.columns[used],
            self.weights[used],
            float(self.intercept),
            atoms=self.parts(),
            matrix_parts=self.matrix_parts(),
        )

    def check(self) -> None:
        """Raise AssertionError if an invariant fails (tests and debugging)."""
        assert self.columns.shape == self.weights.shape
        assert np.unique(self.columns).size == self.columns.size
        assert np.isfinite(self.weights).all()
        assert np.isfinite(self.prediction).all()


class Solver(ABC):
    """An algorithm: its settings never change, and its State has everything that does.

    Attributes
    ----------
    lifts : bool
        Whether the solver gets problems with a lifted norm (latent groups, unions) in their lifted
        coordinates. Solvers over atoms work on the features.
    state_format : str
        Name of the format of ``saved``, "" for the point and its atoms. A checkpoint resumes with
        solvers of the same format.
    """

    lifts: ClassVar[bool] = True
    state_format: ClassVar[str] = ""

    @abstractmethod
    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        """Return the state of the warm start (or of zero) with its certificate."""

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> State:
        """Return the state after ``state``, a state of this solver, with the new certificate."""

    def moved(self, problem: Problem, state: Any) -> State:
        """Return the state of the same point in a problem with a slightly different loss.

        ``state.certificate`` is near the new one. Takes one pass, unless the solver overrides it.
        """
        return self.start(problem, state.warm_start())

    def saved(self, state: Any) -> Arrays:
        """Return the parts of a state for a checkpoint: its point, and its atoms if any."""
        return WarmStart(
            state.columns, state.weights, state.intercept, atoms=state.parts()
        ).arrays()

    def restored(self, problem: Problem, arrays: Arrays) -> State:
        """Return the saved state with a new certificate."""
        return self.start(problem, WarmStart.of_arrays(arrays))


def checked_warm_start(warm: object, problem: Problem) -> WarmStart:
    """Return the warm start as int64 columns and float64 weights; raise if it is not valid.

    The result has no atoms of another norm: their weights do not bound the gauge of this one.
    """
    if not isinstance(warm, WarmStart):
        raise TypeError(
            "warm_start must be a Result or a WarmStart(columns, weights, intercept), got "
            f"{type(warm).__name__}"
        )
    n_features = problem.design.shape[1]
    columns = np.asarray(warm.columns)
    weights = np.asarray(warm.weights)
    if columns.dtype.kind not in "iu" and columns.size:
        raise TypeError(
            f"warm_start: columns must be whole numbers, got {columns.dtype}; use np.flatnonzero"
        )
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"warm_start: weights must be real numbers, got {weights.dtype}")
    if columns.ndim != 1 or columns.shape != weights.shape:
        raise ValueError(
            "warm_start: columns and weights must be vectors of one length, got shapes "
            f"{columns.shape} and {weights.shape}"
        )
    columns = columns.astype(np.int64, copy=False)
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
        raise ValueError(
            f"warm_start: columns must be in [0, {n_features}), got values from "
            f"{columns.min()} to {columns.max()}; is it of a fit to other data?"
        )
    if np.unique(columns).size < columns.size:
        raise ValueError("warm_start: columns must be distinct; add up weights of one column")
    if not (np.isfinite(weights).all() and np.isfinite(warm.intercept)):
        raise ValueError("warm_start: weights and intercept must be finite; start without it")
    weights = weights.astype(np.float64, copy=False)
    parts = warm.matrix_parts
    if problem.free is not None:
        # The penalized part of a point determines its free part.
        others = ~np.isin(columns, problem.free)
        columns = columns[others]
        weights = weights[others]
        parts = None if parts is None else tuple(part for part in parts if part.norm is not None)
    norm = problem.regularizer.norm
    legal = not warm.atoms or warm.norm is None or warm.norm is norm or warm.norm == norm
    return replace(
        warm,
        columns=columns,
        weights=weights,
        intercept=float(warm.intercept),
        atoms=warm.atoms if legal else (),
        matrix_parts=parts,
    )
