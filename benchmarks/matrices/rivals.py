"""Rivals for problems over matrices, in plain NumPy: each gives the curve (seconds, objective).

ADMM for matrix pursuit [L]; accelerated proximal gradient and ADMM for sparse plus low rank
(Candes, Li, Ma, Wright 2011, in the form with noise).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from atomlearn import _kernels
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.problem.problem import negative_gradient
from atomlearn.core.problem.proof import prove_from
from atomlearn.norms import KSupport
from atomlearn.problem import Problem
from benchmarks.harness import Outcome

Array = NDArray[np.float64]


@dataclass(slots=True)
class Curve:
    """Objectives by time; ``enough`` ends a run, as does its time limit."""

    enough: float
    limit_s: float
    began: float = field(default_factory=time.perf_counter)
    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)

    def goes_on(self, objective: float) -> bool:
        """Note the objective; return whether there is need and time for more."""
        self.seconds.append(time.perf_counter() - self.began)
        self.objectives.append(objective)
        return objective > self.enough and self.seconds[-1] < self.limit_s

    def first_below(self, objective: float) -> float:
        """Return the time of the first point as low as this, infinite where there is none."""
        below = np.flatnonzero(np.asarray(self.objectives) <= objective)
        return self.seconds[int(below[0])] if below.size else float("inf")


def soft(values: Array, amount: float) -> Array:
    """Return sign(v) max(|v| - amount, 0)."""
    return np.sign(values) * np.maximum(np.abs(values) - amount, 0.0)


def shrink(M: Array, amount: float) -> tuple[Array, float]:
    """Return the matrix with singular values lowered by this amount, and its trace norm."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    s = np.maximum(s - amount, 0.0)
    return (U * s) @ Vt, float(s.sum())


def pursuit_admm(problem: Problem, X: Array, gap: float, limit_s: float) -> Outcome:
    """ADMM on W = V of min 1/2 ||X - X W||^2 + R(V), R the squared k-support norm, AS prox.

    Each iteration solves (X'X + rho I) W = X'X + rho (V - U) and certifies V: two products with
    X'X, which count as two passes.
    """
    norm = problem.regularizer.norm
    assert isinstance(norm, KSupport)
    level, began = problem.regularizer.amount, time.perf_counter()
    G = X.T @ X
    V, U, passes, rho = np.zeros_like(G), np.zeros_like(G), 1, float(np.diag(G).mean())
    factor = cho_factor(G + rho * np.eye(G.shape[0]))
    while True:
        W = cho_solve(factor, G + rho * (V - U))
        before = V
        V = _kernels.ksupport_prox((W + U).reshape(-1), norm.k, level / rho, "two_step")[0]
        V = V.reshape(G.shape)
        U = U + W - V
        residual = X - X @ V
        scores = ArrayScores((X.T @ residual).reshape(-1))
        passes += 2
        w, prediction = V.reshape(-1), (X - residual).reshape(-1)
        dual = negative_gradient(problem, prediction)
        certificate = prove_from(problem, None, w, prediction, dual, scores).certificate
        seconds = time.perf_counter() - began
        done = certificate.gap <= gap * abs(certificate.objective)
        if done or seconds > limit_s:
            break
        primal, dual = np.linalg.norm(W - V), rho * np.linalg.norm(V - before)
        ratio = 10.0 * dual < primal, 10.0 * primal < dual
        if any(ratio) and passes < 200:
            change = 2.0 if ratio[0] else 0.5
            rho, U = rho * change, U / change
            factor = cho_factor(G + rho * np.eye(G.shape[0]))
    return Outcome(
        seconds,
        certificate.objective,
        certificate.gap / abs(certificate.objective),
        passes,
        int(np.count_nonzero(V)),
        "CONVERGED" if done else "TIME_LIMIT",
    )


def robust_proximal(
    Y: Array, level: float, mu: float, enough: float, limit_s: float
) -> tuple[Curve, Array, Array]:
    """Accelerated proximal gradient: 1/2 ||Y - L - S||^2 + level (||L||_* + mu ||S||_1)."""
    curve = Curve(enough, limit_s)
    L, S = np.zeros_like(Y), np.zeros_like(Y)
    ahead_L, ahead_S, momentum = L, S, 1.0
    while True:
        residual = 0.5 * (ahead_L + ahead_S - Y)  # the gradient, over its Lipschitz constant 2
        new_L, trace = shrink(ahead_L - residual, 0.5 * level)
        new_S = soft(ahead_S - residual, 0.5 * level * mu)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        push = (momentum - 1.0) / following
        ahead_L, ahead_S = new_L + push * (new_L - L), new_S + push * (new_S - S)
        L, S, momentum = new_L, new_S, following
        if not curve.goes_on(_robust_objective(Y, L, S, level, mu, trace)):
            return curve, L, S


def robust_admm(
    Y: Array, level: float, mu: float, enough: float, limit_s: float
) -> tuple[Curve, Array, Array]:
    """ADMM on L + (S + E) = Y of level (||L||_* + mu ||S||_1) + 1/2 ||E||^2; S and E at once."""
    curve, rho = Curve(enough, limit_s), 1.0
    rest, dual = np.zeros_like(Y), np.zeros_like(Y)
    while True:
        L, trace = shrink(Y - rest + dual, level / rho)
        V = Y - L + dual
        S = soft(V, level * mu * (1.0 + 1.0 / rho))
        rest = S + (V - S) * (rho / (1.0 + rho))
        dual = dual + Y - L - rest
        if not curve.goes_on(_robust_objective(Y, L, S, level, mu, trace)):
            return curve, L, S


def _robust_objective(Y: Array, L: Array, S: Array, level: float, mu: float, trace: float) -> float:
    residual = Y - L - S
    return 0.5 * float((residual * residual).sum()) + level * (trace + mu * np.abs(S).sum())
