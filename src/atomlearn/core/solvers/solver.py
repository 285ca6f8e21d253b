"""Solver: start and step. The loop, the clock and the stopping rules belong to ``solvers.run``."""

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

#: Relative gap that is proved, unless another is asked for, ...
TOLERANCE = 1e-6
#: ... in at most so many steps.
MAX_ITER = 1000
#: Share of the gap to which a step solves its restricted problem. At 0.05 nearly all of the columns
#: that a k-support norm takes in a second pass are not needed: a third goes by for nothing.
INNER_RATIO = 0.01
#: Steps without progress after which a run has stalled, where nothing new is to come.
PATIENCE = 3


@dataclass(slots=True)
class State:
    """A point with the certificate of that very point. Solvers extend it with what they carry.

    columns : (m,) int64, the columns of X that may be non-zero, no duplicates; weights : (m,)
    float64; intercept : scalar; prediction : (n_samples,) = X[:, columns] @ weights + intercept;
    certificate : objective and gap there; iteration : steps made; exhausted : the reason, once
    the solver knows that no further step of its own can change the point; patience : steps without
    progress after which the run has stalled, infinite where there is something new to try;
    smoothing : the smooth problem that the state is of, where the loss has kinks; lengths : of the
    columns, where the solver knows them; master_steps : steps (pivots) of the master so far.
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
    state_format : name of what ``saved`` gives, "" for the point and its atoms: a checkpoint goes
    on with solvers of the same format.
    """

    lifts: ClassVar[bool] = True
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


def checked_warm_start(warm: object, problem: Problem) -> WarmStart:
    """Return the warm start as int64 columns and float64 weights, or say what is wrong with it.

    Atoms of another norm are left out: their weights do not bound the gauge of this one.
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
            f"warm_start: columns must lie in [0, {n_features}), got values from "
            f"{columns.min()} to {columns.max()}; is it of a fit to other data?"
        )
    if np.unique(columns).size < columns.size:
        raise ValueError("warm_start: columns must be distinct; add up weights of one column")
    if not (np.isfinite(weights).all() and np.isfinite(warm.intercept)):
        raise ValueError("warm_start: weights and intercept must be finite; start without it")
    weights = weights.astype(np.float64, copy=False)
    parts = warm.matrix_parts
    if problem.free is not None:
        # What is free is minimized over at the penalized part of every point.
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
