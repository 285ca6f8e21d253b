"""Sparse plus low rank: robust principal components, and robust coordinates in their span."""

from __future__ import annotations

import math

import numpy as np

from atomlearn.core.interfaces import Array, Form, Norm
from atomlearn.core.losses import Squared
from atomlearn.core.norms.combine import Scaled
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.lifting.union import Union
from atomlearn.matrices.designs.identity import Identity
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
    return 0.01 * largest if largest > 0 else 1.0


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


def robust_coordinates(X: Array, V: Array, threshold: float, max_iter: int) -> tuple[Array, float]:
    """Return argmin over C, S of 1/2 ||X - C V' - S||_F^2 + threshold ||S||_1, V'V = I.

    C is (n_rows, r), S the part of the residuals beyond the threshold: each row is a Huber
    regression on V. The second number is the relative gap that is proved.
    """
    if not V.shape[1] or not threshold > 0:
        return X @ V, 0.0
    size = 1 + SETTINGS.numbers_at_once // (V.shape[0] + V.shape[1] ** 2)
    parts = [_huber(X[i : i + size], V, threshold, max_iter) for i in range(0, X.shape[0], size)]
    C = np.vstack([C for C, _, _ in parts])
    value, bound = (float(sum(part[side] for part in parts)) for side in (1, 2))
    return C, max(value - bound, 0.0) / value if value > 0.0 else 0.0


def _huber(X: Array, V: Array, threshold: float, max_iter: int) -> tuple[Array, float, float]:
    """Return C, the sum of Huber losses of X - C V', and a bound on it from below.

    Newton steps, exact once they know which entries are gross errors; where they fail, steps of
    re-weighted least squares, which never raise the loss.
    """

    def at(C: Array) -> tuple[Array, Array, Array]:
        R = X - C @ V.T
        clipped = np.clip(R, -threshold, threshold)
        return R, clipped, (clipped * (R - 0.5 * clipped)).sum(axis=1)

    def stepped(C: Array, weights: Array, slope: Array) -> Array:
        H = (weights @ squares).reshape(-1, V.shape[1], V.shape[1])
        return np.asarray(C + (np.linalg.pinv(H, hermitian=True) @ slope[:, :, None])[:, :, 0])

    squares = (V[:, :, None] * V[:, None, :]).reshape(V.shape[0], -1)
    C = X @ V
    R, clipped, value = at(C)
    for _ in range(max_iter):
        slope = clipped @ V
        trial = stepped(C, (np.abs(R) <= threshold).astype(np.float64), slope)
        _, there, reached = at(trial)
        # The values of a convex function hardly differ near its minimum: slopes tell.
        newton = np.linalg.norm(there @ V, axis=1) < 0.9 * np.linalg.norm(slope, axis=1)
        newton &= reached <= value * (1.0 + SETTINGS.rounding)
        careful = stepped(C, threshold / np.maximum(np.abs(R), threshold), slope)
        lower = at(careful)[2] < value * (1.0 - SETTINGS.rounding)
        careful = np.where(lower[:, None], careful, C)
        following = np.where(newton[:, None], trial, careful)
        if not (newton | lower).any():
            break
        C = following
        R, clipped, value = at(C)
    # The dual: U orthogonal to V, no entry beyond the threshold.
    U = clipped - clipped @ V @ V.T
    U *= (threshold / np.maximum(np.abs(U).max(axis=1), threshold))[:, None]
    return C, float(value.sum()), float((U * X - 0.5 * U * U).sum())
