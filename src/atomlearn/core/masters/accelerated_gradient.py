"""Accelerated proximal gradient with backtracking and a separate step for the intercept.

[T] Algorithm 4 (Tan, Tsang, Wang 2014), for any smooth loss and any norm with a prox; the Moreau
projection of [T] Algorithm 3 is the prox of the ``Groups`` norm in its squared form. One iteration
function serves this master and the FISTA solver over all columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses import pieces
from atomlearn.core.masters.candidate import check_restricted
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem

#: (v, step) -> argmin_x 1/2 ||x - v||^2 + step * (tau/2 ||x||^2 + R(x))
Proximal = Callable[[Array, float], Array]


@dataclass(slots=True)
class Iterate:
    """Where the iteration stands: the point w_k, and the extrapolated point v it steps from.

    weights, linear, intercept : w_k, X w_k, b_k; loss_value : f there; ahead_* : v, X v, v_b;
    momentum : rho_k; lipschitz, lipschitz_intercept : the current estimates L of w and L_b of b;
    gradient : X'f' at v where it is known already; spare : an array of n_samples numbers that the
    next iteration may write to.
    """

    weights: Array
    linear: Array
    intercept: float
    loss_value: float
    ahead_weights: Array
    ahead_linear: Array
    ahead_intercept: float
    momentum: float
    lipschitz: float
    lipschitz_intercept: float
    gradient: Array | None = None
    spare: Array | None = None

    @classmethod
    def at(
        cls, problem: Problem, weights: Array, linear: Array, intercept: float, scores: Array
    ) -> Iterate:
        """Return the first iterate, without momentum; scores = -X'f' at the point.

        The first guess of L is ||X'Su||^2 / u'Su times the mean f'', u = loss': it costs nothing,
        and a sample of weight 2 counts as two samples, in every iterate that follows.
        """
        loss, y, s = problem.loss, problem.y, problem.weight
        mass = float(s.sum())
        total = pieces.curvature(loss, y, linear, s, intercept) or mass
        square = pieces.squares(problem.loss_gradient(linear, intercept), s)
        guess = total / mass * float(scores @ scores) / square if square > 0 else 0.0
        return cls(
            weights=weights,
            linear=linear,
            intercept=intercept,
            loss_value=problem.loss_value(linear, intercept),
            ahead_weights=weights,
            ahead_linear=linear,
            ahead_intercept=intercept,
            momentum=1.0,
            lipschitz=guess if 0 < guess < math.inf else 1.0,
            lipschitz_intercept=total,
            gradient=-scores,
        )


@dataclass(frozen=True, slots=True)
class Linearization:
    """f at z = linear + shift: its value, the gradient X'f'(z), and slope = sum f'(z).

    The derivatives themselves, n_samples numbers, are not kept.
    """

    linear: Array
    shift: float
    value: float
    gradient: Array
    slope: float

    def distance(
        self, problem: Problem, linear: Array, shift: float, along: float
    ) -> tuple[float, float]:
        """Return f(t) - f(z) - <f'(z), t - z>, accurate also where tiny, and f(t).

        t = linear + shift; along : <f'(z), t - z>, which the gradient and the slope tell.
        """
        reached = problem.loss_value(linear, shift)
        direct = reached - self.value - along
        if abs(direct) > TUNING.rounding_share * max(self.value, abs(along)):
            return direct, reached
        loss, y, s = problem.loss, problem.y, problem.weight
        longest, largest, symmetrized = 0.0, 0.0, 0.0
        for part, own in pieces.each_piece(loss, y.size):
            z = pieces.shifted(self.linear[part], self.shift)
            trial = pieces.shifted(linear[part], shift)
            turn = own.gradient(y[part], trial, s[part])
            turn -= own.gradient(y[part], z, s[part])
            move = trial - z
            symmetrized += float(turn @ move)
            longest = max(longest, float(np.abs(move).max(initial=0.0)))
            largest = max(largest, float(np.abs(z).max(initial=0.0)))
        # Half of the symmetrized distance: no subtraction of nearly equal values of f.
        return (0.0 if longest <= TUNING.negligible_move * largest else 0.5 * symmetrized), reached


@dataclass(frozen=True, slots=True)
class Acceleration:
    """How one accelerated proximal gradient iteration is made.

    shrink : eta in (0, 1], the estimates of L may fall by this factor from one iteration to the
    next; growth : factor on L where the line search refuses; refit_intercept : b is minimised
    over at every point (FISTA), else it takes its own line-searched step ([T] Algorithm 4);
    reuse : the iterate given is spent, its arrays of n_samples numbers are written to.
    """

    shrink: float = 0.9
    growth: float = 2.0
    refit_intercept: bool = False
    reuse: bool = False

    def iterate(self, problem: Problem, proximal: Proximal, at: Iterate) -> Iterate:
        """Return the next iterate: a product with X', one with X a trial."""
        b = at.ahead_intercept
        if self.refit_intercept:
            b = problem.optimal_intercept(at.ahead_linear, b)
        model, dual = _linearize(problem, at.ahead_linear, b, at.gradient, at.spare)
        if not math.isfinite(model.value) and at.ahead_weights is not at.weights:
            # The momentum led to where a steep loss overflows: forget it.
            at.ahead_weights, at.ahead_linear = at.weights, at.linear
            at.ahead_intercept = b = at.intercept
            at.momentum = 1.0
            model, dual = _linearize(problem, at.linear, b, None, None)
        at.spare = dual if self.reuse else None
        del dual
        following = self._line_search(problem, proximal, at, model, b)
        if not self.refit_intercept and problem.fit_intercept:
            self._intercept_step(problem, following)
        return _extrapolated(at, following, self.reuse)

    def _line_search(
        self, problem: Problem, proximal: Proximal, at: Iterate, model: Linearization, b: float
    ) -> Iterate:
        """Return w with the accepted L, lowered to what this very step would have needed."""
        lipschitz = at.lipschitz
        while True:
            weights = proximal(at.ahead_weights - model.gradient / lipschitz, 1.0 / lipschitz)
            linear = problem.design.predict(weights)
            movement = weights - at.ahead_weights
            square = float(movement @ movement)
            if self.refit_intercept:
                b = problem.optimal_intercept(linear, b)
            along = float(model.gradient @ movement) + model.slope * (b - model.shift)
            distance, reached = model.distance(problem, linear, b, along)
            local = 2.0 * distance / square if square > 0.0 else 0.0
            if local <= lipschitz * (1 + TUNING.rounding_share) or lipschitz > 1e300:
                break
            lipschitz = max(self.growth * lipschitz, min(local, 8.0 * lipschitz))
            del linear  # before the next one is made
        lower = max(self.shrink * lipschitz, min(local, lipschitz))
        return replace(
            at,
            weights=weights,
            linear=linear,
            intercept=b,
            loss_value=reached,
            lipschitz=lower if square > 0.0 else lipschitz,
            gradient=None,
            spare=None,
        )

    def _intercept_step(self, problem: Problem, at: Iterate) -> None:
        """Steepest descent on b with its own Armijo search, [T] (36): O(n_samples) a trial.

        The slope is taken at the new w, where (36) is tested: then the search always ends.
        """
        loss, y, s = problem.loss, problem.y, problem.weight
        slope, _ = pieces.slope(loss, y, at.linear, s, at.intercept)
        if slope == 0.0:
            return
        none = np.zeros(0)
        model = Linearization(at.linear, at.intercept, at.loss_value, none, slope)
        # Here (36) always holds; without a bound the search itself finds where.
        ceiling = min(problem.loss.smoothness * float(problem.weight.sum()), 1e300)
        lipschitz = min(self.shrink * at.lipschitz_intercept, ceiling)
        while True:
            move = -slope / lipschitz
            ahead = at.intercept + move
            distance, reached = model.distance(problem, at.linear, ahead, slope * move)
            # (36) in other words: the decrease is slope^2 / L less the distance of Bregman.
            allowed = 0.5 * lipschitz * move * move * (1 + TUNING.rounding_share)
            if lipschitz >= ceiling or distance <= allowed:
                break
            lipschitz = min(self.growth * lipschitz, ceiling)
        at.intercept += move
        at.loss_value = reached
        at.lipschitz_intercept = lipschitz


