"""Matrices as sums of few simple ones: sparse components, sparse plus low rank, matrix pursuit.

Sparse principal components fit a covariance by a few sparse directions ([V] 4.4); matrix pursuit
fits each sample by a few others, which makes a graph of them ([L] 4.2); robust principal components
are those of what is left of a matrix without its gross errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.data.coefficients import coefficient_matrix
from atomlearn.core.interfaces import Array, Form, Norm
from atomlearn.core.losses import Squared
from atomlearn.core.norms.combine import Scaled
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.lifting.union import Union
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.matrices.norms.sparse import SparsePSD
from atomlearn.matrices.norms.spectral import TraceNorm
from atomlearn.matrices.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Components:
    """Sparse directions, heaviest first, of a fitted covariance sum_i weights_i u_i u_i'.

    directions : (r, p), unit rows u_i with k non-zeros at most, the largest entry positive;
    weights : (r,); variance : (r,) of the data along each, less what those before it explain.
    """

    directions: Array
    weights: Array
    variance: Array


def covariance(X: Array) -> tuple[Array, Array]:
    """Return the means and the covariance (divided by n - 1) of the columns."""
    means = X.mean(axis=0)
    centered = X - means
    return means, np.asarray(centered.T @ centered / max(X.shape[0] - 1, 1))


def components_alpha(S: Array, k: int) -> float:
    """Return a tenth of the largest variance along a direction with k non-zeros."""
    shape = (S.shape[0], S.shape[0])
    lower, _ = SparsePSD(k, shape=shape).polar_bounds(S)  # type: ignore[arg-type]
    return 0.1 * lower if lower > 0 else 1.0


def sparse_components(S: Array, k: int, alpha: float, form: Form) -> Problem:
    """min 1/2 ||S - W||_F^2 + R(gauge(W)), atoms u u' with ||u|| = 1, ||u||_0 <= k."""
    regularizer = Regularizer(SparsePSD(k), form, alpha)
    return Problem.build(Identity(S.shape), S.reshape(-1), Squared(), regularizer)


def components_of(result: Result, X: Array, means: Array, count: int | None) -> Components:
    """Return the ``count`` heaviest directions of a fit (None: all), and what they explain.

    The variances are those of Zou, Hastie, Tibshirani (2006), doi:10.1198/106186006X113430: the
    squared diagonal of R in the QR decomposition of the projected data.
    """
    factored = result.low_rank
    order = np.argsort(-factored.weights, kind="stable")[:count]
    directions = factored.left[:, order].T
    top = np.argmax(np.abs(directions), axis=1)[:, None]
    signs = np.where(np.take_along_axis(directions, top, axis=1) < 0, -1.0, 1.0)
    directions = directions * signs + 0.0
    diagonal = np.diag(np.linalg.qr((X - means) @ directions.T, mode="r"))
    variance = np.zeros(order.size)
    variance[: diagonal.size] = np.square(diagonal) / max(X.shape[0] - 1, 1)
    return Components(directions, factored.weights[order], variance)


def pursuit_norm(n_samples: int) -> Norm:
    """Return the k-support norm with four non-zeros a sample, as in Figures 2 and 3 of [L]."""
    return KSupport(min(4 * n_samples, n_samples**2))


def unit_rows(X: Array) -> Array:
    """Return the rows scaled to norm 1; zero rows stay zero."""
    sizes = np.abs(X).max(axis=1, keepdims=True)
    scaled = np.divide(X, sizes, out=np.zeros_like(X), where=sizes > 0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Array = np.divide(scaled, norms, out=scaled, where=norms > 0)
    return unit


def pursuit(X: Array, norm: Norm, alpha: float, form: Form) -> Problem:
    """min 1/2 ||X' - X'W||_F^2 + R(gauge(W)), W (n_samples, n_samples); samples are rows."""
    design = Tasks(np.asfortranarray(X.T), X.shape[0])
    return Problem.build(design, X.T.reshape(-1), Squared(), Regularizer(norm, form, alpha))


def pursuit_coefficients(result: Result, n_samples: int) -> Any:
    """Return W (n_samples, n_samples), a csr_array."""
    if result.matrix_parts is not None:
        columns = np.flatnonzero(result.coef)
        weights = np.asarray(result.coef, dtype=np.float64).reshape(-1)[columns]
    else:
        columns, weights = result.columns, result.weights
    return coefficient_matrix(columns, weights, (n_samples, n_samples))


def affinity_of(W: Any) -> Any:
    """Return |W| + |W|', symmetric and >= 0, a csr_array."""
    magnitude = abs(W)
    return (magnitude + magnitude.T).tocsr()


def robust_ratio(shape: tuple[int, int]) -> float:
    """Return 1 / sqrt(max(n, p)). [Candes, Li, Ma, Wright 2011, doi:10.1145/1970392.1970395]"""
    return 1.0 / math.sqrt(max(shape))


def sparse_low_rank_norm(ratio: float, shape: tuple[int, int]) -> Norm:
    """Return the gauge inf { ||L||_* + ratio ||S||_1 : L + S = W }."""
    return Union([TraceNorm(shape), Scaled(L1(), ratio)])


def robust_alpha(X: Array, ratio: float) -> float:
    """Return a hundredth of max(sigma_1(X), max |X_ij| / ratio), from where on both are zero."""
    largest = sparse_low_rank_norm(ratio, (X.shape[0], X.shape[1])).polar(X)  # type: ignore[arg-type]
    return 0.01 * largest if largest > 0 else 1.0


def decomposition(X: Array, alpha: float, ratio: float, form: Form) -> Problem:
    """min 1/2 ||X - L - S||_F^2 + R(||L||_* + ratio ||S||_1); ``matrix_parts`` are L, S."""
    shape = (X.shape[0], X.shape[1])
    regularizer = Regularizer(sparse_low_rank_norm(ratio, shape), form, alpha)
    return Problem.build(Identity(shape), X.reshape(-1), Squared(), regularizer)


def multiplier_of(result: Result, X: Array, form: Form, amount: float) -> float:
    """Return the weight that the gauge has at a fit of X: alpha, where it is penalized."""
    shape = (X.shape[0], X.shape[1])
    parts = result.matrix_parts or ()
    gauge = float(sum(part.gauge for part in parts))
    W = np.sum([part.dense(shape) for part in parts], axis=0)
    inner = float(np.vdot(X - W, W))
    return Regularizer(sparse_low_rank_norm(1.0, shape), form, amount).multiplier(gauge, inner)


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
