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
    """Hessians that are reused by later calls of ``newton_qp``.

    ``whole`` is the Hessian of all columns, and ``tasks`` has those of problems that are solved
    separately for each task (output), by the number of the task.
    """

    def __init__(self) -> None:
        """Begin without any Hessian."""
        self.whole = _native.KeptHessian()
        self.tasks: dict[int, KeptHessian] = {}


#: Number of vectors by which the coupling matrix K' of a loss is multiplied at once.
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
    """Minimize f(A c + Q b) + l g + h/2 g^2 + ridge/2 c'Mc for each row of ``terms``; g = p'|c|.

    f is the loss. The variables are the weights c of the columns A and the coefficients b of the
    columns Q, which have no penalty. The constraints are g <= radius, and c >= 0 unless ``signed``.
    With ``groups``, g is the sum of p_k ||c_k|| over groups of columns, and radius is infinite.

    A proximal Newton step minimizes the quadratic model of f plus the penalty, over the active
    columns and those that violate optimality; b is eliminated. The model is solved by block
    pivoting on signs (``pivot_path``) or by ``active_set_qp``. For groups it is minimized exactly
    over one group after the other, and by Newton steps over the groups in use. An Armijo line
    search follows. Gradients are exact. The Hessian of the model is reused in later steps, rows of
    ``terms`` and calls, as long as steps with it lower the objective enough. No duality gap is
    computed: the caller must certify the result. Models have at most 10,000 columns.

    If the columns are sparse, and enough of them are in use, no Hessian is formed. Coordinate
    descent, which keeps the predictions, chooses the columns in use, and conjugate gradients
    minimize the model over them; each sweep or iteration reads every entry twice. A problem starts
    at the linear extrapolation of the two solutions before it, if that lowers the objective. This
    is chosen problem by problem, by counts of operations.

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
        Coefficients l, h, ridge and radius of each problem ("level"). Each problem starts at the
        solution of the previous one.
    basis : (r, n_samples), optional
        The columns Q without a penalty, one a row; ones for an intercept.
    metric : (m, m), optional
        M; the identity if None.
    signed : bool
        Whether c may have negative entries.
    groups : (starts, members), optional
        Group k has the columns members[starts[k]:starts[k + 1]].
    gap, share : float
        A problem is solved when its estimated suboptimality is at most ``gap``, or at most
        ``share`` times the objective, or when the predicted decrease is only rounding error.
    most : int
        Maximum number of steps of one problem.
    seconds : float
        Time limit of the whole call.
    kept : KeptHessian, optional
        A Hessian from an earlier call, for the same or fewer columns; updated in place.

    Returns
    -------
    c, b : (solved, m), (solved, r)
        The solutions of the first ``solved`` problems, those that were begun before the time limit.
        None of them has a larger objective than its start.
    steps : int
        Number of Newton steps of all problems together.
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
    group_members = groups or (empty, empty)
    penalty = (
        price,
        np.ascontiguousarray(terms, dtype=np.float64),
        free_columns,
        metric_entries,
        signed,
        *group_members,
    )
    arguments = (
        _callbacks(loss, target, sample_weight),
        penalty,
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
    # The kernel writes vectors a here, one a row, and requests K'a; none for uncoupled losses.
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
            # ``coupled`` is 0 for a loss that couples all samples (Cox's). Its K has a column for
            # each event time, and the columns of adjacent times are nearly parallel.
            coupling_terms = Terms(K, alike=not loss.coupled)

    def coupled_products(count: int) -> Array:
        """Return K'a for the first ``count`` rows a of the shared array ``batch``."""
        assert coupling_terms is not None
        return coupling_terms.of(batch[:count])

    def conjugate_term(share: float) -> float:
        """Return f*(u) - <u, z> at u = ``share`` times ``first``, which is f'(z).

        The kernel uses it to estimate the duality gap of a scaled dual point.
        """
        conjugate = loss.conjugate_along(y, prediction, first, weight, share)
        return float(conjugate - share * (first @ prediction))

    return _native.PythonLoss(
        lambda: loss.value(y, prediction, weight),
        differentiate,
        differentiate_twice,
        conjugate_term,
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
    """Products K'A for a Hessian diag(c) - K K'; adjacent columns of K may be combined.

    A survival loss has a column of K for each event time, nearly parallel to its neighbors. With
    many of them, K is replaced by K S, where each column of S combines a run of adjacent columns.
    S has orthonormal columns, so diag(c) - K S S'K' - (diag(c) - K K') is positive semidefinite:
    a model with the new Hessian is never too flat. Within a run, the coefficients in S
    (``shares``) are proportional to the column sums of K; ``starts`` has the first column of each
    run, or is None if no columns are combined.

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

    def _combine(self, sums: Array) -> None:
        """Choose runs of adjacent columns, and the coefficient in S of each column ("shares").

        ``sums`` (n_terms,) are the column sums of K. The coefficients of a run are its sums divided
        by their Euclidean norm.
        """
        run_starts = np.linspace(0, sums.size, self.MOST, endpoint=False)
        self.starts = np.unique(run_starts.astype(np.int64))
        run_norms = np.sqrt(np.add.reduceat(sums * sums, self.starts))
        counts = np.diff(np.append(self.starts, sums.size))
        self.shares = sums / np.repeat(np.where(run_norms > 0.0, run_norms, 1.0), counts)

    def of(self, rows: Array) -> Array:
        """Return S'K'a for each row a of ``rows`` (m, n_samples); the results are rows, too."""
        products = np.ascontiguousarray(np.asarray(self.K.T @ rows.T).T)
        if self.starts is None:
            return products
        return np.add.reduceat(products * self.shares, self.starts, axis=1)
