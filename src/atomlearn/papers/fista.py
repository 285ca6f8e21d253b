"""FISTA over all columns: accelerated proximal gradient, as published or with adaptive restart.

Beck, Teboulle 2009; adaptive restart of O'Donoghue, Candes 2015. For the k-support norm several
algorithms of its proximal map can be chosen by name, see section 4 of [A] (Argyriou, Foygel, Srebro
2012) and of [L] (Liu, Yuan, Zhang, Liu, Metaxas 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from atomlearn._kernels import ksupport_prox
from atomlearn.core import (
    Acceleration,
    Array,
    Iterate,
    Problem,
    Solver,
    State,
    WarmStart,
    gauge_of,
    optimal_intercept,
    pattern_of,
    prove,
)
from atomlearn.matrices.norms.spectral import lanczos
from atomlearn.matrices.scores import ScoreMatrix

#: (v, step) -> argmin_x 1/2 ||x - v||^2 + step * (tau/2 ||x||^2 + R(x))
Proximal = Callable[[Array, float], Array]

#: Algorithms of the proximal map of the squared k-support norm, in this order: BN of [L], BS (Lai
#: 2014), AS (Eriksson 2015), and the exhaustive search of [A], Algorithm 1.
NamedProx = Literal["box_norm", "binary_search", "two_step", "exhaustive"]

#: How the step 1 / L is chosen.
StepSize = Literal["fixed", "backtracking", "adaptive"]


@dataclass(slots=True)
class FISTAState(State):
    """State over all p columns (``columns`` is 0, ..., p - 1).

    Attributes
    ----------
    iterate : Iterate
        The weights w_k and the extrapolated point of the accelerated iteration.
    begun : bool
        Whether ``iterate`` has the Lipschitz constant that the rule ``step_size`` requires.
    """

    iterate: Iterate | None = None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class FISTA(Solver):
    """min_w,b f(X w + b) + tau/2 ||w||^2 + R(w) by FISTA over all columns.

    One proximal gradient iteration takes two passes over the data: X'v at the extrapolated point
    and X w at the new one. Each step size that the backtracking rejects takes one more. A step of
    the solver is a number of ``iterations``, then one pass for the certificate of the last point.
    If an intercept is fitted, it is minimized out at every point. The norm must have a proximal
    map, and the design must compute X w.

    ``FISTA(restart=False)`` is the method of Beck and Teboulle with the constant step 1 / L, to
    which [A] and [L] refer. With ``step_size="backtracking"`` it is their version with
    backtracking. The default restarts the momentum and lengthens the step again, which the papers
    do not have; it needs far fewer iterations.

    Parameters
    ----------
    prox : {None, "box_norm", "binary_search", "two_step", "exhaustive"}
        Algorithm of the proximal map. None: the default of the norm. The others are for the
        squared k-support norm: BN, BS and AS of [L], and the exhaustive search of [A].
    iterations : int
        Number of proximal gradient iterations per step, that is between two certificates.
    restart : bool
        Whether the momentum is reset to 0 when it points uphill.
    step_size : {None, "fixed", "backtracking", "adaptive"}
        The step 1 / L. "fixed": L is the Lipschitz constant of the gradient, which takes 10 to 100
        passes once. "backtracking": L begins at a lower bound, and doubles if the step is too
        long. "adaptive": L may also decrease by 10 % from one iteration to the next. None:
        "adaptive" with restart, "fixed" without.

    References
    ----------
    Beck, Teboulle 2009, A fast iterative shrinkage-thresholding algorithm, section 4 ("fixed") and
    the version with backtracking there; O'Donoghue, Candes 2015, Adaptive restart. [A] section 4
    and [L] section 4 for the k-support norm.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.0])
    >>> result = solve(X, y, alpha=0.25, fit_intercept=False, solver=solvers.FISTA())
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0, 0.0]
    """

    prox: NamedProx | None = None
    iterations: int = 10
    restart: bool = True
    step_size: StepSize | None = None

    def start(self, problem: Problem, warm: WarmStart | None = None) -> FISTAState:
        """Return the state of ``problem`` at the point ``warm``, or at 0, with its certificate.

        This takes one pass over the data, and one more if the warm start is not zero.
        """
        # Raise errors of the settings before the first pass.
        proximal_of(problem, "FISTA", self.prox, problem.tau)
        self._step_size()
        weights, linear, intercept = dense_start(problem, warm)
        prediction = linear + intercept
        proof = prove(problem, None, weights, prediction)
        # The scores of the proof are X'v - tau w, and ``Iterate`` needs X'v.
        scores = proof.scores.full() + problem.tau * weights
        iterate = Iterate.at(problem, weights, linear, intercept, scores)
        return FISTAState(
            np.arange(weights.size),
            weights,
            intercept,
            prediction,
            proof.certificate,
            iterate=iterate,
        )

    def step(self, problem: Problem, state: FISTAState) -> FISTAState:
        """Return the state after ``iterations`` proximal gradient iterations, with its certificate.

        ``state`` is the state before them, and ``problem`` is as in ``start``.
        """
        assert state.iterate is not None
        proximal = proximal_of(problem, "FISTA", self.prox, problem.tau)
        acceleration = Acceleration(
            refit_intercept=True,
            restart=self.restart,
            least_decrease=0.9 if self._step_size() == "adaptive" else 1.0,
        )
        iterate = state.iterate
        if self._step_size() == "fixed" and not state.begun:
            iterate = replace(iterate, lipschitz=lipschitz_constant(problem) or iterate.lipschitz)
        # The iterations make no certificate: it takes one more pass at the end.
        for _ in range(self.iterations):
            iterate = acceleration.iterate(problem, proximal, iterate)
        prediction = iterate.linear + iterate.intercept
        certificate = prove(problem, None, iterate.weights, prediction).certificate
        # If the weights do not change any more, the run soon ends as stalled.
        is_unchanged = np.array_equal(iterate.weights, state.weights)
        return FISTAState(
            columns=state.columns,
            weights=iterate.weights,
            intercept=iterate.intercept,
            prediction=prediction,
            certificate=certificate,
            iteration=state.iteration + 1,
            patience=2 if is_unchanged else math.inf,
            iterate=iterate,
            begun=True,
        )

    def _step_size(self) -> StepSize:
        """Return the rule for the step size; raise ValueError if the name is unknown."""
        if self.step_size is None:
            return "adaptive" if self.restart else "fixed"
        if self.step_size not in get_args(StepSize):
            raise ValueError(
                f"FISTA: step_size must be None or one of {get_args(StepSize)}, got "
                f"{self.step_size!r}"
            )
        return self.step_size


def lipschitz_constant(problem: Problem) -> float:
    """Return an upper bound, to 1 %, on the Lipschitz constant of the gradient of f in w.

    f is the loss of ``problem``. The bound is max f'' times the squared spectral norm of S^(1/2) X,
    with S the diagonal matrix of sample weights. If there is an intercept, weighted column means
    are subtracted from X, since the intercept is optimal at every point. Lanczos iterations begin
    at a random vector, so the bound fails with a probability of at most 1e-12; see ``lanczos``.
    """
    largest = problem.loss.curvature_bounds[1]
    if not math.isfinite(largest):
        raise ValueError(
            f"FISTA: the second derivative of the loss {problem.loss.name!r} has no bound, so "
            "there is no fixed step 1 / L; use step_size='backtracking'"
        )
    # Subtracting weighted means from X is the projection of S^(1/2) X orthogonal to this vector.
    root = np.sqrt(problem.weight)
    design = problem.design
    unit_weights = root / np.linalg.norm(root) if problem.fit_intercept else np.zeros_like(root)

    def dot(w: Array) -> Array:
        """Return A w, for A = S^(1/2) X, with weighted means subtracted for an intercept."""
        image = root * design.predict(w)
        return np.asarray(image - unit_weights * (unit_weights @ image))

    def transpose_dot(v: Array) -> Array:
        """Return A'v."""
        return np.array(
            design.scores(root * (v - unit_weights * (unit_weights @ v))).full(), dtype=np.float64
        )

    n_samples, n_features = design.shape

    def dense() -> Array:
        """Return A as a dense array."""
        return np.column_stack([dot(unit) for unit in np.eye(n_features)])

    # An accuracy of 0.5 % of the norm is 1 % of its square.
    scaled = ScoreMatrix((n_samples, n_features), dot, transpose_dot, dense)
    return float(largest * lanczos(scaled, 1, 0.005, residual=1.0).upper ** 2)


