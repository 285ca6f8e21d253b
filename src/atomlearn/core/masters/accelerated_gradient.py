"""Accelerated proximal gradient with backtracking and a separate step for the intercept.

[T] Algorithm 4 (Tan, Tsang, Wang 2014), for any smooth loss and any norm with a prox; the Moreau
projection of [T] Algorithm 3 is the prox of the ``Groups`` norm in its squared form. One iteration
serves the masters of ``newton`` and the FISTA solver over all columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses import pieces
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem, loss_gradient, loss_value, optimal_intercept

#: (v, step) -> argmin_x 1/2 ||x - v||^2 + step * (tau/2 ||x||^2 + R(x))
Proximal = Callable[[Array, float], Array]


@dataclass(slots=True)
class Iterate:
    """The state of the iteration: the point w_k, and the extrapolated point v it steps from.

    weights, linear, intercept : w_k, X w_k, b_k; loss_value : f there; ahead_* : v, X v, v_b;
    momentum : rho_k; lipschitz, lipschitz_intercept : the current estimates L of w and L_b of b;
    gradient : X'f' at v if it is known already.
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

    @classmethod
    def at(
        cls, problem: Problem, weights: Array, linear: Array, intercept: float, scores: Array
    ) -> Iterate:
        """Return the first iterate, without momentum; scores = -X'f' at the point.

        The first guess of L is ||X'Su||^2 / u'Su times the mean f'', u = loss': it costs nothing,
        and a sample of weight 2 counts as two samples, in every iterate that follows. Where f is
        straight, the least mean f'' is taken that such slopes can have above 0: u'Su / (2 f).
        """
        loss = problem.loss
        y = problem.y
        s = problem.weight
        mass = float(s.sum())
        value = loss_value(problem, linear, intercept)
        square = pieces.squares(loss_gradient(problem, linear, intercept), s)
        least = mass * square / (2.0 * value) if value > 0.0 else mass
        total = pieces.curvature(loss, y, linear, s, intercept) or least or mass
        guess = total / mass * float(scores @ scores) / square if square > 0 else 0.0
        return cls(
            weights=weights,
            linear=linear,
            intercept=intercept,
            loss_value=value,
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
        reached = loss_value(problem, linear, shift)
        direct = reached - self.value - along
        if abs(direct) > TUNING.rounding_share * max(self.value, abs(along)):
            return direct, reached
        loss = problem.loss
        y = problem.y
        s = problem.weight
        longest = 0.0
        largest = 0.0
        symmetrized = 0.0
        for at, own, target, z, weight in pieces.each_piece(loss, y, self.linear, s, self.shift):
            trial = linear[at] + shift
            turn = own.gradient(target, trial, weight)
            turn -= own.gradient(target, z, weight)
            move = trial - z
            symmetrized += float(turn @ move)
            longest = max(longest, float(np.abs(move).max(initial=0.0)))
            largest = max(largest, float(np.abs(z).max(initial=0.0)))
        # Half of the symmetrized distance: no subtraction of nearly equal values of f.
        return (0.0 if longest <= TUNING.negligible_move * largest else 0.5 * symmetrized), reached


@dataclass(frozen=True, slots=True)
class Acceleration:
    """How one accelerated proximal gradient iteration is made.

    The estimates of L may fall to 0.9 of themselves from one iteration to the next, and double
    where the line search refuses. refit_intercept : b is minimised over at every point (FISTA),
    else it takes its own line-searched step ([T] Algorithm 4).
    """

    refit_intercept: bool = False

    def iterate(self, problem: Problem, proximal: Proximal, at: Iterate) -> Iterate:
        """Return the next iterate: a product with X', one with X a trial."""
        b = at.ahead_intercept
        if self.refit_intercept:
            b = optimal_intercept(problem, at.ahead_linear, b)
        model = _linearize(problem, at.ahead_linear, b, at.gradient)
        if not math.isfinite(model.value) and at.ahead_weights is not at.weights:
            # The momentum led to where a steep loss overflows: forget it.
            at.ahead_weights = at.weights
            at.ahead_linear = at.linear
            at.ahead_intercept = b = at.intercept
            at.momentum = 1.0
            model = _linearize(problem, at.linear, b, None)
        following = self._line_search(problem, proximal, at, model, b)
        if not self.refit_intercept and problem.fit_intercept:
            self._intercept_step(problem, following)
        return _extrapolated(at, following)

    def _line_search(
        self, problem: Problem, proximal: Proximal, at: Iterate, model: Linearization, b: float
    ) -> Iterate:
        """Return w with the accepted L, lowered to the value that this step would have needed."""
        lipschitz = at.lipschitz
        while True:
            weights = proximal(at.ahead_weights - model.gradient / lipschitz, 1.0 / lipschitz)
            linear = problem.design.predict(weights)
            movement = weights - at.ahead_weights
            square = float(movement @ movement)
            if self.refit_intercept:
                b = optimal_intercept(problem, linear, b)
            along = float(model.gradient @ movement) + model.slope * (b - model.shift)
            distance, reached = model.distance(problem, linear, b, along)
            local = 2.0 * distance / square if square > 0.0 else 0.0
            if local <= lipschitz * (1 + TUNING.rounding_share) or lipschitz > 1e300:
                break
            lipschitz = max(2.0 * lipschitz, min(local, 8.0 * lipschitz))
            del linear  # before the next one is made
        lower = max(0.9 * lipschitz, min(local, lipschitz))
        return replace(
            at,
            weights=weights,
            linear=linear,
            intercept=b,
            loss_value=reached,
            lipschitz=lower if square > 0.0 else lipschitz,
            gradient=None,
        )

    def _intercept_step(self, problem: Problem, at: Iterate) -> None:
        """Steepest descent on b with its own Armijo search, [T] (36): O(n_samples) a trial.

        The slope is taken at the new w, where (36) is tested: then the search always ends.
        """
        loss = problem.loss
        y = problem.y
        s = problem.weight
        slope, _ = pieces.slope(loss, y, at.linear, s, at.intercept)
        if slope == 0.0:
            return
        none = np.zeros(0)
        model = Linearization(at.linear, at.intercept, at.loss_value, none, slope)
        # Here (36) always holds; without a bound the search itself finds where.
        ceiling = min(problem.loss.curvature_bounds[1] * float(problem.weight.sum()), 1e300)
        lipschitz = min(0.9 * at.lipschitz_intercept, ceiling)
        while True:
            move = -slope / lipschitz
            ahead = at.intercept + move
            distance, reached = model.distance(problem, at.linear, ahead, slope * move)
            # (36) in other words: the decrease is slope^2 / L less the distance of Bregman.
            allowed = 0.5 * lipschitz * move * move * (1 + TUNING.rounding_share)
            if lipschitz >= ceiling or distance <= allowed:
                break
            lipschitz = min(2.0 * lipschitz, ceiling)
        at.intercept += move
        at.loss_value = reached
        at.lipschitz_intercept = lipschitz


def _linearize(
    problem: Problem, linear: Array, shift: float, gradient: Array | None
) -> Linearization:
    """Return the model at linear + shift."""
    dual = loss_gradient(problem, linear, shift)
    slope = float(dual.sum())
    if gradient is None:
        gradient = problem.design.scores(dual).full()
        if np.may_share_memory(gradient, dual):
            gradient = gradient.copy()
    value = loss_value(problem, linear, shift)
    return Linearization(linear, shift, value, gradient, slope)


def _extrapolated(at: Iterate, following: Iterate) -> Iterate:
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
    following.ahead_linear = following.linear + push * (following.linear - at.linear)
    following.ahead_intercept = following.intercept + push * shift
    return following
