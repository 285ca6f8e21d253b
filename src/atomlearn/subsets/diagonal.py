"""A stronger ridge for quadratic losses: part of the Hessian's diagonal moves into the ridge.

The objective is f(X w) + level / 2 ||w||^2 with the loss f(X w) = 1/2 w'Qw - q'w + c and Q positive
definite. If Q - D is positive semidefinite for a diagonal D >= 0, the objective is also
1/2 w'(Q - D)w - q'w + c plus a ridge with the weights level + D_j. With
v_j = w_j sqrt(1 + D_j / level) that ridge is level / 2 ||v||^2 again. So each
subset has the same objective in a problem with another design. The relaxation of this problem is
tighter, because a larger part of its objective is the ridge. This needs fewer columns than samples;
screening often leaves few enough.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg as la

from atomlearn._support import growth
from atomlearn.core import (
    Array,
    Columns,
    DenseDesign,
    Problem,
    Squared,
    loss_value,
    optimal_intercept,
)
from atomlearn.subsets.relaxation import Relaxation

#: Most columns of such a problem: a decomposition of Q then takes well below a second.
MOST = 800
#: Rounds in which D grows, and the share of the largest step that each takes.
ROUNDS = 6
STEP = 0.9
#: Minimum of mean(D) / ridge for which the strengthened problem is worth its cost.
WORTH = 0.25


def strengthened(
    relaxation: Relaxation, columns: Columns, max_share: float
) -> tuple[Problem, Array] | None:
    """Return a problem over ``columns`` with a tighter relaxation, and factors of its weights.

    The weights of the new problem are v_j = factor_j w_j. Its objective at v equals that of the
    original problem at w, or is lower by rounding only. The result is None if the loss is not
    quadratic, if there are groups or too many columns, if D is nearly zero, or if the bound on
    rounding errors exceeds the share ``max_share`` of the ridge.

    Here D, Q and q are those of the module; ``columns`` (m,) are numbered in ``relaxation``. Its
    model has Q and q over more columns, among which these have the ``positions``. A sum of n terms
    has a relative rounding error of at most growth(n).
    """
    problem = relaxation.problem
    size = columns.size
    n = problem.y.size
    if not relaxation.quadratic or relaxation.units.partition is not None:
        return None
    if not 0 < size <= min(MOST, n - 1):
        return None
    H, linear_term, positions = relaxation.model(columns)
    at_zero = loss_value(problem, np.zeros(n) + optimal_intercept(problem, np.zeros(n)))
    scale = float(np.trace(H[np.ix_(positions, positions)])) / size
    if not (scale > 0.0 and at_zero > 0.0):
        return None
    # X is divided by sqrt(scale) and y by sqrt(f(0)), so that mean(diag(Q)) = 1 and f(0) = 1.
    Q = H[np.ix_(positions, positions)] / scale
    Q = 0.5 * (Q + Q.T)
    q = linear_term[positions] / math.sqrt(scale) / math.sqrt(at_zero)
    level = problem.regularizer.amount / scale
    # The lengths of the columns, in the metric of the sample weights. The design may center its
    # columns implicitly; rounding errors are bounded by the lengths before that.
    lengths = np.sqrt(problem.weight @ np.square(relaxation.dense(columns) / math.sqrt(scale)))
    offsets = np.abs(problem.design.subtracted_offsets(columns)) / math.sqrt(scale)
    lengths = lengths + math.sqrt(float(problem.weight.sum())) * offsets
    # Twice the bound on rounding errors of Q and of its factorization, as a multiple of I.
    error = 2.0 * (growth(n) + growth(size)) * float(lengths @ lengths)
    if error > max_share * level:
        return None
    D = _diagonal(Q - error * np.eye(size))
    # A bound on the rounding errors of q = X'y: the scaled y has the length sqrt(2).
    error_of_q = growth(n) * math.sqrt(2.0) * float(np.linalg.norm(lengths))
    # D is reduced until the quadratic with the Hessian Q - D is a sum of squares. With a small D
    # the relaxation is hardly tighter, so the problem is not worth its cost.
    for _ in range(20):
        if D is None or float(np.mean(D)) < WORTH * level:
            return None
        data = _least_squares(Q, q, D, error, error_of_q)
        if data is not None:
            break
        D = 0.7 * D
    else:
        return None
    assert D is not None
    # Back to the original scale. The new design has the columns R_j / factor_j.
    R, target = data
    factors = np.sqrt(1.0 + D / level)
    regularizer = problem.regularizer.of(
        relaxation.units.norm.restrict(columns, problem.design.shape[1])
    )
    X = np.asfortranarray(R * (math.sqrt(scale) / factors))
    tighter = Problem(
        Squared(),
        DenseDesign(X),
        target * math.sqrt(at_zero),
        np.ones(target.size),
        regularizer,
        deadline=problem.deadline,
    )
    return tighter, factors


def _diagonal(Q: Array) -> Array | None:
    """Return the entries D >= 0 (m,) of a diagonal with Q - D positive definite.

    The result is None if Q (m, m) is not positive definite. In each round D grows by a multiple of
    d_j = 1 / (Q - D)^-1_jj, the most by which entry j alone could grow. A column that nearly
    depends on others has a d_j near 0, and does not limit the other entries.
    """
    D = np.zeros(Q.shape[0])
    for _ in range(ROUNDS):
        remainder = Q - np.diag(D)
        try:
            inverse = la.cho_solve(la.cho_factor(remainder), np.eye(D.size))
        except la.LinAlgError:
            return D if D.any() else None
        d = 1.0 / np.diag(inverse)
        if not np.all(np.isfinite(d) & (d > 0.0)):
            return D if D.any() else None
        root = np.sqrt(d)
        # Q - D - s diag(d) is positive semidefinite for s up to the smallest eigenvalue of
        # diag(d)^-1/2 (Q - D) diag(d)^-1/2. The share STEP of it keeps the rest positive definite.
        smallest = float(la.eigvalsh(remainder / root / root[:, None], subset_by_index=[0, 0])[0])
        if not smallest > 1e-6:
            break
        D = D + STEP * smallest * d
    return D


def _least_squares(
    Q: Array, q: Array, D: Array, error: float, error_of_q: float
) -> tuple[Array, Array] | None:
    """Return R and a target t with 1/2 ||t - R w||^2 = 1/2 w'(Q - D)w - q'w + 1, up to rounding.

    R is (m + 1, m), and t is (m + 1,). Q is (m, m), q is (m,), and D (m,) has the entries of a
    diagonal matrix. The quadratic is lowered by bounds on rounding errors. ``error`` is subtracted
    from the diagonal of Q. ``error_of_q`` bounds the norm of the error of q, and reduces the
    constant 1. The result is None if the lowered quadratic has negative values.
    """
    try:
        R = la.cholesky(Q - np.diag(D + error))
    except la.LinAlgError:
        return None
    # With R'R = Q - D and R't = q, 1/2 ||t - R w||^2 = 1/2 w'(Q - D)w - q'w + 1/2 ||t||^2. A row of
    # zeros in R, with the last entry of t, adds what the constant 1/2 ||t||^2 lacks.
    size = q.size
    target = la.solve_triangular(R, q, trans="T")
    length = float(np.linalg.norm(target))
    error_of_q += float(np.linalg.norm(R.T @ target - q))
    error_of_q += growth(size) * float(np.linalg.norm(R)) * length
    # The error of q'w is at most error_of_q |w| <= error / 4 |w|^2 + error_of_q^2 / error. The
    # first term is covered by the diagonal, the second one lowers the constant.
    constant = 1.0 - growth(size) - 0.5 * length**2 * (1.0 + growth(size)) - error_of_q**2 / error
    if not constant > 0.0:
        return None
    return np.vstack([R, np.zeros(size)]), np.append(target, math.sqrt(2.0 * constant))
