"""The same problems by an interior-point method (CVXPY with Clarabel)."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks.certificate.independent import Ball, Plain


def optimum(plain: Plain) -> float:
    """Return F*, or NaN where the interior-point method does not call its answer optimal."""
    w = cp.Variable(plain.X.shape[1])
    z = plain.X @ w + (cp.Variable() if plain.intercept else 0.0)
    constraints: list[Any] = []
    root = np.sqrt(plain.s)
    if plain.loss == "squared":
        smooth = 0.5 * cp.sum_squares(cp.multiply(root, z - plain.y))
    elif plain.loss == "logistic":
        smooth = plain.s @ cp.logistic(cp.multiply(-plain.y, z))
    else:
        slack = cp.Variable(plain.y.size, nonneg=True)
        constraints.append(slack >= 1 - cp.multiply(plain.y, z))
        smooth = 0.5 * cp.sum_squares(cp.multiply(root, slack))
    if plain.tau:
        smooth += 0.5 * plain.tau * cp.sum_squares(w)
    gauge = cp.Variable(nonneg=True)
    constraints += _ball(plain.ball, w, gauge)
    if plain.form == "penalized":
        smooth += plain.amount * gauge
    elif plain.form == "squared":
        smooth += 0.5 * plain.amount * cp.square(gauge)
    else:
        constraints.append(gauge <= plain.amount)
    program = cp.Problem(cp.Minimize(smooth), constraints)
    try:
        program.solve(solver="CLARABEL", use_quad_obj=False)
    except cp.SolverError:
        return float("nan")
    return float(program.value) if program.status == "optimal" else float("nan")


def _ball(ball: Ball, w: Any, gauge: Any) -> list[Any]:
    """Return constraints that hold exactly where the norm of w is at most ``gauge``."""
    if ball.kind == "l1":
        return [cp.norm1(w) <= gauge]
    if ball.kind == "elastic net":
        return [cp.norm(w) <= gauge, cp.norm1(w) <= np.sqrt(ball.k) * gauge]
    constraints, lengths = [], w
    if ball.labels is not None:
        lengths = cp.Variable(int(ball.labels.max()) + 1)
        for g in range(lengths.shape[0]):
            constraints.append(cp.norm(w[np.flatnonzero(ball.labels == g)]) <= lengths[g])
    # w_j^2 <= d_j e_j with d = gauge * (scaling of [T]), sum e <= gauge.
    d, e = cp.Variable(lengths.shape[0], nonneg=True), cp.Variable(lengths.shape[0], nonneg=True)
    cone = cp.SOC(d + e, cp.vstack([2 * lengths, d - e]), axis=0)
    return [*constraints, cone, cp.sum(e) <= gauge, d <= gauge, cp.sum(d) <= ball.k * gauge]
