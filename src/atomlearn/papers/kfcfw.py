"""k-FCFW, a fully corrective Frank-Wolfe method: [L] (Liu, Yuan, Zhang, Liu, Metaxas 2016), Alg. 1.

Each pass over the data adds one atom, and all atom weights are then re-fitted on the simplex. The
paper penalizes lambda gauge(w)^2, so its lambda is half of our strength of the squared form.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn.core import (
    INNER_RATIO,
    PATIENCE,
    TUNING,
    Array,
    Atom,
    AtomSet,
    Certificate,
    Columns,
    Problem,
    Scores,
    Solver,
    State,
    WarmStart,
    loss_value,
    negative_gradient,
    optimal_intercept,
    prove,
    warm_atoms,
)
from atomlearn.papers.line_search import LineProblem, best_step


@dataclass(slots=True)
class AtomState(State):
    """State of k-FCFW at w_t = sum_h alpha_h u_h, with t active atoms u_1, ..., u_t.

    Columns, weights, intercept, prediction and objective are those of the iterate of lowest
    objective so far, and the gap is computed from the best lower bound so far.

    Attributes
    ----------
    atoms : AtomSet
        The atoms u_h.
    alpha : (t + 1,)
        Weights in the simplex, that of zero first.
    costs : (t + 1,)
        Penalties lambda gauge(u_h)^2 of zero and the atoms; 0 in the constrained form.
    atom : (columns, values, cost), optional
        The next atom, scaled, and its cost.
    model_objective : float
        f + costs'alpha, the upper bound on the objective F that the re-fit minimizes.
    patience : float
        Number of steps without progress after which the run ends as stalled.
    own : State
        The iterate w_t with its own certificate.
    lowest, bound : State
        The iterates so far of lowest objective and of best lower bound on the optimum.
    """

    atoms: AtomSet | None = None
    alpha: Array = field(default_factory=lambda: np.ones(1))
    costs: Array = field(default_factory=lambda: np.zeros(1))
    atom: tuple[Columns, Array, float] | None = None
    model_objective: float = np.inf
    patience: float = PATIENCE
    own: State | None = None
    lowest: State | None = None
    bound: State | None = None

    def merit(self) -> float:
        """Return the value that the solver minimizes: the upper bound f + costs'alpha on F."""
        return self.model_objective


@dataclass(frozen=True, slots=True)
class SimplexModel:
    """The re-fit problem phi(alpha) = min_b f(X w + b) + tau/2 ||w||^2 + costs'alpha.

    alpha = (alpha_0, a) is in the unit simplex, w = U a, the columns of U are the atoms, and
    alpha_0 is the weight of zero.

    Attributes
    ----------
    problem : Problem
        The loss f and the ridge weight tau.
    atoms : AtomSet
        The t columns of U.
    costs : (t + 1,)
        The penalty of zero, which is 0, and of each atom.
    """

    problem: Problem
    atoms: AtomSet
    costs: Array

    def minimum(self, alpha: Array, intercept: float, gap_target: float) -> tuple[Array, float]:
        """Minimize phi over the simplex by projected Newton steps; return alpha and the intercept.

        ``alpha`` and ``intercept`` are the start. Each step minimizes the quadratic model at alpha
        over the simplex by an active-set method, followed by an exact line search. The iteration
        ends when the Frank-Wolfe gap g'alpha - min g, with g the gradient of phi, is at most
        ``gap_target``; it bounds phi - min phi.
        """
        for _ in range(TUNING.inner_steps):
            linear = self.atoms.images.predict(alpha[1:])
            intercept = optimal_intercept(self.problem, linear, intercept)
            gradient = self._gradient(alpha, linear + intercept)
            if float(alpha @ (gradient - gradient.min())) <= gap_target:
                break
            # The minimum of the quadratic model over the simplex gives the direction.
            hessian = self._hessian(linear + intercept)
            point, _ = active_set_qp(
                hessian, gradient, alpha, radius=1.0, equality=True, from_gradient=True
            )
            direction = point / point.sum() - alpha
            # The penalty and the ridge term are quadratic along the direction.
            change = direction[1:]
            slope = float(self.costs @ direction)
            curvature = 0.0
            if self.atoms.gram is not None:
                ridge_change = self.problem.tau * (self.atoms.gram @ change)
                slope = slope + float(ridge_change @ alpha[1:])
                curvature = float(ridge_change @ change)
            line = LineProblem(linear, self.atoms.images.predict(change), slope, curvature)
            length = best_step(self.problem, line, 1.0, intercept)
            if not length:
                break
            alpha = np.maximum(alpha + length * direction, 0.0)
            alpha /= alpha.sum()
        return alpha, intercept

    def _gradient(self, alpha: Array, prediction: Array) -> Array:
        """Return the gradient of phi in the weights ``alpha``, (t + 1,), of zero and the atoms.

        ``prediction`` is X w + b at these weights, with the optimal b.
        """
        gradient = self.costs.copy()
        dual = negative_gradient(self.problem, prediction)
        gradient[1:] -= self.atoms.images.scores(dual).full()
        if self.atoms.gram is not None:
            gradient[1:] += self.problem.tau * (self.atoms.gram @ alpha[1:])
        return gradient

    def _hessian(self, prediction: Array) -> Array:
        """Return the Hessian of phi in the weights alpha, (t + 1, t + 1), at ``prediction``."""
        problem = self.problem
        images = self.atoms.images
        curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
        hessian = images.gram(curvature)
        total = float(curvature.sum())
        # The intercept is minimized out, which subtracts a term of rank one (Schur complement).
        if problem.fit_intercept and total > 0:
            sums = images.scores(curvature).full()
            hessian = hessian - np.outer(sums, sums) / total
        if self.atoms.gram is not None:
            hessian = hessian + problem.tau * self.atoms.gram
        # The weight of zero changes neither the predictions nor the ridge term.
        return np.pad(hessian, ((1, 0), (1, 0)))


