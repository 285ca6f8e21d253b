"""Column generation over rays, [V] Algorithm 1: best atoms in, all weights re-fitted, zeros out.

Vinyes, Obozinski 2017. Needs of a norm only its best atom: no restriction, no proximal map, no
value. Also called fully corrective Frank-Wolfe on the truncated cone ([V] Proposition 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from atomlearn.core.data.scores import ShiftedScores
from atomlearn.core.interfaces import Array, Atom, Master, Scores, Solver, State, WarmStart
from atomlearn.core.interfaces.numbers import whole_number
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Status
from atomlearn.core.solvers.atoms import AtomSet
from atomlearn.core.solvers.gauge import warm_atoms
from atomlearn.core.solvers.moments import Moments
from atomlearn.core.solvers.refit import RayFit, refit_on_rays

#: Steps without any progress after which a run has stalled: where the best atom is known already,
#: and where there are always new ones, each a little off the last.
PATIENCE, PATIENCE_WITH_NEW_ATOMS = 3, 30


@dataclass(slots=True)
class RayState(State):
    """State with rays: w = U c, c > 0.

    atoms : U; shares : (t,) c, whose sum is the bound on gauge(w) of the certificate;
    candidates : the best atoms at this point, best first; refit_gap : certified gap of the re-fit
    that led here; master_steps : steps (pivots) of the master so far; moments : the
    problem over X'X where the steps are made there: then ``prediction`` has its rows, but where the
    gap is proved over X.
    """

    atoms: AtomSet | None = None
    shares: Array = field(default_factory=lambda: np.zeros(0))
    candidates: tuple[Atom, ...] = ()
    refit_gap: float = np.inf
    master_steps: int = 0
    moments: Moments | None = None

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
        c >= 0. The default is [V] Algorithm 2 (``ActiveSetQP``) where the loss is quadratic, and
        sequential quadratic programming elsewhere. Where tau > 0 there is a ridge term with U'U,
        which these two alone know.
    batch : int
        Atoms one pass asks for. The second and further ones are the best on the coordinates that
        those before left alone, so they are only found for norms with sparse atoms.
    inner_ratio : float
        The master is asked for this fraction of the outer gap.
    tolerance : float
        Relative gap that will be asked of the whole; the master is not asked for much less.
    moments : bool
        With the squared loss, and 4 times as many samples as features (1000 of them at most),
        steps are made on Q = X'X and X'y, as in [V] section 3.3, for which X is read once.
        False: a pass over X a step.
    warm_start, prune : bool
        False: variants of [V], each re-fit from zero, and atoms of weight zero staying.

    References
    ----------
    [V] Vinyes, Obozinski 2017, Algorithms 1 and 2, section 3.3 and Proposition 1.

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
    batch: int = 1
    inner_ratio: float = 1e-2
    tolerance: float = 1e-6
    moments: bool = True
    warm_start: bool = True
    prune: bool = True

    def __post_init__(self) -> None:
        whole_number("AtomGeneration", "batch", self.batch)

    def start(self, problem: Problem, warm: WarmStart | None = None) -> RayState:
        """Begin at zero, or at the warm start as one atom w / gauge(w): one pass."""
        moments = Moments.of(problem) if self.moments else None
        inner = problem if moments is None else moments.until(problem.deadline)
        atoms, shares, intercept = warm_atoms(inner, warm, cached=True)
        state = priced(inner, atoms, shares, intercept, self.batch, self.tolerance)
        return state if moments is None else moments.told(problem, state, self.tolerance)

    def step(self, problem: Problem, state: RayState) -> RayState:
        """Add the candidates, re-fit, drop zeros, price: one pass over the data."""
        assert state.atoms is not None
        moments = state.moments
        inner = problem if moments is None else moments.until(problem.deadline)
        atoms, shares = with_candidates(inner, state)
        n_new = atoms.size - state.atoms.size
        target = gap_target(problem, state, n_new, self.inner_ratio, self.tolerance)
        begin = shares if self.warm_start else np.zeros_like(shares)
        fit = refit_on_rays(inner, self.master, atoms, begin, state.intercept, target)
        if self.prune:
            atoms, fit = without_zeros(atoms, fit)
        after = following(inner, state, atoms, fit, self.batch, self.tolerance)
        return after if moments is None else moments.told(problem, after, self.tolerance)


def with_candidates(problem: Problem, state: RayState) -> tuple[AtomSet, Array]:
    """Return the atoms with those candidates that are new, at weight zero."""
    atoms = state.atoms
    assert atoms is not None
    for atom in state.candidates:
        if atoms.find(atom) < 0:
            atoms = atoms.append(problem.design, atom)
    return atoms, np.append(state.shares, np.zeros(atoms.size - state.shares.size))


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
    floor = max(problem.negligible, 0.1 * certificate.rounding)
    return max(min(wanted, 0.1 * certificate.closable), floor)


def priced(
    problem: Problem,
    atoms: AtomSet,
    shares: Array,
    intercept: float,
    batch: int,
    tolerance: float = 0.0,
) -> RayState:
    """One pass over the data: scores, the best atoms, and the certificate of this very point.

    Where the oracle is a search that finds nothing beyond ``tolerance`` (relative), the bound from
    above is worth more work.
    """
    weights, linear = atoms.combine(shares), atoms.images.dot(shares)
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = linear + intercept
    price = problem.price(
        atoms.columns,
        weights,
        prediction,
        gauge=float(shares.sum()),
        tolerance=tolerance,
        lengths=problem.measured.of(problem, atoms.columns),
    )
    return RayState(
        columns=atoms.columns,
        weights=weights,
        intercept=intercept,
        prediction=prediction,
        certificate=price.certificate,
        atoms=atoms,
        shares=shares,
        candidates=best_atoms(problem, price.scores, batch, price.multiplier),
    )


def best_atoms(problem: Problem, scores: Scores, count: int, level: float) -> tuple[Atom, ...]:
    """Return up to ``count`` atoms with <a, z> > level: the best, then the best beside those.

    Each further one is the best for the scores without the coordinates used so far; it is rated
    by all scores.
    """
    found: list[Atom] = []
    rest = scores
    for _ in range(count):
        atom = problem.regularizer.norm.best_atom(rest)
        if not atom.columns.size or float(atom.values @ scores.at(atom.columns)) <= level:
            break
        found.append(atom)
        if len(found) < count:
            used = np.unique(np.concatenate([a.columns for a in found]))
            rest = ShiftedScores(scores, used, scores.at(used))
    return tuple(found)


def without_zeros(atoms: AtomSet, fit: RayFit) -> tuple[AtomSet, RayFit]:
    """Return the atoms with a weight, and the fit over them."""
    used = np.flatnonzero(fit.weights > 0)
    return atoms.take(used), replace(fit, weights=fit.weights[used])


def following(
    problem: Problem, state: RayState, atoms: AtomSet, fit: RayFit, batch: int, tolerance: float
) -> RayState:
    """Return the priced state of this fit, the one after ``state``: one pass over the data."""
    after = priced(problem, atoms, fit.weights, fit.intercept, batch, tolerance)
    after.iteration = state.iteration + 1
    after.refit_gap, after.master_steps = fit.gap, state.master_steps + fit.steps
    new = any(atoms.find(atom) < 0 for atom in after.candidates)
    after.patience = PATIENCE_WITH_NEW_ATOMS if new else PATIENCE
    if after.certificate.leaves_open(tolerance):
        # The search finds nothing more; what its bounds leave open, more steps do not close.
        after.exhausted = Status.SEARCH_RELATIVE
    return after
