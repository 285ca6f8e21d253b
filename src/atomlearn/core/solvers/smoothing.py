"""SmoothedSteps: nonsmooth losses, solved by a series of smooth problems, with exact gaps.

With f(z) = max over u of <u, z> - f*(u), a loss f with kinks is replaced by

    f_k(z) = max over u of  <u, z> - f*(u) - width/2 sum_i s_i (u_i / s_i - c_i)^2,

where s are the sample weights, and c is the center of the quadratic term. f_k is smooth: it is the
loss ``smoothed(width)`` with the targets y - width c. If c is the dual point u / s of the previous
smooth problem, then solving the problem of f_k is a step of the proximal point method on the dual.
If f is piecewise linear, the method ends after a finite number of steps for any width. Every dual
point of f_k is in the domain of f*. So the scores of one pass over the data give a duality gap for
f. [Rockafellar 1976]
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn._support import growth
from atomlearn.core.interfaces import EPS, Array, Arrays, Loss, WarmStart
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.losses.free_columns import plain_loss
from atomlearn.core.problem.problem import (
    Problem,
    loss_value,
    negative_gradient,
    negligible_objective,
    optimal_intercept,
)
from atomlearn.core.problem.proof import certify, rounding_bound
from atomlearn.core.solvers.solver import Solver, State

#: The first width, in units of the mean loss of the best constant prediction. Problems with large
#: width are easy, those with small width are close to the exact one. The value was tuned on 40
#: problems of size 100 x 300.
FIRST = 0.1
#: Factor from one width to the next.
FACTOR = 0.3
#: The next smooth problem begins when the duality gap of the current one is this share of the gap
#: for f: the remaining gap for f is due to the smoothing.
ENOUGH = 0.1
#: After this number of successive smooth problems without a smaller exact gap, only rounding keeps
#: the gap open.
PATIENCE = 12


@dataclass(frozen=True, slots=True)
class Smoothing:
    """A smooth problem that replaces the nonsmooth one for some steps, and the progress made on it.

    Attributes
    ----------
    loss : Loss
        The smooth loss f_k.
    y : (n_samples,)
        Its targets: y - width c for the original targets y and the center c.
    width : float
        Weight of the quadratic term; the smaller it is, the closer f_k is to f.
    certificate : Certificate, optional
        Objective and duality gap of the state in the smooth problem.
    gap : float
        The smallest duality gap of the nonsmooth problem so far.
    idle : int
        Number of smooth problems that ended since ``gap`` last fell.
    dual : (n_samples,), optional
        The dual point that proves the gap of the nonsmooth problem at the state.
    """

    loss: Loss
    y: Array
    width: float
    certificate: Certificate | None = None
    gap: float = math.inf
    idle: int = 0
    dual: Array | None = None

    def of(self, problem: Problem) -> Problem:
        """Return ``problem`` with the smooth loss and its shifted targets in place of its own."""
        return replace(problem, loss=self.loss, y=self.y)

    def following(self, problem: Problem, dual: Array, factor: float) -> Smoothing:
        """Return the smooth problem that follows this one in the proximal point method.

        ``problem`` has the nonsmooth loss. The center c of the next quadratic term is the dual
        point u = -``dual``, divided by the sample weights. The width is multiplied by ``factor``.
        """
        weight = problem.weight
        center = np.divide(-dual, weight, out=np.zeros_like(dual), where=weight > 0.0)
        width = self.width * factor
        loss = problem.loss.smoothed(width)
        assert loss is not None
        return Smoothing(loss, problem.y - width * center, width, None, self.gap, self.idle + 1)


@dataclass(frozen=True, slots=True)
class SmoothedSteps(Solver):
    """The steps of another solver on smooth problems, for a loss that is ``smoothed``.

    Not for direct use: ``run`` uses it if the loss has kinks.

    Parameters
    ----------
    inner : Solver
        Makes the steps.

    References
    ----------
    R. T. Rockafellar 1976, doi:10.1287/moor.1.2.97.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> fit = solve(np.eye(3), y, loss="quantile", alpha=0.1, fit_intercept=False)
    >>> fit.coef.round(6).tolist()
    [1.0, 2.0, 4.0]
    """

    inner: Solver

    @property
    def state_format(self) -> str:  # type: ignore[override]
        """The format in which the inner solver stores its states."""
        return self.inner.state_format

    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        """Return the first state of the inner solver, on the first smooth problem.

        ``problem`` has the nonsmooth loss, and the state's certificate is for it; ``warm`` is the
        initial point, w = 0 if it is None.
        """
        smoothing = self._first_smoothing(problem)
        return self._certified(problem, self.inner.start(smoothing.of(problem), warm), smoothing)

    def step(self, problem: Problem, state: Any) -> State:
        """Return the state after one step of the inner solver, with the gap for the nonsmooth loss.

        ``problem`` has the nonsmooth loss; ``state.smoothing`` is the smooth problem of the step.
        """
        smoothing: Smoothing = state.smoothing
        assert smoothing.certificate is not None
        iteration = state.iteration
        # The inner solver sees the certificate for its smooth problem, and no reason to stop. It
        # gets a copy, as the run may return ``state`` with its exact certificate.
        inner_state = copy.copy(state)
        inner_state.certificate = smoothing.certificate
        inner_state.exhausted = None
        following = self.inner.step(smoothing.of(problem), inner_state)
        following.iteration = iteration + 1
        return self._certified(problem, following, smoothing)

    def restored(self, problem: Problem, arrays: Arrays) -> State:
        """Return the state that the inner solver restores, on the first smooth problem.

        ``problem`` has the nonsmooth loss; ``arrays`` are those that ``saved`` returned.
        """
        smoothing = self._first_smoothing(problem)
        return self._certified(
            problem, self.inner.restored(smoothing.of(problem), arrays), smoothing
        )

    def _first_smoothing(self, problem: Problem) -> Smoothing:
        """Return the first smooth problem for a nonsmooth ``problem``.

        Its width is FIRST times the mean loss of the best constant prediction (1.0 if that loss is
        0).
        """
        flat = np.zeros(problem.y.size)
        loss_of_constant = loss_value(problem, flat, optimal_intercept(problem, flat))
        width = FIRST * loss_of_constant / float(problem.weight.sum()) or 1.0
        loss = problem.loss.smoothed(width)
        assert loss is not None
        return Smoothing(loss, problem.y, width)

    def _certified(self, problem: Problem, state: State, smoothing: Smoothing) -> State:
        """Return ``state`` with its certificate for the nonsmooth loss and the next smooth problem.

        ``problem`` has the nonsmooth loss. ``smoothing`` is the smooth problem in which ``state``
        is a point. The next smooth problem is a new one if the inner solver has solved
        ``smoothing`` well enough, or is stuck.
        """
        # 1. Certify the point for both losses; they share the dual vector v.
        smooth = smoothing.of(problem)
        surrogate = state.certificate
        v = negative_gradient(smooth, state.prediction)
        exact = _exact_certificate(problem, state, v)
        # 2. Decide whether this smooth problem is done. Its gap includes a bound on rounding
        # errors, which no step reduces. This bound is larger for small widths, because slopes are
        # residuals divided by the width. If the steps are stuck at this bound, the next width is
        # larger again. The patience is finite if no new column can join.
        sufficient = max(ENOUGH * exact.gap, 2.0 * surrogate.rounding)
        previous_gap = math.inf if smoothing.certificate is None else smoothing.certificate.gap
        stuck = (
            surrogate.gap > sufficient
            and surrogate.gap > 0.98 * previous_gap
            and state.patience < math.inf
        )
        done = surrogate.gap <= sufficient or stuck or state.exhausted is not None
        improves = exact.gap <= 0.9 * smoothing.gap
        smoothing = replace(smoothing, certificate=surrogate, gap=min(smoothing.gap, exact.gap))
        if improves:
            smoothing = replace(smoothing, idle=0)
        # 3. Change to the next smooth problem. Its objective at the same point differs by the
        # change of the loss, so the inner solver can continue without a pass over the data. It
        # takes its tolerance from a gap: the exact one is used, as the new one is not known.
        if done and exact.gap > 0.0:
            following = smoothing.following(problem, v, 1.0 / FACTOR if stuck else FACTOR)
            rescaled = following.of(problem)
            iteration = state.iteration
            state.certificate = replace(
                surrogate,
                objective=surrogate.objective
                + loss_value(rescaled, state.prediction)
                - loss_value(smooth, state.prediction),
                gap=exact.gap,
            )
            state = self.inner.moved(rescaled, state)
            state.iteration = iteration
            smoothing = replace(following, certificate=state.certificate)
        # 4. Tell the run whether it may stop, and show it the exact certificate only.
        perfect = exact.objective <= negligible_objective(problem)
        state.exhausted = Status.PERFECT_FIT if perfect else None
        state.patience = 3 if smoothing.idle >= PATIENCE else math.inf
        state.certificate = exact
        state.smoothing = replace(smoothing, dual=v)
        return state


def _exact_certificate(problem: Problem, state: State, v: Array) -> Certificate:
    """Return the certificate for the nonsmooth loss at a point of the smooth problem.

    ``problem`` has the nonsmooth loss, and ``state`` holds the point. No pass over the data is
    needed, since both problems share the dual vector ``v`` (n_samples,) and its polar. The gap
    includes bounds on rounding errors.
    """
    certificate = state.certificate
    prediction = state.prediction
    assert certificate.terms is not None
    # ``excess`` is the term that constraints on coefficients add to the conjugate of R, or None.
    weights, gauge, polar, excess = certificate.terms
    exact = certify(problem, weights, prediction, v, gauge, polar, excess)
    columns = state.columns
    lengths = state.lengths
    # Rounding errors of the loss, of predictions and of scores, as for a smooth loss. The loss
    # without its free columns is used.
    rounding = problem.loss.slack(problem.y, prediction, v, problem.weight)
    plain = replace(problem, loss=plain_loss(problem.loss))
    rounding += rounding_bound(plain, exact, state.weights, prediction, v, columns, lengths)
    # Slopes jump at the kinks, so the effect of an error of the prediction, of length ``change``,
    # is bounded by the largest slopes: it is at most change * ||s|| for the sample weights s. The
    # errors are those of the sums over columns x_j - offset_j, and of their n_samples equal
    # offsets.
    change = EPS * float(np.linalg.norm(prediction))
    if lengths is not None:
        shift = math.sqrt(problem.y.size) * np.abs(lengths.offsets)
        change += growth(columns.size) * float(np.abs(state.weights) @ (lengths.summed + shift))
    return exact.widened(rounding + change * float(np.linalg.norm(problem.weight)))
