"""Semismooth Newton on the restricted problem, globalized so that it never stalls.

Outer: a proximal Newton step with a proximal point term, w_t+1 = argmin_w Q_t(w) + R(w) +
||w - w_t||^2 / (2 sigma), with Q_t the quadratic model of the loss at w_t (the loss itself where
it is squared) and sigma growing; a search along the segment makes every step decrease F. Inner:
the *dual* of that step is smooth and piecewise quadratic, its gradient is z - A w(u) - b(u) with
w(u) = prox(w_t - sigma A'u); semismooth Newton with an exact line search solves it in a few
steps. One master for every norm with a prox and a Jacobian of it.
[Li, Sun, Toh 2018, SSNAL, Algorithms 1 and 2, inside the inexact proximal Newton method.]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces import Block, Master, ProxPoint, Refit, SupportsProx
from atomlearn.masters.newton_system import NewtonSystem
from atomlearn.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuadraticModel:
    """q(z) = g'(z - z0) + 1/2 (z - z0)' D (z - z0), the loss at z0 but for its value there.

    Its gradient u = g + D (z - z0) carries the dual variable.
    """

    origin: Array
    gradient: Array
    curvature: Array

    @classmethod
    def of(cls, problem: Problem, prediction: Array) -> QuadraticModel:
        """Return the model of the problem's loss at this prediction."""
        loss, y, s = problem.loss, problem.y, problem.weight
        return cls(prediction, loss.gradient(y, prediction, s), loss.curvature(y, prediction, s))

    def dual(self, z: Array) -> Array:
        """Return u = q'(z)."""
        return self.gradient + self.curvature * (z - self.origin)


@dataclass(frozen=True, slots=True)
class Centre:
    """One proximal step: model, centre (w_t, b_t) and step sizes sigma, sigma_b."""

    model: QuadraticModel
    weights: Array
    intercept: float
    step: float
    step_intercept: float

    def prox(self, problem: Problem, ascent: Array) -> ProxPoint:
        """Return w(u) for ascent = A'u."""
        point = self.weights - self.step * ascent
        return problem.regularizer.prox_point(point, self.step, problem.tau)

    def shifted_intercept(self, total: float) -> float:
        """Return b(u) for total = sum(u)."""
        return self.intercept - self.step_intercept * total


@dataclass(frozen=True, slots=True)
class DualPoint:
    """One point of the dual: z (n,) carries u = q'(z); ascent = A'u; w(u), b(u), A w(u).

    ``residual`` = z - A w(u) - b(u) is the dual's gradient in u; ``decrement`` = 1/2 r'Dr bounds
    how far the proximal step is from its minimum.
    """

    z: Array
    ascent: Array
    prox: ProxPoint
    intercept: float
    linear: Array
    residual: Array
    decrement: float


@dataclass(frozen=True, slots=True)
class SemismoothNewton(Master):
    """Proximal Newton steps with a proximal point term, solved by Newton on their dual.

    Parameters
    ----------
    first_step : float
        sigma of the first proximal step, in units of 1 / (mean a_j'Da_j).
    growth : float
        Factor on sigma after each full step.
    max_steps : int
        Bound on Newton steps in one call; the best point is returned when it is reached.
    accuracy : float
        A proximal step is solved until its gap is this fraction of ||w - w_t||^2 / (2 sigma).
    """

    first_step: float = 100.0
    growth: float = 10.0
    max_steps: int = 500
    accuracy: float = 0.1

    def solve(
        self, problem: Problem, weights: Array, intercept: float, gap_target: float
    ) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        _check(problem)
        best = certified(problem, weights, None, intercept)
        if best.gap <= gap_target or problem.design.shape[1] == 0:
            return best
        unit, unit_intercept = _unit_steps(problem, best)
        step, steps, idle = self.first_step, 0, 0
        while steps < self.max_steps and idle < 6:
            model = QuadraticModel.of(problem, best.prediction)
            centre = Centre(
                model, best.weights, best.intercept, step * unit, 10 * step * unit_intercept
            )
            point, used = self._proximal_step(problem, centre, self.max_steps - steps)
            steps += max(used, 1)
            trial, length = _decrease(problem, best, point)
            step = min(step * self.growth, 1e12) if length == 1.0 else step / 3
            progress = trial.gap < 0.9 * best.gap or trial.objective < best.objective * (1 - 1e-9)
            idle = 0 if progress else idle + 1
            if length > 0 and (trial.objective <= best.objective or trial.gap < best.gap):
                best = trial
            if best.gap <= gap_target:
                break
        best.steps = steps
        return best

    def _proximal_step(
        self, problem: Problem, centre: Centre, max_steps: int
    ) -> tuple[DualPoint, int]:
        """Solve one proximal step by Newton on its dual, as exactly as it is worth."""
        z = centre.model.origin
        ascent = block_of(problem).transpose_dot(centre.model.dual(z))
        point = _dual_point(problem, centre, z, ascent, centre.prox(problem, ascent))
        for used in range(max_steps):
            if used and point.decrement <= self._enough(centre, point):
                return point, used
            following = _newton_step(problem, centre, point)
            stuck = following.decrement > 0.5 * point.decrement
            negligible = point.decrement <= 1e-20 * (1.0 + float(np.abs(point.z).max()))
            if stuck and negligible:
                return (point if following.decrement > point.decrement else following), used + 1
            point = following
        return point, max_steps

    def _enough(self, centre: Centre, point: DualPoint) -> float:
        movement = point.prox.point - centre.weights
        worth = float(movement @ movement) / (2 * centre.step)
        if centre.step_intercept:
            worth += (point.intercept - centre.intercept) ** 2 / (2 * centre.step_intercept)
        return self.accuracy * worth


