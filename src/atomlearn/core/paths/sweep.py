"""Sweep: all levels of a path (strengths of its penalty) on small data at once.

On small data most of the time of a level is the overhead of Python calls. Therefore one call solves
all levels. For least squares it needs one Gram matrix (l1, k-support and elastic net); for other
losses it makes Newton steps (l1). One pass over X then computes the scores of all levels. Array
operations over the levels compute their certificates, the same as those of ``problem.proof.prove``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from atomlearn import _kernels
from atomlearn._support import growth
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import TINY, Array, Loss, Scores
from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.losses.around import bare_loss, loss_of_rows
from atomlearn.core.masters.kernel_columns import reads
from atomlearn.core.masters.pattern_newton import pattern_of
from atomlearn.core.masters.sequential_qp import solved_at
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.pool import Point, Pool
from atomlearn.core.problem.problem import Problem, changed
from atomlearn.core.problem.proof import (
    lost_in_loss,
    prove_from,
    raised_by_origin,
    with_rounding,
)
from atomlearn.core.problem.result import Record, Result
from atomlearn.core.solvers.run import silent

#: Number of columns beyond which a Gram matrix of all columns costs more than it saves.
MOST_COLUMNS = 1000
#: Most predictions (128 MB) of all levels.
MOST_PREDICTIONS = 2**24
#: Number of columns that is small enough even if it exceeds the number of samples.
FEW_COLUMNS = 256


def can_sweep(problem: Problem, pool: Pool, n_levels: int) -> bool:
    """Return whether ``Sweep`` can solve the problem at ``n_levels`` levels.

    The data must be dense and small, with all columns in the ``pool``. The norm must be l1, or for
    least squares k-support or elastic net: these have a kernel that solves a level.
    """
    n_samples, size = problem.design.shape
    patterned = pattern_of(problem) is not None and problem.regularizer.form != "constrained"
    block = pool.block
    quadratic = is_quadratic(problem.loss)
    # Norms other than l1 have a kernel for least squares only.
    solved = patterned if quadratic else False
    return (
        0 < size == pool.columns.size <= min(MOST_COLUMNS, max(n_samples, FEW_COLUMNS))
        and (quadratic or reads(problem, block))
        and n_levels * n_samples <= MOST_PREDICTIONS
        and problem.metric is None
        and (solved or _price_of(problem) is not None)
        and block.stored() is not None
        and not block.traits.is_sparse
    )


def _price_of(problem: Problem) -> Array | None:
    """Return p (n_features,) if the problem's penalty is level * sum_j p_j |w_j|; else None."""
    regularizer = problem.regularizer
    if regularizer.form != "penalized":
        return None
    return l1_weights(regularizer.norm, problem.design.shape[1])


