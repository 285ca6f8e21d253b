"""ActiveSetQP: [V] Algorithm 2, the active-set method for quadratics over c >= 0, as a master.

The method minimizes 1/2 c'Hc + b'c over the weights c >= 0 of atoms. It changes one atom at a time,
so that the Cholesky factor of H over the atoms in use is updated by rank one. The block of atoms
keeps H and the factor between calls, also if atoms are added or removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from atomlearn._kernels import ActiveFactor, active_set_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Columns, TimeIsUp
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.losses.free_columns import free_columns
from atomlearn.core.masters.master import Candidate, Master, Refit, block_of, certified
from atomlearn.core.masters.sequential_qp import Prices, check_prices, model_terms
from atomlearn.core.problem.problem import Problem


class ActiveSet(NamedTuple):
    """The result of [V] Algorithm 2: weights c (m,), the indices J of c > 0, number of pivots.

    J is in the order of the rows of the Cholesky factor.
    """

    c: Array
    J: Columns
    pivots: int


@dataclass(frozen=True, slots=True)
class ActiveSetQP(Master):
    """[V] Algorithm 2, [c, J] = Active-set(H, b, c_0, J_0): min 1/2 c'Hc + b'c over c >= 0.

    J is the set of atoms in use. A pivot is a full step or a drop step. A *full step* moves c to
    d = -H_JJ^-1 b_J; then the atom k with the smallest g_k < 0, g = Hc + b, joins J. A *drop step*
    ends where a weight reaches zero; its atom leaves J. (The box of the paper omits the factor 1/2
    and the sign of d.) A pivot costs O(m k) for m atoms of which k are in J: the factor of H_JJ is
    updated by rank one. ``Refit.steps`` counts pivots.

    As a master it re-fits the weights c of atoms A, the columns of the block, under the squared
    loss: H = A'SA and b = level p - A'Sy in the notation of ``minimize``. S are the sample weights,
    and p the penalty weights ("prices") of the atoms (all 1 in [V] (5)). The constrained form adds
    p'c <= radius, [V] (6), and the squared form adds level p p' to H. An intercept is eliminated by
    centering A. Under ``L1`` the weights may have either sign: a column of A then represents the
    atoms a_j and -a_j.

    ``AtomGeneration(master=ActiveSetQP())`` is [V] Algorithms 1 and 2. The default,
    ``SequentialQP``, also takes other losses.

    Parameters
    ----------
    max_pivots : int
        Largest number of pivots of one program.

    References
    ----------
    [V] M. Vinyes, G. Obozinski 2017, Algorithm 2 and section 3.3. J. Nocedal, S. J. Wright 2006,
    Numerical Optimization, section 16.5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import masters, norms, solve, solvers
    >>> found = masters.ActiveSetQP().minimize(np.diag([1.0, 2.0]), np.array([-3.0, 1.0]))
    >>> found.c.tolist(), found.J.tolist()
    ([3.0, 0.0], [0])
    >>> solver = solvers.AtomGeneration(master=masters.ActiveSetQP())
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> solve(X, y, alpha=1 / 3, fit_intercept=False, solver=solver).coef.round(6).tolist()
    [2.0, 0.0, -1.0]
    """

    takes_metric: ClassVar[bool] = True

    max_pivots: int = 100_000

    def minimize(self, H: Array, b: Array, c: Array | None = None) -> ActiveSet:
        """Return argmin of 1/2 c'Hc + b'c over c >= 0, in the signs of the paper's box.

        Parameters
        ----------
        H : (m, m)
            Symmetric positive semidefinite.
        b : (m,)
            Linear term.
        c : (m,), optional
            c_0, whose positive entries are J_0. Default: zeros.

        Returns
        -------
        ActiveSet
            c, J and the number of pivots. c is feasible, and not worse than c_0, whatever
            ``max_pivots`` is.
        """
        factor = ActiveFactor()
        start = np.zeros(np.size(b)) if c is None else c
        # The kernel minimizes 1/2 c'Hc - linear'c, so the sign of b changes.
        linear = -np.asarray(b, dtype=np.float64)
        point, outcome = active_set_qp(H, linear, start, state=factor, max_pivots=self.max_pivots)
        return ActiveSet(point, factor.active.copy(), outcome.pivots)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        prices = check_prices(problem, grouped=False)
        block = CachedBlock.of(block_of(problem))
        if not is_quadratic(problem.loss) or free_columns(problem.loss) is not None:
            raise TypeError(
                "ActiveSetQP needs the squared loss without unpenalized columns, got the loss "
                f"{problem.loss.name!r}; use masters.SequentialQP(), which takes any smooth loss"
            )
        best = certified(problem, prices.feasible(problem, weights), None, intercept)
        pivots = 0
        while best.refit.gap > gap_target and weights.size and not problem.deadline.passed:
            try:
                minimizer, more_pivots = self._program(problem, block, prices, best)
            except TimeIsUp:
                break
            pivots += more_pivots
            minimizer = prices.feasible(problem, minimizer)
            trial = certified(problem, minimizer, None, best.refit.intercept)
            if not trial.improves(best):
                break
            # Rounding of H makes the point inexact. Another quadratic program, built from the exact
            # gradient at this point, corrects it. Stop once the gap is no longer halved.
            is_slow = trial.refit.gap > 0.5 * best.refit.gap
            best = trial
            if is_slow:
                break
        best.refit.steps = pivots
        return best.refit

    def _program(
        self, problem: Problem, block: CachedBlock, prices: Prices, at: Candidate
    ) -> tuple[Array, int]:
        """Return the solution c (m,) of the quadratic program, and the number of pivots.

        at : the point where the program starts, with the gradient there. block : the columns A of
        the problem, with the cached H. prices : the penalty weights p.
        """
        # R = level p'c + coupling (p'c)^2 / 2 for p'c <= radius.
        level, coupling, radius = model_terms(problem.regularizer)
        growing = block.growing_gram(problem.weight, problem.fit_intercept)
        H = growing.matrix
        # ``slope`` is the gradient of the smooth part at c. A ridge term adds tau M or tau I to H.
        c = at.refit.weights
        slope = -at.scores
        ridge = 0.0
        if problem.tau and problem.metric is not None:
            H = H + problem.tau * problem.metric
            slope = slope + problem.tau * (problem.metric @ c)
        elif problem.tau:
            ridge = problem.tau
            slope = slope + ridge * c
        minimizer, outcome = active_set_qp(
            H,
            slope,
            c,
            state=growing.factor(coupling, problem.tau, prices.price),
            price=prices.price,
            level=level,
            coupling=coupling,
            ridge=ridge,
            radius=radius,
            signed=prices.signed,
            from_gradient=True,
            max_pivots=self.max_pivots,
        )
        return minimizer, outcome.pivots
