"""Sweep: all levels at once of least squares where the data is small: l1, k-support, elastic net.

There a level costs next to nothing, and calls from Python cost most of it. So one Gram matrix has
the solutions at all levels, a reading prices all of them, and their certificates, which are those
of ``Problem.price``, are arrays over the levels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from atomlearn import _kernels
from atomlearn.core.interfaces import Array, Norm
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.pattern_newton import pattern_of
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.refits import PoolPoint
from atomlearn.core.problem.problem import Problem, with_amount
from atomlearn.core.problem.rounding import growth

#: Columns beyond which a Gram matrix of all of them costs more than it saves; and so many may
#: outnumber the samples.
MOST_COLUMNS = 1000
FEW_COLUMNS = 256


class Penalty(ABC):
    """A norm over the columns of a pool, asked for all levels together."""

    @abstractmethod
    def solve(self, problem: Problem, H: Array, c: Array, levels: Array, taus: Array) -> Array:
        """Return argmin_w 1/2 w'(H + tau I)w - c'w + R(w) at each level, (solved, m)."""

    @abstractmethod
    def gauges(self, W: Array) -> Array:
        """Return the gauge of each row."""

    @abstractmethod
    def polars(self, Z: Array) -> Array:
        """Return the polar of each row of scores."""


@dataclass(frozen=True, slots=True)
class Priced(Penalty):
    """sum_j price_j |w_j|, penalized."""

    price: Array

    def solve(self, problem: Problem, H: Array, c: Array, levels: Array, taus: Array) -> Array:
        if not problem.tau:
            return l1_quadratic(
                H, -c, self.price, np.zeros(c.size), levels,
                most=int(np.count_nonzero(problem.weight)) - 1 - problem.fit_intercept,
                going=lambda: not problem.deadline.passed,
            )  # fmt: skip
        w = np.zeros(c.size)
        found = [np.zeros((0, c.size))]
        for level, tau in zip(levels, taus.tolist(), strict=True):
            if problem.deadline.passed:
                break
            slope = H @ w + tau * w - c
            found.append(l1_quadratic(H, slope, self.price, w, level[None], ridge=tau))
            w = found[-1][0]
        return np.vstack(found)

    def gauges(self, W: Array) -> Array:
        return np.asarray(np.abs(W) @ self.price)

    def polars(self, Z: Array) -> Array:
        return np.asarray((np.abs(Z) / self.price).max(axis=1))


@dataclass(frozen=True, slots=True)
class Patterned(Penalty):
    """The k-support norm or the elastic net's: each level begins at the one before."""

    norm: Norm
    k: float
    elastic: bool

    def solve(self, problem: Problem, H: Array, c: Array, levels: Array, taus: Array) -> Array:
        squared = problem.regularizer.form == "squared"
        found = [np.zeros(c.size)]
        for level, tau in zip(levels.tolist(), taus, strict=True):
            if problem.deadline.passed:
                break
            kind = {"level": level, "squared": squared, "elastic": self.elastic, "gram": True}
            ridged = H + tau * np.eye(c.size) if tau else H
            found.append(_kernels.pattern_newton(ridged, c, found[-1], k=self.k, **kind)[0])
        return np.array(found[1:]).reshape(-1, c.size)

    def gauges(self, W: Array) -> Array:
        return np.array([self.norm.value(w) for w in W])

    def polars(self, Z: Array) -> Array:
        return np.array([self.norm.polar(ArrayScores(z)) for z in Z])


def penalty_of(problem: Problem, pool: Pool) -> Penalty | None:
    """Return the penalty over the columns of a pool, all there are; None: there is no sweep."""
    form = problem.regularizer.form
    size = problem.design.shape[1]
    norm = problem.regularizer.norm
    price = l1_weights(norm, size)
    pattern = pattern_of(problem)
    if price is not None and form == "penalized":
        return Priced(price[pool.columns])
    return None if pattern is None or form == "constrained" else Patterned(norm, *pattern)


