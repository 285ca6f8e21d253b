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
from typing import cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces.matrix import RidgeSteps, SupportsRidgeSteps
from atomlearn.losses import pieces
from atomlearn.problem import Problem
from atomlearn.solvers.matrices.terms import INDEPENDENT, Coordinates, Span

Array = NDArray[np.float64]

#: Sweeps between two passes; a sweep must gain this share of what all of them have gained so far
#: for each unit of rank: it costs O(n r^2).
MOST_SWEEPS, SHARE = 30, 1e-4
#: Rank up to which a sweep, O(n r^2), is worth its price beside steps within the span, O(n r).
MOST_RANK = 128
#: Halvings of a step that does not lower the objective.
HALVINGS = 8


def can_sweep(problem: Problem, term: Coordinates) -> bool:
    """Return whether the factors of this term can be fitted in turn.

    The price of its gauge must be known beforehand, which the penalized form alone has.
    """
    return (
        isinstance(term, Span)
        and not (term.symmetric or term.is_whole)
        and 0 < term.left.shape[1] <= MOST_RANK
        and isinstance(term.design, SupportsRidgeSteps)
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
    for _ in range(MOST_SWEEPS):
        after = sweep.once()
        rank = sweep.values.size
        if not rank or before - after <= max(enough, SHARE * rank * (first - after)):
            break
        before = after
    values = sweep.values
    turned = replace(term, left=sweep.left / np.sqrt(values), right=sweep.right / np.sqrt(values))
    return turned, np.diag(values).reshape(-1), sweep.linear


@dataclass(slots=True)
class _Sweeps:
    """W = left right' with balanced factors, both of squared column norms ``values``.

    price : of the gauge of W; linear : predictions of all terms, those of the ``others`` included;
    objective : without the gauges of other terms.
    """

    problem: Problem
    steps: RidgeSteps
    price: float
    intercept: float
    left: Array
    right: Array
    values: Array
    linear: Array
    others: Array | None
    objective: float

    def once(self) -> float:
        """Fit left, then right, balance them; return the objective."""
        self._half(to_left=True)
        self._half(to_left=False)
        self._balance()
        return self.objective

    def _half(self, to_left: bool) -> None:
        """Fit one factor; a step that does not lower the objective is halved, or not made."""
        loss, y, weight = self.problem.loss, self.problem.y, self.problem.weight
        slope, curvature = np.empty(y.size), np.empty(y.size)
        for part in pieces.pieces(loss, y.size):
            at = y[part], pieces.shifted(self.linear[part], self.intercept), weight[part]
            slope[part], curvature[part] = loss.gradient(*at), loss.curvature(*at)
        before = self.left if to_left else self.right
        fit = self.steps.left if to_left else self.steps.right
        after = fit(slope, curvature, self.left, self.right, self.price)
        del slope, curvature
        linear = self._predictions(*((after, self.right) if to_left else (self.left, after)))
        held = float((self.right**2 if to_left else self.left**2).sum())
        for _ in range(HALVINGS):
            objective = self._loss(linear) + 0.5 * self.price * (held + float((after**2).sum()))
            if objective < self.objective:
                self.objective, self.linear = objective, linear
                if to_left:
                    self.left = after
                else:
                    self.right = after
                return
            after = 0.5 * (after + before)
            linear = 0.5 * (linear + self.linear)

    def _balance(self) -> None:
        """Give both factors the singular vectors of their product, and drop its zeros."""
        left, left_core = np.linalg.qr(self.left)
        right, right_core = np.linalg.qr(self.right)
        P, values, Qt = np.linalg.svd(left_core @ right_core.T)
        kept = values > INDEPENDENT**2 * float(values.max(initial=0.0))
        root = np.sqrt(values[kept])
        self.left, self.right = left @ (P[:, kept] * root), right @ (Qt[kept].T * root)
        self.values = values[kept]
        self.objective = self._loss(self.linear) + self.price * float(self.values.sum())

    def _predictions(self, left: Array, right: Array) -> Array:
        linear = self.steps.predictions(left, right)
        return linear if self.others is None else np.add(linear, self.others, out=linear)

    def _loss(self, linear: Array) -> float:
        return _loss(self.problem, linear, self.intercept)


def _begun(problem: Problem, term: Span, x: Array, linear: Array, intercept: float) -> _Sweeps:
    """Return the sweeps at the point where the term is."""
    price = problem.regularizer.amount * term.term.factor
    steps = cast(SupportsRidgeSteps, term.design).ridge_steps()
    rank = term.left.shape[1]
    values = np.diag(x.reshape(rank, rank)).copy()
    left, right = term.left * np.sqrt(values), term.right * np.sqrt(values)
    rest = steps.predictions(left, right)
    np.subtract(linear, rest, out=rest)
    others = None if _largest(rest) <= 1e-12 * _largest(linear) else rest
    objective = _loss(problem, linear, intercept) + price * float(values.sum())
    return _Sweeps(problem, steps, price, intercept, left, right, values, linear, others, objective)


def _loss(problem: Problem, linear: Array, intercept: float) -> float:
    return pieces.value(problem.loss, problem.y, linear, problem.weight, intercept)


def _largest(z: Array) -> float:
    """Return max |z|, without an array of magnitudes."""
    return max(float(z.max()), -float(z.min()))
