"""Matrix pursuit: each sample from a few others, and the graph that this makes. [L] 4.2"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.designs import Tasks
from atomlearn.interfaces import Norm
from atomlearn.interfaces.norm import Form
from atomlearn.losses import Squared
from atomlearn.norms import KSupport
from atomlearn.paths import Settings
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result
from atomlearn.solvers.run import Observer

Array = NDArray[np.float64]

#: Entries of an atom for each sample, as in Figures 2 and 3 of [L].
PER_SAMPLE = 4


def default_norm(n_samples: int) -> Norm:
    """Return the k-support norm with four non-zeros a sample."""
    return KSupport(min(PER_SAMPLE * n_samples, n_samples**2))


def unit_rows(X: Array) -> Array:
    """Return the rows scaled to norm 1; zero rows stay zero."""
    sizes = np.abs(X).max(axis=1, keepdims=True)
    scaled = np.divide(X, sizes, out=np.zeros_like(X), where=sizes > 0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, norms, out=scaled, where=norms > 0)


def pursuit(
    X: Array,
    norm: Norm,
    alpha: float,
    settings: Settings,
    form: Form = "squared",
    observers: Iterable[Observer] = (),
) -> Result:
    """Minimize 1/2 ||X' - X'W||_F^2 + R(gauge(W)), W (n_samples, n_samples); samples are rows."""
    base = np.asfortranarray(X.T)
    problem = Problem.build(
        Tasks(base, X.shape[0]), X.T.reshape(-1), Squared(), Regularizer(norm, form, alpha)
    )
    return settings.run(problem, None, observers)


def coefficients(result: Result, n_samples: int) -> sparse.csr_array:
    """Return W (n_samples, n_samples), sparse."""
    if result.matrix_parts is not None:
        return sparse.csr_array(result.coef)
    # scikit-learn takes indices of 32 bits only.
    rows, cols = (part.astype(np.int32) for part in np.divmod(result.columns, n_samples))
    table = sparse.coo_array((result.weights, (rows, cols)), shape=(n_samples, n_samples))
    return sparse.csr_array(table)


def affinity_of(W: sparse.csr_array) -> sparse.csr_array:
    """Return |W| + |W|', symmetric and >= 0."""
    magnitude = abs(W)
    return sparse.csr_array(magnitude + magnitude.T)
