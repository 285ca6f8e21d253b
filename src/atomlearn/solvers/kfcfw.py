"""k-FCFW, [L] Algorithm 1: one new vector atom a pass, all atom weights re-fitted on the simplex.

Liu, Yuan, Zhang, Liu, Metaxas 2016. Their lambda is half of our level: lambda gauge(w)^2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces import Scores, Solver, State
from atomlearn.interfaces.solver import WarmStart
from atomlearn.masters.simplex import SimplexPoint, SimplexQuasiNewton
from atomlearn.norms.atoms import best_atom
from atomlearn.problem import Problem
from atomlearn.result import Status

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Atoms:
    """U = [0, u_1, ..., u_t] as sparse columns, and what the re-fit needs of them.

    columns : (m,) union of the supports; supports : for each atom the positions of its entries in
    ``columns``; values : the entries; images : (n_samples, t + 1) X U; costs : (t + 1,), level/2
    times v_h = gauge(u_h)^2, 0 in the constrained form; gram : (t + 1, t + 1) U'U, None where
    tau = 0.
    """

    columns: Columns
    supports: tuple[Columns, ...]
    values: tuple[Array, ...]
    images: Array
    costs: Array
    gram: Array | None

    @classmethod
    def origin(cls, problem: Problem) -> Atoms:
        """Return U = [0]: the initialization of [L] Algorithm 1."""
        none = np.zeros(0, dtype=np.int64)
        gram = np.zeros((1, 1)) if problem.tau else None
        images = np.zeros((problem.design.shape[0], 1), order="F")
        return cls(none, (none,), (np.zeros(0),), images, np.zeros(1), gram)

    def with_atom(self, problem: Problem, columns: Columns, values: Array, cost: float) -> Atoms:
        """Return U with one more atom: gathers its columns."""
        image = problem.design.gather(columns).dot(values)
        union, position = np.unique(np.concatenate([self.columns, columns]), return_inverse=True)
        old, new = position[: self.columns.size], position[self.columns.size :]
        supports = (*(old[support] for support in self.supports), new)
        atoms = (*self.values, values)
        gram = None
        if self.gram is not None:
            spread = np.zeros(union.size)
            spread[new] = values
            row = np.array([spread[s] @ u for s, u in zip(supports, atoms, strict=True)])
            gram = np.block([[self.gram, row[:-1, None]], [row[None, :]]])
        return Atoms(
            union,
            supports,
            atoms,
            np.asfortranarray(np.column_stack([self.images, image])),
            np.append(self.costs, cost),
            gram,
        )

    def weights(self, alpha: Array) -> Array:
        """Return w = U alpha over ``columns``."""
        w = np.zeros(self.columns.size)
        for share, support, values in zip(alpha, self.supports, self.values, strict=True):
            if share:
                w[support] += share * values
        return w


@dataclass(slots=True)
class AtomState(State):
    """State with atoms: w = U alpha.

    atoms : U; alpha : (t + 1,) in the simplex; atom : the next one to add, already scaled, with
    its cost; model_objective : f + cost'alpha >= F, what the simplex master minimises; stalled :
    steps in a row that gained nothing.
    """

    atoms: Atoms | None = None
    alpha: Array = field(default_factory=lambda: np.ones(1))
    atom: tuple[Columns, Array, float] | None = None
    model_objective: float = np.inf
    stalled: int = 0


@dataclass(frozen=True, slots=True)
class KFCFW(Solver):
    """min f(X w + b) + tau/2||w||^2 + (level/2) gauge(w)^2, or gauge(w) <= radius, by [L] Alg. 1.

    A step is one pass over the data. With z the scores of -gradient and a the best atom, the new
    vector atom is u = a gauge°(z) / level with v = (gauge°(z) / level)^2, in [L] -grad_k/(2 lambda)
    and (||grad||_(k) / (2 lambda))^2, or u = radius * a (constrained, [L] eq. 6); the weights of
    all atoms, zero among them, are re-fitted on the simplex by projected quasi-Newton, warm
    started. An intercept is minimised over within the re-fit.

    Parameters
    ----------
    master : SimplexQuasiNewton
        The re-fit (S4).
    inner_ratio : float
        The master is asked for this fraction of the outer gap.
    relative_change : float or None
        The stop of [L]: |F_t - F_t-1| <= relative_change * F_t-1 (they use 1e-4). It proves
        nothing; None leaves stopping to the certificate.
    """

    master: SimplexQuasiNewton = field(default_factory=SimplexQuasiNewton)
    inner_ratio: float = 1e-2
    relative_change: float | None = None

    def start(self, problem: Problem, warm: WarmStart | None = None) -> AtomState:
        """Begin at zero, or at one atom that is the warm start: one pass."""
        _check(problem)
        atoms, alpha = Atoms.origin(problem), np.ones(1)
        intercept = 0.0
        if warm is not None:
            intercept = warm.intercept
            gauge = problem.regularizer.norm.restrict(  # type: ignore[attr-defined]
                warm.columns, problem.design.shape[1]
            ).value(warm.weights)
            if gauge > 0:
                atoms = atoms.with_atom(problem, *_warm_atom(problem, warm, gauge))
                alpha = np.array([0.0, 1.0])
        return self._price(problem, atoms, alpha, intercept, None)

    def step(self, problem: Problem, state: State) -> AtomState:
        """(S3) add the atom, (S4) re-fit on the simplex, (S5) w = U alpha, then (S1, S2) price."""
        assert isinstance(state, AtomState)
        assert state.atoms is not None
        atoms, alpha = state.atoms, state.alpha
        if state.atom is not None:
            atoms = atoms.with_atom(problem, *state.atom)
            alpha = np.append(alpha, 0.0)
        target = self.inner_ratio * state.certificate.gap
        point, intercept = refit_on_simplex(
            problem, self.master, atoms, alpha, state.intercept, target
        )
        return self._price(problem, atoms, point.alpha, intercept, state)

    def _price(
        self,
        problem: Problem,
        atoms: Atoms,
        alpha: Array,
        intercept: float,
        before: AtomState | None,
    ) -> AtomState:
        """One pass over the data: scores, the next atom, and the certificate of this very point."""
        weights = atoms.weights(alpha)
        linear = atoms.images @ alpha
        intercept = problem.optimal_intercept(linear, intercept)
        prediction = linear + intercept
        scores = problem.design.scores(problem.negative_gradient(prediction))
        certificate = problem.certificate(atoms.columns, weights, intercept, prediction, scores)
        state = AtomState(
            columns=atoms.columns,
            weights=weights,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            atoms=atoms,
            alpha=alpha,
            atom=_new_atom(problem, problem.shifted(scores, atoms.columns, weights)),
        )
        smooth = problem.loss.value(problem.y, prediction, problem.weight)
        smooth += 0.5 * problem.tau * float(weights @ weights)
        state.model_objective = smooth + float(atoms.costs @ alpha)
        if before is not None:
            state.iteration = before.iteration + 1
            self._judge(state, before)
        return state

    def _judge(self, state: AtomState, before: AtomState) -> None:
        """Say whether a further step can change anything, and apply the stop of [L]."""
        gain = before.model_objective - state.model_objective
        still = gain <= 1e-15 * abs(state.model_objective)
        state.stalled = before.stalled + 1 if still else 0
        if state.stalled >= 3:
            state.exhausted = Status.STALLED
        change = abs(before.certificate.objective - state.certificate.objective)
        limit = self.relative_change
        if limit is not None and change <= limit * abs(before.certificate.objective):
            state.exhausted = Status.SMALL_CHANGE


def refit_on_simplex(
    problem: Problem,
    master: SimplexQuasiNewton,
    atoms: Atoms,
    alpha: Array,
    intercept: float,
    gap_target: float,
) -> tuple[SimplexPoint, float]:
    """argmin over the simplex of min_b f(X U alpha + b) + tau/2 ||U alpha||^2 + cost'alpha."""
    found = intercept

    def function(shares: Array) -> tuple[float, Array]:
        nonlocal found
        linear = atoms.images @ shares
        found = problem.optimal_intercept(linear, found)
        z = linear + found
        value = problem.loss.value(problem.y, z, problem.weight) + float(atoms.costs @ shares)
        gradient = atoms.costs - atoms.images.T @ problem.negative_gradient(z)
        if atoms.gram is not None:
            shrink = problem.tau * (atoms.gram @ shares)
            value += 0.5 * float(shares @ shrink)
            gradient = gradient + shrink
        return value, gradient

    def curvature(shares: Array) -> Array:
        return _curvature(problem, atoms, atoms.images @ shares + found)

    point = master.solve(function, alpha, gap_target, curvature)
    return point, problem.optimal_intercept(atoms.images @ point.alpha, found)


