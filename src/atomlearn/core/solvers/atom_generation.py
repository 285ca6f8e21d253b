"""Column generation over rays, [V] Algorithm 1: best atoms in, all weights re-fitted, zeros out.

Vinyes, Obozinski 2017. Needs of a norm only its best atom: no restriction, no proximal map, no
value. Also called fully corrective Frank-Wolfe on the truncated cone ([V] Proposition 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Atom, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.problem.problem import Problem, negligible_objective, optimal_intercept
from atomlearn.core.problem.proof import Pricing, prove
from atomlearn.core.solvers.atoms import AtomSet, refit_on_rays
from atomlearn.core.solvers.gauge import warm_atoms
from atomlearn.core.solvers.solver import INNER_RATIO, PATIENCE, TOLERANCE, Solver, State

#: Steps without any progress after which a run has stalled where there are always new atoms, each
#: a little off the last.
PATIENCE_WITH_NEW_ATOMS = 50


@dataclass(slots=True)
class RayState(State):
    """State with rays: w = U c, c > 0.

    atoms : U; shares : (t,) c, whose sum is the bound on gauge(w) of the certificate;
    candidate : the best atom at this point, None where none would enter; refit_gap : certified gap
    of the re-fit that led here.
    """

    atoms: AtomSet | None = None
    shares: Array = field(default_factory=lambda: np.zeros(0))
    candidate: Atom | None = None
    refit_gap: float = np.inf

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        return () if self.atoms is None else self.atoms.parts(self.shares)

    def check(self) -> None:
        State.check(self)
        assert self.atoms is not None
        assert self.shares.shape == (self.atoms.size,)
        assert (self.shares >= 0).all()
        np.testing.assert_allclose(self.atoms.combine(self.shares), self.weights)


@dataclass(frozen=True, slots=True)
class AtomGeneration(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + R(gauge(w)) over rays: [V] Algorithm 1, in all three forms.

    A step is one pass over the data: the best atoms at w join U, the weights c >= 0 of all atoms
    are re-fitted, min over c of f(X U c + b) + tau/2 ||U c||^2 + R(sum c), atoms of weight zero
    leave, w = U c. The sum of c bounds gauge(w), and objective and gap are those of this bound,
    which is tight at the optimum.

    For norms that can be restricted to some coordinates ``ColumnGeneration`` needs fewer passes:
    there a whole subspace enters where here a ray does. On a polytope (l1, l_infinity, orders,
    paths) rays end after finitely many; on curved balls they close in at a linear rate.

    Parameters
    ----------
    master : Master
        Re-fits the weights of the atoms: a problem over the block X U with the norm sum c on
        c >= 0. The default is sequential quadratic programming, one program where the loss is
        quadratic: [V] Algorithm 2. Where tau > 0 there is a ridge term with U'U, which it alone
        knows.
    inner_ratio : float
        The master is asked for this fraction of the outer gap.
    tolerance : float
        Relative gap that will be asked of the whole; the master is not asked for much less.
    warm_start, prune : bool
        False: variants of [V], each re-fit from zero, and atoms of weight zero staying.

    References
    ----------
    [V] Vinyes, Obozinski 2017, Algorithms 1 and 2, and Proposition 1. With many more samples than
    columns, its section 3.3 is a fit to ``designs.from_moments(X.T @ X, X.T @ y)``.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve(X, y, norm="l1", level=1.0, solver=solvers.AtomGeneration())
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0]
    """

    lifts: ClassVar[bool] = False

    master: Master = field(default_factory=SequentialQP)
    inner_ratio: float = INNER_RATIO
    tolerance: float = TOLERANCE
    warm_start: bool = True
    prune: bool = True

    def start(self, problem: Problem, warm: WarmStart | None = None) -> RayState:
        """Begin at zero, or at the warm start as one atom w / gauge(w): one pass."""
        atoms, shares, intercept = warm_atoms(problem, warm, cached=True)
        return priced_atoms(problem, atoms, shares, intercept, self.tolerance)

    def step(self, problem: Problem, state: RayState) -> RayState:
        """Add the candidate, re-fit, drop zeros, price: one pass over the data."""
        assert state.atoms is not None
        atoms, shares = with_candidate(problem, state)
        n_new = atoms.size - state.atoms.size
        target = gap_target(problem, state, n_new, self.inner_ratio, self.tolerance)
        begin = shares if self.warm_start else np.zeros_like(shares)
        fit = refit_on_rays(problem, self.master, atoms, begin, state.intercept, target)
        if self.prune:
            atoms, fit = without_zeros(atoms, fit)
        return following(problem, state, atoms, fit, self.tolerance)