def _linearize(
    problem: Problem, linear: Array, shift: float, gradient: Array | None, spare: Array | None
) -> tuple[Linearization, Array]:
    """Return the model at linear + shift, and the array of the derivatives there."""
    dual = problem.loss_gradient(linear, shift, spare)
    slope = float(dual.sum())
    if gradient is None:
        gradient = problem.design.scores(dual).full()
        if np.may_share_memory(gradient, dual):
            gradient = gradient.copy()
    value = problem.loss_value(linear, shift)
    return Linearization(linear, shift, value, gradient, slope), dual


def _extrapolated(at: Iterate, following: Iterate, reuse: bool) -> Iterate:
    """Set v = w_k+1 + push (w_k+1 - w_k), push = (rho_k - 1)/rho_k+1, restarted when it turns."""
    movement = following.weights - at.weights
    shift = following.intercept - at.intercept
    # The momentum points uphill: forget it. [O'Donoghue, Candes 2015, gradient scheme]
    turn = following.lipschitz * float((at.ahead_weights - following.weights) @ movement)
    turn += following.lipschitz_intercept * (at.ahead_intercept - following.intercept) * shift
    momentum = 1.0 if turn > 0.0 else at.momentum
    following.momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
    push = (momentum - 1.0) / following.momentum
    following.ahead_weights = following.weights + push * movement
    spent = reuse and at.ahead_linear is not at.linear
    ahead = np.subtract(following.linear, at.linear, out=at.ahead_linear if spent else None)
    ahead *= push
    ahead += following.linear
    following.ahead_linear = ahead
    following.spare = at.linear if reuse else None
    following.ahead_intercept = following.intercept + push * shift
    return following


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
    check_every : int
        Iterations between two certificates.
    max_iter : int
        Bound on iterations in one call; the best point is returned when it is reached.
    shrink : float
        eta of [T]: by how much the estimate of L may fall from one iteration to the next.

    Notes
    -----
    [T] section 5.5 keeps inner products of groups during a line search, so that trials do not read
    the data. At this ``shrink`` there are 1.2 trials an iteration, and keeping cost more than it
    spared.

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
    check_every: int = 10
    max_iter: int = 20000
    shrink: float = 0.9

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        check_restricted(problem)
        linear = problem.design.predict(weights)
        best, scores = _certified(problem, weights, linear, intercept)
        if best.gap <= gap_target or weights.size == 0 or problem.deadline.passed:
            return best.refit(problem, linear, 0)
        first = objective = best.objective
        at, steps = Iterate.at(problem, weights, linear, best.intercept, scores), 0
        del linear  # held by the iterate only, which moves on
        acceleration = Acceleration(self.shrink, reuse=True)

        def proximal(point: Array, step: float) -> Array:
            return problem.regularizer.prox_point(point, step, problem.tau).point

        checkpoint, checkpoint_gap = 0, best.gap
        while steps < self.max_iter and best.gap > gap_target:
            before = at.weights
            try:
                at = acceleration.iterate(problem, proximal, at)
            except FloatingPointError:  # the best point is kept
                break
            steps += 1
            ends = at.momentum < 2.0 and np.array_equal(at.weights, before)
            ends |= problem.deadline.passed
            if self.relative_decrease is not None:
                previous = objective
                objective = at.loss_value + _penalty(problem, at.weights)
                ends |= 0.0 <= previous - objective <= self.relative_decrease * abs(previous)
            if ends or steps % self.check_every == 0 or steps == self.max_iter:
                trial, _ = _certified(problem, at.weights, at.linear, at.intercept, at.spare)
                closer = trial.gap < best.gap and trial.objective <= first
                if closer or trial.objective < best.objective:
                    best = trial
                if trial.gap <= 0.9 * checkpoint_gap:
                    checkpoint, checkpoint_gap = steps, trial.gap
                # Rounding holds the gap where it is: more of the same will not help.
                ends |= steps - checkpoint >= TUNING.inner_steps * self.check_every
            if ends:
                break
        last = at.linear if best.weights is at.weights else None
        return best.refit(problem, last, steps)


