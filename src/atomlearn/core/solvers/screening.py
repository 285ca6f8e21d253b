"""Gap safe screening: columns that no optimum uses are proved so, and never scored again.

The dual problem, max over v of D(v) = -f*(-v) - (R + tau/2 ||.||^2)*(X'v) with sum(v) = 0 where
there is an intercept, has one optimum v*, because f*(u) is a sum of functions that are
1 / (L s_i)-strongly convex where loss'' <= L. So for any feasible v and any w,

    1/2 sum_i (v_i - v_i*)^2 / (L s_i)  <=  D(v*) - D(v)  <=  F(w) - D(v)  =  gap,

and v* lies in an ellipsoid around v: the *ball*, of radius r = sqrt(2 gap). By Cauchy and Schwarz
|x_j'(v - v*)| <= r c_j with c_j^2 = L sum_i s_i x_ij^2, the *reach* of column j. With tau > 0 the
dual has a second variable a, with a* = tau w*, X'v - a in the place of X'v and -||a||^2 / (2 tau):
the scores are those of the columns with sqrt(tau) e_j below, and c_j^2 grows by tau. From scores
known to an error the norm tells which coordinates an optimum may use (``possible_support``).

Why the gap of what is left proves the whole problem: near the scores of v* the polar, and with it
the dual objective, is the same without the columns ruled out. So v* is a local maximum of the dual
of the restricted problem, which is concave: both problems have the same optimal value (and v*, so
that screening goes on from there). Hence F(w) - F* is at most the gap of the restricted problem for
every w that is zero outside it.

Ndiaye, Fercoq, Gramfort, Salmon (2017), Gap safe screening rules for sparsity enforcing penalties,
JMLR 18(128), Theorem 6 and section 3; docs/concepts.md has the forms and norms beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.parts import part_of
from atomlearn.core.problem.pricing import Pricing
from atomlearn.core.problem.problem import Problem

Array = NDArray[np.float64]
Columns = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Margins:
    """What keeps screening safe in double precision, and worth its while.

    Parameters
    ----------
    rounding : float
        Added to the gap, as a fraction of the objective: a gap that is zero by rounding is none.
        The radius is then at least 1e-5 times the length of v (as v'v <= 2 F in the norm of the
        ball), far above what rounding does to scores.
    outside : float
        A constrained point may lie outside of its ball by this fraction (``Regularizer.value``).
    unseen : float
        Squares below are not seen in squared norms: what n of them may add up to, per sample.
    worthwhile : float
        Columns are ruled out together, once they are at least this share of those left: a design
        of fewer columns is a copy of indices.
    """

    rounding: float = 1e-10
    outside: float = 1e-9
    unseen: float = 1e-300
    worthwhile: float = 0.2


MARGINS = Margins()


@dataclass(frozen=True, slots=True)
class Ball:
    """|scale * z_j - z_j*| <= radius * c_j, z the scores of the point, z* those of the optimum."""

    scale: float
    radius: float


@dataclass(frozen=True, slots=True)
class Scope:
    """The problem over the columns not ruled out: at first all of them.

    problem : the same problem over these columns; kept : their numbers in the whole problem,
    increasing (None: all); reach : (n_kept,) c_j of the module's text, None where not yet asked.
    """

    problem: Problem
    kept: Columns | None = None
    reach: Array | None = None

    def inside(self, columns: Columns) -> Columns:
        """Return the numbers in this scope of columns of the whole problem, all of them in it."""
        if self.kept is None:
            return columns
        places = np.searchsorted(self.kept, columns)
        if columns.size and not np.array_equal(np.take(self.kept, places, mode="clip"), columns):
            raise ValueError(
                "a column that was ruled out is in use: the certificate would not hold"
            )
        return places

    def holds(self, columns: Columns) -> Mask:
        """Mark those of these columns of the whole problem that are in the scope."""
        if self.kept is None:
            return np.ones(columns.size, dtype=bool)
        places = np.searchsorted(self.kept, columns)
        return np.asarray(np.take(self.kept, places, mode="clip") == columns)

    def original(self, columns: Columns) -> Columns:
        """Return the numbers in the whole problem of columns of this scope."""
        return columns if self.kept is None else self.kept[columns]


def supports_screening(problem: Problem) -> bool:
    """Return whether columns of this problem can be ruled out, and skipped afterwards."""
    return (
        problem.regularizer.norm.over_columns
        and problem.design.listable
        and math.isfinite(problem.loss.smoothness)
    )


def column_reach(problem: Problem) -> Array:
    """Return c_j = sqrt(L sum_i s_i x_ij^2 + tau) for every column, never too small: one pass."""
    design = problem.design
    squares = problem.loss.smoothness * design.squared_norms(problem.weight)
    squares += problem.tau + MARGINS.unseen * problem.y.size
    return np.asarray(np.sqrt(squares))


def dual_ball(price: Pricing) -> Ball:
    """Return a ball that holds the dual optimum, from a point and its dual point v. O(n_samples).

    The ``gap`` of the certificate may be smaller than that of v and is not used. The ball is
    around v, or in the penalized form around v scaled to gauge°(z) <= level, whichever is smaller.
    A penalized v itself need not be feasible: it is for the same problem with
    gauge(w) <= F / level, which changes neither the optima nor v*.
    """
    problem, weights, v, certificate = price.problem, price.weights, price.dual, price.certificate
    regularizer, polar = problem.regularizer, certificate.polar
    ridge = 0.5 * problem.tau * float(weights @ weights)
    objective = certificate.objective
    gap = objective + problem.loss_conjugate(v, -1.0) + ridge
    gap += regularizer.conjugate(polar, objective / regularizer.amount)
    scale = 1.0
    if regularizer.form == "penalized" and polar > regularizer.amount:
        shrink = regularizer.amount / polar
        scaled = objective + problem.loss_conjugate(v, -shrink)
        scaled += shrink * shrink * ridge
        if not scaled >= gap:
            gap, scale = scaled, shrink
    terms = float(np.abs(v) @ (np.abs(problem.y) + np.abs(price.prediction)))
    slack = MARGINS.rounding * objective + (v.size + 64) * np.finfo(np.float64).eps * terms
    if regularizer.form == "constrained":
        slack += MARGINS.outside * regularizer.amount * abs(polar)
    radius = math.sqrt(2.0 * (max(gap, 0.0) + slack)) if gap < math.inf else math.inf
    return Ball(scale, radius)


def possibly_active(price: Pricing, ball: Ball, reach: Array) -> Mask | None:
    """Mark the columns that some optimum may use; None where the norm has no rule.

    ``reach`` may be zeros to learn what a gap of zero would rule out. O(n_features) expected.
    """
    regularizer, z = price.problem.regularizer, price.scores.full()
    if not (math.isfinite(ball.radius) and np.isfinite(reach).all()):
        return np.ones(z.size, dtype=bool)
    polar = regularizer.amount if regularizer.form == "penalized" else 0.0
    return regularizer.norm.possible_support(ball.scale * z, ball.radius * reach, polar)


def narrowed(scope: Scope, whole: Problem, price: Pricing) -> Scope:
    """Return the scope without the columns that this point and its scores rule out.

    All columns of the point are kept, so that it remains a point of the restricted problem. The
    reach of the columns costs a pass over the data, once, and is asked for where a gap of zero
    would rule out enough.
    """
    ball = dual_ball(price)
    if scope.reach is None:
        marked = possibly_active(price, ball, np.zeros(price.scores.n_columns))
        if marked is None or np.count_nonzero(marked) > (1.0 - MARGINS.worthwhile) * marked.size:
            return scope
        scope = replace(scope, reach=column_reach(scope.problem))
    assert scope.reach is not None
    marked = possibly_active(price, ball, scope.reach)
    if marked is None:
        return scope
    marked[price.columns] = True
    left = np.flatnonzero(marked)
    if not left.size or left.size > (1.0 - MARGINS.worthwhile) * marked.size:
        return scope
    kept = scope.original(left)
    problem = whole.restricted_to(part_of(whole.design, columns=kept), kept)
    return Scope(problem, kept, scope.reach[left])