class Sweep:
    """The solutions of a problem at its levels, one row for each; fewer after the deadline.

    Parameters
    ----------
    problem : Problem
        Problem to solve; the level in it does not matter.
    pool : Pool
        Holds all columns.
    levels : (n_levels,)
        Strengths of the penalty, decreasing. Levels after the deadline are not solved.
    gap : float
        Newton steps end at this relative duality gap, which they only estimate.

    Attributes
    ----------
    price : (m,), optional
        p of the l1 norm sum_j p_j |w_j|, None for other norms.
    taus, shifts : (n_levels,)
        tau, the weight of the ridge term, and the intercept over the centered columns of the pool.
    weights : (n_levels, m)
        In the order of the pool.
    rows : (n_rows,)
        The samples of positive weight: a fold has no others.
    predictions, duals : (n_levels, n_rows)
        z = A w + shift, with the columns A of the pool, and v = -f'(z), with the loss f. If there
        is an intercept, v sums to 0.
    """

    def __init__(self, problem: Problem, pool: Pool, levels: Array, gap: float) -> None:
        """Solve the problem at the levels."""
        self.pool = pool
        self.began = time.monotonic()
        price = _price_of(problem)
        self.price = None if price is None else price[pool.columns]
        self.rows = np.flatnonzero(problem.weight)
        self.whole = problem
        A = np.asarray(pool.block.dense(), dtype=np.float64)
        if self.rows.size < problem.y.size:
            A = A.T.take(self.rows, axis=1).T
            y = problem.y[self.rows]
            loss = loss_of_rows(problem.loss, self.rows)
            problem = replace(problem, loss=loss, y=y, weight=problem.weight[self.rows])
        self.problem = problem
        # The ridge term keeps its share of the penalty.
        taus = levels * (problem.tau / problem.regularizer.amount)
        with silent(problem.loss):
            self._solve(A, levels, taus, gap)

    def _solve(self, A: Array, levels: Array, taus: Array, gap: float) -> None:
        """Compute weights, shifts, predictions and dual vectors of the levels, as attributes.

        A : the columns of the pool, (n_rows, m). taus : the ridge weight at each level. gap : see
        the class.
        """
        problem = self.problem
        if is_quadratic(problem.loss):
            self.weights = self._solutions(*self._quadratic(A), levels, taus)
            self.shifts = np.zeros(len(self.weights))
        else:
            in_memory = replace(problem, design=CachedBlock(DenseBlock(A)))
            self.weights, shifts = solved_at(in_memory, levels, taus, A, gap)
            self.shifts = np.array(shifts)
        n_solved = len(self.weights)
        self.levels = levels[:n_solved]
        self.taus = taus[:n_solved]
        self.predictions = self.weights @ A.T
        self.predictions += self.shifts[:, None]
        self.duals = self._duals()
        if problem.fit_intercept and n_solved:
            # A Newton step for the intercepts: a dual vector sums to 0 at the optimal intercept.
            curvature = self._of_each(lambda loss, *at: loss.curvature(*at)).sum(axis=1)
            surplus = self.duals.sum(axis=1)
            step = np.divide(surplus, curvature, out=np.zeros(n_solved), where=curvature > 0)
            self.predictions += step[:, None]
            self.shifts += step
            self.duals = self._duals()
            _remove_surplus(self.duals)

    def _quadratic(self, A: Array) -> tuple[Array, Array]:
        """Return H (m, m) and c (m,) of the squared loss 1/2 w'Hw - c'w + constant.

        A : the columns, (n_rows, m). With S the sample weights, H = A'SA and c = A'Sy. If there is
        an intercept, it is minimized out: the weighted means of A and y are subtracted.
        """
        problem = self.problem
        s = problem.weight
        H = self.pool.gram(self.whole.weight)
        if not problem.fit_intercept:
            return H, (s * problem.y) @ A
        total = float(s.sum())
        sums = s @ A
        return H - np.outer(sums, sums / total), (s * (problem.y - s @ problem.y / total)) @ A

    def _of_each(self, compute: Callable[[Loss, Array, Array, Array], Array]) -> Array:
        """Return ``compute(loss, y, z, s)`` for the predictions z of each level.

        s are the sample weights. The result has the shape (n_levels, n_rows). If the loss does not
        couple samples (``coupled`` is 1), one call computes all levels.
        """
        problem = self.problem
        if problem.loss.coupled == 1:
            loss, y, s = self._tiled
            found = compute(loss, y, self.predictions.reshape(-1), s)
        else:
            y = problem.y
            found = np.array(
                [compute(problem.loss, y, z, problem.weight) for z in self.predictions]
            )
        return found.reshape(self.predictions.shape)

    @cached_property
    def _tiled(self) -> tuple[Loss, Array, Array]:
        """Loss, y and weights of all levels, as if of one long problem.

        The samples of the first level come first, then those of the second, and so on. So y and
        the weights are repeated for each level.
        """
        problem = self.problem
        n_levels = len(self.predictions)
        loss = problem.loss
        if bare_loss(loss) is not loss:  # such as a loss with an offset for each sample
            loss = loss_of_rows(loss, np.tile(np.arange(problem.y.size), n_levels))
        return loss, np.tile(problem.y, n_levels), np.tile(problem.weight, n_levels)

    def _duals(self) -> Array:
        """Return -f' of each level, (n_levels, n_rows)."""
        slopes = self._of_each(lambda loss, *at: loss.gradient(*at))
        return np.negative(slopes, out=slopes)

    def vectors(self) -> list[Array]:
        """Return the dual vector of each level over all samples, (n_samples,), 0 without weight."""
        V = self.duals
        if V.shape[1] < self.whole.y.size:
            V = np.zeros((len(V), self.whole.y.size))
            V[:, self.rows] = self.duals
        return [*V]

    def points(self) -> list[Point]:
        """Return the solution of each level as a ``Point`` over the pool."""
        predictions = self.weights @ self.pool.block.dense().T + self.shifts[:, None]
        rows = zip(self.weights, self.shifts.tolist(), predictions, self.vectors(), strict=True)
        return [Point(used := np.flatnonzero(w), w[used], shift, z, v) for w, shift, z, v in rows]

    def results(self, certificates: list[Certificate], tol: float, n_vectors: int) -> list[Result]:
        """Return the results of the first levels, up to the first relative gap above ``tol``.

        ``certificates`` has the certificate of each level. The results equal those of a ``Run``
        (the steps of a solver at one level) that ends after one pass over X; ``n_vectors`` dual
        vectors shared this pass. The list is empty for matrices and for unpenalized columns, whose
        results have further fields.
        """
        problem = self.problem
        norm = problem.regularizer.norm
        design = problem.design
        shape = norm.matrix_shape or design.traits.matrix_shape
        if shape is not None or problem.free is not None:
            return []
        n_features = design.shape[1]
        seconds = (time.monotonic() - self.began) / len(certificates)
        level, position = self.weights.nonzero()
        columns = self.pool.columns[position]
        weights = self.weights[level, position]
        offsets = self.pool.lengths.offsets[position]
        ends = np.searchsorted(level, np.arange(len(certificates) + 1)).tolist()
        rows = [slice(*each) for each in pairwise(ends)]
        # From the centered columns of the pool to the columns of X.
        intercepts = self.shifts - [float(offsets[used] @ weights[used]) for used in rows]
        # Objectives, gaps and relative gaps of the intercepts that are reported.
        raised = raised_by_origin(problem, intercepts)
        objectives = np.array([each.objective for each in certificates]) + raised
        gaps = np.array([each.gap for each in certificates]) + raised
        relative = gaps / np.maximum(np.abs(objectives), TINY)
        count = int(np.append(relative <= tol, False).argmin())
        bounds = objectives, gaps, relative, intercepts + problem.origin
        found = []
        numbers = (each[:count].tolist() for each in bounds)
        for used, F, gap, share, b in zip(rows[:count], *numbers, strict=True):
            n_used = used.stop - used.start
            result = Result(
                columns=columns[used],
                weights=weights[used],
                intercept=b,
                objective=F,
                gap=gap,
                status=Status.CONVERGED,
                tol=tol,
                passes=1.0,
                seconds=seconds,
                n_features=n_features,
                iterations=0,
                # No step, one pass over X.
                history=[Record(0, 1.0, seconds, F, gap, share, n_used, None, n_vectors)],
                norm=norm,
            )
            found.append(result)
        return found

    def certificates(self, scores: Array) -> list[Certificate]:
        """Return the certificate of each level, from ``scores`` = V X, shape (n_levels, m).

        The rows of V are the dual vectors ``duals``. The duality gap is that of ``prove``.
        """
        with silent(self.problem.loss):
            if self.problem.loss.coupled == 1:
                return self._certificates(scores)
            # A loss that couples samples has no formula for all levels at once, and caches only its
            # last point. So the levels are certified one after the other.
            return [self._certificate(number, ArrayScores(z)) for number, z in enumerate(scores)]

    def _certificate(self, number: int, scores: Scores) -> Certificate:
        """Return the certificate of the level with index ``number``, from its scores X'v."""
        problem = changed(self.problem, amount=float(self.levels[number]))
        used = self.weights[number].nonzero()[0]
        columns = self.pool.columns[used]
        point = self.weights[number, used], self.predictions[number], self.duals[number]
        price = prove_from(problem, columns, *point, scores)
        lengths = self.pool.lengths.take(used)
        return with_rounding(problem, price.certificate, *point, columns, lengths)

    def _certificates(self, scores: Array) -> list[Certificate]:
        """Return the certificate of each level, computed by array operations over the levels.

        ``scores`` is V X, (n_levels, m), for the dual vectors v in the rows of V. The gap is

            penalized, tau = 0  F + f*(-c v),  c = min(level / polar, 1)
            penalized, tau > 0  F + tau/2 ||w||^2 + f*(-v) + F max(polar / level - 1, 0)
            squared             F + tau/2 ||w||^2 + f*(-v) + polar^2 / (2 level)

        with F the objective at the weights w, tau the ridge weight, f* the conjugate of the loss,
        and polar the dual norm of the scores minus tau w. Bounds on rounding errors are added.
        """
        problem = self.problem
        W = self.weights
        V = self.duals
        levels = self.levels
        y = problem.y
        polar = self._polars(scores[:, self.pool.columns] - self.taus[:, None] * W)
        ridge = self.taus * _squares(W)
        gauge = self._gauges()
        # The polar plus a bound on the effect of rounding of the scores.
        used = (W != 0).any(axis=0)
        errors = self._polars(np.where(used, self.pool.lengths.scored, 0.0)[None])
        polar_bound = polar + 2.0 * growth(y.size) * np.sqrt(_squares(V)) * errors
        smooth = self._values() + 0.5 * ridge
        if problem.regularizer.form == "squared":
            objective = smooth + 0.5 * levels * gauge**2
            gap = objective + 0.5 * ridge + self._conjugates() + 0.5 * polar_bound**2 / levels
        else:
            objective = smooth + levels * gauge
            if problem.tau:
                # The norm of an optimal w is at most F / level.
                beyond = np.maximum(polar_bound - levels, 0.0)
                gap = objective + 0.5 * ridge + self._conjugates() + objective / levels * beyond
            else:
                # The dual vector is scaled until its polar is at most the level.
                gap = objective + self._conjugates(levels / np.maximum(polar_bound, levels))
        gap = np.minimum(np.where(np.isnan(gap), np.inf, gap), objective)
        # A gap below zero is rounding, even if it exceeds the bound.
        lost = np.maximum(self._rounding(objective), -gap)
        proved = np.maximum(gap, 0.0) + lost
        numbers = zip(objective.tolist(), proved.tolist(), polar.tolist(), strict=True)
        return [Certificate(*values) for values in numbers]

    def _values(self) -> Array:
        """Return the loss f(z) at the predictions z of each level, (n_levels,)."""
        problem = self.problem
        y = problem.y
        s = problem.weight
        if is_quadratic(problem.loss):
            residuals = self.predictions - y
            residuals *= residuals
            return np.asarray(0.5 * (residuals @ s))
        return np.array([problem.loss.value(y, z, s) for z in self.predictions])

    def _conjugates(self, factors: Array | None = None) -> Array:
        """Return f*(-c v), (n_levels,), with v the dual vector of a level and c its factor.

        f* is the conjugate of the loss. ``factors`` has c for each level; default: all 1.
        """
        problem = self.problem
        y = problem.y
        s = problem.weight
        V = self.duals
        c = np.ones(len(V)) if factors is None else factors
        if is_quadratic(problem.loss):
            # f*(-v) = sum_i v_i^2 / (2 s_i) - v_i y_i; samples of weight 0 have v_i = 0.
            per_weight = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)
            return np.asarray(c * (0.5 * c * ((V * V) @ per_weight) - V @ y))
        rows = zip(c.tolist(), V, strict=True)
        return np.array([problem.loss.conjugate(y, -factor * v, s) for factor, v in rows])

    def _solutions(self, H: Array, c: Array, levels: Array, taus: Array) -> Array:
        """Return argmin_w 1/2 w'(H + tau I)w - c'w + R(w) at each level, (n_solved, m).

        H (m, m) and c (m,) : the loss, see ``_quadratic``. levels, taus : (n_levels,), the strength
        of the regularizer R and the ridge weight tau. Fewer levels are solved if time is over. Each
        solution is the start of the next one.
        """
        problem = self.problem
        price = self.price
        w = np.zeros(c.size)
        if price is not None and not problem.tau:
            # l1 without a ridge term: one call solves all levels. More than n - 1 columns in use
            # would make H singular.
            most = int(np.count_nonzero(problem.weight)) - 1 - problem.fit_intercept
            return l1_quadratic(
                H, -c, price, w, levels, most=most, going=lambda: not problem.deadline.passed
            )
        squared = problem.regularizer.form == "squared"
        k, elastic = pattern_of(problem) or (0.0, False)
        found = []
        for level, tau in zip(levels.tolist(), taus.tolist(), strict=True):
            if problem.deadline.passed:
                break
            if price is not None:  # l1 with a ridge term
                slope = H @ w + tau * w - c
                [w] = l1_quadratic(H, slope, price, w, np.array([level]), ridge=tau)
            else:  # k-support or elastic net
                ridged = H + tau * np.eye(c.size) if tau else H
                w, _ = _kernels.pattern_newton(
                    ridged, c, w, k=k, level=level, squared=squared, elastic=elastic, gram=True
                )
            found.append(w)
        return np.array(found).reshape(-1, c.size)

    def _gauges(self) -> Array:
        """Return the norm of the weights at each level, (n_levels,)."""
        if self.price is not None:
            return np.asarray(np.abs(self.weights) @ self.price)
        norm = self.problem.regularizer.norm
        return np.array([norm.value(w) for w in self.weights])

    def _polars(self, Z: Array) -> Array:
        """Return the polar (dual norm) of the scores in each row of Z, (n_rows,)."""
        if self.price is not None:
            return np.asarray((np.abs(Z) / self.price).max(axis=1))
        norm = self.problem.regularizer.norm
        return np.array([norm.polar(ArrayScores(z)) for z in Z])

    def _rounding(self, objective: Array) -> Array:
        """Return a bound on the rounding error of each gap, (n_levels,).

        ``objective`` (n_levels,) has the objective F of each level. The error of the polar is not
        included, because ``_certificates`` adds it to the polar itself.

        An error e of the predictions z changes the gap by at most ||v|| ||e|| + 1/2 c ||e||^2, with
        c the largest second derivative of the loss. For least squares, the sums over n samples have
        an error of growth(n) (F + ||v|| (||z|| + ||y||)). ``lost_in_loss`` has the bound for other
        losses.
        """
        problem = self.problem
        W = np.abs(self.weights)
        lengths = self.pool.lengths
        n_samples = problem.y.size
        dual_norms = np.sqrt(_squares(self.duals))
        used = np.count_nonzero(W, axis=1)
        errors = np.array([growth(k) for k in range(int(used.max(initial=0)) + 1)])
        relative_errors = errors[used] * (used > 0)
        # Sums over the used columns give the predictions and the shifts. ``growth`` bounds the
        # relative error of a sum. So these bound the norm of the errors of the predictions, the
        # error of a shift, and the squared norm of both together.
        predicted = relative_errors * (W @ lengths.summed)
        shift = relative_errors * (W @ np.abs(lengths.offsets))
        square = predicted * predicted + n_samples * shift * shift
        if is_quadratic(problem.loss):
            heaviest = float(problem.weight.max())
            size = np.sqrt(_squares(self.predictions)) + float(np.linalg.norm(problem.y))
            lost = growth(n_samples) * (objective + dual_norms * size) + 0.5 * heaviest * square
        else:
            rows = zip(self.predictions, self.duals, objective.tolist(), square, strict=True)
            lost = np.array([lost_in_loss(problem, z, v, size, more) for z, v, size, more in rows])
        return np.asarray(lost + dual_norms * predicted)


def _squares(rows: Array) -> Array:
    """Return the squared Euclidean norm of each of the ``rows`` (n_rows, m), as (n_rows,)."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _remove_surplus(V: Array) -> None:
    """Change the rows of V in place so that each sums to 0, as v does if there is an intercept.

    The entries of one sign, that with the larger sum of magnitudes, are multiplied by a factor
    below 1; see ``without_surplus`` in ``losses.shift``.
    """
    surplus = V.sum(axis=1)
    heavy = V * np.sign(surplus)[:, None]
    np.maximum(heavy, 0.0, out=heavy)
    total = heavy.sum(axis=1)
    heavy *= np.divide(surplus, total, out=np.zeros_like(total), where=total != 0)[:, None]
    V -= heavy
