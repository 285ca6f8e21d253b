"""Matrix pursuit: each sample from a few others, and the graph that this makes. [L] 4.2"""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.data.coefficients import coefficient_matrix
from atomlearn.core.interfaces import Array, Form, Norm
from atomlearn.core.losses import Squared
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.matrices.designs.tasks import Tasks


def default_norm(n_samples: int) -> Norm:
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


def coefficients(result: Result, n_samples: int) -> Any:
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
