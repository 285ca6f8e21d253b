"""Sweep: all levels of a small least-squares path at once, for l1, k-support and elastic net.

On small data most of the time of a level is the overhead of Python calls. Therefore all levels are
solved from one Gram matrix, one pass over X computes their scores, and their certificates, the same
as those of ``problem.proof.prove``, are computed by array operations over the levels.
"""

from __future__ import annotations

import numpy as np

from atomlearn import _kernels
from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.pattern_newton import pattern_of
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.pool import Point, Pool
from atomlearn.core.problem.problem import Problem, with_amount
from atomlearn.core.problem.rounding import growth

#: Columns beyond which a Gram matrix of all of them costs more than it saves.
MOST_COLUMNS = 1000
#: Columns that may outnumber the samples.
FEW_COLUMNS = 256


def can_sweep(problem: Problem, pool: Pool) -> bool:
    """Return whether a sweep solves the problem: the pool must hold all columns."""
    n_samples, size = problem.design.shape
    patterned = pattern_of(problem) is not None and problem.regularizer.form != "constrained"
    return (
        0 < size == pool.columns.size <= min(MOST_COLUMNS, max(n_samples, FEW_COLUMNS))
        and is_quadratic(problem.loss)
        and problem.metric is None
        and (patterned or _price_of(problem) is not None)
        and pool.block.stored() is not None
        and not pool.block.traits.is_sparse
    )


def _price_of(problem: Problem) -> Array | None:
    """Return p of the penalty level * sum_j p_j |w_j|; None for other penalties."""
    regularizer = problem.regularizer
    if regularizer.form != "penalized":
        return None
    return l1_weights(regularizer.norm, problem.design.shape[1])


