"""ADMM over all columns: the splitting w = v of f(X w + b) + tau/2 ||w||^2 + R(v).

Boyd, Parikh, Chu, Peleato, Eckstein 2011: over-relaxation (section 3.4.3), residual balancing
(section 3.4.1); the rival "ADMM-AS" of [L] is this with ``prox="two_step"``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array, WarmStart
from atomlearn.core.problem.problem import Problem, optimal_intercept
from atomlearn.core.problem.proof import Pricing, prove
from atomlearn.core.solvers.solver import Solver, State
from atomlearn.papers.fista import NamedProx, dense_start, proximal_of
from experiments.rivals.ridge import RidgeSystem

#: Changes after which rho stays, as convergence is proved for a rho that settles.
RHO_CHANGES = 60


@dataclass(slots=True)
class ADMMState(State):
    """State at v, which is feasible, over all columns (``columns`` is 0..p-1).

    ridge : the w-update's constants and warm start, one for all states of a run; dual : (p,)
    scaled multiplier u of w = v; rho : weight of the splitting; rho_changes : how often rho was
    changed.
    """

    ridge: RidgeSystem | None = None
    dual: Array | None = None
    rho: float = 1.0
    rho_changes: int = 0


@dataclass(frozen=True, slots=True)
class ADMM(Solver):
    """min_w,b f(X w + b) + tau/2 ||w||^2 + R(w) by ADMM on w = v, for any norm with a prox.

    The w-update, a ridge problem, is solved by Newton's method in the smaller of n_samples and
    n_features unknowns until its gradient is ``accuracy`` times its first one (for the squared
    loss one step with a factorization kept as long as rho is): two passes over the data. The
    start gathers all columns once for the Gram matrix of the smaller side, O(min(n, p)^2) memory.
    A solver step is ``iterations`` ADMM iterations and two passes for the certificate of v.

    Parameters
    ----------
    prox : {None, "box_norm", "binary_search", "two_step", "exhaustive"}
        None: the norm's own; else a named prox of the squared k-support norm, see ``FISTA``.
    iterations : int
        ADMM iterations a step, that is between two certificates.
    relaxation : float
        Over-relaxation in [1, 2).
    rho : float or None
        First weight of the splitting; None: the mean eigenvalue of X'f''X. Balanced later.
    accuracy : float
        Relative accuracy of the w-update.

    References
    ----------
    Boyd, Parikh, Chu, Peleato, Eckstein 2011, sections 3.4.1 and 3.4.3; [L] section 4, whose
    ADMM-AS is ``ADMM(prox="two_step")``.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import ADMM
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve_sum(X, y, norm="l1", level=1.0, solver=ADMM())
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0]
    """

    prox: NamedProx | None = None
    iterations: int = 10
    relaxation: float = 1.6
    rho: float | None = None
    accuracy: float = 1e-8

    def start(self, problem: Problem, warm: WarmStart | None = None) -> ADMMState:
        """Gather the Gram matrix, certify the warm start."""
        proximal_of(problem, "ADMM", self.prox, 0.0)
        weights, linear, intercept = dense_start(problem, warm)
        price = prove(problem, None, weights, linear + intercept)
        ridge = RidgeSystem.of(problem, price.prediction, intercept)
        rho = self.rho if self.rho is not None else ridge.mean_eigenvalue(problem)
        # At the solution rho u = -(gradient of the smooth part): a good first multiplier.
        return self._state(price, intercept, ridge, price.scores.full() / rho, rho)

    def step(self, problem: Problem, state: ADMMState) -> ADMMState:
        """Make a few ADMM iterations, certify v, then balance rho."""
        assert state.ridge is not None
        assert state.dual is not None
        proximal = proximal_of(problem, "ADMM", self.prox, 0.0)
        v, u, rho, ridge = state.weights, state.dual, state.rho, state.ridge
        for _ in range(self.iterations):
            w = ridge.solve(problem, v - u, rho, self.accuracy)
            relaxed = self.relaxation * w + (1.0 - self.relaxation) * v
            before, v = v, proximal(relaxed + u, 1.0 / rho)
            u = u + relaxed - v
        design = problem.design
        linear = design.predict(v)
        intercept = optimal_intercept(problem, linear, ridge.intercept)
        price = prove(problem, None, v, linear + intercept)
        following = self._state(price, intercept, ridge, u, rho)
        following.iteration = state.iteration + 1
        following.rho_changes = state.rho_changes
        primal = float(np.linalg.norm(w - v))
        change = rho * float(np.linalg.norm(v - before))
        self._balance(following, primal, change)
        return following

    def _balance(self, state: ADMMState, primal: float, change: float) -> None:
        """Move rho toward equal residuals; the scaled multiplier moves the other way."""
        if state.rho_changes >= RHO_CHANGES or not (primal > 0 and change > 0):
            return
        assert state.dual is not None
        # Each residual in its own unit: w for the primal one, rho u for the other.
        size = max(float(np.linalg.norm(state.weights)), 1e-300)
        force = max(state.rho * float(np.linalg.norm(state.dual)), 1e-300)
        ratio = (primal / size) / (change / force)
        if 0.2 <= ratio <= 5.0:
            return
        factor = min(max(np.sqrt(ratio), 0.1), 10.0)
        state.rho *= float(factor)
        state.dual = state.dual / factor
        state.rho_changes += 1

    def _state(
        self, price: Pricing, intercept: float, ridge: RidgeSystem, dual: Array, rho: float
    ) -> ADMMState:
        return ADMMState(
            columns=np.arange(price.weights.size),
            weights=price.weights,
            intercept=intercept,
            prediction=price.prediction,
            certificate=price.certificate,
            ridge=ridge,
            dual=dual,
            rho=rho,
        )
