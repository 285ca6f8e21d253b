"""Accelerated proximal gradient with backtracking and a separate step for the intercept.

[T] Algorithm 4 (Tan, Tsang, Wang 2014), for any smooth loss and any norm with a prox; the Moreau
projection of [T] Algorithm 3 is the prox of the ``Groups`` norm in its squared form. One iteration
function serves this master and the FISTA solver over all columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces import Block, Master, Refit, SupportsPredict, SupportsProx
from atomlearn.problem import Problem

Array = NDArray[np.float64]

#: (v, step) -> argmin_x 1/2 ||x - v||^2 + step * (tau/2 ||x||^2 + R(x))
Proximal = Callable[[Array, float], Array]

#: Below this share of f, a difference of two values of f is mostly rounding.
ROUNDING_SHARE = 1e-8

#: A relative change of predictions so small that its curvature is mostly rounding.
NEGLIGIBLE = 1e-11

#: Iterations without a tenth off the gap after which a master gives back what it has.
PATIENCE = 2000


@dataclass(slots=True)
class Iterate:
    """Where the iteration stands: the point w_k, and the extrapolated point v it steps from.

    weights, linear, intercept : w_k, X w_k, b_k; ahead_* : the same of v; momentum : rho_k;
    lipschitz, lipschitz_intercept : the current estimates L of w and L_b of b.
    """

    weights: Array
    linear: Array
    intercept: float
    ahead_weights: Array
    ahead_linear: Array
    ahead_intercept: float
    momentum: float
    lipschitz: float
    lipschitz_intercept: float

    @classmethod
    def at(
        cls, problem: Problem, weights: Array, linear: Array, intercept: float, lipschitz: float
    ) -> Iterate:
        """Return the first iterate, without momentum."""
        curvature = problem.loss.curvature(problem.y, linear + intercept, problem.weight)
        total = float(curvature.sum()) or float(problem.weight.sum())
        return cls(weights, linear, intercept, weights, linear, intercept, 1.0, lipschitz, total)


@dataclass(frozen=True, slots=True)
class Acceleration:
    """How one accelerated proximal gradient iteration is made.

    shrink : eta in (0, 1], the estimates of L may fall by this factor from one iteration to the
    next; growth : factor on L where the line search refuses; refit_intercept : b is minimised
    over at every point (FISTA), else it takes its own line-searched step ([T] Algorithm 4).
    """

    shrink: float = 0.9
    growth: float = 2.0
    refit_intercept: bool = False

    def iterate(self, problem: Problem, proximal: Proximal, at: Iterate) -> Iterate:
        """Return the next iterate: one product with X', one with X for each trial of L."""
        b = at.ahead_intercept
        if self.refit_intercept:
            b = problem.optimal_intercept(at.ahead_linear, b)
        z = at.ahead_linear + b
        dual = problem.loss.gradient(problem.y, z, problem.weight)
        gradient = problem.design.scores(dual).full()
        weights, linear, lipschitz, local = self._line_search(
            problem, proximal, at, z, dual, gradient, b
        )
        if self.refit_intercept:
            intercept, lipschitz_intercept = problem.optimal_intercept(linear, b), 1.0
        else:
            intercept, lipschitz_intercept = self._intercept_step(
                problem, linear, b, at.lipschitz_intercept
            )
        lipschitz = max(self.shrink * lipschitz, min(local, lipschitz))
        return _extrapolated(at, weights, linear, intercept, lipschitz, lipschitz_intercept)

    def _line_search(
        self,
        problem: Problem,
        proximal: Proximal,
        at: Iterate,
        z: Array,
        dual: Array,
        gradient: Array,
        intercept: float,
    ) -> tuple[Array, Array, float, float]:
        """Return w, X w, the accepted L and the L that this very step would have needed."""
        lipschitz = at.lipschitz
        design = cast(SupportsPredict, problem.design)
        while True:
            weights = proximal(at.ahead_weights - gradient / lipschitz, 1.0 / lipschitz)
            linear = design.predict(weights)
            movement = weights - at.ahead_weights
            square = float(movement @ movement)
            if square == 0.0:
                return weights, linear, lipschitz, 0.0
            if self.refit_intercept:
                intercept = problem.optimal_intercept(linear, intercept)
            local = 2.0 * _bregman(problem, z, dual, linear + intercept) / square
            if local <= lipschitz * (1 + 1e-10) or lipschitz > 1e300:
                return weights, linear, lipschitz, local
            lipschitz = max(self.growth * lipschitz, min(local, 8.0 * lipschitz))

    def _intercept_step(
        self, problem: Problem, linear: Array, b: float, lipschitz: float
    ) -> tuple[float, float]:
        """Steepest descent on b with its own Armijo search, [T] (36): O(n_samples) a trial.

        The slope is taken at the new w, where (36) is tested: then the search always ends.
        """
        if not problem.fit_intercept:
            return 0.0, lipschitz
        z = linear + b
        dual = problem.loss.gradient(problem.y, z, problem.weight)
        slope = float(dual.sum())
        if slope == 0.0:
            return b, lipschitz
        # Here (36) always holds; without a bound the search itself finds where.
        ceiling = min(problem.loss.smoothness * float(problem.weight.sum()), 1e300)
        lipschitz = min(self.shrink * lipschitz, ceiling)
        while lipschitz < ceiling:
            move = -slope / lipschitz
            # (36) in other words: the decrease is slope^2 / L less the distance of Bregman.
            if _bregman(problem, z, dual, z + move) <= 0.5 * lipschitz * move * move:
                break
            lipschitz = min(self.growth * lipschitz, ceiling)
        return b - slope / lipschitz, lipschitz


