"""Active-set QP: the corrective step of [V] on rays and for the l1 norm, for the squared loss.

min over c of  f(A c + b) + (tau/2) c'Mc + R(c)  with gauge(c) = p'|c|, over c >= 0 where each
column of the block is an atom's image, over c of either sign for the l1 norm. For the squared loss
this is a small quadratic program in c with the matrix H = A'SA (of centered columns where there is
an intercept), which a kernel solves by full steps and drop steps [V, Algorithm 2] on a Cholesky
factor updated by rank one. H and the factor are kept by the block while it grows by new columns,
so a call after one new atom costs a column of H and a pivot or two.

[V] M. Vinyes, G. Obozinski 2017, section 3.2. Nocedal, Wright 2006, chapter 16.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import ActiveFactor, QPOutcome, QPStatus, active_set_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Columns, Master, Refit
from atomlearn.core.masters.candidate import Candidate, block_of
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer


@dataclass(frozen=True, slots=True)
class Prices:
    """gauge(c) = sum_j price_j |c_j|, finite for c >= 0 only unless ``signed``."""

    price: Array
    signed: bool

    def gauge(self, weights: Array) -> float:
        """Return the gauge of a feasible point."""
        return float(self.price @ (np.abs(weights) if self.signed else weights))

    def polar(self, slopes: Array) -> float:
        """Return max_j z_j / p_j, of magnitudes where ``signed``."""
        sizes = np.abs(slopes) if self.signed else slopes
        return float((sizes / self.price).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class ActiveSetQP(Master):
    """Re-fit weights by an active-set QP: rays and the l1 norm, squared loss, all three forms.

    For norms with prices: ``L1()`` and ``Nonnegative(L1())``, scaled or with a weight for each
    column. Columns with a weight in the warm start are the first active set. On a ``CachedBlock``
    the Gram matrix and its factor are kept from call to call; on other blocks they are computed
    afresh, O(n m^2). ``Refit.steps`` counts pivots.

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
        prices = check_prices(problem)
        if not problem.loss.is_quadratic:
            raise TypeError(
                f"ActiveSetQP is for the squared loss and other quadratic ones, got "
                f"{type(problem.loss).__name__}; use SequentialQP"
            )
        block = CachedBlock.of(block_of(problem))
        inside = feasible(problem, prices, weights)
        best, steps = priced_point(problem, prices, inside, block.dot(inside), intercept), 0
        while best.refit.gap > gap_target and weights.size and steps < self.max_pivots:
            if problem.deadline.passed:
                break
            left = pivots_at_a_time(
                problem, weights.size, min(TUNING.pivots, self.max_pivots - steps)
            )
            moved, outcome = self._pivots(problem, block, prices, best, left)
            steps += outcome.pivots
            trial = priced_point(problem, prices, moved, block.dot(moved), best.refit.intercept)
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

    def minimize(
        self, H: Array, b: Array, c0: Array | None = None, total: float | None = None
    ) -> tuple[Array, Columns]:
        """argmin over c >= 0 of 1/2 c'Hc + b'c, from c0: [V] Algorithm 2 in its own form.

        H is symmetric positive semidefinite, (t, t); c0 may be left out for zero. With ``total``
        the sum of c is that number (the simplicial problem). Returns c and J, the positions of its
        positive entries, increasing.
        """
        size = np.size(b)
        start = np.zeros(size) if c0 is None else np.asarray(c0, dtype=np.float64)
        bound = math.inf if total is None else float(total)
        c, _ = active_set_qp(
            np.ascontiguousarray(H, dtype=np.float64),
            -np.asarray(b, dtype=np.float64),
            start,
            radius=bound,
            equality=total is not None,
            batch=self.batch,
            max_pivots=self.max_pivots,
        )
        return c, np.flatnonzero(c).astype(np.int64)

    def _pivots(
        self, problem: Problem, block: CachedBlock, prices: Prices, at: Candidate, most: int
    ) -> tuple[Array, QPOutcome]:
        curvature = problem.loss.curvature(problem.y, at.refit.prediction, problem.weight)
        if np.array_equal(curvature, problem.weight):
            curvature = problem.weight  # one array from call to call: its Gram matrix is kept
        growing = block.growing_gram(curvature, problem.fit_intercept)
        matrix, ridge = with_ridge(problem, growing.matrix)
        # The factor of H + tau M is told from that of H + tau I by the sign.
        kept = problem.tau if problem.metric is None else -problem.tau
        factor = growing.factor(model_terms(problem.regularizer)[1], kept, prices.price)
        slope, start = slope_of(problem, at), at.refit.weights
        return model_minimum(problem, prices, matrix, ridge, slope, start, self.batch, most, factor)


