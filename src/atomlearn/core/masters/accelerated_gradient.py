"""Accelerated proximal gradient with backtracking and a separate step for the intercept.

[T] Algorithm 4 (Tan, Tsang, Wang 2014), for any smooth loss and any norm with a proximal map. The
Moreau projection of [T] Algorithm 3 is the proximal map of the squared ``Groups`` norm. The masters
in ``newton`` and the FISTA solver over all columns use this iteration.
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
    """The state of the iteration: the iterate w_k, and the extrapolated point v.

    Attributes
    ----------
    weights, linear, intercept : ndarray, ndarray, float
        w_k (m,), X w_k (n_samples,) and the intercept b_k.
    loss_value : float
        f(X w_k + b_k).
    ahead_weights, ahead_linear, ahead_intercept : ndarray, ndarray, float
        v, X v and the extrapolated intercept v_b, from which the next gradient step is made.
    momentum : float
        rho_k, with rho_1 = 1.
    lipschitz, lipschitz_intercept : float
        The estimates L and L_b of the Lipschitz constants of the gradient in w and in b.
    gradient : ndarray, optional
        X'f'(X v + v_b), (m,), if it is already known.
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
        """Return the first iterate for a problem whose design is X, without momentum.

        weights, linear, intercept : w, X w and b; scores : -X'f'(X w + b).

        The initial estimate of L, the Lipschitz constant of the gradient, is the mean of f'' times
        ||X'Su||^2 / u'Su. Here S is the diagonal matrix of sample weights, and u has the
        derivatives of the loss per unit of weight, so that Su = f'. If f'' = 0, the mean of f'' is
        replaced by u'Su / (2 f), the smallest mean curvature of a loss >= 0 with this value and
        slope.
        """
        loss = problem.loss
        y = problem.y
        s = problem.weight
        mass = float(s.sum())
        value = loss_value(problem, linear, intercept)
        square = pieces.squares(loss_gradient(problem, linear, intercept), s)  # u'Su
        # Sums over samples: ``least`` is the smallest curvature, which replaces f'' = 0, and
        # ``total`` the curvature that is used. As X'Su = -scores, L = total / mass ||scores||^2 /
        # u'Su.
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
    """The first-order model of the loss f at the predictions z = linear + shift.

    The n_samples derivatives f'(z) are not stored.

    Attributes
    ----------
    linear : (n_samples,)
        X w.
    shift : float
        The intercept.
    value : float
        f(z).
    gradient : (m,)
        X'f'(z), the gradient in w.
    slope : float
        sum_i f'_i(z), the derivative in the intercept.
    """

    linear: Array
    shift: float
    value: float
    gradient: Array
    slope: float

    def distance(
        self, problem: Problem, linear: Array, shift: float, linear_change: float
    ) -> tuple[float, float]:
        """Return the Bregman distance f(t) - f(z) - <f'(z), t - z>, and f(t).

        f is the loss of ``problem``, and t = linear + shift, with the arguments of this method.
        linear_change : the number <f'(z), t - z>. If the distance would be lost in rounding, half
        of <f'(t) - f'(z), t - z> is returned instead, which is equal up to third order.
        """
        value = loss_value(problem, linear, shift)
        difference = value - self.value - linear_change
        if abs(difference) > TUNING.rounding_share * max(self.value, abs(linear_change)):
            return difference, value
        loss = problem.loss
        y = problem.y
        s = problem.weight
        # The symmetrized distance <f'(t) - f'(z), t - z>, and the largest |t - z| and |z|, are
        # computed piece by piece, since f' is not stored for all samples.
        longest = 0.0
        largest = 0.0
        symmetrized = 0.0
        for rows, part, target, z, weight in pieces.each_piece(loss, y, self.linear, s, self.shift):
            trial = linear[rows] + shift
            change = part.gradient(target, trial, weight)
            change -= part.gradient(target, z, weight)
            move = trial - z
            symmetrized += float(change @ move)
            longest = max(longest, float(np.abs(move).max(initial=0.0)))
            largest = max(largest, float(np.abs(z).max(initial=0.0)))
        # Differences t - z that are only rounding errors of z count as 0.
        return (0.0 if longest <= TUNING.negligible_move * largest else 0.5 * symmetrized), value


