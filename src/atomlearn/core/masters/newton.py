"""Semismooth Newton method for the restricted problem, globalized by proximal gradient steps.

The problem is min over w, b of f(A w + b) + tau/2 ||w||^2 + R(w), with the loss f, few columns A
in memory, and the penalty R.

The method alternates two kinds of steps. Accelerated proximal gradient steps are cheap and identify
the active pattern (which weights are zero, and how the others are shrunk). Semismooth Newton steps
then solve the optimality equations of that pattern, and a line search shortens a step if the
pattern changes along it. The line search minimizes the forward-backward envelope: a differentiable
function with the same minimizers as the problem. For a quadratic loss it is convex if the step size
is below 1 / L, with L the Lipschitz constant of the gradient. Newton steps are accepted only if
they decrease the objective, so that convergence follows from the gradient steps.

[Stella, Themelis, Patrinos 2017, forward-backward quasi-Newton methods; Li, Sun, Toh 2018, SSNAL,
for the use of the Jacobian's structure; Beck, Teboulle 2009 for the gradient steps.] This master
works for every norm with a proximal map and a Jacobian of that map.
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

#: Number of gradient steps between two evaluations of the duality gap.
CHECK_EVERY = 10


@dataclass(frozen=True, slots=True)
class SemismoothNewton(Master):
    """Semismooth Newton method that alternates with accelerated proximal gradient steps.

    A gradient step costs two matrix-vector products with the block A. A Newton step costs about
    five products, a Gram matrix and a Cholesky factorization. The size of this matrix is the number
    of nonzero weights or of samples, whichever is smaller.

    Parameters
    ----------
    max_iter : int
        Maximum number of gradient and Newton steps in total; the best point is then returned.

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
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        run = _Run(problem, weights, intercept, gap_target)
        with suppress(FloatingPointError):  # After an overflow the best point so far is returned.
            while run.open and run.steps < self.max_iter:
                run.gradient_steps(run.period)
                run.newton_steps()
        return run.refit