def priced_point(
    problem: Problem, prices: Prices, weights: Array, linear: Array | None, intercept: float
) -> Candidate:
    """Return the point with its certificate; gauge and polar are a sum and a maximum."""
    if linear is None:
        linear = block_of(problem).dot(weights)
    intercept = problem.optimal_intercept(linear, intercept)
    prediction = linear + intercept
    v = problem.negative_gradient(prediction)
    scores = block_of(problem).transpose_dot(v)
    slopes = scores - problem.ridge_slope(weights) if problem.tau else scores
    gauge, polar = prices.gauge(weights), prices.polar(slopes)
    certificate = problem.certificate(weights, prediction, v, gauge, (polar, polar))
    refit = Refit(weights, intercept, prediction, certificate.gap, certificate.objective)
    return Candidate(refit, scores)


def pivots_at_a_time(problem: Problem, size: int, most: int) -> int:
    """Return how many pivots a call of the kernel may make: fewer where the clock counts."""
    if problem.deadline.left == math.inf:
        return most
    return min(most, max(10, int(TUNING.slice_work / (size * size))))


def prices_of(problem: Problem) -> Prices | None:
    """Return the prices of a norm that is a weighted sum of weights or of their magnitudes."""
    norm, size = problem.regularizer.norm, problem.design.shape[1]
    signed = l1_weights(norm, size)
    price = l1_weights(norm, size, nonnegative=True) if signed is None else signed
    return None if price is None else Prices(price, signed is not None)


def check_prices(problem: Problem) -> Prices:
    """Return the prices, or raise TypeError where the norm has none."""
    prices = prices_of(problem)
    if prices is None:
        raise TypeError(
            "this master re-fits columns whose gauge is a weighted sum of their weights' "
            f"magnitudes, got {problem.regularizer.norm!r}; use norms.L1() or "
            "norms.Nonnegative(norms.L1()), or SemismoothNewton for other norms"
        )
    block_of(problem)
    return prices


def feasible(problem: Problem, prices: Prices, weights: Array) -> Array:
    """Return the weights, shrunk into the domain of R where they lie outside."""
    inside = np.array(weights) if prices.signed else np.maximum(weights, 0.0)
    if problem.regularizer.form == "constrained":
        gauge, radius = prices.gauge(inside), problem.regularizer.amount
        if gauge > radius * (1.0 + 1e-12):
            inside *= radius / gauge
    return inside


def model_terms(regularizer: Regularizer) -> tuple[float, float, float]:
    """Return (level, coupling, radius): factors of p'c and (p'c)^2 / 2, and the bound on p'c."""
    form, amount = regularizer.form, regularizer.amount
    level, coupling = amount * (form == "penalized"), amount * (form == "squared")
    return level, coupling, amount if form == "constrained" else math.inf


def model_minimum(
    problem: Problem,
    prices: Prices,
    matrix: Array,
    ridge: float,
    slope: Array,
    start: Array,
    batch: int,
    most: int,
    factor: ActiveFactor | None = None,
) -> tuple[Array, QPOutcome]:
    """Return argmin_c 1/2 d'(matrix + ridge I)d + slope'd + R(p'|c|), d = c - start, by pivots.

    ``factor`` of the matrix is kept up to date by the kernel, where there is one.
    """
    level, coupling, radius = model_terms(problem.regularizer)
    return active_set_qp(
        matrix,
        slope,
        start,
        state=factor,
        price=prices.price,
        level=level,
        coupling=coupling,
        ridge=ridge,
        radius=radius,
        signed=prices.signed,
        from_gradient=True,
        batch=batch,
        max_pivots=most,
    )


def with_ridge(
    problem: Problem, hessian: Array, columns: Columns | None = None
) -> tuple[Array, float]:
    """Return H + tau M and 0, or H and tau where M is the identity, which the kernel adds."""
    if problem.metric is None or not problem.tau:
        return hessian, problem.tau
    metric = problem.metric if columns is None else problem.metric[np.ix_(columns, columns)]
    return hessian + problem.tau * metric, 0.0


def slope_of(problem: Problem, at: Candidate) -> Array:
    """Return the gradient at the point of f and the ridge term, not of R."""
    gradient = -at.scores
    if problem.tau:
        gradient += problem.ridge_slope(at.refit.weights)
    return gradient