def _bregman(problem: Problem, z: Array, dual: Array, trial: Array) -> float:
    """Return f(trial) - f(z) - <f'(z), trial - z>, accurate also where it is tiny."""
    loss, y, s = problem.loss, problem.y, problem.weight
    difference = trial - z
    value = loss.value(y, z, s)
    if float(np.abs(difference).max(initial=0.0)) <= NEGLIGIBLE * float(np.abs(z).max(initial=0.0)):
        return 0.0
    direct = loss.value(y, trial, s) - value - float(dual @ difference)
    if abs(direct) > ROUNDING_SHARE * max(abs(value), abs(float(dual @ difference))):
        return direct
    # Half of the symmetrized distance: no subtraction of nearly equal values of f.
    return 0.5 * float((loss.gradient(y, trial, s) - dual) @ difference)


def _extrapolated(
    at: Iterate,
    weights: Array,
    linear: Array,
    intercept: float,
    lipschitz: float,
    lipschitz_intercept: float,
) -> Iterate:
    """Return w_k+1 with v = w_k+1 + (rho_k - 1)/rho_k+1 (w_k+1 - w_k), restarted when it turns."""
    movement = weights - at.weights
    # The momentum points uphill: forget it. [O'Donoghue, Candes 2015, gradient scheme]
    turn = lipschitz * float((at.ahead_weights - weights) @ movement)
    turn += lipschitz_intercept * (at.ahead_intercept - intercept) * (intercept - at.intercept)
    momentum = 1.0 if turn > 0.0 else at.momentum
    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
    push = (momentum - 1.0) / following
    return Iterate(
        weights,
        linear,
        intercept,
        weights + push * movement,
        linear + push * (linear - at.linear),
        intercept + push * (intercept - at.intercept),
        following,
        lipschitz,
        lipschitz_intercept,
    )


def first_lipschitz(problem: Problem, v: Array, scores: Array, prediction: Array) -> float:
    """Return a first guess of L from products computed anyway: ||X'v||^2 / ||v||^2 times f''."""
    square = float(v @ v)
    curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
    mean = float(curvature.mean()) or float(problem.weight.mean())
    guess = mean * float(scores @ scores) / square if square > 0 else 0.0
    return guess if 0 < guess < math.inf else 1.0


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
    """

    relative_decrease: float | None = None
    check_every: int = 10
    max_iter: int = 20000
    shrink: float = 0.9

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        _check(problem)
        linear = cast(SupportsPredict, problem.design).predict(weights)
        start, scores = _certified(problem, weights, linear, intercept)
        if start.gap <= gap_target or weights.size == 0:
            return start
        best, objective, steps = start, start.objective, 0
        v = problem.negative_gradient(start.prediction)
        lipschitz = first_lipschitz(problem, v, scores, start.prediction)
        at = Iterate.at(problem, weights, linear, start.intercept, lipschitz)
        acceleration = Acceleration(shrink=self.shrink)

        def proximal(point: Array, step: float) -> Array:
            return problem.regularizer.prox_point(point, step, problem.tau).point

        checkpoint, checkpoint_gap = 0, start.gap
        while steps < self.max_iter and best.gap > gap_target:
            before, at = at, acceleration.iterate(problem, proximal, at)
            steps += 1
            ends = at.momentum < 2.0 and np.array_equal(at.weights, before.weights)
            if self.relative_decrease is not None:
                previous = objective
                objective = problem.objective(at.weights, at.linear + at.intercept)
                ends |= 0.0 <= previous - objective <= self.relative_decrease * abs(previous)
            if ends or steps % self.check_every == 0 or steps == self.max_iter:
                trial, _ = _certified(problem, at.weights, at.linear, at.intercept)
                closer = trial.gap < best.gap and trial.objective <= start.objective
                if closer or trial.objective < best.objective:
                    best = trial
                if trial.gap <= 0.9 * checkpoint_gap:
                    checkpoint, checkpoint_gap = steps, trial.gap
                # Rounding holds the gap where it is: more of the same will not help.
                ends |= steps - checkpoint >= PATIENCE
            if ends:
                break
        best.steps = steps
        return best


def _certified(
    problem: Problem, weights: Array, linear: Array, intercept: float
) -> tuple[Refit, Array]:
    """Return the point with optimal intercept and its certified gap, and its scores."""
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = linear + intercept
    scores = problem.design.scores(problem.negative_gradient(prediction))
    certificate = problem.certificate(None, weights, intercept, prediction, scores)
    refit = Refit(weights, intercept, prediction, certificate.gap, certificate.objective)
    return refit, scores.full()


def _check(problem: Problem) -> None:
    norm, design = problem.regularizer.norm, problem.design
    if not isinstance(norm, SupportsProx):
        raise TypeError(
            f"AcceleratedGradient needs a norm with a prox, {type(norm).__name__} has none; "
            "use a solver over its atoms"
        )
    if not isinstance(design, Block):
        raise TypeError(
            f"AcceleratedGradient works on a Block of gathered columns, got "
            f"{type(design).__name__}; gather them first, or use solvers.FISTA over all columns"
        )