def _check(problem: Problem) -> None:
    norm = problem.regularizer.norm
    if not isinstance(norm, SupportsProx):
        raise TypeError(
            f"SemismoothNewton needs a norm with a prox, {type(norm).__name__} has none; "
            "use a solver over its atoms"
        )
    if not isinstance(problem.design, Block):
        raise TypeError(
            f"SemismoothNewton works on a Block of gathered columns, got "
            f"{type(problem.design).__name__}; gather them first, or use ColumnGeneration"
        )


def block_of(problem: Problem) -> Block:
    """Return the restricted problem's design, which is a Block."""
    block = problem.design
    assert isinstance(block, Block)
    return block


def _unit_steps(problem: Problem, at: Refit) -> tuple[float, float]:
    """Return 1 / mean(a_j'Da_j) and 1 / sum(D), the natural units of sigma and sigma_b."""
    curvature = problem.loss.curvature(problem.y, at.prediction, problem.weight)
    total = float(curvature.sum())
    if total <= 1e-6 * float(problem.weight.sum()):
        curvature, total = problem.weight, float(problem.weight.sum())
    mean = float(block_of(problem).squared_norms(curvature).mean())
    return (1.0 / mean if mean > 0 else 1.0), (1.0 / total if problem.fit_intercept else 0.0)


def _dual_point(
    problem: Problem, centre: Centre, z: Array, ascent: Array, prox: ProxPoint
) -> DualPoint:
    total = float(centre.model.dual(z).sum()) if centre.step_intercept else 0.0
    intercept = centre.shifted_intercept(total)
    linear = block_of(problem).dot(prox.point)
    residual = z - linear - intercept
    decrement = 0.5 * float(centre.model.curvature @ (residual * residual))
    return DualPoint(z, ascent, prox, intercept, linear, residual, decrement)


def _newton_step(problem: Problem, centre: Centre, point: DualPoint) -> DualPoint:
    """Make one Newton step on the dual, with an exact search along it."""
    block, curvature = block_of(problem), centre.model.curvature
    system = NewtonSystem(
        block, curvature, point.prox.jacobian(), centre.step, centre.step_intercept
    )
    direction = system.direction(point.residual)
    change = curvature * direction
    ascent_change = block.transpose_dot(change)
    total_change = float(change.sum())
    total = float(centre.model.dual(point.z).sum()) if centre.step_intercept else 0.0
    # psi'(t) along u + t du needs no further product with the block.
    at_zero, per_length = float(change @ point.z), float(change @ direction)

    def slope(length: float) -> tuple[float, ProxPoint]:
        prox = centre.prox(problem, point.ascent + length * ascent_change)
        intercept = centre.shifted_intercept(total + length * total_change)
        value = at_zero + length * per_length
        value -= float(ascent_change @ prox.point) + total_change * intercept
        return value, prox

    start = float(change @ point.residual)
    length, prox = _search(slope, start)
    return _dual_point(
        problem,
        centre,
        point.z + length * direction,
        point.ascent + length * ascent_change,
        prox,
    )


def _search(slope, start: float) -> tuple[float, ProxPoint]:  # type: ignore[no-untyped-def]
    """Return a length where the increasing function ``slope`` is small against its start < 0.

    Full steps are kept while the slope there has not turned clearly positive; otherwise the
    Illinois method finds the zero in between.
    """
    right_value, prox = slope(1.0)
    if right_value <= 0.3 * abs(start):
        return 1.0, prox
    left, right, left_value = 0.0, 1.0, start
    length = 1.0
    for _ in range(20):
        length = right - right_value * (right - left) / (right_value - left_value)
        if not left < length < right:
            length = 0.5 * (left + right)
        value, prox = slope(length)
        if abs(value) <= 0.1 * abs(start):
            break
        if value < 0:
            left, left_value, right_value = length, value, 0.5 * right_value
        else:
            right, right_value, left_value = length, value, 0.5 * left_value
    return length, prox


def _decrease(problem: Problem, best: Refit, point: DualPoint) -> tuple[Refit, float]:
    """Return a point of the segment from ``best`` to the proximal step that decreases F."""
    trial = certified(problem, point.prox.point, point.linear, point.intercept)
    length = 1.0
    linear = best.prediction - best.intercept
    rounding = 1e-13 * abs(best.objective)
    while trial.objective > best.objective + rounding and trial.gap >= best.gap:
        length *= 0.5
        if length < 1e-6:
            return best, 0.0
        weights = best.weights + length * (point.prox.point - best.weights)
        mixed = linear + length * (point.linear - linear)
        trial = certified(problem, weights, mixed, best.intercept)
    return trial, length


def certified(
    problem: Problem, weights: Array, linear: Array | None, intercept: float
) -> Refit:
    """Return the point with optimal intercept, its predictions and its certified gap."""
    block = block_of(problem)
    if linear is None:
        linear = block.dot(weights)
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = linear + intercept
    scores = block.scores(problem.negative_gradient(prediction))
    certificate = problem.certificate(None, weights, intercept, prediction, scores)
    return Refit(weights, intercept, prediction, certificate.gap, certificate.objective)