@dataclass(frozen=True, slots=True)
class Acceleration:
    """One iteration of accelerated proximal gradient, with backtracking on L.

    The estimate of the Lipschitz constant L at least doubles after a rejected trial step.

    Attributes
    ----------
    refit_intercept : bool
        True: the intercept b is optimal at every point (FISTA). False: b takes a separate gradient
        step with a line search ([T] Algorithm 4).
    restart : bool
        Whether the momentum is dropped where it points uphill [O'Donoghue, Candes 2015]. Without
        this, the iteration is that of [Beck, Teboulle 2009].
    least_decrease : float
        The factor by which the estimate of L may decrease from one iteration to the next. With 1.0
        it never decreases, as in [Beck, Teboulle 2009]; all steps are 1/L if it begins at the true
        L.
    """

    refit_intercept: bool = False
    restart: bool = True
    least_decrease: float = 0.9

    def iterate(self, problem: Problem, proximal: Proximal, at: Iterate) -> Iterate:
        """Return the iterate of ``problem`` after ``at``: a step from the extrapolated point.

        ``proximal`` is the proximal map of the penalty. The step costs one product with X', and one
        with X for each trial value of L.
        """
        b = at.ahead_intercept
        if self.refit_intercept:
            b = optimal_intercept(problem, at.ahead_linear, b)
        model = _linearize(problem, at.ahead_linear, b, at.gradient)
        if not math.isfinite(model.value) and at.ahead_weights is not at.weights:
            # The extrapolated point overflows a steep loss, so restart without momentum.
            at.ahead_weights = at.weights
            at.ahead_linear = at.linear
            at.ahead_intercept = b = at.intercept
            at.momentum = 1.0
            model = _linearize(problem, at.linear, b, None)
        following = self._line_search(problem, proximal, at, model, b)
        if not self.refit_intercept and problem.fit_intercept:
            self._intercept_step(problem, following)
        return _extrapolated(at, following, self.restart)

    def _line_search(
        self, problem: Problem, proximal: Proximal, at: Iterate, model: Linearization, b: float
    ) -> Iterate:
        """Return the proximal gradient step from ``at``, with the first L that passes the test.

        The test: ``model`` plus L/2 ||w - v||^2 is at least the loss at the new point w, where v
        is the extrapolated point. L grows until the test is passed. In the returned iterate, L is
        then reduced toward the smallest value that would have passed, at most by the factor
        ``least_decrease``. problem : has the loss and the design; proximal : the proximal map of
        the penalty; model : the linearization at v; b : its intercept.
        """
        lipschitz = at.lipschitz
        while True:
            weights = proximal(at.ahead_weights - model.gradient / lipschitz, 1.0 / lipschitz)
            linear = problem.design.predict(weights)
            movement = weights - at.ahead_weights
            squared_step = float(movement @ movement)
            if self.refit_intercept:
                b = optimal_intercept(problem, linear, b)
            linear_change = float(model.gradient @ movement) + model.slope * (b - model.shift)
            distance, value = model.distance(problem, linear, b, linear_change)
            # The smallest L with which this step passes.
            required = 2.0 * distance / squared_step if squared_step > 0.0 else 0.0
            if required <= lipschitz * (1 + TUNING.rounding_share) or lipschitz > 1e300:
                break
            lipschitz = max(2.0 * lipschitz, min(required, 8.0 * lipschitz))
            del linear  # Free this array before the next one is allocated.
        lower = max(self.least_decrease * lipschitz, min(required, lipschitz))
        return replace(
            at,
            weights=weights,
            linear=linear,
            intercept=b,
            loss_value=value,
            lipschitz=lower if squared_step > 0.0 else lipschitz,
            gradient=None,
        )

    def _intercept_step(self, problem: Problem, at: Iterate) -> None:
        """Make a gradient step in the intercept b of the iterate ``at``, in place.

        A backtracking line search on the loss of ``problem`` finds the step length. A step is
        accepted if the quadratic model of the loss bounds the loss at its end: condition (36) of
        Tan, Tsang and Wang (2014). The derivative is evaluated at the new w, at which the condition
        is tested, so that the line search always ends. Each trial step costs O(n_samples).
        """
        loss = problem.loss
        y = problem.y
        s = problem.weight
        slope, _ = pieces.slope(loss, y, at.linear, s, at.intercept)
        if slope == 0.0:
            return
        # The gradient in w is not needed, since only b moves.
        no_gradient = np.zeros(0)
        model = Linearization(at.linear, at.intercept, at.loss_value, no_gradient, slope)
        # L_b is the estimate of the Lipschitz constant in b. With L_b at this ceiling, (36) always
        # holds. An unbounded f'' has no useful ceiling.
        ceiling = min(problem.loss.curvature_bounds[1] * float(problem.weight.sum()), 1e300)
        lipschitz = min(0.9 * at.lipschitz_intercept, ceiling)
        while True:
            move = -slope / lipschitz
            trial = at.intercept + move
            distance, value = model.distance(problem, at.linear, trial, slope * move)
            # The step decreases the loss by slope^2 / L minus the Bregman distance, so that (36)
            # is: distance <= L/2 move^2.
            allowed = 0.5 * lipschitz * move * move * (1 + TUNING.rounding_share)
            if lipschitz >= ceiling or distance <= allowed:
                break
            lipschitz = min(2.0 * lipschitz, ceiling)
        at.intercept += move
        at.loss_value = value
        at.lipschitz_intercept = lipschitz


