"""Interface of solvers: ``start`` and ``step``. The main loop is in ``solvers.run``."""

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

#: Default of the relative duality gap to prove.
TOLERANCE = 1e-6
#: Default of the maximum number of steps of a solver.
MAX_ITER = 1000
#: Tolerance of the restricted master problem (the problem over few columns), as a fraction of the
#: duality gap over all columns. With 0.05, a fit of the k-support norm adds columns that it does
#: not need, and makes one more pass.
INNER_RATIO = 0.01
#: Number of steps without progress after which a run has stalled, if no new column can join.
PATIENCE = 3


@dataclass(slots=True)
class State:
    """An iterate of a solver with its certificate. Subclasses add the data of their solvers.

    Attributes
    ----------
    columns : (m,) int64
        The columns of X that may be non-zero, without duplicates.
    weights : (m,) float64
        Coefficients of these columns.
    intercept : float
        Unpenalized intercept.
    prediction : (n_samples,)
        X[:, columns] @ weights + intercept.
    certificate : Certificate
        Objective and duality gap of this iterate.
    iteration : int
        Number of steps so far.
    exhausted : Status, optional
        The reason to stop, once the solver knows that no further step can change the iterate.
    patience : float
        Number of steps without progress after which the run has stalled; infinite while new columns
        or atoms can still join.
    smoothing : Smoothing, optional
        The smooth problem that replaces the problem, if the loss is not differentiable.
    lengths : Lengths, optional
        Euclidean norms of the columns, if the solver has computed them.
    master_steps : int
        Number of steps (for active-set methods, pivots) of the master so far.
    proved_by : State, optional
        Another iterate, if the gap is computed from the lower bound on the optimum that it proves.
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
    proved_by: State | None = None

    def merit(self) -> float:
        """Return the merit function that the solver minimizes: F, or an upper bound on F."""
        return self.certificate.objective

    def n_active(self) -> int:
        """Return the number of columns, or terms of a factored matrix, with a non-zero weight."""
        return int(np.count_nonzero(self.weights))

    def matrix_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms whose sum is the matrix W; None if ``columns`` and ``weights`` are w."""
        return None

    def selected_gap(self) -> float | None:
        """Return the proved relative gap over the active columns only; None if not known."""
        return None

    def warm_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms of W for a warm start, with the candidate atoms of the last pass."""
        return self.matrix_parts()

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        """Return pairs (a_h, c_h > 0) with w = sum_h c_h a_h; () if the solver keeps no atoms."""
        return ()

    def warm_start(self) -> WarmStart:
        """Return this point, with its atoms and matrix terms, as the start of another solve."""
        support = np.flatnonzero(self.weights)
        return WarmStart(
            self.columns[support],
            self.weights[support],
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
    """An iterative algorithm. The solver holds only settings; its ``State`` holds the iterate.

    Attributes
    ----------
    lifts : bool
        Whether the solver is given the lifted coordinates u, w = L u, of a lifted norm (latent
        groups, unions). Solvers over atoms work on the features.
    state_format : str
        Name of the format of ``saved``; "" means columns, weights, intercept and atoms. A
        checkpoint can only be resumed by a solver of the same format.
    """

    lifts: ClassVar[bool] = True
    state_format: ClassVar[str] = ""

    @abstractmethod
    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        """Return the initial state of ``problem`` with its certificate, at ``warm`` or at w = 0."""

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> State:
        """Return the state after ``state``, with the certificate of the new iterate.

        ``problem`` is the problem of ``start``; its deadline may differ from step to step.
        """

    def moved(self, problem: Problem, state: Any) -> State:
        """Return the state of the same iterate for a ``problem`` whose loss changed slightly.

        ``SmoothedSteps`` changes the loss this way. ``state.certificate`` is an approximation: it
        was computed for the loss before the change. By default the new certificate costs one pass
        over the data.
        """
        return self.start(problem, state.warm_start())

    def saved(self, state: Any) -> Arrays:
        """Return the arrays of ``state`` that a checkpoint stores: the iterate, and any atoms."""
        return WarmStart(
            state.columns, state.weights, state.intercept, atoms=state.parts()
        ).arrays()

    def restored(self, problem: Problem, arrays: Arrays) -> State:
        """Return the state of ``problem`` at the point of ``arrays``, with a new certificate.

        ``arrays`` are those that ``saved`` returned; the certificate costs one pass over the data.
        """
        return self.start(problem, WarmStart.of_arrays(arrays))


def checked_warm_start(warm: object, problem: Problem) -> WarmStart:
    """Return the warm start with int64 columns and float64 weights; raise if it is not valid.

    ``warm`` is the initial point of ``problem`` that the user gave. Atoms of a different norm are
    dropped, because their weights do not bound the gauge of the problem's norm. The coefficients of
    unpenalized columns are dropped too, because the loss fits them.
    """
    if not isinstance(warm, WarmStart):
        raise TypeError(
            "warm_start must be a Result or a WarmStart(columns, weights, intercept), got "
            f"{type(warm).__name__}"
        )
    # Check types, shapes and values of the columns and their weights.
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
        # The loss itself fits the coefficients of unpenalized columns. Among the terms of a matrix,
        # these are the term without a norm.
        others = ~np.isin(columns, problem.free)
        columns = columns[others]
        weights = weights[others]
        parts = None if parts is None else tuple(part for part in parts if part.norm is not None)
    # Keep the atoms only if they are atoms of the problem's norm. A warm start that names no norm
    # is trusted.
    norm = problem.regularizer.norm
    keeps_atoms = not warm.atoms or warm.norm is None or warm.norm is norm or warm.norm == norm
    return replace(
        warm,
        columns=columns,
        weights=weights,
        intercept=float(warm.intercept),
        atoms=warm.atoms if keeps_atoms else (),
        matrix_parts=parts,
    )
