"""Sparse plus low rank: robust principal components, and robust coordinates in their span."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from atomlearn.designs import Complement, Identity, Tasks
from atomlearn.designs.matrices import MatrixScores
from atomlearn.interfaces import Norm
from atomlearn.interfaces.norm import Form
from atomlearn.interfaces.solver import WarmStart
from atomlearn.losses import Squared
from atomlearn.norms import L1, Scaled, TraceNorm, Union
from atomlearn.paths import Settings
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result
from atomlearn.solvers import FISTA
from atomlearn.solvers.run import Observer

Array = NDArray[np.float64]

#: Share of the least alpha without a part in use: noise far below the signal, little shrinkage.
SHARE = 0.01


def default_ratio(shape: tuple[int, int]) -> float:
    """Return 1 / sqrt(max(n, p)). [Candes, Li, Ma, Wright 2011, doi:10.1145/1970392.1970395]"""
    return 1.0 / math.sqrt(max(shape))


def norm_of(ratio: float, shape: tuple[int, int]) -> Norm:
    """Return the gauge inf { ||L||_* + ratio ||S||_1 : L + S = W }."""
    return Union([TraceNorm(shape), Scaled(L1(), ratio)])


def default_alpha(X: Array, ratio: float) -> float:
    """Return a hundredth of max(sigma_1(X), max |X_ij| / ratio), from where on both are zero."""
    largest = norm_of(ratio, (X.shape[0], X.shape[1])).polar(MatrixScores(X))
    return SHARE * largest if largest > 0 else 1.0


def decomposition(
    X: Array,
    alpha: float,
    ratio: float,
    settings: Settings,
    form: Form = "penalized",
    warm: WarmStart | None = None,
    observers: Iterable[Observer] = (),
) -> Result:
    """Minimize 1/2 ||X - L - S||_F^2 + R(||L||_* + ratio ||S||_1); ``matrix_parts`` are L, S."""
    shape = (X.shape[0], X.shape[1])
    regularizer = Regularizer(norm_of(ratio, shape), form, alpha)
    problem = Problem.build(Identity(shape), X.reshape(-1), Squared(), regularizer)
    return settings.run(problem, warm, observers)


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
    result comes along (None where there is nothing to solve). Each row is a Huber regression on V.
    """
    if not V.shape[1] or not threshold > 0:
        return X @ V, None
    complement = Complement(V)
    design = Tasks(complement, X.shape[0])
    target = np.ascontiguousarray(complement.product(X.T)).reshape(-1)
    regularizer = Regularizer(L1(), "penalized", threshold)
    problem = Problem.build(design, target, Squared(), regularizer)
    solver = settings.solver or FISTA()
    result = Settings(settings.gap, settings.max_iter, solver).run(problem)
    errors = np.zeros(X.size)
    errors[result.columns] = result.weights
    return (X - errors.reshape(X.shape[::-1]).T) @ V, result
