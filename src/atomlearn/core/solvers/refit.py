"""Re-fits over atoms: the simplicial problem of [L] (S4) and the conical problem of [V] (6).

Both are solved over the simplex, the second one through the truncated cone of [V] (4), or, as a
problem over non-negative weights, by any master.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Master
from atomlearn.core.masters.simplex import SimplexPoint, SimplexQuasiNewton
from atomlearn.core.norms.combine import Nonnegative
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atoms import AtomSet

Array = NDArray[np.float64]

#: What re-fits the weights of atoms: a master for problems over a block, or the simplex master.
RayMaster = Master | SimplexQuasiNewton

#: This share of the loss at zero is the square of the rounding errors of a perfect fit ...
PERFECT = 1e-26
#: ... of which a few steps may still take something away; more would follow the noise.
LAST_TRIES = 5


@dataclass(frozen=True, slots=True)
class SimplexModel:
    """phi(alpha) = min_b f(X w + b) + tau/2 ||w||^2 + costs'alpha + square/2 s^2, w = scale U a.

    alpha = (alpha_0, a) in the simplex, alpha_0 the share of zero; s = scale sum(a).
    """

    atoms: AtomSet
    costs: Array
    scale: float = 1.0
    square: float = 0.0

    def linear(self, alpha: Array) -> Array:
        """Return X w."""
        return self.atoms.images.dot(self.scale * alpha[1:])

    def gradient(self, problem: Problem, alpha: Array, v: Array) -> tuple[float, Array]:
        """Return what is not f of phi, and the gradient of phi where f' = -v."""
        weights = self.scale * alpha[1:]
        total = float(weights.sum())
        value = float(self.costs @ alpha) + 0.5 * self.square * total * total
        slope = self.square * total - self.atoms.images.transpose_dot(v)
        if self.atoms.gram is not None:
            pull = problem.tau * (self.atoms.gram @ weights)
            value += 0.5 * float(weights @ pull)
            slope = slope + pull
        gradient = self.costs.copy()
        gradient[1:] += self.scale * slope
        return value, gradient

    def curvature(self, problem: Problem, z: Array) -> Array:
        """Return the Hessian of phi where the predictions are z."""
        curvature = problem.loss.curvature(problem.y, z, problem.weight)
        hessian = self.atoms.images.gram(curvature)
        total = float(curvature.sum())
        if problem.fit_intercept and total > 0:
            means = self.atoms.images.transpose_dot(curvature)
            hessian = hessian - np.outer(means, means) / total
        if self.atoms.gram is not None:
            hessian = hessian + problem.tau * self.atoms.gram
        full = np.zeros((self.atoms.size + 1, self.atoms.size + 1))
        full[1:, 1:] = self.scale**2 * (hessian + self.square)
        return full


def refit_on_simplex(
    problem: Problem,
    master: SimplexQuasiNewton,
    model: SimplexModel,
    alpha: Array,
    intercept: float,
    gap_target: float,
) -> tuple[SimplexPoint, float]:
    """argmin of the model over the simplex, with the optimal intercept there."""
    found = intercept

    def function(shares: Array) -> tuple[float, Array]:
        nonlocal found
        linear = model.linear(shares)
        found = problem.optimal_intercept(linear, found)
        z = linear + found
        rest, gradient = model.gradient(problem, shares, problem.negative_gradient(z))
        return problem.loss.value(problem.y, z, problem.weight) + rest, gradient

    def curvature(shares: Array) -> Array:
        return model.curvature(problem, model.linear(shares) + found)

    # Losses and penalties are bounded below by zero.
    point = master.solve(function, alpha, gap_target, curvature, lowest=0.0)
    return point, problem.optimal_intercept(model.linear(point.alpha), found)


@dataclass(frozen=True, slots=True)
class RayFit:
    """Weights c >= 0 of the atoms: (t,); X U c and the intercept; master steps; certified gap."""

    weights: Array
    linear: Array
    intercept: float
    steps: int
    gap: float


