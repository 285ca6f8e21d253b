"""Sweeps: factors of low-rank terms fitted in turn, row by row, between two passes.

||W||_* = min (||L||^2 + ||R||^2) / 2 over W = L R' (Rennie, Srebro 2005): with R held, L is as many
ridge regressions as it has rows, for losses other than the squared one a step of Newton of each.
A span can turn only into the directions that the last pass added to it; sweeps turn it freely, at
about the price of a few products with its factors. They change the point, never a bound: what they
reach is priced like any other (local search within a greedy method: Laue 2012; Zhang, Yu,
Schuurmans 2012).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses import pieces
from atomlearn.core.problem.problem import Problem
from atomlearn.matrices.designs.entries import EntryRidge
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import Coordinates
from atomlearn.matrices.solver.spans import Span


def can_sweep(problem: Problem, term: Coordinates) -> bool:
    """Return whether the factors of this term can be fitted in turn.

    The price of its gauge must be known beforehand, which the penalized form alone has.
    """
    return (
        term.turns_freely
        and term.rank <= SETTINGS.sweep_rank
        and term.design.has_ridge_steps
        and problem.regularizer.form == "penalized"
        and problem.tau == 0.0
        and problem.loss.coupled == 1
    )


def swept(
    problem: Problem, term: Span, x: Array, linear: Array, intercept: float, enough: float
) -> tuple[Span, Array, Array]:
    """Return the term, its diagonal S and the predictions without intercept after sweeps.

    x : S of a compressed term; linear : predictions of all terms without intercept; enough : a
    sweep that gains less than this is the last.
    """
    sweep = _begun(problem, term, x, linear, intercept)
    first = before = sweep.objective
    while True:
        sweep.once()
        rank, after = sweep.left.shape[1], sweep.objective
        least = max(enough, SETTINGS.sweep_gain * rank * (first - after))
        if not rank or before - after <= least or problem.deadline.passed:
            break
        before = after
    root = np.linalg.norm(sweep.left, axis=0)
    turned = replace(term, left=sweep.left / root, right=sweep.right / root)
    return turned, np.diag(root**2).reshape(-1), sweep.linear


@dataclass(slots=True)
class _Sweeps:
    """W = left right' with balanced factors: their columns are orthogonal, and of the same norms.

    price : of the gauge of W; linear : predictions of all terms, those of the ``others`` included;
    loss : its value there.
    """

    problem: Problem
    steps: EntryRidge
    price: float
    intercept: float
    left: Array
    right: Array
    linear: Array
    others: Array
    loss: float

    @property
    def objective(self) -> float:
        """The loss and the price of the factors, without the gauges of other terms."""
        return self.loss + self._penalty(self.left, self.right)

    def once(self) -> None:
        """Fit left, then right, and balance them."""
        self._half(to_left=True)
        self._half(to_left=False)
        self._balance()

    def _half(self, to_left: bool) -> None:
        """Fit one factor; a step that does not lower the objective is not made."""
        problem, shift = self.problem, self.intercept
        slope = problem.loss_gradient(self.linear, shift)
        curvature = np.empty_like(slope)
        for part, own in pieces.each(problem.loss, slope.size):
            z = pieces.shifted(self.linear[part], shift)
            curvature[part] = own.curvature(problem.y[part], z, problem.weight[part])
        fit = self.steps.left if to_left else self.steps.right
        after = fit(slope, curvature, self.left, self.right, self.price)
        del slope, curvature
        linear = self._predictions(*((after, self.right) if to_left else (self.left, after)))
        left, right = (after, self.right) if to_left else (self.left, after)
        loss = problem.loss_value(linear, shift)
        if loss + self._penalty(left, right) < self.objective:
            self.left, self.right, self.linear, self.loss = left, right, linear, loss

    def _balance(self) -> None:
        """Give both factors the singular vectors of their product, and drop its zeros."""
        left, left_core = np.linalg.qr(self.left)
        right, right_core = np.linalg.qr(self.right)
        P, values, Qt = np.linalg.svd(left_core @ right_core.T)
        kept = values > SETTINGS.rounding * float(values.max(initial=0.0))
        root = np.sqrt(values[kept])
        self.left, self.right = left @ (P[:, kept] * root), right @ (Qt[kept].T * root)

    def _predictions(self, left: Array, right: Array) -> Array:
        linear = self.steps.predictions(left, right)
        return np.add(linear, self.others, out=linear)

    def _penalty(self, left: Array, right: Array) -> float:
        return 0.5 * self.price * float((left**2).sum() + (right**2).sum())


def _begun(problem: Problem, term: Span, x: Array, linear: Array, intercept: float) -> _Sweeps:
    """Return the sweeps at the point where the term is."""
    price = problem.regularizer.amount * term.term.factor
    steps = term.design.ridge_steps()
    rank = term.left.shape[1]
    root = np.sqrt(np.diag(x.reshape(rank, rank)))
    left, right = term.left * root, term.right * root
    rest = steps.predictions(left, right)
    np.subtract(linear, rest, out=rest)
    loss = problem.loss_value(linear, intercept)
    return _Sweeps(problem, steps, price, intercept, left, right, linear, rest, loss)
