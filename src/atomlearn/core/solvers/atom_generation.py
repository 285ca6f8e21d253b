"""Fully corrective Frank-Wolfe over atoms: add the best atom, re-fit all weights, drop zeros.

The atoms are the extreme points of the unit ball of the norm (gauge). [V] Vinyes, Obozinski 2017,
Algorithm 1, is column generation over rays (non-negative multiples of atoms). It needs only a
linear minimization oracle: the norm's best atom a, with the largest <a, z> for given scores z. By
[V] Proposition 1 it is fully corrective Frank-Wolfe on a truncated cone. A certificate is an
objective with its duality gap.
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

#: Number of steps without progress after which a run has stalled if each step finds a new atom.
PATIENCE_WITH_NEW_ATOMS = 50


@dataclass(slots=True)
class RayState(State):
    """State of AtomGeneration: w = U c, for a matrix U of t atoms and weights c >= 0.

    Attributes
    ----------
    atoms : AtomSet
        The atoms U and their images X U.
    shares : (t,)
        The weights c; their sum is the upper bound on gauge(w) that the certificate uses.
    candidate : Atom, optional
        The best atom for the scores at w; None if it does not improve the objective.
    refit_gap : float
        Certified duality gap of the last re-fit, over the atoms U only.
    """

    atoms: AtomSet | None = None
    shares: Array = field(default_factory=lambda: np.zeros(0))
    candidate: Atom | None = None
    refit_gap: float = np.inf

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        """Return the atoms and their weights."""
        return () if self.atoms is None else self.atoms.parts(self.shares)

    def check(self) -> None:
        """Raise AssertionError if an invariant of the state fails."""
        State.check(self)
        assert self.atoms is not None
        assert self.shares.shape == (self.atoms.size,)
        assert (self.shares >= 0).all()
        np.testing.assert_allclose(self.atoms.combine(self.shares), self.weights)


@dataclass(frozen=True, slots=True)
class AtomGeneration(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + R(gauge(w)) over rays: [V] Algorithm 1, in all three forms.

    A step is one pass over the data. The best atom at w joins U. The weights c >= 0 of all atoms
    are re-fitted, min over c of f(X U c + b) + tau/2 ||U c||^2 + R(sum c). Atoms of weight zero are
    removed, and w = U c. The sum of c is an upper bound on gauge(w), and is used in its place for
    objective and gap. At the optimum both are equal.

    ``ColumnGeneration`` needs fewer passes for norms that can be restricted to some coordinates. It
    adds a whole subspace in each step, where this solver adds a ray. On a polytope (l1, l_infinity,
    orders, paths) a finite number of rays is enough; on curved balls the rate is linear.

    Parameters
    ----------
    master : Master
        Re-fits the weights of the atoms: a problem over the block X U with the norm sum c on
        c >= 0. The default is sequential quadratic programming for any loss; ``ActiveSetQP`` is [V]
        Algorithm 2, for the squared loss. For tau > 0, a ridge term with U'U, only these two can
        be used, and others are replaced by the default.
    inner_ratio : float
        Share of the outer gap to which the master solves.
    tol : float
        Relative gap to prove; the master does not solve to much less.
    warm_start : bool
        If False, each re-fit begins at zero: a variant of [V].
    prune : bool
        If False, atoms of weight zero are kept: a variant of [V].

    References
    ----------
    [V] Vinyes, Obozinski 2017, Algorithms 1 and 2, and Proposition 1. With many more samples than
    columns, its section 3.3 is a fit to ``designs.from_moments(X.T @ X / n, X.T @ y / n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.0])
    >>> solver = solvers.AtomGeneration()
    >>> result = solve(X, y, alpha=0.25, fit_intercept=False, solver=solver)
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0, 0.0]
    """

    lifts: ClassVar[bool] = False

    master: Master = field(default_factory=SequentialQP)
    inner_ratio: float = INNER_RATIO
    tol: float = TOLERANCE
    warm_start: bool = True
    prune: bool = True

    def start(self, problem: Problem, warm: WarmStart | None = None) -> RayState:
        """Return the state of ``problem`` at w = 0, or at the point of ``warm``: one pass."""
        atoms, shares, intercept = warm_atoms(problem, warm, cached=True)
        return priced_atoms(problem, atoms, shares, intercept, self.tol)

    def step(self, problem: Problem, state: RayState) -> RayState:
        """Add the candidate of ``state``, re-fit all weights, drop atoms of weight 0, and certify.

        The certificate and the next candidate take one pass over the data of ``problem``.
        """
        assert state.atoms is not None
        atoms, shares = with_candidate(problem, state)
        n_new = atoms.size - state.atoms.size
        target = gap_target(problem, state, n_new, self.inner_ratio, self.tol)
        initial = shares if self.warm_start else np.zeros_like(shares)
        fit = refit_on_rays(problem, self.master, atoms, initial, state.intercept, target)
        if self.prune:
            atoms, fit = without_zeros(atoms, fit)
        return following(problem, state, atoms, fit, self.tol)