def with_candidate(problem: Problem, state: RayState) -> tuple[AtomSet, Array]:
    """Return the atoms with the candidate, at weight zero, if it is new."""
    atoms = state.atoms
    atom = state.candidate
    assert atoms is not None
    if atom is None or atoms.find(atom) >= 0:
        return atoms, state.shares
    return atoms.append(problem.design, atom), np.append(state.shares, 0.0)


def gap_target(
    problem: Problem, state: RayState, n_new: int, inner_ratio: float, tolerance: float
) -> float:
    """Return the gap to ask of the re-fit: less where nothing but the re-fit can close it."""
    certificate = state.certificate
    enough = 0.1 * tolerance * abs(certificate.objective)
    wanted = (
        max(inner_ratio * certificate.closable, enough) if n_new else min(enough, state.refit_gap)
    )
    # Where the fit is perfect F is the square of rounding errors, and the bound of rounding stays:
    # there is nothing to gain.
    floor = max(negligible_objective(problem), 0.1 * certificate.rounding)
    return max(min(wanted, 0.1 * certificate.closable), floor)


def priced_atoms(
    problem: Problem,
    atoms: AtomSet,
    shares: Array,
    intercept: float,
    tolerance: float = 0.0,
) -> RayState:
    """One pass over the data: scores, the best atom, and the certificate of this very point.

    Where the oracle is a search that finds nothing beyond ``tolerance`` (relative), the bound from
    above is worth more work.
    """
    weights = atoms.combine(shares)
    linear = atoms.images.dot(shares)
    intercept = optimal_intercept(problem, linear, intercept)
    prediction = linear + intercept
    price = prove(
        problem,
        atoms.columns,
        weights,
        prediction,
        gauge=float(shares.sum()),
        tolerance=tolerance,
        lengths=problem.measured.of(problem.design, problem.weight, atoms.columns),
    )
    return RayState(
        columns=atoms.columns,
        weights=weights,
        intercept=intercept,
        prediction=prediction,
        certificate=price.certificate,
        atoms=atoms,
        shares=shares,
        candidate=_entering(price),
    )


def _entering(price: Pricing) -> Atom | None:
    """Return the best atom where <a, z> is beyond the multiplier of the point, else None."""
    atom = price.norm.best_atom(price.scores)
    enters = float(atom.values @ price.scores.at(atom.columns)) > price.multiplier
    return atom if atom.columns.size and enters else None


def without_zeros(atoms: AtomSet, fit: Refit) -> tuple[AtomSet, Refit]:
    """Return the atoms with a weight, and the fit over them."""
    used = np.flatnonzero(fit.weights > 0)
    return atoms.take(used), replace(fit, weights=fit.weights[used])


def following(
    problem: Problem, state: RayState, atoms: AtomSet, fit: Refit, tolerance: float
) -> RayState:
    """Return the priced state of this fit, the one after ``state``: one pass over the data."""
    after = priced_atoms(problem, atoms, fit.weights, fit.intercept, tolerance)
    after.iteration = state.iteration + 1
    after.refit_gap = fit.gap
    after.master_steps = state.master_steps + fit.steps
    new = after.candidate is not None and atoms.find(after.candidate) < 0
    after.patience = PATIENCE_WITH_NEW_ATOMS if new else PATIENCE
    if after.certificate.leaves_open(tolerance):
        # The search finds nothing more; what its bounds leave open, more steps do not close.
        after.exhausted = Status.SEARCH_RELATIVE
    return after
