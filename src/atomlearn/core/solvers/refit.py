"""Re-fits over atoms: the conical problem of [V] (6), as a problem of rays for a master."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.master import Master
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.norms.combine import Nonnegative
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atoms import AtomSet


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
    master: Master,
    atoms: AtomSet,
    weights: Array,
    intercept: float,
    gap_target: float,
) -> RayFit:
    """argmin over c >= 0, b of  f(X U c + b) + tau/2 ||U c||^2 + R(sum c)  ([V] (5) and (6)).

    The master gets it as a problem over the block X U with the norm sum c on c >= 0. Masters that
    work with proximal maps do not know a ridge term with U'U: there the QP takes their place.
    """
    if problem.tau and not isinstance(master, SequentialQP):
        master = SequentialQP()
    form, amount = problem.regularizer.form, problem.regularizer.amount
    rays = replace(
        problem,
        design=atoms.images,
        regularizer=Regularizer(Nonnegative(L1()), form, amount),
        metric=atoms.gram,
    )
    refit = ModelNewton(master).solve(rays, weights, intercept, gap_target)
    linear = refit.prediction - refit.intercept
    return RayFit(refit.weights, linear, refit.intercept, refit.steps, refit.gap)


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
