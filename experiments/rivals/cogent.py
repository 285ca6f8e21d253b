"""CoGEnT: forward steps as in column generation over rays, backward steps that remove atoms.

Rao, Shah, Wright 2015, Forward-backward greedy algorithms for atomic norm regularization, for the
constrained form; the regularized variant is that of [V] section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, WarmStart
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.problem.problem import Problem, negative_gradient, objective_at
from atomlearn.core.solvers.atom_generation import (
    RayState,
    following,
    gap_target,
    priced_atoms,
    with_candidate,
    without_zeros,
)
from atomlearn.core.solvers.atoms import AtomSet, refit_on_rays
from atomlearn.core.solvers.gauge import warm_atoms
from atomlearn.core.solvers.solver import Solver


@dataclass(slots=True)
class GreedyState(RayState):
    """State with rays; truncated : atoms that backward steps have removed so far."""

    truncated: int = 0

    @classmethod
    def of(cls, state: RayState, truncated: int) -> GreedyState:
        """Return this state with the number of atoms removed so far."""
        known = {part.name: getattr(state, part.name) for part in fields(RayState)}
        return cls(**known, truncated=truncated)


@dataclass(frozen=True, slots=True)
class CoGEnT(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + R(gauge(w)): forward-backward greedy over rays.

    A step is one pass over the data. Forward: the best atom joins, the weights c >= 0 of all atoms
    are re-fitted. Backward: as long as F stays at most

        eta F(before the step) + (1 - eta) F(after the forward step),

    the atom whose removal costs least, by the quadratic model -<F', c_h u_h> + c_h^2/2 <u_h, H u_h>
    with H the Hessian of the smooth part, is removed and the others are re-fitted.

    Parameters
    ----------
    eta : float in [0, 1)
        How much of the forward step's decrease may be given back; 0 never removes an atom that is
        of any use. [V] uses 0.5.
    master : Master
        The re-fits. The paper uses projected gradient, which is ``AcceleratedGradient()``; the
        quadratic programs of the default find the same points faster.
    inner_ratio : float
        The master is asked for this fraction of the outer gap.
    tol : float
        Relative gap that will be asked of the whole.

    References
    ----------
    Rao, Shah, Wright 2015, Forward-backward greedy algorithms for atomic norm regularization;
    [V] section 4 for the regularized form.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import CoGEnT
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve_sum(X, y, norm="l1", level=1.0, solver=CoGEnT())
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0]
    """

    lifts: ClassVar[bool] = False

    eta: float = 0.5
    master: Master = field(default_factory=SequentialQP)
    inner_ratio: float = 1e-3
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if not 0.0 <= self.eta < 1.0:
            raise ValueError(
                f"CoGEnT: eta must be in [0, 1), the share of a step's decrease that removing "
                f"atoms may give back; got {self.eta!r}"
            )

    def start(self, problem: Problem, warm: WarmStart | None = None) -> GreedyState:
        """Begin at zero, or at the warm start as one atom w / gauge(w): one pass."""
        return GreedyState.of(priced_atoms(problem, *warm_atoms(problem, warm, cached=True)), 0)

    def step(self, problem: Problem, state: GreedyState) -> GreedyState:
        """Forward, backward, price: one pass over the data."""
        assert state.atoms is not None
        atoms, shares = with_candidate(problem, state)
        n_new = atoms.size - state.atoms.size
        target = gap_target(problem, state, n_new, self.inner_ratio, self.tol)
        fit = refit_on_rays(problem, self.master, atoms, shares, state.intercept, target)
        reached = ray_objective(problem, atoms, fit)
        threshold = self.eta * state.certificate.objective + (1.0 - self.eta) * reached
        atoms, fit, truncated = self._truncate(problem, atoms, fit, threshold, target)
        after = following(problem, state, atoms, fit, self.tol)
        return GreedyState.of(after, state.truncated + truncated)

    def _truncate(
        self, problem: Problem, atoms: AtomSet, fit: Refit, threshold: float, target: float
    ) -> tuple[AtomSet, Refit, int]:
        """Remove atoms while F stays at most ``threshold``; those without weight always go."""
        truncated = 0
        atoms, fit = without_zeros(atoms, fit)
        while atoms.size > 1:
            worst = int(removal_costs(problem, atoms, fit).argmin())
            kept = np.delete(np.arange(atoms.size), worst)
            fewer = atoms.take(kept)
            trial = refit_on_rays(
                problem, self.master, fewer, fit.weights[kept], fit.intercept, target
            )
            trial = replace(trial, steps=fit.steps + trial.steps)
            if not ray_objective(problem, fewer, trial) <= threshold:
                return atoms, replace(fit, steps=trial.steps), truncated
            atoms, fit = without_zeros(fewer, trial)
            truncated += 1
        return atoms, fit, truncated


def ray_objective(problem: Problem, atoms: AtomSet, fit: Refit) -> float:
    """Return F at w = U c with sum c for the gauge."""
    weights, prediction = atoms.combine(fit.weights), fit.prediction
    return objective_at(problem, weights, prediction, float(fit.weights.sum()))


def removal_costs(problem: Problem, atoms: AtomSet, fit: Refit) -> Array:
    """Return, for each atom, the change of F when it is dropped, by the quadratic model at w."""
    prediction = fit.prediction
    v = negative_gradient(problem, prediction)
    curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
    slopes = -atoms.images.scores(v).full()
    bends = atoms.images.squared_norms(curvature)
    if problem.tau:
        assert atoms.gram is not None
        slopes += problem.tau * (atoms.gram @ fit.weights)
        bends += problem.tau * np.diag(atoms.gram)
    form, amount, total = problem.regularizer.form, problem.regularizer.amount, fit.weights.sum()
    if form == "penalized":
        slopes += amount
    elif form == "squared":
        slopes += amount * total
        bends += amount
    return -fit.weights * slopes + 0.5 * fit.weights**2 * bends
