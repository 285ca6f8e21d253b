"""Semismooth Newton on the restricted problem, globalized so that it never stalls.

Two ways to descend take turns. Accelerated proximal gradient steps are cheap and find the pattern
(which weights are zero, which are shrunk how); a semismooth Newton step then jumps to where that
pattern is optimal, and an exact line search cuts it short where the pattern changes on the way.
The function searched is the forward-backward envelope, which has the minimisers of the problem, is
differentiable, and, where the loss is quadratic, convex for step sizes below 1 / L. What one
way cannot do the other one can: Newton steps count only where they decrease the objective, and the
gradient steps between them converge by themselves.

[Stella, Themelis, Patrinos 2017, forward-backward quasi-Newton methods; Li, Sun, Toh 2018, SSNAL,
for the use of the Jacobian's structure; Beck, Teboulle 2009 for the gradient steps.] One master
for every norm with a prox and a Jacobian of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from atomlearn.core.interfaces import EPS, Array, ProxPoint, TimeIsUp
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.losses import pieces
from atomlearn.core.losses.around import Offset
from atomlearn.core.losses.free_columns import free_columns, plain_loss
from atomlearn.core.masters.accelerated_gradient import Acceleration, Iterate
from atomlearn.core.masters.master import (
    Candidate,
    Master,
    Refit,
    block_of,
    certified,
    check_restricted,
)
from atomlearn.core.masters.newton_system import NewtonSystem, resolvent
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem

#: Gradient steps between two certificates.
CHECK_EVERY = 10


@dataclass(frozen=True, slots=True)
class SemismoothNewton(Master):
    """Newton steps on the pattern that accelerated gradient steps have found.

    A gradient step costs two products with the block; a Newton step about five, a Gram matrix and
    a Cholesky factorization of the size of the support or of the sample, whichever is smaller.

    Parameters
    ----------
    max_iter : int
        Bound on gradient and Newton steps together; the best point is returned when it is reached.

    References
    ----------
    L. Stella, A. Themelis, P. Patrinos 2017, doi:10.1007/s10589-017-9912-y.
    X. Li, D. Sun, K.-C. Toh 2018, doi:10.1137/16M1097572.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.KSupport(2), "squared", 1.0)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> refit = masters.SemismoothNewton().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6)
    array([0.5, 1. ])
    """

    max_iter: int = TUNING.most_steps

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        run = _Run(problem, weights, intercept, gap_target)
        with suppress(FloatingPointError):  # the best point is kept
            while run.open and run.steps < self.max_iter:
                run.gradient_steps(run.period)
                run.newton_steps()
        return run.refit


@dataclass(frozen=True, slots=True)
class AcceleratedGradient(Master):
    """min_w,b f(A w + b) + tau/2 ||w||^2 + R(w) by accelerated proximal gradient ([T] Alg. 4).

    Two products with the block an iteration (one with A', one with A for each trial step), plus
    one whenever the gap is certified.

    Parameters
    ----------
    relative_decrease : float or None
        Inexact mode of [T] (41): also stop once (F_k-1 - F_k) / F_k-1 is at most this ([T] uses
        1e-3), certified or not. None: only the gap target counts.
    max_iter : int
        Bound on iterations in one call; the best point is returned when it is reached.

    References
    ----------
    [T] M. Tan, I. W. Tsang, L. Wang 2014, Algorithm 4.
    A. Beck, M. Teboulle 2009, doi:10.1137/080716542.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> refit = masters.AcceleratedGradient().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6)
    array([0.9, 1.9])
    """

    relative_decrease: float | None = None
    max_iter: int = TUNING.most_steps

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        run = _Run(problem, weights, intercept, gap_target)
        settled = False
        with suppress(FloatingPointError):  # the best point is kept
            while run.open and not settled and run.steps < self.max_iter:
                period = min(CHECK_EVERY, self.max_iter - run.steps)
                settled = run.gradient_steps(period, self.relative_decrease)
        return run.refit


class _Run:
    """One call of the master: the best point, the gradient iteration, and whose turn it is."""

    def __init__(self, problem: Problem, weights: Array, intercept: float, target: float) -> None:
        check_restricted(problem)
        self.problem = problem
        self.target = target
        self.best = self.last = certified(problem, weights, None, intercept)
        self.mark = self.best.refit  # the point of the last progress
        self.steps = 0
        self.idle = 0
        self.least_share = 1.0  # of a column's curvature; slow steps change it
        self.rate = math.inf  # decrease of the objective per gradient step, lately
        self.damping = TUNING.newton_regularization
        if self.open:
            self.shortest = self.period = self._gradient_steps_worth_a_newton_step()
            self.at = self._iterate(self.best, None)

    @property
    def refit(self) -> Refit:
        """The best point, with all steps."""
        self.best.refit.steps = self.steps
        return self.best.refit

    @property
    def open(self) -> bool:
        """Whether there is more to do: columns, a gap, progress and time."""
        unfinished = self.best.refit.gap > self.target and self.idle < TUNING.newton_patience
        some = self.problem.design.shape[1] > 0
        return some and unfinished and not self.problem.deadline.passed

    def gradient_steps(self, period: int, relative_decrease: float | None = None) -> bool:
        """Make accelerated proximal gradient steps, certified now and then; return if they settled.

        That is at a fixed point, or where a step gains ``relative_decrease`` of the objective.
        """
        problem = self.problem
        acceleration = Acceleration()
        objective = self.best.refit.objective
        settled = False
        if free_columns(problem.loss) is not None:
            # Not at the best point: from there the same steps might lead nowhere, again and again.
            self.at = self._iterate(self.last, self.at)
        for count in range(1, period + 1):
            weights = self.at.weights
            self.at = acceleration.iterate(self.near, self._proximal, self.at)
            self.steps += 1
            settled = self.at.momentum < 2.0 and np.array_equal(self.at.weights, weights)
            if relative_decrease is not None:
                last = objective
                objective = self.at.loss_value + _penalty(problem, self.at.weights)
                settled |= 0.0 <= last - objective <= relative_decrease * abs(last)
            ends = settled or count == period or problem.deadline.use_step()
            if ends or count % CHECK_EVERY == 0:
                at = self.at
                trial = self.last = certified(problem, at.weights, at.linear, at.intercept)
                decrease = self.best.refit.objective - trial.refit.objective
                self.rate = max(decrease, 0.0) / CHECK_EVERY
                if trial.improves(self.best):
                    self.best = trial
                if not self.open or settled:
                    break
        best = self.best.refit
        mark = self.mark
        lower = best.objective < mark.objective - 1e-9 * abs(mark.objective)
        if best.gap < 0.9 * mark.gap or lower:
            self.mark = best
            self.idle = 0
        else:
            self.idle += 1
        return settled

    def newton_steps(self) -> None:
        """Make Newton steps as long as they pay, then continue from their end."""
        paid = False
        failed = False
        slow = 0
        while self.open and not failed:
            step = 0.5 / self.at.lipschitz  # below 1 / L the searched function is convex
            trial = newton_step(self.problem, self.best, step, self.least_share, self.damping)
            self.steps += 1
            failed = True
            slow = slow + 1
            if trial is not None and trial.improves(self.best):
                slow = 0 if trial.refit.gap <= 0.5 * self.best.refit.gap else slow
                decrease = self.best.refit.objective - trial.refit.objective
                self.best = trial
                # Else gradient steps of the same cost do better.
                if not slow or decrease >= self.rate * self.shortest:
                    paid = True
                    self.idle = 0
                    failed = False
            if failed:
                self.damping = TUNING.newton_regularization
            elif slow >= TUNING.few_steps:
                self.damping = max(0.1 * self.damping, EPS)
            if failed or slow >= TUNING.few_steps:
                self.least_share = TUNING.least_share if self.least_share == 1.0 else 1.0
        self.period = self.shortest if paid else min(2 * self.period, 20 * self.shortest)
        if paid:
            # Not for less: starting over costs the momentum.
            self.last = self.best
            self.at = self._iterate(self.best, self.at)

    def _iterate(self, start: Candidate, previous: Iterate | None) -> Iterate:
        """Return the gradient iteration begun at this point, with the estimates so far."""
        refit = start.refit
        linear = refit.prediction - refit.intercept
        self.near = _without_free(self.problem, linear)
        at = Iterate.at(self.near, refit.weights, linear, refit.intercept, start.scores)
        if previous is not None:
            at.lipschitz = previous.lipschitz
            at.lipschitz_intercept = previous.lipschitz_intercept
        return at

    def _proximal(self, point: Array, step: float) -> Array:
        return self.problem.regularizer.prox_point(point, step, self.problem.tau).point

    def _gradient_steps_worth_a_newton_step(self) -> int:
        n_samples, size = self.problem.design.shape
        support = min(size, 4 * int(np.count_nonzero(self.best.refit.weights)) + 100)
        smaller = min(support, n_samples)
        newton = 10 * n_samples * size + smaller * smaller * (max(support, n_samples) + smaller)
        # Factorizations run several times faster, per operation, than products with a vector.
        return int(np.clip(newton / 8 / (4 * n_samples * size), 5, 60))


def _penalty(problem: Problem, weights: Array) -> float:
    """Return tau/2 ||w||^2 + R(w)."""
    ridge = 0.5 * problem.tau * float(weights @ weights) if problem.tau else 0.0
    return ridge + problem.regularizer.value(problem.regularizer.norm.value(weights))


def _without_free(problem: Problem, linear: Array) -> Problem:
    """Return the problem with free columns at their best values here, an intercept still free.

    For gradient steps: to minimize over them at each of many points would take most of the time.
    """
    free = free_columns(problem.loss)
    if free is None:
        return problem
    loss = Offset(free.inner, free.whole(problem.y, linear, problem.weight) - linear)
    return replace(problem, loss=loss, fit_intercept=free.intercept, free=None)


def newton_step(
    problem: Problem, at: Candidate, step: float, least_share: float, damping: float
) -> Candidate | None:
    """Return the point of a semismooth Newton step, or None if it leads nowhere.

    With r = w - prox(w - step f'(w)), J the Jacobian of the prox there and H = A'DA, the direction
    solves (I - J (I - step H)) d = -r. The search along it is for the forward-backward envelope of
    the problem itself, as a loss may bend on the way; the point returned is the proximal gradient
    step made from there. Free columns move along, by the quadratic model.

    A column is damped relative to its own curvature, but as if that were at least ``least_share``
    of the largest: at 1 all are damped alike, which suits dependent columns and kinks; far below,
    columns whose units differ by orders of magnitude are all moved.
    """
    block = block_of(problem)
    weights = at.refit.weights
    curvature = problem.loss.curvature(problem.y, at.refit.prediction, problem.weight)
    free = _free(problem, curvature)
    total = float((curvature @ free**2).sum()) / max(free.shape[1], 1) or math.inf
    own = block.squared_norms(curvature)
    each = damping * np.maximum(own / (own.max() or 1.0), least_share)
    step_free = step / damping / total * float(own.mean())
    prox = problem.regularizer.prox_point(weights + step * at.scores, step, problem.tau)
    jacobian = prox.jacobian()
    if not jacobian.support.size:
        return None
    inverse, gains = resolvent(jacobian, each)
    base = inverse.apply(weights - prox.point)
    system = NewtonSystem(block, curvature, gains, step, free, step_free)
    try:
        change = system.direction(block.predict(base))
    except (LinAlgError, TimeIsUp):  # too large, the one on the diagonal in rounding, no time
        return None
    direction = -base - step * gains.apply(block.scores(curvature * change).full())
    reached = _searched(problem, at, step, direction, curvature, free)
    if reached is None:
        return None
    return certified(problem, reached.point, None, at.refit.intercept)


def _searched(
    problem: Problem, at: Candidate, step: float, way: Array, curvature: Array, free: Array
) -> ProxPoint | None:
    """Return the prox point at which ``search`` ends on this way, or None if it is uphill.

    Free columns move along, by the quadratic model: it has no slope at the start only.
    """
    block = block_of(problem)
    loss = plain_loss(problem.loss)
    y = problem.y
    s = problem.weight
    start = at.refit.prediction
    turned = block.predict(way)
    around = free_columns(problem.loss)
    if around is not None:
        start = around.whole(y, start, s)
    if not np.isfinite(turned).all():
        return None
    bent = (curvature[:, None] * free).T
    aside = -(free @ np.linalg.lstsq(bent @ free, bent @ turned, rcond=1e-13)[0])
    moved = turned + aside
    bend = block.scores(curvature * moved).full()
    if not np.isfinite(bend).all():
        return None

    def slope(length: float) -> tuple[float, ProxPoint | None]:
        problem.deadline.use_step()
        scores = at.scores - length * bend
        curve = bend
        rest = 0.0
        if length and not is_quadratic(loss):
            z = start + length * moved
            v = pieces.gradient(loss, y, z, s)
            scores = -block.scores(v).full()
            rest = float(v @ aside)
            curve = block.scores(loss.curvature(y, z, s) * moved).full()
        here = at.refit.weights + length * way
        try:
            ahead = problem.regularizer.prox_point(here + step * scores, step, problem.tau)
        except FloatingPointError:
            return math.inf, None
        residual = here - ahead.point
        return float((residual * (way / step - curve)).sum()) + rest, ahead

    return search(slope)


def _free(problem: Problem, curvature: Array) -> Array:
    """Return what predictions are free along where f is curved: 1, or the basis of free columns."""
    free = np.ones((curvature.size, int(problem.fit_intercept)))
    around = free_columns(problem.loss)
    if around is not None:
        free = around.basis
    return free if curvature.any() else free[:, :0]


def search(slope: Callable[[float], tuple[float, ProxPoint | None]]) -> ProxPoint | None:
    """Return the prox point where the increasing function ``slope`` is small against its start.

    Full steps are kept while the slope there has not turned clearly positive; otherwise the
    Illinois method finds the zero in between; an infinite slope, without a point, is too far. None
    where the direction is not one of descent.
    """
    start, _ = slope(0.0)
    if not start < 0:
        return None
    right_value, prox = slope(1.0)
    if right_value <= 0.3 * abs(start):
        return prox
    left = 0.0
    right = 1.0
    left_value = start
    for _ in range(TUNING.halvings):
        length = right - right_value * (right - left) / (right_value - left_value)
        if not left < length < right:
            length = 0.5 * (left + right)
        value, prox = slope(length)
        if abs(value) <= 0.1 * abs(start):
            break
        if value < 0:
            left = length
            left_value = value
            right_value = 0.5 * right_value
        else:
            right = length
            right_value = value
            left_value = 0.5 * left_value
    return prox
