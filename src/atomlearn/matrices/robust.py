"""Sparse plus low rank: robust principal components, and robust coordinates in their span."""

from __future__ import annotations

import math

import numpy as np

from atomlearn.core.interfaces import Array, Form, Norm
from atomlearn.core.losses import Squared
from atomlearn.core.norms.combine import Scaled
from atomlearn.core.norms.l1 import L1
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.lifting.union import Union
from atomlearn.matrices.designs.complement import Complement
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.matrices.norms.trace import TraceNorm
from atomlearn.matrices.scores import MatrixScores
from atomlearn.matrices.settings import SETTINGS


def default_ratio(shape: tuple[int, int]) -> float:
    """Return 1 / sqrt(max(n, p)). [Candes, Li, Ma, Wright 2011, doi:10.1145/1970392.1970395]"""
    return 1.0 / math.sqrt(max(shape))


def norm_of(ratio: float, shape: tuple[int, int]) -> Norm:
    """Return the gauge inf { ||L||_* + ratio ||S||_1 : L + S = W }."""
    return Union([TraceNorm(shape), Scaled(L1(), ratio)])


def default_alpha(X: Array, ratio: float) -> float:
    """Return a hundredth of max(sigma_1(X), max |X_ij| / ratio), from where on both are zero."""
    largest = norm_of(ratio, (X.shape[0], X.shape[1])).polar(MatrixScores(X))
    return SETTINGS.share_of_noise * largest if largest > 0 else 1.0


def decomposition(X: Array, alpha: float, ratio: float, form: Form) -> Problem:
    """min 1/2 ||X - L - S||_F^2 + R(||L||_* + ratio ||S||_1); ``matrix_parts`` are L, S."""
    shape = (X.shape[0], X.shape[1])
    regularizer = Regularizer(norm_of(ratio, shape), form, alpha)
    return Problem.build(Identity(shape), X.reshape(-1), Squared(), regularizer)


def multiplier_of(result: Result, X: Array, form: Form, amount: float) -> float:
    """Return the weight that the gauge has at a fit of X: alpha, where it is penalized."""
    shape = (X.shape[0], X.shape[1])
    parts = result.matrix_parts or ()
    gauge = float(sum(part.gauge for part in parts))
    W = np.sum([part.dense(shape) for part in parts], axis=0)
    inner = float(np.vdot(X - W, W))
    return Regularizer(norm_of(1.0, shape), form, amount).multiplier(gauge, inner)


def robust_coordinates(
    X: Array, V: Array, threshold: float, settings: Settings
) -> tuple[Array, Result | None]:
    """Return argmin over C, S of 1/2 ||X - C V' - S||_F^2 + threshold ||S||_1; V'V = I.

    C (n_rows, r) = (X - S) V; what is left is an l1 problem in S' over the complement of V, whose
    result comes along (None where there is nothing to solve). Each row is a Huber regression on V;
    Newton steps make rows exact that are nearly so, whatever rows they came with.
    """
    if not V.shape[1] or not threshold > 0:
        return X @ V, None
    complement = Complement(V)
    design = Tasks(complement, X.shape[0])
    target = np.ascontiguousarray(complement.product(X.T)).reshape(-1)
    regularizer = Regularizer(L1(), "penalized", threshold)
    problem = Problem.build(design, target, Squared(), regularizer)
    result = settings.run(problem)
    errors = np.zeros(X.size)
    errors[result.columns] = result.weights
    C = (X - errors.reshape(X.shape[::-1]).T) @ V
    for start in range(0, X.shape[0], SETTINGS.rows_together):
        part = slice(start, start + SETTINGS.rows_together)
        C[part] = _exact(X[part], V, threshold, C[part])
    return C, result


def _exact(X: Array, V: Array, threshold: float, C: Array) -> Array:
    """Return the coordinates after Newton steps on sum huber(X - C V'), where they descend."""

    def at(C: Array) -> tuple[Array, Array, Array]:
        R = X - C @ V.T
        clipped = np.clip(R, -threshold, threshold)
        return R, clipped @ V, (clipped * (R - 0.5 * clipped)).sum(axis=1)

    rank = V.shape[1]
    squares = (V[:, :, None] * V[:, None, :]).reshape(V.shape[0], rank * rank)
    R, slope, value = at(C)
    for _ in range(SETTINGS.newton_steps):
        inside = (np.abs(R) <= threshold).astype(np.float64)
        H = (inside @ squares).reshape(-1, rank, rank)
        steps = np.matmul(np.linalg.pinv(H, hermitian=True), slope[:, :, None])[:, :, 0]
        trial = C + steps
        R_there, slope_there, value_there = at(trial)
        # The values of a convex function hardly differ near its minimum: slopes tell.
        better = np.linalg.norm(slope_there, axis=1) < np.linalg.norm(slope, axis=1)
        better &= value_there <= value * (1.0 + 1e-12)
        if not better.any():
            break
        keep = ~better
        C = np.where(keep[:, None], C, trial)
        R, slope = np.where(keep[:, None], R, R_there), np.where(keep[:, None], slope, slope_there)
        value = np.where(keep, value, value_there)
    return C
