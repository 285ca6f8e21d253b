"""Frank-Wolfe methods: classic and line-searched, with away, pairwise and blended pairwise steps.

Frank, Wolfe 1956; Lacoste-Julien, Jaggi 2015 (away, pairwise); Tsuji, Tanaka, Pokutta 2022 (blended
pairwise); [V] (Vinyes, Obozinski 2017) section 2.2 and (4) for the penalized form through the
truncated cone. They are the baselines of [V]; the corrective step of ``AtomGeneration`` needs far
fewer passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from atomlearn.core import (
    PATIENCE_WITH_NEW_ATOMS,
    TOLERANCE,
    TUNING,
    Array,
    Atom,
    AtomSet,
    MatrixPart,
    Problem,
    Solver,
    State,
    Status,
    WarmStart,
    certificate_of,
    negative_gradient,
    objective_at,
    optimal_intercept,
    prove,
    warm_atoms,
)
from atomlearn.matrices.solver.factored_atoms import FactoredAtoms, factored_atoms, warm_factors
from atomlearn.papers.hull import Hull, Move, slope_of_gauge

StepSize = Literal["classic", "line_search"]
Direction = Literal["toward", "away", "pairwise", "blended"]


@dataclass(slots=True)
class FrankWolfeState(State):
    """State of a Frank-Wolfe method over the convex hull of zero and reach * a, for all atoms a.

    Attributes
    ----------
    reach : float
        The radius in the constrained form; else rho, a bound on the gauge of every solution. See
        ``truncation``.
    vertex : Atom or RankOne, optional
        The atom of the Frank-Wolfe vertex at this point, a RankOne if atoms are factored; None if
        zero is better.
    toward_gap : float
        The Frank-Wolfe gap: the inner product of the negative gradient with vertex minus point.
    atoms : AtomSet or FactoredAtoms
        Active atoms a_h. For ``toward`` over vectors the only atom is the point itself.
    shares : (t,) float64
        The weights c of the atoms, with w = sum_h c_h a_h and sum c >= gauge(w).
    patience : float
        Number of steps without progress after which the run ends as stalled.
    """

    reach: float = 0.0
    vertex: Any = None
    toward_gap: float = math.inf
    atoms: AtomSet | FactoredAtoms | None = None
    shares: Array = field(default_factory=lambda: np.zeros(0))
    patience: float = PATIENCE_WITH_NEW_ATOMS

    @property
    def factors(self) -> FactoredAtoms | None:
        """The atoms, if they are kept as factors of matrices."""
        return self.atoms if isinstance(self.atoms, FactoredAtoms) else None

    def n_active(self) -> int:
        """Return the number of columns with a weight, or of atoms if these are factored."""
        return State.n_active(self) if self.factors is None else int((self.shares != 0).sum())

    def parts(self) -> tuple[tuple[Atom, float], ...]:
        """Return the atoms and their weights."""
        return () if self.atoms is None else self.atoms.parts(self.shares)

    def matrix_parts(self) -> tuple[MatrixPart, ...] | None:
        """Return the terms whose sum is the matrix, if the state has factors."""
        return None if self.factors is None else (self.factors.part(self.shares),)


@dataclass(frozen=True, slots=True)
class FrankWolfe(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + R(gauge(w)) by conditional gradients, one pass per step.

    For the constrained form the minimum is over conv(0, radius * atoms). For the penalized form,
    R(t) = lambda t, and the squared form, R(t) = lambda/2 t^2, it is over the truncated cone
    { (w, t) : gauge(w) <= t <= rho }, with R(t) in the objective ([V] (4)). The vertices of the
    cone are zero and rho * (a, 1). rho is F/lambda or sqrt(2 F/lambda), with F the objective at
    the start: no solution has a larger gauge.

    Let x be the point, and v the vertex that minimizes the linearized F over the set. Of the
    vertices with positive weight, u maximizes the linearized F, and l minimizes it. The directions
    are

    - ``toward``: x + s (v - x), s in [0, 1]. The point is stored without its atoms, except for
      matrices.
    - ``away``: the better of v - x and x - u. The longest step reduces the weight of u to 0.
    - ``pairwise``: weight moves from u to v.
    - ``blended``: weight moves from u to l while the gap <-grad F, l - u> is at least half of the
      gap of v, <-grad F, v - x>. Then one step goes toward v. The local steps need only the stored
      images, no pass. A step of the solver is either a run of local steps or one step toward v.
      One pass then certifies the new point. The method is lazy: the gap of v is that of the last
      pass, not of the last local step.

    Parameters
    ----------
    step_size : {"line_search", "classic"}
        The exact minimum along the direction, or 2 / (t + 2) for the t-th step (``toward`` only).
    direction : {"toward", "away", "pairwise", "blended"}
        One of the directions above.
    tol : float
        Relative gap to prove for the whole problem. For norms whose best atom is only searched, the
        run ends with ``Status.SEARCH_RELATIVE`` once the search finds no better atom, while its
        upper bound does not prove this gap.

    Notes
    -----
    On a polytope the last three directions converge at a linear rate. ``toward`` only has
    F_t - F* <= 2 C / (t + 2), with C the curvature constant, even on easy problems. The intercept
    is optimal at every point.

    Atoms of a matrix norm are kept as factors u and v of u v', and W = sum c_h u_h v_h' is never
    formed. This takes O((p + q) t) memory for t atoms in use (``toward``: for t steps). Images are
    products with the factors. Unions, tensors and problems with tau > 0 keep their atoms as columns
    instead.

    References
    ----------
    [V] section 2 for the truncated cone. Jaggi 2013, Revisiting Frank-Wolfe; Lacoste-Julien, Jaggi
    2015, On the global linear convergence of Frank-Wolfe optimization variants.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve(X, y, alpha=0.3, solver=solvers.FrankWolfe(direction="pairwise"))
    >>> bool(result.relative_gap <= 1e-6)
    True
    """

    lifts: ClassVar[bool] = False

    step_size: StepSize = "line_search"
    direction: Direction = "toward"
    tol: float = TOLERANCE

    def __post_init__(self) -> None:
        """Raise ValueError unless step size and direction are known and fit together."""
        if self.step_size not in get_args(StepSize):
            raise ValueError(
                f"FrankWolfe: step_size must be one of {get_args(StepSize)}, got {self.step_size!r}"
            )
        if self.direction not in get_args(Direction):
            raise ValueError(
                f"FrankWolfe: direction must be one of {get_args(Direction)}, got "
                f"{self.direction!r}"
            )
        if self.step_size == "classic" and self.direction != "toward":
            raise ValueError(
                f"FrankWolfe: direction={self.direction!r} needs step_size='line_search'; "
                "classic steps know no direction but 'toward'"
            )

    def start(self, problem: Problem, warm: WarmStart | None = None) -> FrankWolfeState:
        """Return the first state of ``problem``, certified by one pass.

        It is at zero, or at the point of ``warm`` as one atom w / gauge(w). For factored matrix
        norms the atoms are the stored factors of an earlier fit with the same norm, if there is
        one.
        """
        factors = factored_atoms(problem)
        atoms: AtomSet | FactoredAtoms
        if factors is None:
            atoms, shares, intercept = warm_atoms(problem, warm)
        else:
            atoms, shares, intercept = warm_factors(problem, factors, warm)
        # ``truncation`` needs the state to compute its reach: the radius, or the bound rho. Until
        # then the reach is 0, which ``_point`` only copies.
        state = self._point(problem, Hull(atoms, shares, 0.0, intercept))
        state.reach = truncation(problem, state.weights, state.prediction, float(shares.sum()))
        return self._price(problem, state, None)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """Return the state after one step from ``state``, certified by one pass over the data.

        The step is one move along the direction, or a run of local steps. ``problem`` is as in
        ``start``.
        """
        assert state.atoms is not None
        hull = Hull(state.atoms, state.shares, state.reach, state.intercept)
        if not (self.direction == "blended" and self._local_steps(problem, hull, state)):
            classic = 2.0 / (state.iteration + 2.0) if self.step_size == "classic" else None
            hull.move(problem, self._next_move(problem, hull, state), classic)
        return self._price(problem, self._point(problem, hull), state)

    def _point(self, problem: Problem, hull: Hull) -> FrankWolfeState:
        """Return the state at the point of ``hull`` with the best intercept, not yet certified.

        ``problem`` has the loss, for which the intercept is optimal.
        """
        atoms, shares = hull.used()
        # For ``toward`` the point itself is the only atom, except for factored matrices.
        if self.direction == "toward" and isinstance(atoms, AtomSet):
            atoms, shares = atoms.merged(shares)
        linear = atoms.images.predict(shares)
        intercept = optimal_intercept(problem, linear, hull.intercept)
        return FrankWolfeState(
            columns=atoms.columns,
            weights=atoms.combine(shares),
            intercept=intercept,
            prediction=linear + intercept,
            certificate=None,  # type: ignore[arg-type]  # _price sets it
            reach=hull.reach,
            atoms=atoms,
            shares=shares,
        )

    def _local_steps(self, problem: Problem, hull: Hull, state: FrankWolfeState) -> int:
        """Take local pairwise steps between active atoms; return the number of steps.

        ``hull`` is the point, which moves, and ``state`` has the Frank-Wolfe gap of the last pass.
        The first step is taken if the local pairwise gap is at least that gap, and further ones
        while it is at least half of it.
        """
        least_gap = state.toward_gap
        for n_steps in range(TUNING.inner_steps):
            worst, best, scores = hull.extremes(problem)
            if scores[best] - scores[worst] < least_gap:
                return n_steps
            hull.move(problem, hull.exchange(worst, best))
            least_gap = 0.5 * state.toward_gap
        return TUNING.inner_steps

    def _next_move(self, problem: Problem, hull: Hull, state: FrankWolfeState) -> Move:
        """Return the move from the point ``hull`` that the direction of the solver prescribes.

        ``state`` has the vertex found by the last pass, which is added to the hull if it is used.
        """
        if self.direction == "toward":
            return hull.toward(hull.add(problem, state.vertex))
        # ``worst`` is the vertex in use with the smallest product with the negative gradient.
        worst, _, scores = hull.extremes(problem)
        mean = hull.mean(scores)
        # The gap of v - x is compared with the gap of x - u, for u the worst vertex.
        if self.direction == "away" and state.toward_gap < mean - scores[worst]:
            return hull.away(worst)
        vertex = hull.add(problem, state.vertex)
        if self.direction == "pairwise":
            return hull.exchange(worst, vertex)
        return hull.toward(vertex)

    def _price(
        self, problem: Problem, state: FrankWolfeState, previous: FrankWolfeState | None
    ) -> FrankWolfeState:
        """Set the certificate, the best vertex and its gap of ``state``, by one pass over the data.

        ``previous`` is the state before the step, None at the start.
        """
        vertex, polar, inner = self._best(problem, state, previous)
        gauge = float(state.shares.sum())
        penalty_slope = slope_of_gauge(problem, gauge)
        slope = polar - penalty_slope
        # <-grad F, v> is reach * slope for the vertex of the best atom, and 0 for the vertex zero.
        if slope <= 0.0:
            vertex = None
            slope = 0.0
        state.vertex = vertex
        # <-grad F, v - x>
        state.toward_gap = state.reach * slope - (inner - penalty_slope * gauge)
        if previous is not None:
            self._count_step(state, previous)
        return state

    def _best(
        self, problem: Problem, state: FrankWolfeState, previous: FrankWolfeState | None
    ) -> tuple[Any, float, float]:
        """Certify the point w of ``state`` in ``problem``; return the best atom a, <a, z>, <w, z>.

        z are the scores of the negative gradient at w. The atom is None if it is empty.
        ``previous`` is the state before the step, None at the start.
        """
        if state.factors is not None:
            return self._best_factors(problem, state, state.factors, previous)
        # The sum of weights bounds the gauge of the point.
        proof = prove(
            problem,
            state.columns,
            state.weights,
            state.prediction,
            gauge=float(state.shares.sum()),
            tolerance=self.tol,
        )
        state.certificate = proof.certificate
        atom = problem.regularizer.norm.best_atom(proof.scores)
        if not atom.columns.size:
            return None, 0.0, proof.inner
        return atom, float(atom.values @ proof.scores.at(atom.columns)), proof.inner

    def _best_factors(
        self,
        problem: Problem,
        state: FrankWolfeState,
        atoms: FactoredAtoms,
        previous: FrankWolfeState | None,
    ) -> tuple[Any, float, float]:
        """Certify a matrix w by its factors; return the best atom a, <a, z> and <w, z>.

        z are the scores of the negative gradient at w. ``atoms`` are the factors of ``state``, a
        point of ``problem``. The best atom is computed as accurately as the gap of ``previous``,
        the state before the step, requires.
        """
        # The best atom is computed by iteration. Its relative accuracy is 2% of the last relative
        # gap, but at most 1% and at least 5% of the final tolerance.
        dual = negative_gradient(problem, state.prediction)
        scores = problem.design.scores(dual)
        accuracy = 0.02 if previous is None else 0.02 * previous.certificate.relative_gap
        accuracy = min(max(accuracy, 0.05 * self.tol), 1e-2)
        point = (state.weights, state.prediction, dual, float(state.shares.sum()))
        atom, polar, bounds = atoms.best(scores, accuracy, thorough=False)
        state.certificate = certificate_of(problem, *point, bounds)
        if state.certificate.leaves_open(self.tol):
            # No better atom is found: now it pays to compute a tighter upper bound.
            atom, polar, bounds = atoms.best(scores, 0.05 * self.tol, thorough=True)
            state.certificate = certificate_of(problem, *point, bounds)
        return atom, polar, float(dual @ state.prediction)

    def _count_step(self, state: FrankWolfeState, previous: FrankWolfeState) -> None:
        """Count the step from ``previous`` to ``state``; set when the run may end as stalled."""
        state.iteration = previous.iteration + 1
        if self.step_size == "classic" and not np.array_equal(
            state.prediction, previous.prediction
        ):
            # F may also increase: the run has stalled only if the point does not change.
            state.patience = math.inf
        is_search = state.factors is None or state.factors.is_hard
        if is_search and state.certificate.leaves_open(self.tol):
            # The search finds no better atom; more steps cannot close the gap of its bounds.
            state.exhausted = Status.SEARCH_RELATIVE


def truncation(problem: Problem, weights: Array, prediction: Array, gauge: float) -> float:
    """Return rho >= gauge(w*) for every solution w*: the truncation of the cone in [V] (4).

    The point with coefficients ``weights``, predictions ``prediction`` and a gauge of at most
    ``gauge`` has an objective F >= F(w*), and losses are bounded below by zero. So the penalty
    R(gauge(w*)) is at most F: lambda gauge(w*) <= F in the penalized form, and
    lambda/2 gauge(w*)^2 <= F in the squared form. In the constrained form rho is the radius. The
    given point satisfies these bounds, too.
    """
    regularizer = problem.regularizer
    if regularizer.form == "constrained":
        return regularizer.amount
    objective = objective_at(problem, weights, prediction, gauge)
    if regularizer.form == "penalized":
        return objective / regularizer.amount
    return math.sqrt(2.0 * objective / regularizer.amount)