@dataclass(frozen=True, slots=True)
class AcceleratedGradient(Master):
    """Accelerated proximal gradient method (FISTA) for min_w,b f(A w + b) + tau/2 ||w||^2 + R(w).

    Here f is the loss, A the block of columns, b the intercept, tau the ridge penalty and R the
    regularizer. The method is [T] Algorithm 4. Its projection S_tau(u, v) is the proximal map of R
    with step 1 / tau, for its estimate tau of the Lipschitz constant, called L here. Its rho^k is
    the momentum. An iteration costs a product with A' and a product with A per trial step, and one
    more product with A' when the duality gap is evaluated. Predictions A w are kept, [T]'s cache
    for inner products.

    Parameters
    ----------
    relative_decrease : float or None
        Inexact mode of [T] (41): also stop, whatever the gap, if the relative decrease
        (F_k-1 - F_k) / F_k-1 of the objective F is at most this number. [T] uses 1e-3. If None,
        only the gap target ends the iteration.
    max_iter : int
        Maximum number of iterations in one call; the best point is then returned.

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
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        run = _Run(problem, weights, intercept, gap_target)
        converged = False
        with suppress(FloatingPointError):  # After an overflow the best point so far is returned.
            while run.open and not converged and run.steps < self.max_iter:
                period = min(CHECK_EVERY, self.max_iter - run.steps)
                converged = run.gradient_steps(period, self.relative_decrease)
        return run.refit


class _Run:
    """The state of one call of a master in this module.

    Parameters
    ----------
    problem : Problem
        Restricted problem over few columns.
    weights, intercept : ndarray, float
        Warm start.
    target : float
        Duality gap at which the run ends.

    Attributes
    ----------
    best : Candidate
        The best point so far, by objective and duality gap.
    last : Candidate
        The last point whose duality gap was evaluated.
    near : Problem
        The problem of the gradient steps: the contribution of unpenalized columns is fixed.
    at : Iterate
        The iterate of the gradient method.
    shortest, period : int
        The minimum number of gradient steps between Newton steps, and the number before the next
        one.
    idle : int
        The number of periods (runs of gradient steps) without progress.
    mark : Refit
        The best point when progress was last made.
    rate : float
        Recent decrease of the objective per gradient step.
    least_share, damping : float
        The ridge of the Newton system, see ``newton_step``; adapted if Newton steps are slow.
    """

    def __init__(self, problem: Problem, weights: Array, intercept: float, target: float) -> None:
        """Certify the warm start, and prepare the first gradient step."""
        check_restricted(problem)
        self.problem = problem
        self.target = target
        self.best = self.last = certified(problem, weights, None, intercept)
        self.mark = self.best.refit
        self.steps = 0
        self.idle = 0
        self.least_share = 1.0
        self.rate = math.inf
        self.damping = TUNING.newton_regularization
        if self.open:
            self.shortest = self.period = self._gradient_steps_worth_a_newton_step()
            self.at = self._iterate(self.best, None)

    @property
    def refit(self) -> Refit:
        """The best point, with the number of gradient and Newton steps made."""
        self.best.refit.steps = self.steps
        return self.best.refit

    @property
    def open(self) -> bool:
        """Whether to continue: the gap is above target, steps make progress, and time is left."""
        unfinished = self.best.refit.gap > self.target and self.idle < TUNING.newton_patience
        has_columns = self.problem.design.shape[1] > 0
        return has_columns and unfinished and not self.problem.deadline.passed

    def gradient_steps(self, period: int, relative_decrease: float | None = None) -> bool:
        """Make up to ``period`` accelerated proximal gradient steps; return whether they converged.

        The steps have converged if one of them does not move the weights, or if the relative
        decrease of the objective is at most ``relative_decrease``. The duality gap is evaluated
        every ``CHECK_EVERY`` steps.
        """
        problem = self.problem
        acceleration = Acceleration()
        objective = self.best.refit.objective
        converged = False
        if free_columns(problem.loss) is not None:
            # Fix the unpenalized columns anew, at the last point. From the best point, the same
            # steps might fail repeatedly.
            self.at = self._iterate(self.last, self.at)
        for count in range(1, period + 1):
            weights = self.at.weights
            self.at = acceleration.iterate(self.near, self._proximal, self.at)
            self.steps += 1
            # Without much momentum, weights that a step does not move are optimal.
            converged = self.at.momentum < 2.0 and np.array_equal(self.at.weights, weights)
            if relative_decrease is not None:
                last = objective
                objective = self.at.loss_value + _penalty(problem, self.at.weights)
                converged |= 0.0 <= last - objective <= relative_decrease * abs(last)
            ends = converged or count == period or problem.deadline.use_step()
            if ends or count % CHECK_EVERY == 0:
                state = self.at
                trial = self.last = certified(problem, state.weights, state.linear, state.intercept)
                decrease = self.best.refit.objective - trial.refit.objective
                self.rate = max(decrease, 0.0) / CHECK_EVERY
                if trial.improves(self.best):
                    self.best = trial
                if not self.open or converged:
                    break
        # The period made progress if the objective fell, or the gap fell by ten percent.
        best = self.best.refit
        mark = self.mark
        lower = best.objective < mark.objective - 1e-9 * abs(mark.objective)
        if best.gap < 0.9 * mark.gap or lower:
            self.mark = best
            self.idle = 0
        else:
            self.idle += 1
        return converged

    def newton_steps(self) -> None:
        """Make semismooth Newton steps while they decrease the objective or the gap fast enough.

        Slow or failed steps change ``damping`` and ``least_share``, the ridge of the next Newton
        step. The number of gradient steps before the next call is set, too. If a step was accepted,
        the gradient method restarts at the best point.
        """
        accepted = False  # whether any step was accepted
        failed = False  # whether the last step was rejected
        slow = 0  # steps in a row that did not halve the gap
        while self.open and not failed:
            step = 0.5 / self.at.lipschitz  # Below 1 / L, as the line search requires.
            trial = newton_step(self.problem, self.best, step, self.least_share, self.damping)
            self.steps += 1
            failed = True
            slow = slow + 1
            if trial is not None and trial.improves(self.best):
                slow = 0 if trial.refit.gap <= 0.5 * self.best.refit.gap else slow
                decrease = self.best.refit.objective - trial.refit.objective
                self.best = trial
                # Accept the step unless gradient steps of the same cost would decrease more.
                if not slow or decrease >= self.rate * self.shortest:
                    accepted = True
                    self.idle = 0
                    failed = False
            # After slow steps reduce the damping, and after a failed step restore it. In both cases
            # change how it is distributed over columns.
            if failed:
                self.damping = TUNING.newton_regularization
            elif slow >= TUNING.few_steps:
                self.damping = max(0.1 * self.damping, EPS)
            if failed or slow >= TUNING.few_steps:
                self.least_share = TUNING.least_share if self.least_share == 1.0 else 1.0
        self.period = self.shortest if accepted else min(2 * self.period, 20 * self.shortest)
        if accepted:
            # A restart loses the momentum, so it is made only after an accepted Newton step.
            self.last = self.best
            self.at = self._iterate(self.best, self.at)

    def _iterate(self, start: Candidate, previous: Iterate | None) -> Iterate:
        """Return the first gradient iterate at the point ``start``.

        The estimates of Lipschitz constants are copied from the ``previous`` iterate, if there is
        one. The gradient steps are for the problem ``near``, in which the contribution of
        unpenalized columns is fixed.
        """
        refit = start.refit
        linear = refit.prediction - refit.intercept
        self.near = _without_free(self.problem, linear)
        at = Iterate.at(self.near, refit.weights, linear, refit.intercept, start.scores)
        if previous is not None:
            at.lipschitz = previous.lipschitz
            at.lipschitz_intercept = previous.lipschitz_intercept
        return at

    def _proximal(self, point: Array, step: float) -> Array:
        """Return the proximal map of step * (tau/2 ||x||^2 + R(x)) at ``point``."""
        return self.problem.regularizer.prox_point(point, step, self.problem.tau).point

    def _gradient_steps_worth_a_newton_step(self) -> int:
        """Return the number of gradient steps (5 to 60) that cost as much as one Newton step."""
        # The operations of a Newton step: products with the block, then a linear system whose size
        # is the smaller one of support and samples. The support may still grow, so a larger one is
        # assumed.
        n_samples, size = self.problem.design.shape
        support = min(size, 4 * int(np.count_nonzero(self.best.refit.weights)) + 100)
        smaller = min(support, n_samples)
        newton = 10 * n_samples * size + smaller * smaller * (max(support, n_samples) + smaller)
        # A gradient step makes 4 n_samples * size operations. Those of factorizations are about 8
        # times faster.
        return int(np.clip(newton / 8 / (4 * n_samples * size), 5, 60))


def _penalty(problem: Problem, weights: Array) -> float:
    """Return the penalty tau/2 ||w||^2 + R(w) of the problem, for weights w (m,)."""
    ridge = 0.5 * problem.tau * float(weights @ weights) if problem.tau else 0.0
    return ridge + problem.regularizer.value(problem.regularizer.norm.value(weights))


def _without_free(problem: Problem, linear: Array) -> Problem:
    """Return the problem in which the contribution of unpenalized columns is a fixed offset.

    The offset Z g has the coefficients g that are optimal at the prediction ``linear``
    (n_samples,), for the unpenalized columns Z. An intercept is still fitted. Gradient steps use
    this problem, as minimizing over g in every step would take most of the time.
    """
    free = free_columns(problem.loss)
    if free is None:
        return problem
    # ``whole`` adds the unpenalized columns, at their optimal coefficients, to a prediction.
    loss = Offset(free.inner, free.whole(problem.y, linear, problem.weight) - linear)
    return replace(problem, loss=loss, fit_intercept=free.intercept, free=None)


def newton_step(
    problem: Problem, at: Candidate, step: float, least_share: float, damping: float
) -> Candidate | None:
    """Return the point of ``problem`` after one semismooth Newton step, or None if it fails.

    The step is for the fixed-point equation r(w) = w - prox(w - step f'(w)) = 0. J is the Jacobian
    of the proximal map at w - step f'(w). H = A'DA is the Hessian of the loss, for the block A and
    the diagonal D of second derivatives. The direction d solves (I - J (I - step H)) d = -r. A line
    search along d minimizes the forward-backward envelope, and one proximal gradient step from its
    end gives the returned point. Unpenalized columns move along d by the quadratic model of the
    loss.

    at : the current point w; step : the step size of the proximal map; damping : the relative
    ridge of the system. The ridge of column j is damping * max(h_j / max_i h_i, least_share), with
    h_j = (A'DA)_jj. At least_share = 1 all columns have the same ridge, which suits collinear
    columns and kinks; a small value suits columns whose scales differ by orders of magnitude.
    """
    block = block_of(problem)
    weights = at.refit.weights
    curvature = problem.loss.curvature(problem.y, at.refit.prediction, problem.weight)
    free = _free(problem, curvature)
    # The ridge of each penalized column, from the diagonal h of the Hessian. The step size of the
    # unpenalized columns is large: step / damping, times the ratio of the mean curvatures along
    # penalized and unpenalized columns.
    free_mean = float((curvature @ free**2).sum()) / max(free.shape[1], 1) or math.inf
    diagonal = block.squared_norms(curvature)
    ridges = damping * np.maximum(diagonal / (diagonal.max() or 1.0), least_share)
    step_free = step / damping / free_mean * float(diagonal.mean())
    # The proximal point and the Jacobian there; without any active weight there is no direction.
    prox = problem.regularizer.prox_point(weights + step * at.scores, step, problem.tau)
    jacobian = prox.jacobian()
    if not jacobian.support.size:
        return None
    # The Newton equation is d = -base - step gains A'D A d, with base = (I - J)^-1 r and
    # gains = (I - J)^-1 J. Solve it for the change A d of the predictions (plus the change by
    # unpenalized columns), then for d.
    inverse, gains = resolvent(jacobian, ridges)
    base = inverse.apply(weights - prox.point)
    system = NewtonSystem(block, curvature, gains, step, free, step_free)
    try:
        change = system.direction(block.predict(base))
    except (LinAlgError, TimeIsUp):
        # The matrix is singular up to rounding, since the identity in it is lost in rounding of
        # much larger entries. Or the deadline has passed.
        return None
    direction = -base - step * gains.apply(block.scores(curvature * change).full())
    end = _searched(problem, at, step, direction, curvature, free)
    if end is None:
        return None
    return certified(problem, end.point, None, at.refit.intercept)


def _searched(
    problem: Problem, at: Candidate, step: float, direction: Array, curvature: Array, free: Array
) -> ProxPoint | None:
    """Return the result of the line search on the envelope along ``direction``.

    The result is the proximal point at the accepted step length, or None if ``direction`` is not a
    descent direction. The predictions of the unpenalized columns change along the direction, too:
    their change minimizes the quadratic model of the loss.

    problem, at : the problem, and the start; step : the step size of the proximal map; direction :
    the direction in w, (m,); curvature : f'' at the start, (n_samples,); free : a basis of the
    predictions of unpenalized columns, (n_samples, r).
    """
    block = block_of(problem)
    loss = plain_loss(problem.loss)
    y = problem.y
    s = problem.weight
    start = at.refit.prediction
    penalized_move = block.predict(direction)
    unpenalized = free_columns(problem.loss)
    if unpenalized is not None:
        start = unpenalized.whole(y, start, s)
    if not np.isfinite(penalized_move).all():
        return None
    # ``free_move`` is the change of the predictions by the unpenalized columns, a weighted
    # least-squares fit. ``moved`` is the whole change of the predictions along ``direction``.
    weighted = (curvature[:, None] * free).T
    free_move = -(
        free @ np.linalg.lstsq(weighted @ free, weighted @ penalized_move, rcond=1e-13)[0]
    )
    moved = penalized_move + free_move
    hessian_d = block.scores(curvature * moved).full()  # H d, at the start
    if not np.isfinite(hessian_d).all():
        return None

    def slope(length: float) -> tuple[float, ProxPoint | None]:
        """Return the envelope's derivative along d at a step length, and the proximal point.

        After an overflow they are inf and None. d is ``direction``, and ``step`` the step size of
        the proximal map. The predictions are ``start`` + length * ``moved``; ``free_move`` is the
        part of ``moved`` by unpenalized columns.
        """
        problem.deadline.use_step()
        # The scores -A'f' at the step length, and ``curve`` = H d there. For a quadratic loss the
        # scores change linearly, and H does not change.
        scores = at.scores - length * hessian_d
        curve = hessian_d
        free_slope = 0.0
        if length and not is_quadratic(loss):
            z = start + length * moved
            v = pieces.gradient(loss, y, z, s)
            scores = -block.scores(v).full()
            free_slope = float(v @ free_move)
            curve = block.scores(loss.curvature(y, z, s) * moved).full()
        # With d the direction, the envelope's derivative is (w - prox)'(d / step - H d), plus the
        # derivative of the loss along the unpenalized columns.
        trial = at.refit.weights + length * direction
        try:
            ahead = problem.regularizer.prox_point(trial + step * scores, step, problem.tau)
        except FloatingPointError:
            return math.inf, None
        residual = trial - ahead.point
        return float((residual * (direction / step - curve)).sum()) + free_slope, ahead

    return search(slope)


def _free(problem: Problem, curvature: Array) -> Array:
    """Return a basis (n_samples, r) of the predictions of unpenalized columns and the intercept.

    If there are unpenalized columns, the loss has them, and their basis includes the intercept. For
    an intercept only, the basis is a column of ones. If ``curvature``, the diagonal of f''
    (n_samples,), is 0 everywhere, the basis has no columns.
    """
    free = np.ones((curvature.size, int(problem.fit_intercept)))
    unpenalized = free_columns(problem.loss)
    if unpenalized is not None:
        free = unpenalized.basis
    return free if curvature.any() else free[:, :0]


def search(slope: Callable[[float], tuple[float, ProxPoint | None]]) -> ProxPoint | None:
    """Return the proximal point at a step length in (0, 1] with a small directional derivative.

    slope : maps a step length to the directional derivative and the proximal point there, or to inf
    and None after an overflow. The derivative increases with the step length. The full step 1 is
    accepted if its derivative is at most 0.3 |slope(0)|. Otherwise the Illinois method (a
    safeguarded regula falsi) approximates the root of the derivative in (0, 1). The result is None
    if slope(0) >= 0, since the direction is then not a descent direction.
    """
    start, _ = slope(0.0)
    if not start < 0:
        return None
    right_value, prox = slope(1.0)
    if right_value <= 0.3 * abs(start):
        return prox
    # The root is between left and right, where the derivatives have different signs. The value at
    # an end that stays is halved, so that the next secant step moves that end (Illinois).
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
