"""Active-set QP: the corrective step of [V] on rays, for the squared loss.

min over c >= 0 of  f(A c + b) + (tau/2) c'Mc + R(c)  with gauge(c) = p'c: each column of the
block is an atom's image with a coefficient >= 0. For the squared loss this is a small quadratic
program in c with the matrix H = A'SA (of centered columns where there is an intercept), which a
kernel solves by full steps and drop steps [V, Algorithm 2] on a Cholesky factor updated by rank
one. H and the factor are kept by the block while it grows by new columns, so a call after one new
atom costs a column of H and a pivot or two.

[V] M. Vinyes, G. Obozinski 2017, section 3.2. Nocedal, Wright 2006, chapter 16.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import QPOutcome, QPStatus, active_set_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Master, Refit
from atomlearn.core.masters.candidate import Candidate, block_of
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ActiveSetQP(Master):
    """Re-fit the weights of rays by an active-set QP: squared loss, all three forms.

    For norms with prices: ``Nonnegative(L1())``, scaled or with a weight for each column. Columns
    of positive weight in the warm start are the first active set. On a ``CachedBlock`` the Gram
    matrix and its factor are kept from call to call; on other blocks they are computed afresh,
    O(n m^2). ``Refit.steps`` counts pivots.

    Parameters
    ----------
    batch : int
        Columns that may enter between two solves; 1 is the paper's.
    max_pivots : int
        Bound on pivots of one call; then the best point is returned with its gap.

    References
    ----------
    [V] M. Vinyes, G. Obozinski 2017, Algorithm 2.
    J. Nocedal, S. J. Wright 2006, Numerical Optimization, chapter 16.5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.Nonnegative(norms.L1()), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, -2.0], losses.Squared(), regularizer)
    >>> refit = masters.ActiveSetQP().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6), refit.steps
    (array([0.9, 0. ]), 1)
    """

    batch: int = 1
    max_pivots: int = 100_000

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        price = check_rays(problem)
        if not problem.loss.is_quadratic:
            raise TypeError(
                f"ActiveSetQP is for the squared loss and other quadratic ones, got "
                f"{type(problem.loss).__name__}; use SequentialQP"
            )
        block = CachedBlock.of(block_of(problem))
        inside = feasible(problem, price, weights)
        best, steps = ray_point(problem, price, inside, block.dot(inside), intercept), 0
        while best.refit.gap > gap_target and price.size and steps < self.max_pivots:
            if problem.deadline.passed:
                break
            left = pivots_at_a_time(
                problem, price.size, min(TUNING.pivots, self.max_pivots - steps)
            )
            moved, outcome = self._pivots(problem, block, price, best, left)
            steps += outcome.pivots
            trial = ray_point(problem, price, moved, block.dot(moved), best.refit.intercept)
            # A few pivots may be steps of length zero; many that gain nothing are rounding.
            unfinished = outcome.status is QPStatus.PIVOT_LIMIT and left < TUNING.pivots
            if not (unfinished or trial.improves(best)):
                break
            # The gradient at the new point makes up for the rounding of H, as long as that helps.
            before, best = best.refit.gap, trial
            if outcome.status is not QPStatus.PIVOT_LIMIT and trial.refit.gap > 0.5 * before:
                break
        best.refit.steps = steps
        return best.refit

    def _pivots(
        self, problem: Problem, block: CachedBlock, price: Array, at: Candidate, most: int
    ) -> tuple[Array, QPOutcome]:
        curvature = problem.loss.curvature(problem.y, at.refit.prediction, problem.weight)
        if np.array_equal(curvature, problem.weight):
            curvature = problem.weight  # one array from call to call: its Gram matrix is kept
        growing = block.growing_gram(curvature, problem.fit_intercept)
        coupling, radius = model_terms(problem.regularizer)
        matrix, ridge = with_ridge(problem, growing.matrix)
        # The factor of H + tau M is told from that of H + tau I by the sign.
        kept = problem.tau if problem.metric is None else -problem.tau
        return active_set_qp(
            matrix,
            gradient_of(problem, price, at),
            at.refit.weights,
            state=growing.factor(coupling, kept, price),
            price=price,
            coupling=coupling,
            ridge=ridge,
            radius=radius,
            from_gradient=True,
            batch=self.batch,
            max_pivots=most,
        )


def ray_point(
    problem: Problem, price: Array, weights: Array, linear: Array, intercept: float
) -> Candidate:
    """Return the point with its certificate; gauge and polar of rays are a sum and a maximum."""
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = linear + intercept
    v = problem.negative_gradient(prediction)
    scores = block_of(problem).transpose_dot(v)
    slopes = scores - problem.ridge_slope(weights) if problem.tau else scores
    gauge, polar = float(price @ weights), float((slopes / price).max(initial=0.0))
    certificate = problem.certificate(weights, prediction, v, gauge, (polar, polar))
    refit = Refit(weights, intercept, prediction, certificate.gap, certificate.objective)
    return Candidate(refit, scores)


def pivots_at_a_time(problem: Problem, size: int, most: int) -> int:
    """Return how many pivots a call of the kernel may make: fewer where the clock counts."""
    if problem.deadline.left == math.inf:
        return most
    return min(most, max(10, int(TUNING.slice_work / (size * size))))


def check_rays(problem: Problem) -> Array:
    """Return p with gauge(c) = p'c, or raise TypeError where the problem is not one of rays."""
    size = problem.design.shape[1]
    norm = problem.regularizer.norm
    price = norm.prices(size)
    if price is None:
        raise TypeError(
            f"this master re-fits rays, columns with coefficients >= 0 and a gauge that is a "
            f"weighted sum of them, got {norm!r}; use norms.Nonnegative(norms.L1()), or "
            "SemismoothNewton for other norms"
        )
    block_of(problem)
    return price


def feasible(problem: Problem, price: Array, weights: Array) -> Array:
    """Return the weights, shrunk into the domain of R where they lie outside."""
    inside = np.maximum(weights, 0.0)
    if problem.regularizer.form == "constrained":
        gauge, radius = float(price @ inside), problem.regularizer.amount
        if gauge > radius * (1.0 + 1e-12):
            inside *= radius / gauge
    return inside


def model_terms(regularizer: Regularizer) -> tuple[float, float]:
    """Return (coupling, radius): the factor of (p'c)^2 / 2, and the bound on p'c."""
    form, amount = regularizer.form, regularizer.amount
    return (amount if form == "squared" else 0.0), (amount if form == "constrained" else math.inf)


def with_ridge(
    problem: Problem, hessian: Array, columns: Columns | None = None
) -> tuple[Array, float]:
    """Return H + tau M and 0, or H and tau where M is the identity, which the kernel adds."""
    if problem.metric is None or not problem.tau:
        return hessian, problem.tau
    metric = problem.metric if columns is None else problem.metric[np.ix_(columns, columns)]
    return hessian + problem.tau * metric, 0.0


def gradient_of(problem: Problem, price: Array, at: Candidate) -> Array:
    """Return the gradient at c >= 0 of all that is differentiable there: f, the ridge, and R."""
    gradient = -at.scores
    if problem.tau:
        gradient += problem.ridge_slope(at.refit.weights)
    form, amount = problem.regularizer.form, problem.regularizer.amount
    if form == "penalized":
        gradient += amount * price
    elif form == "squared":
        gradient += amount * float(price @ at.refit.weights) * price
    return gradient
