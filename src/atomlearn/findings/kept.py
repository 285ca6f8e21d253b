"""A replacement of rows that are gone, and the bound that it proves for a model of all rows.

How much must be kept of the old rows to bound how far the old model w is from the optimum of all
rows together? Of the squared loss their projection onto the columns in use, the constant and what
the model leaves of y: for an orthonormal Q, ||y - X u|| >= ||Q'(y - X u)|| for every u, and both
are the same at u = w where Q spans y - X w. So Q'X and Q'y, a row for each column in use and two
more, are rows that can replace the old ones in a proof: the optimum over them and the new rows
is at most that over all, and near it as long as few other columns come into use.

Of other losses X'v and f_old*(-v) are kept, with v minus the slopes at w. With
f = a f_old + b f_new (a, b the shares of rows) any d gives the bound

    F* >= -a f_old*(-v_old) - b f_new*(-d v_new) - R*(a X_old'v_old + b d X_new'v_new).

It is seldom much better than the share of the new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn.core import (
    TINY,
    Array,
    ArrayScores,
    Columns,
    Design,
    Problem,
    Rows,
    Settings,
    WarmStart,
    as_design,
    dense_part,
    gauge_of,
    is_quadratic,
    loss_value,
    negative_gradient,
    of_checked_data,
    optimal_intercept,
    pieces,
    prove,
)
from atomlearn.findings.nodewise import GAP

#: Columns, weights and intercept of a model.
Point = tuple[Columns, Array, float]


@dataclass(frozen=True, slots=True)
class Kept:
    """The data kept of rows that are dropped, see ``keep``.

    n_rows : of them; point : columns, weights and intercept of the model; loss : its mean loss;
    rounding : what floats may have lost, of an objective of 1; rows : (k, p + 2) of the squared
    loss Q'X, Q'y and Q'1, of others (1, p) the scores X'v; conjugate : f*(-v) of others;
    left_out : (r, 2) residual and prediction of rows by a fit without them, and
    fold : (r,) the number of that fit; fits : columns, weights and intercept of each.
    """

    n_rows: int
    point: Point
    loss: float
    rounding: float
    rows: Array
    conjugate: float
    left_out: Array
    fold: Rows
    fits: Sequence[Point]


def linear_at(design: Design, point: Point) -> Array:
    """Return the linear predictor X w + b of a model, (n,)."""
    columns, weights, intercept = point
    return np.asarray(design.gather(columns).predict(weights) + intercept, dtype=np.float64)


def rows_that_stand(problem: Problem, point: Point) -> tuple[Array, float, float]:
    """Return (rows, f*(-v), bound on the relative rounding error), as stored in ``Kept``."""
    linear = linear_at(problem.design, point)
    certificate = prove(problem, point[0], point[1], linear).certificate
    lost = certificate.rounding / max(certificate.objective, TINY)
    v = negative_gradient(problem, linear)
    if is_quadratic(problem.loss):
        rows = _projected(problem, point[0], v)
        return rows, 0.0, lost * (1 + np.sqrt(len(rows)))  # a sum over all rows for each of them
    scores = np.asarray(problem.design.scores(v).full(), dtype=np.float64)
    return scores[None], _conjugate(problem, v, 1.0), lost


def _conjugate(problem: Problem, v: Array, c: float) -> float:
    return pieces.conjugate(problem.loss, problem.y, v, problem.weight, -c)


def _projected(problem: Problem, columns: Columns, v: Array) -> Array:
    """Return Q'X, Q'y and Q'1, Q a basis of these columns, the constant, and v."""
    ones = np.ones(problem.y.size)
    Q = np.linalg.qr(np.column_stack([ones, dense_part(problem.design, columns)]))[0]
    rest = v - Q @ (Q.T @ v)
    rest -= Q @ (Q.T @ rest)
    length = float(np.linalg.norm(rest))
    if length > 0:
        Q = np.column_stack([Q, rest / length])
    scores = [one.full() for one in problem.design.scores_many(Q)]
    return np.column_stack([np.array(scores), Q.T @ problem.y, Q.T @ ones]).astype(np.float64)


def gap_of(problem: Problem, kept: Kept) -> float:
    """Return the bound on (F - F*) / F over old and new rows together."""
    columns, weights, _ = kept.point
    n_new = problem.y.size
    penalty = problem.regularizer
    new = n_new / (kept.n_rows + n_new)
    linear = linear_at(problem.design, kept.point)
    value = (1 - new) * kept.loss + new * loss_value(problem, linear)
    value += penalty.value(gauge_of(problem, columns, weights))
    bound = _bound_by_rows if is_quadratic(problem.loss) else _bound_by_dual
    lost = prove(problem, columns, weights, linear).certificate.rounding / max(value, 1e-300)
    least = (value - bound(problem, kept, linear, new)) / max(value, TINY)
    return float(np.clip(least, 0.0, 1.0) + 2 * (kept.rounding + lost))


def _bound_by_rows(problem: Problem, kept: Kept, linear: Array, new: float) -> float:
    """Return the optimum over rows that replace the old ones, and the new ones, less its gap."""
    n_new, n_columns = problem.design.shape
    own = dense_part(problem.design, np.arange(n_columns))
    new_rows = np.column_stack([own, problem.y, np.ones(n_new)])
    table, target, constant = np.split(np.vstack([kept.rows, new_rows]), [-2, -1], axis=1)
    target = target[:, 0]
    constant = constant[:, 0]
    if problem.fit_intercept:  # the best one at every u
        share = constant / float(constant @ constant)
        table -= np.outer(constant, share @ table)
        target = target - constant * float(share @ target)
    weight = np.full(target.size, new / n_new)
    design = as_design(np.asfortranarray(table))
    part = of_checked_data(design, target, weight, problem.loss, problem.regularizer, False)
    start = WarmStart(kept.point[0], kept.point[1], 0.0)
    result = Settings(tol=GAP).run(part, start)
    return result.objective - result.gap


def _bound_by_dual(problem: Problem, kept: Kept, linear: Array, new: float) -> float:
    """Return the best bound over mixtures of the old and the new dual point."""
    penalty = problem.regularizer
    old = 1 - new
    best = 0.0
    # Minus the slopes sum to 0 at the intercept that is best for these rows.
    shift = optimal_intercept(problem, linear) if problem.fit_intercept else 0.0
    v = negative_gradient(problem, linear + shift)
    scores = problem.design.scores(v).full()
    for share in np.linspace(0.0, 1.0, 21).tolist():
        z = ArrayScores(old * kept.rows[0] + new * share * scores)
        rest = penalty.conjugate(penalty.norm.polar_bounds(z, True)[1], np.inf)
        best = max(best, -old * kept.conjugate - new * _conjugate(problem, v, share) - rest)
    return best
