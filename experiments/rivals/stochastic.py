"""SDCA and UFO-MKL: one sample at a time, the rivals of [T] sections 8.2 and 8.6."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn.core.interfaces import Array, WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.proof import prove
from atomlearn.core.solvers.solver import Solver, State
from atomlearn.papers.fista import proximal_of

#: Entries of X that are held as rows; more of them belong to another solver.
ROW_ENTRIES = 2**27


@dataclass(slots=True)
class EpochState(State):
    """State over all columns (``columns`` is 0..p-1) after whole epochs.

    rows : X, row after row; dual : (n,) alpha; pulled : (p,) X'alpha; seen : samples so far.
    """

    rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    dual: Array = field(default_factory=lambda: np.zeros(0))
    pulled: Array = field(default_factory=lambda: np.zeros(0))
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Epochs(Solver):
    """What both share: w = argmin_w R(w) + tau/2 ||w||^2 - <pulled, w>, a sample at a time."""

    seed: int = 0

    def start(self, problem: Problem, warm: WarmStart | None = None) -> EpochState:
        """Begin at zero, with X as rows in memory: one pass."""
        name = type(self).__name__
        proximal_of(problem, name, None, 0.0)
        n_samples, n_features = problem.design.shape
        if not problem.tau or problem.fit_intercept:
            raise ValueError(
                f"{name} needs tau > 0 and no intercept, got tau={problem.tau} and "
                f"intercept={problem.fit_intercept}; use ColumnGeneration"
            )
        if n_samples * n_features > ROW_ENTRIES:
            raise ValueError(
                f"{name} holds X as rows, {n_samples} x {n_features} numbers; use ColumnGeneration"
            )
        block = problem.design.gather(np.arange(n_features))
        rows = np.ascontiguousarray(block.dense(), dtype=np.float64)
        zeros = np.zeros(n_features)
        return EpochState(
            columns=np.arange(n_features),
            weights=zeros,
            intercept=0.0,
            prediction=np.zeros(n_samples),
            certificate=prove(problem, None, zeros, np.zeros(n_samples)).certificate,
            rows=rows,
            dual=np.zeros(n_samples),
            pulled=zeros.copy(),
        )

    def step(self, problem: Problem, state: EpochState) -> EpochState:
        """Make an epoch over all samples in random order, then certify the point."""
        rng = np.random.default_rng([self.seed, state.iteration])
        # Samples change the copy: an interrupt leaves the state that was certified.
        following = replace(state, dual=state.dual.copy(), pulled=state.pulled.copy())
        for sample in rng.permutation(problem.y.size):
            following.seen += 1
            following.weights = self._sample(problem, following, int(sample))
        following.prediction = state.rows @ following.weights
        price = prove(problem, None, following.weights, following.prediction)
        following.certificate = price.certificate
        following.iteration += 1
        return following

    @abstractmethod
    def _sample(self, problem: Problem, state: EpochState, sample: int) -> Array:
        """Look at one sample; change dual and pulled of the state, return the weights."""


def _slope(problem: Problem, sample: int, z: float) -> float:
    """Return s_i loss'(y_i, z)."""
    one = slice(sample, sample + 1)
    found = problem.loss.gradient(problem.y[one], np.array([z]), problem.weight[one])
    return float(found[0])


def _weights(problem: Problem, pulled: Array) -> Array:
    """Return argmin_w R(w) + tau/2 ||w||^2 - <pulled, w>."""
    return problem.regularizer.prox_point(pulled / problem.tau, 1.0 / problem.tau).point


@dataclass(frozen=True, slots=True)
class SDCA(Epochs):
    """min f(X w) + tau/2 ||w||^2 + R(w) by proximal stochastic dual coordinate ascent, tau > 0.

    A step is an epoch: for each sample alpha_i moves toward -s_i loss'(x_i'w) by the share that the
    smoothness of the loss guarantees, and w follows from X'alpha by the proximal map of R. SGD-SLR
    of [T] is this with the logistic loss and the l1 norm. O(n p) an epoch, in Python.

    Parameters
    ----------
    seed : int
        Of the orders of the samples.

    References
    ----------
    S. Shalev-Shwartz, T. Zhang 2013, Accelerated proximal stochastic dual coordinate ascent for
    regularized loss minimization; [T] section 8.1.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import SDCA
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve_sum(X, y, norm="l1", level=1.0, tau=1.0, solver=SDCA())
    >>> result.coef.round(4).tolist()
    [1.0, 0.0, -0.5]
    """

    def _sample(self, problem: Problem, state: EpochState, sample: int) -> Array:
        x = state.rows[sample]
        smooth = problem.loss.curvature_bounds[1] * float(problem.weight[sample])
        share = 1.0 / (1.0 + smooth * float(x @ x) / problem.tau) if smooth else 1.0
        slope = _slope(problem, sample, float(x @ state.weights))
        change = share * (-slope - state.dual[sample])
        state.dual[sample] += change
        state.pulled += change * x
        return _weights(problem, state.pulled)


@dataclass(frozen=True, slots=True)
class UFOMKL(Epochs):
    """min f(X w) + tau/2 ||w||^2 + R(w) by regularized dual averaging, as UFO-MKL has it.

    The sum of all slopes so far, over the samples seen, takes the place of X'alpha: an online
    method with steps of 1/t. Orabona and Jie regularize by a (2, p) norm beside the group norm;
    here p = 2, which is the ridge term. [T] stops it after 20 epochs.

    Parameters
    ----------
    seed : int
        Of the orders of the samples.

    References
    ----------
    F. Orabona, L. Jie 2011, Ultra-fast optimization algorithm for sparse multi kernel learning,
    ICML; [T] section 8.6.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import UFOMKL
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.1])
    >>> groups, form = norms.Groups([[0, 1], [2, 3]]), {"level": 0.5, "tau": 1.0}
    >>> result = solve_sum(X, y, norm=groups, solver=UFOMKL(), max_iter=20, **form)
    >>> bool(result.relative_gap < 0.1)
    True
    """

    def _sample(self, problem: Problem, state: EpochState, sample: int) -> Array:
        x = state.rows[sample]
        state.pulled -= _slope(problem, sample, float(x @ state.weights)) * x
        return _weights(problem, state.pulled * (problem.y.size / state.seen))