def sweeps(problem: Problem, pool: Pool) -> bool:
    """Return whether all levels of the problem, which the pool holds whole, are solved at once."""
    n_samples, size = problem.design.shape
    return (
        0 < size == pool.columns.size <= min(MOST_COLUMNS, max(n_samples, FEW_COLUMNS))
        and problem.loss.is_quadratic
        and problem.metric is None
        and penalty_of(problem, pool) is not None
        and pool.block.stored() is not None
        and not pool.block.is_sparse
    )


@dataclass(frozen=True, slots=True)
class Sweep:
    """The solutions at the first levels.

    levels, taus : (L,); weights : (L, m) in the order of the pool; shifts : (L,), the constants in
    ``predictions`` = A w + shift, (L, n); duals : (L, n), v = -f'(prediction), which sums to 0
    where there is an intercept.
    """

    problem: Problem
    pool: Pool
    penalty: Penalty
    levels: Array
    taus: Array
    weights: Array
    shifts: Array
    predictions: Array
    duals: Array

    @classmethod
    def of(cls, problem: Problem, pool: Pool, levels: Array) -> Sweep:
        """Solve the levels, as many as the deadline allows."""
        y = problem.y
        s = problem.weight
        total = float(problem.weight.sum())
        A = np.asarray(pool.block.dense(), dtype=np.float64)
        penalty = penalty_of(problem, pool)
        assert penalty is not None
        middle = float(s @ y) / total if problem.fit_intercept else 0.0
        H = pool.gram(s)
        c = (s * (y - middle)) @ A
        if problem.fit_intercept:
            pull = s @ A
            H = H - np.outer(pull, pull / total)
        taus = np.array([with_amount(problem, level).tau for level in levels.tolist()])
        W = penalty.solve(problem, H, c, levels, taus)
        Z = W @ A.T
        shifts = np.zeros(len(W))
        if problem.fit_intercept:
            # The mean of the residuals, and that of what rounding leaves of it.
            for _ in range(2):
                more = (y - Z) @ s / total
                Z += more[:, None]
                shifts += more
        V = (y - Z) * s
        if problem.fit_intercept:
            _without_surplus(V)
        return cls(problem, pool, penalty, levels[: len(W)], taus[: len(W)], W, shifts, Z, V)

    def points(self) -> list[PoolPoint]:
        """Return the points, not yet priced."""
        rows = zip(self.weights, self.shifts.tolist(), self.predictions, self.duals, strict=True)
        return [
            PoolPoint(used := np.flatnonzero(w), w[used], shift, z, v, 0.0)
            for w, shift, z, v in rows
        ]

    def certificates(self, scores: Array) -> list[Certificate]:
        """Return those of ``Problem.price`` from the scores of the duals, (L, n_features)."""
        objectives, gaps, polars = self._bounds(scores)
        numbers = zip(objectives.tolist(), gaps.tolist(), polars.tolist(), strict=True)
        return [Certificate(*three) for three in numbers]

    def _bounds(self, Z: Array) -> tuple[Array, Array, Array]:
        problem = self.problem
        W = self.weights
        V = self.duals
        levels = self.levels
        y = problem.y
        s = problem.weight
        polar = self.penalty.polars(Z[:, self.pool.columns] - self.taus[:, None] * W)
        ridge = self.taus * _squares(W)
        gauge = self.penalty.gauges(W)
        # What the scores may be off by counts as if it were there.
        used = (W != 0).any(axis=0)
        errors = self.penalty.polars(np.where(used, self.pool.lengths.scored, 0.0)[None])
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
        # What is below zero was lost in rounding, whatever the bound on it says.
        lost = np.maximum(self._rounding(objective), -gap)
        return objective, np.maximum(gap, 0.0) + lost, polar

    def _rounding(self, objective: Array) -> Array:
        """Return what rounding may hide in each gap beside the polar, see ``problem.rounding``."""
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


def _without_surplus(V: Array) -> None:
    """Take the sum of each row off the side that outweighs the other, see ``losses.shift``."""
    surplus = V.sum(axis=1)
    heavy = np.where(surplus[:, None] > 0, V > 0, V < 0)
    total = np.where(heavy, V, 0.0).sum(axis=1)
    part = np.divide(surplus, total, out=np.zeros_like(total), where=total != 0)
    V *= np.where(heavy, 1.0 - part[:, None], 1.0)