def _penalty(problem: Problem, weights: Array) -> float:
    """Return tau/2 ||w||^2 + R(w)."""
    ridge = 0.5 * problem.tau * float(weights @ weights) if problem.tau else 0.0
    return ridge + problem.regularizer.value(problem.regularizer.norm.value(weights))


@dataclass(frozen=True, slots=True)
class _Point:
    """A certified point; its predictions, n_samples numbers, are not held but made at the end."""

    weights: Array
    intercept: float
    gap: float
    objective: float

    def refit(self, problem: Problem, linear: Array | None, steps: int) -> Refit:
        """Return the point with its predictions; linear : X w where it is known."""
        if linear is None:
            linear = problem.design.predict(self.weights)
        prediction = pieces.shifted(linear, self.intercept)
        return Refit(self.weights, self.intercept, prediction, self.gap, self.objective, steps)


def _certified(
    problem: Problem, weights: Array, linear: Array, intercept: float, spare: Array | None = None
) -> tuple[_Point, Array]:
    """Return the point with optimal intercept and its certified gap, and its scores."""
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = pieces.shifted(linear, intercept)
    v = problem.negative_gradient(prediction, spare)
    scores = problem.design.scores(v)
    certificate = problem.priced(None, weights, prediction, v, scores).certificate
    point = _Point(weights, intercept, certificate.gap, certificate.objective)
    return point, scores.full()