def _curvature(problem: Problem, atoms: Atoms, z: Array) -> Array:
    """Return the Hessian in alpha of min_b f(X U alpha + b) + tau/2 ||U alpha||^2."""
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    scaled = np.sqrt(curvature)[:, None] * atoms.images
    hessian: Array = scaled.T @ scaled
    total = float(curvature.sum())
    if problem.fit_intercept and total > 0:
        means = atoms.images.T @ curvature
        hessian -= np.outer(means, means) / total
    if atoms.gram is not None:
        hessian += problem.tau * atoms.gram
    return hessian


def _new_atom(problem: Problem, scores: Scores) -> tuple[Columns, Array, float] | None:
    """Return (S2): the scaled atom with its cost, None where the gradient vanishes."""
    regularizer = problem.regularizer
    found = best_atom(regularizer.norm, scores)
    columns, atom = found.columns, found.values
    if not columns.size:
        return None
    if regularizer.form == "constrained":
        return columns, regularizer.amount * atom, 0.0
    scale = float(atom @ scores.at(columns)) / regularizer.amount
    return columns, scale * atom, 0.5 * regularizer.amount * scale * scale


def _warm_atom(problem: Problem, warm: WarmStart, gauge: float) -> tuple[Columns, Array, float]:
    """Return the warm start as an atom: pulled into the ball in the constrained form."""
    regularizer = problem.regularizer
    if regularizer.form == "constrained":
        return warm.columns, warm.weights * min(1.0, regularizer.amount / gauge), 0.0
    return warm.columns, warm.weights, 0.5 * regularizer.amount * gauge * gauge


def _check(problem: Problem) -> None:
    if problem.regularizer.form == "penalized":
        raise ValueError(
            "KFCFW solves the squared and the constrained form, as [L] states them; got "
            "form='penalized'. Use ColumnGeneration, or form='squared'"
        )