def _linearize(
    problem: Problem, linear: Array, shift: float, gradient: Array | None
) -> Linearization:
    """Return the first-order model of the problem's loss f at the predictions linear + shift.

    ``gradient`` is the gradient in w there, X'f', if it is known; else it is computed.
    """
    derivatives = loss_gradient(problem, linear, shift)
    slope = float(derivatives.sum())
    if gradient is None:
        gradient = problem.design.scores(derivatives).full()
        # Scores may share memory with the derivatives, for example if X is the identity.
        if np.may_share_memory(gradient, derivatives):
            gradient = gradient.copy()
    value = loss_value(problem, linear, shift)
    return Linearization(linear, shift, value, gradient, slope)


def _extrapolated(at: Iterate, new: Iterate, restart: bool) -> Iterate:
    """Return w_k+1 with its extrapolated point v.

    With ``restart``, the momentum is dropped if it points uphill. at, new : the iterates w_k
    and w_k+1. v = w_k+1 + push (w_k+1 - w_k), with push = (rho_k - 1) / rho_k+1 and
    rho_k+1 = (1 + sqrt(1 + 4 rho_k^2)) / 2.
    """
    movement = new.weights - at.weights
    shift = new.intercept - at.intercept
    # The gradient scheme of [O'Donoghue, Candes 2015]: the movement w_k+1 - w_k has a positive
    # product with the generalized gradient L (v - w_k+1) at v; the same for the intercept.
    uphill = new.lipschitz * float((at.ahead_weights - new.weights) @ movement)
    uphill += new.lipschitz_intercept * (at.ahead_intercept - new.intercept) * shift
    momentum = 1.0 if restart and uphill > 0.0 else at.momentum
    new.momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
    push = (momentum - 1.0) / new.momentum
    new.ahead_weights = new.weights + push * movement
    new.ahead_linear = new.linear + push * (new.linear - at.linear)
    new.ahead_intercept = new.intercept + push * shift
    return new
