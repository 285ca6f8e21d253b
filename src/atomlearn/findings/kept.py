"""A summary of deleted rows, and a bound on the optimum over old and new rows that it proves.

The bound shows how far the old model w is from the optimum over old and new rows together.

For the squared loss the summary is Q'X and Q'y. The columns of Q are an orthonormal basis of the
active columns, the constant and the residual y - X w. For every u, ||y - X u|| >= ||Q'(y - X u)||,
with equality at u = w. So the rows of Q'X replace the old rows; there is one for each active column
and two more. The optimum over these and the new rows is a lower bound on the optimum over all rows.
It is tight as long as few other columns become active.

For other losses the summary is X'v and f_old*(-v), with v the negative gradient at w. Let
f = a f_old + b f_new, with a, b the shares of old and new rows. Then every d gives the bound
    F* >= -a f_old*(-v_old) - b f_new*(-d v_new) - R*(a X_old'v_old + b d X_new'v_new).
The gap that it proves is seldom much smaller than the share of the new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn._support import TINY
from atomlearn.core import (
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
    """The summary of deleted rows; see ``keep`` and the module.

    Attributes
    ----------
    n_rows : int
        Number of deleted rows.
    point : Point
        Columns, weights and intercept of the model.
    loss : float
        Its mean loss.
    rounding : float
        Relative bound on the rounding of the objective.
    rows : ndarray
        For the squared loss [Q'X, Q'y, Q'1], (k, p + 2), for others the scores X'v, (1, p).
    conjugate : float
        f*(-v), 0 for the squared loss.
    left_out : (r, 2) float64
        Cross-validated residual and prediction of each row.
    fold : Rows
        (r,) its fold.
    fits : Sequence[Point]
        Columns, weights and intercept of the fit without each fold.
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
    """Return the linear predictor X w + b of a model, (n,).

    ``design`` are the columns X and ``point`` the columns, weights and intercept of the model.
    """
    columns, weights, intercept = point
    return np.asarray(design.gather(columns).predict(weights) + intercept, dtype=np.float64)


def row_summary(problem: Problem, point: Point) -> tuple[Array, float, float]:
    """Return the fields ``rows``, ``conjugate`` and ``rounding`` of ``Kept``, in this order.

    problem : the problem over the old rows. point : columns, weights and intercept of its model.
    """
    linear = linear_at(problem.design, point)
    certificate = prove(problem, point[0], point[1], linear).certificate
    relative_error = certificate.rounding / max(certificate.objective, TINY)
    dual_point = negative_gradient(problem, linear)
    if is_quadratic(problem.loss):
        # Each of these rows is a sum over all old rows, with its own rounding.
        rows = _projected(problem, point[0], dual_point)
        return rows, 0.0, relative_error * (1 + np.sqrt(len(rows)))
    scores = np.asarray(problem.design.scores(dual_point).full(), dtype=np.float64)
    return scores[None], _conjugate(problem, dual_point, 1.0), relative_error


def _conjugate(problem: Problem, v: Array, c: float) -> float:
    """Return f*(-c v): the conjugate of the mean loss of the problem, at -c times v (n,).

    v : a dual point, one number per row of ``problem``. c : a factor.
    """
    return pieces.conjugate(problem.loss, problem.y, v, problem.weight, -c)


def _projected(problem: Problem, columns: Columns, v: Array) -> Array:
    """Return [Q'X, Q'y, Q'1] for an orthonormal basis Q of these columns, 1 and v (n,).

    The result is (k, p + 2) for k basis vectors. ``problem`` is the problem over the rows.
    """
    ones = np.ones(problem.y.size)
    Q = np.linalg.qr(np.column_stack([ones, dense_part(problem.design, columns)]))[0]
    residual = v - Q @ (Q.T @ v)
    residual -= Q @ (Q.T @ residual)  # once more, against rounding
    length = float(np.linalg.norm(residual))
    if length > 0:
        Q = np.column_stack([Q, residual / length])
    scores = [scores_of_vector.full() for scores_of_vector in problem.design.scores_many(Q)]
    return np.column_stack([np.array(scores), Q.T @ problem.y, Q.T @ ones]).astype(np.float64)


def gap_of(problem: Problem, kept: Kept) -> float:
    """Return a proved bound on (F - F*) / F over old and new rows together.

    problem : the problem over the new rows. kept : the summary of the old rows and the model. F is
    the objective of the old model on all rows, and F* its minimum over all models.
    """
    columns, weights, _ = kept.point
    n_new = problem.y.size
    penalty = problem.regularizer
    share_new = n_new / (kept.n_rows + n_new)
    # The objective of the old model over all rows, and a lower bound on the optimum.
    linear = linear_at(problem.design, kept.point)
    value = (1 - share_new) * kept.loss + share_new * loss_value(problem, linear)
    value += penalty.value(gauge_of(problem, columns, weights))
    if is_quadratic(problem.loss):
        lower = _bound_by_rows(problem, kept, share_new)
    else:
        lower = _bound_by_dual(problem, kept, linear, share_new)
    rounding = prove(problem, columns, weights, linear).certificate.rounding / max(value, 1e-300)
    # The objective and the bound have rounding errors of the old and of the new rows.
    relative_gap = (value - lower) / max(value, TINY)
    return float(np.clip(relative_gap, 0.0, 1.0) + 2 * (kept.rounding + rounding))


def _bound_by_rows(problem: Problem, kept: Kept, share_new: float) -> float:
    """Return the lower bound on F* from the rows that replace the old ones and the new rows.

    problem : the problem over the new rows. kept : the summary of the old rows. share_new :
    share of the new rows among all rows.
    """
    n_new, n_columns = problem.design.shape
    new_columns = dense_part(problem.design, np.arange(n_columns))
    new_rows = np.column_stack([new_columns, problem.y, np.ones(n_new)])
    table, target, constant = np.split(np.vstack([kept.rows, new_rows]), [-2, -1], axis=1)
    target = target[:, 0]
    constant = constant[:, 0]
    # The optimal intercept for each u removes the component of the residual along ``constant``, the
    # rows' values of a column of ones. So this component is projected out of X and y.
    if problem.fit_intercept:
        normalized = constant / float(constant @ constant)
        table -= np.outer(constant, normalized @ table)
        target = target - constant * float(normalized @ target)
    # The weight of a row in the mean over all old and new rows.
    weight = np.full(target.size, share_new / n_new)
    design = as_design(np.asfortranarray(table))
    smaller_problem = of_checked_data(
        design, target, weight, problem.loss, problem.regularizer, False
    )
    start = WarmStart(kept.point[0], kept.point[1], 0.0)
    result = Settings(tol=GAP).run(smaller_problem, start)
    return result.objective - result.gap


def _bound_by_dual(problem: Problem, kept: Kept, linear: Array, share_new: float) -> float:
    """Return the best lower bound on F* over 21 values of d in [0, 1]; see the module.

    problem : the problem over the new rows. kept : the summary of the old rows. linear : (n_new,)
    linear predictor of the old model. share_new : share of the new rows among all rows.
    """
    penalty = problem.regularizer
    share_old = 1 - share_new
    best = 0.0  # losses and penalties are never negative
    # v sums to 0 at the optimal intercept for these rows.
    shift = optimal_intercept(problem, linear) if problem.fit_intercept else 0.0
    dual_point = negative_gradient(problem, linear + shift)
    scores = problem.design.scores(dual_point).full()
    for step in np.linspace(0.0, 1.0, 21).tolist():
        scores_of_all = ArrayScores(share_old * kept.rows[0] + share_new * step * scores)
        conjugate_of_penalty = penalty.conjugate(
            penalty.norm.polar_bounds(scores_of_all, True)[1], np.inf
        )
        best = max(
            best,
            -share_old * kept.conjugate
            - share_new * _conjugate(problem, dual_point, step)
            - conjugate_of_penalty,
        )
    return best