@dataclass(frozen=True, slots=True)
class KFCFW(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + lambda gauge(w)^2, or gauge(w) <= radius, by k-FCFW.

    This is [L] Algorithm 1. A step is one pass over the data. Let z = X'v be the scores of the
    negative gradient v of f, a the atom with the largest z'a, and gauge°(z) = z'a the polar. The
    new atom is gauge°(z) / (2 lambda) times a, or the radius times a in the constrained form ([L],
    eq. 6). The weights of all atoms and of zero are then re-fitted on the simplex by projected
    Newton steps with warm starts. The intercept is minimized out in the re-fit.

    Objective and duality gap of the iterates w_t go up and down. The point of every step is the
    iterate of lowest objective so far, and its gap is computed from the best lower bound so far.

    Parameters
    ----------
    inner_ratio : float
        The re-fit (S4) ends at this fraction of the duality gap of the whole problem.
    prune : bool
        Whether atoms of weight zero are dropped. False is the algorithm of the paper, which keeps
        one atom per pass.

    References
    ----------
    [L] Liu, Yuan, Zhang, Liu, Metaxas 2016, Algorithm 1. Its quasi-Newton model is replaced by the
    exact Hessian, which is small: (t + 1, t + 1) for t atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve, solvers
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> form = {"form": "squared", "alpha": 0.3, "norm": norms.KSupport(1)}
    >>> result = solve(X, y, solver=solvers.KFCFW(), **form)
    >>> bool(result.relative_gap <= 1e-6)
    True
    """

    inner_ratio: float = INNER_RATIO
    prune: bool = True

    def start(self, problem: Problem, warm: WarmStart | None = None) -> AtomState:
        """Return the first state of ``problem``, certified by one pass.

        It is at zero, or at the point of ``warm`` as the only atom.
        """
        _check(problem)
        support, shares, intercept = warm_atoms(problem, warm)
        # The atoms of the warm start are merged into one, w itself, with weight 1.
        atoms = support.take(np.zeros(0, dtype=np.int64))
        alpha = np.ones(1)
        costs = np.zeros(1)
        gauge = float(shares.sum())
        if gauge > 0:
            atoms = atoms.append(problem.design, Atom(support.columns, support.combine(shares)))
            alpha = np.array([0.0, 1.0])
            costs = np.array([0.0, problem.regularizer.value(gauge)])
        return self._price(SimplexModel(problem, atoms, costs), alpha, intercept, None)

    def step(self, problem: Problem, state: AtomState) -> AtomState:
        """Return the state after ``state``, certified by one pass over the data of ``problem``.

        The step adds the atom (S3), re-fits on the simplex (S4, S5), and finds the next atom (S1,
        S2).
        """
        assert state.atoms is not None
        atoms = state.atoms
        alpha = state.alpha
        costs = state.costs
        # The next atom joins with weight 0.
        if state.atom is not None:
            columns, values, cost = state.atom
            atoms = atoms.append(problem.design, Atom(columns, values))
            alpha = np.append(alpha, 0.0)
            costs = np.append(costs, cost)
        model = SimplexModel(problem, atoms, costs)
        assert state.own is not None
        target = self.inner_ratio * state.own.certificate.gap
        alpha, intercept = model.minimum(alpha, state.intercept, target)
        # Drop the atoms of weight 0; entry 0 of alpha is the weight of zero itself.
        if self.prune and not alpha[1:].all():
            support = np.flatnonzero(alpha[1:])
            positions = np.append(0, 1 + support)
            model = SimplexModel(problem, atoms.take(support), costs[positions])
            alpha = alpha[positions]
        return self._price(model, alpha, intercept, state)

    def _price(
        self, model: SimplexModel, alpha: Array, intercept: float, previous: AtomState | None
    ) -> AtomState:
        """Return the state at the weights ``alpha``, certified and with the next atom: one pass.

        ``model`` has the atoms, ``intercept`` is the first guess of the intercept, and ``previous``
        is the state before the step, None at the start.
        """
        problem = model.problem
        atoms = model.atoms
        weights = atoms.combine(alpha[1:])
        linear = atoms.images.predict(alpha[1:])
        intercept = optimal_intercept(problem, linear, intercept)
        prediction = linear + intercept
        # This iterate with its own certificate.
        proof = prove(problem, atoms.columns, weights, prediction)
        state = State(atoms.columns, weights, intercept, prediction, proof.certificate)
        # Objectives and gaps go up and down: keep the lowest objective and the best lower bound.
        lowest = bound = state
        if previous is not None:
            assert previous.lowest is not None
            assert previous.bound is not None
            lowest = min(previous.lowest, state, key=lambda at: at.certificate.objective)
            bound = max(previous.bound, state, key=_lower_bound)
        smooth = loss_value(problem, prediction)
        smooth += 0.5 * problem.tau * float(weights @ weights)
        return AtomState(
            columns=lowest.columns,
            weights=lowest.weights,
            intercept=lowest.intercept,
            prediction=lowest.prediction,
            certificate=_combined(lowest.certificate, bound.certificate),
            iteration=0 if previous is None else previous.iteration + 1,
            proved_by=None if bound is lowest else bound,
            atoms=atoms,
            alpha=alpha,
            costs=model.costs,
            atom=_new_atom(problem, proof.scores),
            model_objective=smooth + float(model.costs @ alpha),
            own=state,
            lowest=lowest,
            bound=bound,
        )


def _lower_bound(state: State) -> float:
    """Return objective minus gap of ``state``, a proved lower bound on the optimum."""
    return state.certificate.objective - state.certificate.gap


def _combined(upper: Certificate, lower: Certificate) -> Certificate:
    """Return the certificate of the objective of ``upper`` with the lower bound of ``lower``."""
    if upper is lower:
        return upper
    # The lower bound is lower.objective - lower.gap; its distance from upper.objective is the gap.
    # Both objectives have rounding errors; that of ``lower`` is included in its own gap.
    rise = upper.objective - lower.objective + upper.rounding
    gap = min(upper.gap, lower.gap + rise)
    # The gap that would hold if the heuristic search for the best atom found it.
    searched = None if lower.search_gap is None else min(lower.search_gap + rise, gap)
    rounding = upper.rounding + lower.rounding
    return replace(upper, gap=gap, polar=lower.polar, search_gap=searched, rounding=rounding)


def _new_atom(problem: Problem, scores: Scores) -> tuple[Columns, Array, float] | None:
    """Return columns, scaled values and cost of the next atom (S2); None if there is none.

    ``scores`` are z = X'v of ``problem``. If no atom a has <a, z> > 0, there is no next atom: zero
    is a minimizer of the linearized loss.
    """
    regularizer = problem.regularizer
    best = regularizer.norm.best_atom(scores)
    columns = best.columns
    atom = best.values
    if not columns.size:
        return None
    # The atom is multiplied by the radius, or by polar / amount for the squared form, whose penalty
    # is amount / 2 gauge^2.
    scale = regularizer.amount
    if regularizer.form != "constrained":
        scale = float(atom @ scores.at(columns)) / regularizer.amount
    return columns, scale * atom, regularizer.value(scale)


def _check(problem: Problem) -> None:
    """Raise ValueError if the form of ``problem`` is "penalized", which [L] does not treat."""
    if problem.regularizer.form == "penalized":
        raise ValueError(
            "KFCFW solves the squared and the constrained form, as [L] states them; got "
            "form='penalized'. Use ColumnGeneration, or form='squared'"
        )