class Sweep:
    """The solutions of a problem at the first of its levels, one row for each.

    Parameters
    ----------
    problem : Problem
    pool : Pool
        Holds all columns.
    levels : (n_levels,)
        Levels after the deadline are left out.

    Attributes
    ----------
    price : (m,), optional
        p of the l1 norm sum_j p_j |w_j|, None for other norms.
    taus, shifts : (n_levels,)
    weights : (n_levels, m)
        In the order of the pool.
    predictions, duals : (n_levels, n_samples)
        A w + shift, and v = -f' there, which sums to 0 if there is an intercept.
    """

    def __init__(self, problem: Problem, pool: Pool, levels: Array) -> None:
        y = problem.y
        s = problem.weight
        total = float(s.sum())
        A = np.asarray(pool.block.dense(), dtype=np.float64)
        middle = float(s @ y) / total if problem.fit_intercept else 0.0
        H = pool.gram(s)
        c = (s * (y - middle)) @ A
        if problem.fit_intercept:
            pull = s @ A
            H = H - np.outer(pull, pull / total)
        self.problem = problem
        self.pool = pool
        price = _price_of(problem)
        self.price = None if price is None else price[pool.columns]
        taus = np.array([with_amount(problem, level).tau for level in levels.tolist()])
        self.weights = self._solutions(H, c, levels, taus)
        n_solved = len(self.weights)
        self.levels = levels[:n_solved]
        self.taus = taus[:n_solved]
        self.predictions = self.weights @ A.T
        self.shifts = np.zeros(n_solved)
        if problem.fit_intercept:
            # The second round removes the mean that rounding leaves.
            for _ in range(2):
                more = (y - self.predictions) @ s / total
                self.predictions += more[:, None]
                self.shifts += more
        self.duals = (y - self.predictions) * s
        if problem.fit_intercept:
            _remove_surplus(self.duals)

    def points(self) -> list[Point]:
        """Return the solutions as points over the pool."""
        rows = zip(self.weights, self.shifts.tolist(), self.predictions, self.duals, strict=True)
        return [Point(used := np.flatnonzero(w), w[used], shift, z, v) for w, shift, z, v in rows]

    def certificates(self, scores: Array) -> list[Certificate]:
        """Return the certificate of each level, from ``scores`` = V X, shape (n_levels, m).

        The rows of V are the dual vectors ``duals``. The duality gap is that of ``prove``.
        """
        problem = self.problem
        W = self.weights
        V = self.duals
        levels = self.levels
        y = problem.y
        s = problem.weight
        polar = self._polars(scores[:, self.pool.columns] - self.taus[:, None] * W)
        ridge = self.taus * _squares(W)
        gauge = self._gauges()
        # The errors that the scores may have count as if they were there.
        used = (W != 0).any(axis=0)
        errors = self._polars(np.where(used, self.pool.lengths.scored, 0.0)[None])
        reached = polar + 2.0 * growth(y.size) * np.sqrt(_squares(V)) * errors
        # f*(-c v) = c^2 Q - c v'y
        per_weight = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)
        Q = 0.5 * (V * V) @ per_weight
        inner = V @ y
        smooth = 0.5 * (self.predictions - y) ** 2 @ s + 0.5 * ridge
        if problem.regularizer.form == "squared":
            objective = smooth + 0.5 * levels * gauge**2
            gap = objective + 0.5 * ridge + Q - inner + 0.5 * reached**2 / levels
        else:
            objective = smooth + levels * gauge
            beyond = np.maximum(reached - levels, 0.0)
            gap = objective + 0.5 * ridge + Q - inner + objective / levels * beyond
            if not problem.tau:
                # The classical alternative: the dual point scaled into polar <= level.
                c = levels / np.maximum(reached, levels)
                gap = np.where(beyond > 0, np.minimum(gap, objective + c * c * Q - c * inner), gap)
        gap = np.minimum(np.where(np.isnan(gap), np.inf, gap), objective)
        # A gap below zero is rounding, even if it exceeds the bound.
        lost = np.maximum(self._rounding(objective), -gap)
        proved = np.maximum(gap, 0.0) + lost
        numbers = zip(objective.tolist(), proved.tolist(), polar.tolist(), strict=True)
        return [Certificate(*three) for three in numbers]

    def _solutions(self, H: Array, c: Array, levels: Array, taus: Array) -> Array:
        """Return argmin_w 1/2 w'(H + tau I)w - c'w + R(w) at each level, (n_solved, m)."""
        problem = self.problem
        price = self.price
        w = np.zeros(c.size)
        if price is not None and not problem.tau:
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
            if price is not None:
                slope = H @ w + tau * w - c
                [w] = l1_quadratic(H, slope, price, w, np.array([level]), ridge=tau)
            else:
                ridged = H + tau * np.eye(c.size) if tau else H
                w, _ = _kernels.pattern_newton(
                    ridged, c, w, k=k, level=level, squared=squared, elastic=elastic, gram=True
                )
            found.append(w)
        return np.array(found).reshape(-1, c.size)

    def _gauges(self) -> Array:
        if self.price is not None:
            return np.asarray(np.abs(self.weights) @ self.price)
        norm = self.problem.regularizer.norm
        return np.array([norm.value(w) for w in self.weights])

    def _polars(self, Z: Array) -> Array:
        if self.price is not None:
            return np.asarray((np.abs(Z) / self.price).max(axis=1))
        norm = self.problem.regularizer.norm
        return np.array([norm.polar(ArrayScores(z)) for z in Z])

    def _rounding(self, objective: Array) -> Array:
        """Return a bound on the rounding in each gap, without that of the polar."""
        problem = self.problem
        W = np.abs(self.weights)
        lengths = self.pool.lengths
        n_samples = problem.y.size
        heaviest = float(problem.weight.max())
        slope = np.sqrt(_squares(self.duals))
        size = np.sqrt(_squares(self.predictions)) + float(np.linalg.norm(problem.y))
        total = growth(n_samples) * (objective + slope * size)
        used = np.count_nonzero(W, axis=1)
        terms = np.array([growth(int(count)) for count in used]) * (used > 0)
        off = terms * (W @ lengths.summed)
        shift = terms * (W @ np.abs(lengths.offsets))
        total += slope * off + 0.5 * heaviest * (off * off + n_samples * shift * shift)
        return np.asarray(total)


def _squares(rows: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _remove_surplus(V: Array) -> None:
    """Take the sum of each row off the side that outweighs the other, see ``losses.shift``."""
    surplus = V.sum(axis=1)
    heavy = np.where(surplus[:, None] > 0, V > 0, V < 0)
    total = np.where(heavy, V, 0.0).sum(axis=1)
    part = np.divide(surplus, total, out=np.zeros_like(total), where=total != 0)
    V *= np.where(heavy, 1.0 - part[:, None], 1.0)
