"""Sparse principal components: covariance fitting by a few sparse directions, [V] 4.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array, Form
from atomlearn.core.losses import Squared
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.norms.sparse import SparsePSD
from atomlearn.matrices.scores import MatrixScores


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


def default_alpha(S: Array, k: int) -> float:
    """Return a tenth of the largest variance along a direction with k non-zeros."""
    shape = (S.shape[0], S.shape[0])
    lower, _ = SparsePSD(k, shape=shape).polar_bounds(MatrixScores(S))
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