def refit_on_rays(
    problem: Problem,
    master: RayMaster,
    atoms: AtomSet,
    weights: Array,
    intercept: float,
    gap_target: float,
) -> RayFit:
    """argmin over c >= 0, b of  f(X U c + b) + tau/2 ||U c||^2 + R(sum c)  ([V] (5) and (6)).

    A ``Master`` gets it as a problem over the block X U with the norm sum c on c >= 0, which says
    nothing of tau; with tau > 0 the simplex master solves it, with U'U.
    """
    if isinstance(master, SimplexQuasiNewton) or problem.tau:
        simplex = master if isinstance(master, SimplexQuasiNewton) else SimplexQuasiNewton()
        return _on_truncated_cone(problem, simplex, atoms, weights, intercept, gap_target)
    form, amount = problem.regularizer.form, problem.regularizer.amount
    rays = replace(
        problem, design=atoms.images, regularizer=Regularizer(Nonnegative(L1()), form, amount)
    )
    refit = master.solve(rays, weights, intercept, gap_target)
    linear = refit.prediction - refit.intercept
    return RayFit(refit.weights, linear, refit.intercept, refit.steps, refit.gap)


def _on_truncated_cone(
    problem: Problem,
    master: SimplexQuasiNewton,
    atoms: AtomSet,
    weights: Array,
    intercept: float,
    gap_target: float,
) -> RayFit:
    """[V] (4): c = reach * alpha with sum alpha <= 1, for a reach the solution does not touch."""
    linear = atoms.images.dot(weights)
    z = linear + problem.optimal_intercept(linear, intercept)
    if _is_perfect(problem, z):
        master = replace(master, max_iter=min(master.max_iter, LAST_TRIES))
    total = float(weights.sum())
    bound = truncation(problem, atoms.combine(weights), z, total)
    # A reach far beyond the solution costs digits: begin near, and go on where it binds.
    reach = min(bound, 4.0 * total) if total > 0 else bound
    steps = 0
    while reach > 0.0:
        alpha = np.append(0.0, weights / reach)
        alpha[0] = max(0.0, 1.0 - float(alpha.sum()))
        model = _cone_model(problem, atoms, reach)
        point, intercept = refit_on_simplex(problem, master, model, alpha, intercept, gap_target)
        weights, steps = reach * point.alpha[1:], steps + point.steps
        if reach >= bound or point.alpha[0] > 0.0:
            return RayFit(weights, atoms.images.dot(weights), intercept, steps, point.gap)
        reach = min(bound, 4.0 * reach)
    return RayFit(weights, linear, intercept, steps, 0.0)


def _is_perfect(problem: Problem, prediction: Array) -> bool:
    """Return True where the loss is the square of rounding errors."""
    at_zero = problem.loss.value(problem.y, np.zeros_like(problem.y), problem.weight)
    return problem.loss.value(problem.y, prediction, problem.weight) <= PERFECT * at_zero


def _cone_model(problem: Problem, atoms: AtomSet, reach: float) -> SimplexModel:
    """Return the truncated cone as a simplex: R(sum c) is linear or a square of the shares."""
    costs, square = np.zeros(atoms.size + 1), 0.0
    if problem.regularizer.form == "penalized":
        costs[1:] = problem.regularizer.amount * reach
    elif problem.regularizer.form == "squared":
        square = problem.regularizer.amount
    return SimplexModel(atoms, costs, reach, square)


def truncation(problem: Problem, weights: Array, prediction: Array, gauge: float) -> float:
    """Return rho >= gauge(w*) for every solution w*: the truncation of the cone in [V] (4).

    F is at most its value here, and losses are bounded below by zero: so level gauge(w*) <= F
    (penalized), level/2 gauge(w*)^2 <= F (squared). The radius, in the constrained form. This
    point, of a gauge at most ``gauge``, lies within too.
    """
    regularizer = problem.regularizer
    if regularizer.form == "constrained":
        return regularizer.amount
    objective = problem.objective(weights, prediction, gauge)
    if regularizer.form == "penalized":
        return objective / regularizer.amount
    return math.sqrt(2.0 * objective / regularizer.amount)
