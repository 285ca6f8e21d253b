"""Proximal Newton method for a smooth loss with an l1 or group penalty over a few columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


class KeptHessian:
    """The Hessians that ``newton_qp`` keeps between calls: of all columns, and of each task's."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.whole = _native.KeptHessian()
        self.tasks: dict[int, KeptHessian] = {}


#: Number of columns to which the coupling matrix K' of a loss is applied at once.
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
    """Minimize f(A c + Q b) + level g + coupling/2 g^2 + ridge/2 c'Mc at each level; g = p'|c|.

    The variables are the weights c and the coefficients b of the free columns Q. The constraints
    are g <= radius, and c >= 0 unless ``signed``. With ``groups``, g is the sum of p_k ||c_k|| over
    groups of columns, and radius is infinite.

    A proximal Newton step minimizes the quadratic model of f plus the penalty, over the active
    columns and those that violate optimality; b is eliminated. The model is solved by block
    pivoting on signs (``pivot_path``) or by ``active_set_qp``. For groups it is minimized exactly
    over one group after the other, and by Newton steps over the groups in use. An Armijo line
    search follows. Slopes are exact; the Hessian of the model is kept from step to step, level to
    level and call to call, as long as steps with it pay. No duality gap is computed: the caller
    must certify the result. Models have at most 10,000 columns.

    Parameters
    ----------
    columns : (n_samples, m) array, sparse array by columns without duplicates, or tuple
        A. It is copied if it is not float64, or dense without contiguous columns. The tuple has the
        columns of ``designs.Tasks``: features (n_features, n_rows), the feature and the task of
        each column, and the number of tasks.
    target, sample_weight : (n_samples,) float64
    loss : Loss
        The kernel calls its values and derivatives, and ``coupling`` if it couples samples.
    weights : (m,) feasible start
        The start of c.
    shift : (r,)
        The coefficients b at the start; 0 if None.
    price : (m,) or (n_groups,) float64 > 0
        p.
    terms : (n_levels, 4)
        level, coupling, ridge, radius of each level. Each level starts at the solution of the
        previous one.
    basis : (r, n_samples), optional
        The free columns Q, one a row; ones for an intercept.
    metric : (m, m), optional
        M; the identity if None.
    signed : bool
        Whether c may have negative entries.
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
        The solutions of the first ``solved`` levels, those that were begun before the time limit.
        None of them is worse than its start.
    steps : int
    """
    kept = KeptHessian() if kept is None else kept
    free_columns = np.zeros((0, target.size)) if basis is None else np.ascontiguousarray(basis)
    # Arrays for the results, one row a level; the first row holds the start.
    n_levels = len(terms)
    points = np.zeros((n_levels, weights.size))
    shifts = np.zeros((n_levels, len(free_columns)))
    points[0] = weights
    shifts[0] = 0.0 if shift is None else shift
    load_blas()
    metric_entries = np.zeros(0) if metric is None else metric.reshape(-1)
    # The kernel takes arrays of size 0 for arguments that are absent.
    empty = np.zeros(0, dtype=np.int64)
    parts = groups or (empty, empty)
    prices = (
        price,
        np.ascontiguousarray(terms, dtype=np.float64),
        free_columns,
        metric_entries,
        signed,
        *parts,
    )
    arguments = (
        _callbacks(loss, target, sample_weight),
        prices,
        (gap, share, most, seconds),
        kept.whole,
    )
    # One kernel for each storage of the columns: tasks, sparse, dense.
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


def _callbacks(loss: Any, y: Array, weight: Array) -> _native.PythonLoss:
    """Return the callbacks by which the kernel evaluates a loss, and arrays that both share.

    ``loss`` is evaluated for targets ``y`` and sample weights ``weight``, (n_samples,) each. The
    kernel writes predictions z into the array ``prediction`` and calls a callback. This returns a
    number, or writes f'(z) or f''(z) into the arrays ``first`` or ``second``.
    """
    # Arrays that are shared with the kernel: predictions, first and second derivatives.
    prediction, first, second = np.empty((3, y.size))
    least, largest = loss.curvature_bounds
    # Rows to which the kernel wants K' applied; none for a loss without coupling.
    batch = np.zeros((TOGETHER * (loss.coupled != 1), y.size))
    coupling_terms: Terms | None = None

    def differentiate() -> None:
        """Store the gradient of the loss at the current predictions."""
        first[:] = loss.gradient(y, prediction, weight)

    def differentiate_twice() -> None:
        """Store the second derivatives at the current predictions, and any coupling K.

        The Hessian of a loss that couples samples is diag(second) - K K'.
        """
        nonlocal coupling_terms
        if loss.coupled == 1:
            second[:] = loss.curvature(y, prediction, weight)
        else:
            second[:], K = loss.coupling(y, prediction, weight)
            # The terms of a loss that couples all samples (Cox) are alike for adjacent times.
            coupling_terms = Terms(K, alike=not loss.coupled)

    def coupled_products(count: int) -> Array:
        """Return K'a for the first ``count`` rows a of the shared array ``batch``."""
        assert coupling_terms is not None
        return coupling_terms.of(batch[:count])

    def bend(share: float) -> float:
        """Return f*(u) - <u, z> at u = ``share`` times ``first``, which is f'(z).

        The kernel uses it to estimate the duality gap of a scaled dual point.
        """
        conjugate = loss.conjugate_along(y, prediction, first, weight, share)
        return float(conjugate - share * (first @ prediction))

    return _native.PythonLoss(
        lambda: loss.value(y, prediction, weight),
        differentiate,
        differentiate_twice,
        bend,
        coupled_products,
        prediction,
        first,
        second,
        batch,
        weight,
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
        """Store K, and choose the columns that are combined, if any."""
        self.K = K
        n_samples, n_terms = K.shape
        self.starts: Positions | None = None
        if alike and n_terms > self.MOST:
            self._combine(K.T @ np.ones(n_samples))

    def _combine(self, sizes: Array) -> None:
        """Choose runs of adjacent columns, and the share of each column in its run.

        ``sizes`` (n_terms,) are the column sums of K. The shares of a run are its sizes divided by
        their Euclidean norm.
        """
        run_starts = np.linspace(0, sizes.size, self.MOST, endpoint=False)
        self.starts = np.unique(run_starts.astype(np.int64))
        run_norms = np.sqrt(np.add.reduceat(sizes * sizes, self.starts))
        counts = np.diff(np.append(self.starts, sizes.size))
        self.shares = sizes / np.repeat(np.where(run_norms > 0.0, run_norms, 1.0), counts)

    def of(self, rows: Array) -> Array:
        """Return S'K'a for the columns a, which are given and returned as rows."""
        products = np.ascontiguousarray(np.asarray(self.K.T @ rows.T).T)
        if self.starts is None:
            return products
        return np.add.reduceat(products * self.shares, self.starts, axis=1)