def dense_start(problem: Problem, warm: WarmStart | None) -> tuple[Array, Array, float]:
    """Return weights w (n_features,), X w (n_samples,) and the optimal intercept of a start.

    The start is the point of ``warm``, or w = 0 if it is None, for the data of ``problem``.
    """
    design = problem.design
    n_samples, n_features = problem.design.shape
    weights = np.zeros(n_features)
    linear = np.zeros(n_samples)
    intercept = 0.0
    if warm is not None:
        gauge = gauge_of(problem, warm.columns, warm.weights)
        weights[warm.columns] = problem.regularizer.inside(warm.weights, gauge)
        linear = design.predict(weights) if warm.columns.size else linear
        intercept = warm.intercept
    return weights, linear, optimal_intercept(problem, linear, intercept)


def proximal_of(problem: Problem, owner: str, name: NamedProx | None, tau: float) -> Proximal:
    """Return the proximal map (v, step) -> argmin_x 1/2 ||x - v||^2 + step (tau/2 ||x||^2 + R(x)).

    R is the penalty of ``problem``. ``name`` is the algorithm (see ``NamedProx``; None: the
    default), and ``owner`` the solver that error messages name. Raise if norm, form or design do
    not allow it.
    """
    if name is not None and name not in get_args(NamedProx):
        raise ValueError(
            f"{owner}: prox must be None (the norm's own) or one of {get_args(NamedProx)}, "
            f"got {name!r}"
        )
    regularizer = problem.regularizer
    norm = regularizer.norm
    if not norm.proximal:
        raise TypeError(
            f"{owner} needs a norm with a prox, {type(norm).__name__} has none; "
            "use a solver over its atoms"
        )
    if not problem.design.listable:
        raise TypeError(
            f"{owner} works on all columns and needs a design that lists them, "
            f"{type(problem.design).__name__} does not; use ColumnGeneration"
        )
    if name is None:
        return lambda v, step: regularizer.prox_point(v, step, tau).point
    # ``pattern`` is (k, whether the norm is the elastic net's), None for other norms. The named
    # algorithms are for the k-support norm only.
    pattern = pattern_of(problem)
    strength = regularizer.amount
    if pattern is None or pattern[1] or regularizer.form != "squared":
        raise ValueError(
            f"{owner}: prox={name!r} is the squared k-support norm's; got {norm!r} in form "
            f"{regularizer.form!r}. Use norms.KSupport(k) without groups and form='squared', "
            "or prox=None"
        )

    k = int(pattern[0])

    def proximal(v: Array, step: float) -> Array:
        """Return the proximal map of R plus ridge term at ``v``, for this ``step`` size."""
        # The ridge term is absorbed: prox of step (tau/2 ||x||^2 + R) at v is that of
        # step * shrink * R at shrink * v.
        shrink = 1.0 / (1.0 + step * tau)
        weight = step * shrink * strength
        return np.asarray(ksupport_prox(v * shrink, k, weight, name)[0], np.float64)

    return proximal
