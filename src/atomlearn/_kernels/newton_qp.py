"""Proximal Newton method for a smooth loss with an l1 or group penalty over a few columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas

KeptHessian = _native.KeptHessian
#: Number of columns to which a coupling of samples is applied at once.
TOGETHER = 64


def newton_qp(
    columns: Any,
    target: Array,
    sample_weight: Array,
    loss: Any,
    weights: Array,
    shift: Array | None = None,
    *,
    price: Array,
    terms: Array,
    basis: Array | None = None,
    metric: Array | None = None,
    signed: bool = True,
    groups: tuple[Positions, Positions] | None = None,
    gap: float = 0.0,
    share: float = 0.0,
    most: int = 50,
    seconds: float = math.inf,
    kept: KeptHessian | None = None,
) -> tuple[Array, Array, int]:
    """argmin_c,b f(A c + Q b) + level g + coupling/2 g^2 + ridge/2 c'Mc at levels, g = p'|c|.

    The constraints are g <= radius, and c >= 0 unless ``signed``. With ``groups``, g is the sum of
    p_k ||c_k|| over groups of columns, and radius is infinite. A proximal Newton step
    minimizes the quadratic model of f plus the penalty, over the active columns and those that
    violate optimality, with the free columns Q eliminated. The model is solved by block pivoting on
    signs (``pivot_path``) or by ``active_set_qp``, and for groups by exact minimization of one
    after the other and Newton steps over those in use; an Armijo line search follows. Slopes are
    exact; the Hessian of the model is kept, from step to step, level to level and call to call,
    while steps with it are worth their work. No duality gap is computed; the caller must certify
    the result. Models have at most 10,000 columns.

    Parameters
    ----------
    columns : (n_samples, m) array, sparse array by columns without duplicates, or tuple
        Copied if it is not float64, or dense without contiguous columns. The tuple has the columns
        of ``designs.Tasks``: features (n_features, n_rows), the feature and the task of each
        column, and the number of tasks.
    target, sample_weight : (n_samples,) float64
    loss : Loss
        The kernel calls its values and derivatives, and ``coupling`` if it couples samples.
    weights : (m,) feasible start
    shift : (r,)
        The coefficients of the free columns at the start; 0 if None.
    price : (m,) or (n_groups,) float64 > 0
    terms : (n_levels, 4)
        level, coupling, ridge, radius of each level. A level starts where the one before it is.
    basis : (r, n_samples), optional
        The free columns Q, one a row; ones for an intercept.
    metric : (m, m), optional
        M; the identity if None.
    groups : (starts, members), optional
        Group k has the columns members[starts[k]:starts[k + 1]].
    gap, share : float
        A level ends when its estimated suboptimality is at most ``gap`` or ``share`` of the
        objective, or the predicted decrease is only rounding error.
    most : int
        Maximum number of steps of a level.
    seconds : float
        Time limit.
    kept : KeptHessian, optional
        A Hessian from an earlier call, for the same or fewer columns; updated in place.

    Returns
    -------
    c, b : (solved, m), (solved, r)
        The weights of the levels that have begun, no worse than their start.
    steps : int
    """
    n_levels = len(terms)
    Q = np.zeros((0, target.size)) if basis is None else np.ascontiguousarray(basis)
    points = np.zeros((n_levels, weights.size))
    shifts = np.zeros((n_levels, len(Q)))
    points[0] = weights
    shifts[0] = 0.0 if shift is None else shift
    load_blas()
    M = np.zeros(0) if metric is None else metric.reshape(-1)
    kept = KeptHessian() if kept is None else kept
    empty = np.zeros(0, dtype=np.int64)
    parts = groups or (empty, empty)
    prices = price, np.ascontiguousarray(terms, dtype=np.float64), Q, M, signed, *parts
    arguments = _callbacks(loss, target, sample_weight), prices, (gap, share, most, seconds), kept
    if isinstance(columns, tuple):
        solved, steps = _native.newton_qp_tasks(columns, *arguments, points, shifts)
    elif sp.issparse(columns):
        matrix: Any = columns
        data = np.ascontiguousarray(matrix.data, dtype=np.float64)
        indptr = np.ascontiguousarray(matrix.indptr, dtype=matrix.indices.dtype)
        stored = data, matrix.indices, indptr
        solved, steps = _native.newton_qp_csc(stored, *arguments, points, shifts)
    else:
        dense = np.asarray(columns, dtype=np.float64, order="F")
        solved, steps = _native.newton_qp(dense, *arguments, points, shifts)
    return points[:solved], shifts[:solved], steps


def _callbacks(loss: Any, y: Array, s: Array) -> _native.PythonLoss:
    """Return the callbacks by which the kernel evaluates the loss, at a shared prediction array.

    The kernel writes the predictions z; the callbacks return values, or write f'(z) or f''(z).
    """
    z, first, second = np.empty((3, y.size))
    least, largest = loss.curvature_bounds
    batch = np.zeros((TOGETHER * (loss.coupled != 1), y.size))
    terms: Terms | None = None

    def differentiate() -> None:
        """Store the gradient of the loss at the current predictions."""
        first[:] = loss.gradient(y, z, s)

    def curve() -> None:
        nonlocal terms
        if loss.coupled == 1:
            second[:] = loss.curvature(y, z, s)
        else:
            second[:], K = loss.coupling(y, z, s)
            terms = Terms(K, alike=not loss.coupled)

    def couple(count: int) -> Array:
        assert terms is not None
        return terms.of(batch[:count])

    def bend(share: float) -> float:
        dual = loss.gradient(y, z, s)
        both = loss.value(y, z, s) + loss.conjugate_along(y, z, dual, s, share)
        return float(both - share * float(dual @ z))

    return _native.PythonLoss(
        lambda: loss.value(y, z, s),
        differentiate,
        curve,
        bend,
        couple,
        z,
        first,
        second,
        batch,
        s,
        largest,
        least == largest,
        loss.coupled,
    )


class Terms:
    """The products K'A of a coupling K; adjacent columns of K are combined if many are alike.

    The columns of the K of a survival loss, one for each event time, are nearly parallel to their
    neighbors. With orthonormal combinations S, diag(c) - K S S'K' is no less than
    diag(c) - K K', and the combination of some columns is the direction of their sums.

    Parameters
    ----------
    K : matrix (n_samples, n_terms) with the product ``K.T @ A``
    alike : bool
        Whether adjacent columns of K are nearly parallel.
    """

    #: Maximum number of columns of K that are kept as separate vectors.
    MOST = 1000

    def __init__(self, K: Any, alike: bool) -> None:
        self.K = K
        n_samples, n_terms = K.shape
        self.starts: Positions | None = None
        if alike and n_terms > self.MOST:
            self._combine(K.T @ np.ones(n_samples))

    def _combine(self, sizes: Array) -> None:
        edges = np.linspace(0, sizes.size, self.MOST, endpoint=False)
        self.starts = np.unique(edges.astype(np.int64))
        lengths = np.sqrt(np.add.reduceat(sizes * sizes, self.starts))
        counts = np.diff(np.append(self.starts, sizes.size))
        self.shares = sizes / np.repeat(np.where(lengths > 0.0, lengths, 1.0), counts)

    def of(self, rows: Array) -> Array:
        """Return S'K'a for the columns a, which are given and returned as rows."""
        products = np.ascontiguousarray(np.asarray(self.K.T @ rows.T).T)
        if self.starts is None:
            return products
        return np.add.reduceat(products * self.shares, self.starts, axis=1)