def with_candidate(problem: Problem, state: RayState) -> tuple[AtomSet, Array]:
    """Return the atoms and weights of ``state``, with its candidate if it is new.

    The candidate u joins with weight 0. ``problem`` has the data X, for its image X u.
    """
    atoms = state.atoms
    atom = state.candidate
    assert atoms is not None
    if atom is None or atoms.find(atom) >= 0:
        return atoms, state.shares
    return atoms.append(problem.design, atom), np.append(state.shares, 0.0)


def gap_target(
    problem: Problem, state: RayState, n_new: int, inner_ratio: float, tol: float
) -> float:
    """Return the absolute duality gap to which the master solves a re-fit.

    Parameters
    ----------
    problem : Problem
    state : RayState
        The state before the re-fit; its gap over all atoms is the outer gap.
    n_new : int
        Number of new atoms. If there are none, only a more accurate re-fit can close the outer gap,
        and the result is smaller.
    inner_ratio : float
        The result, as a share of the outer gap.
    tol : float
        Relative gap that the whole run has to prove.
    """
    # ``closable`` is the gap that further atoms can close.
    certificate = state.certificate
    sufficient = 0.1 * tol * abs(certificate.objective)
    target = (
        max(inner_ratio * certificate.closable, sufficient)
        if n_new
        else min(sufficient, state.refit_gap)
    )
    # No gap below the floor can be proved: at a perfect fit the objective is only rounding.
    floor = max(negligible_objective(problem), 0.1 * certificate.rounding)
    return max(min(target, 0.1 * certificate.closable), floor)


def priced_atoms(
    problem: Problem, atoms: AtomSet, shares: Array, intercept: float, tol: float = 0.0
) -> RayState:
    """Return the state at w = U c with its certificate and best atom, by one pass over the data.

    ``problem`` has the data, and ``shares`` are the weights c (t,) of ``atoms`` U. The intercept is
    optimized, beginning at ``intercept``. If the best atom is found by a heuristic search, the
    polar (dual norm of the scores) has only a lower and an upper bound. If only the upper bound
    keeps the relative gap above ``tol``, it is computed again with more work.
    """
    weights = atoms.combine(shares)
    linear = atoms.images.predict(shares)
    intercept = optimal_intercept(problem, linear, intercept)
    prediction = linear + intercept
    # sum(c) is an upper bound on the gauge, which the norm itself may not be able to compute.
    # ``lengths`` are norms of columns, for the bound on rounding errors in the gap.
    price = prove(
        problem,
        atoms.columns,
        weights,
        prediction,
        gauge=float(shares.sum()),
        tolerance=tol,
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
        candidate=_entering_atom(price),
    )


def _entering_atom(price: Pricing) -> Atom | None:
    """Return the best atom a for the scores z if <a, z> exceeds the multiplier, else None.

    ``price`` has the scores z at the current point w, and the multiplier: the slope of the penalty
    R at gauge(w). An atom whose <a, z> is below this slope would get weight 0.
    """
    atom = price.norm.best_atom(price.scores)
    enters = float(atom.values @ price.scores.at(atom.columns)) > price.multiplier
    return atom if atom.columns.size and enters else None


def without_zeros(atoms: AtomSet, fit: Refit) -> tuple[AtomSet, Refit]:
    """Return the atoms of positive weight in ``fit``, and the fit over these atoms only."""
    support = np.flatnonzero(fit.weights > 0)
    return atoms.take(support), replace(fit, weights=fit.weights[support])


def following(
    problem: Problem, state: RayState, atoms: AtomSet, fit: Refit, tol: float
) -> RayState:
    """Return the next state, at the weights of ``fit``, certified by one pass over the data.

    ``state`` is the state before it, ``atoms`` are the atoms of the fit, and ``tol`` is the
    relative gap to prove.
    """
    after = priced_atoms(problem, atoms, fit.weights, fit.intercept, tol)
    after.iteration = state.iteration + 1
    after.refit_gap = fit.gap
    after.master_steps = state.master_steps + fit.steps
    has_new_atom = after.candidate is not None and atoms.find(after.candidate) < 0
    after.patience = PATIENCE_WITH_NEW_ATOMS if has_new_atom else PATIENCE
    if after.certificate.leaves_open(tol):
        # The search finds no better atom, and more steps do not close the gap of its bounds.
        after.exhausted = Status.SEARCH_RELATIVE
    return after
