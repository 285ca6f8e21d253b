"""Rivals of completion: soft-impute, its alternating form, and alternating ridge regressions.

All of them minimise f(P Z) + level ||Z||_* over matrices of at most so many columns, f the squared
or the logistic loss of the observed entries. None has a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, svds

from atomlearn import _kernels
from benchmarks.matrices.rivals import Curve

Array = NDArray[np.float64]
Columns = NDArray[np.int64]
#: Curve, left and right: Z = left right'.
Fit = tuple[Curve, Array, Array]


@dataclass(slots=True)
class Observed:
    """Observed entries of a matrix, row after row, with the loss of predictions there.

    rows, cols, y : (n,); slope : z -> derivative of the loss; value : z -> its sum; step : 1 over
    the largest second derivative.
    """

    rows: Columns
    cols: Columns
    y: Array
    shape: tuple[int, int]
    value: Callable[[Array], float]
    slope: Callable[[Array], Array]
    step: float

    @property
    def starts(self) -> Columns:
        """Where each row begins."""
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1))

    def at(self, left: Array, right: Array) -> Array:
        """Return the entries of left right' there."""
        if not left.shape[1]:
            return np.zeros(self.rows.size)
        return _kernels.sampled_products(self.cols, self.starts, left, right)


def soft_impute(data: Observed, level: float, most_rank: int, enough: float, limit_s: float) -> Fit:
    """Soft-impute: shrink(Z - step P'(f'(P Z)), step level), by Lanczos on sparse plus low rank.

    For the squared loss this is filling in the missing entries with those of Z (Mazumder, Hastie,
    Tibshirani 2010).
    """
    curve = Curve(enough, limit_s)
    p, q = data.shape
    left, right, start = np.zeros((p, 0)), np.zeros((q, 0)), None
    z, rank = np.zeros(data.rows.size), 0
    while True:
        parts = (-data.step * data.slope(z), (data.rows, data.cols))
        change = csr_array(parts, shape=data.shape)
        filled = LinearOperator(
            data.shape,
            matvec=lambda v, c=change, a=left, b=right: c @ v.ravel() + a @ (b.T @ v.ravel()),
            rmatvec=lambda u, c=change, a=left, b=right: c.T @ u.ravel() + b @ (a.T @ u.ravel()),
            dtype=np.float64,
        )
        U, s, Vt = svds(filled, k=min(rank + 3, most_rank), v0=start, solver="arpack")
        s = np.maximum(s - data.step * level, 0.0)
        used = s > 0
        rank, start = int(used.sum()), Vt[-1] if p > q else U[:, -1]
        left, right = U[:, used] * s[used], Vt[used].T
        z = data.at(left, right)
        if not curve.goes_on(data.value(z) + level * float(s.sum())):
            return curve, left, right


def soft_impute_als(data: Observed, level: float, rank: int, enough: float, limit_s: float) -> Fit:
    """Soft-impute by alternating least squares (Hastie, Mazumder, Lee, Zadeh 2015, Algorithm 3.1).

    Z = U D^2 V' of a fixed number of columns; each half-step regresses the matrix filled in with Z
    on U D or V D, with the ridge step level.
    """
    curve = Curve(enough, limit_s)
    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.standard_normal((data.shape[0], rank)))
    V, D = np.zeros((data.shape[1], rank)), np.ones(rank)
    z = np.zeros(data.rows.size)
    pattern = csr_array((np.zeros(z.size), data.cols, data.starts), shape=data.shape)
    while True:
        pattern.data = -data.step * data.slope(z)
        V, D, turn = _regressed(pattern.T @ U, U, V, D, data.step * level)
        U = U @ turn
        z = data.at(U * D**2, V)
        pattern.data = -data.step * data.slope(z)
        U, D, turn = _regressed(pattern @ V, V, U, D, data.step * level)
        V = V @ turn
        z = data.at(U * D**2, V)
        if not curve.goes_on(data.value(z) + level * float((D**2).sum())):
            return curve, U * D**2, V


def _regressed(
    pulled: Array, fixed: Array, other: Array, D: Array, ridge: float
) -> tuple[Array, Array, Array]:
    """Return the new factor, its scales, and how the fixed one turns; pulled = change'fixed."""
    filled = pulled + (other * D**2) @ (fixed.T @ fixed)
    new, squares, turn = np.linalg.svd(filled * (D**2 / (D**2 + ridge)), full_matrices=False)
    return new, np.sqrt(squares), turn.T


def alternating_ridge(
    data: Observed, level: float, rank: int, enough: float, limit_s: float
) -> Fit:
    """Exact ridge regressions of rows on right and of columns on left, squared loss only.

    ||Z||_* = min (||left||^2 + ||right||^2) / 2 over Z = left right' (Rennie, Srebro 2005).
    """
    curve = Curve(enough, limit_s)
    rng = np.random.default_rng(0)
    right = rng.standard_normal((data.shape[1], rank))
    known = csr_array((data.y, data.cols, data.starts), shape=data.shape)
    mask = csr_array((np.ones(data.y.size), data.cols, data.starts), shape=data.shape)
    known_t, mask_t = known.T.tocsr(), mask.T.tocsr()
    while True:
        left = _ridge(known, mask, right, level)
        right = _ridge(known_t, mask_t, left, level)
        # The same product with balanced factors has the trace norm itself as its penalty.
        left_q, left_r = np.linalg.qr(left)
        right_q, right_r = np.linalg.qr(right)
        u, s, vt = np.linalg.svd(left_r @ right_r.T)
        left, right = left_q @ (u * np.sqrt(s)), right_q @ (vt.T * np.sqrt(s))
        z = data.at(left, right)
        if not curve.goes_on(data.value(z) + level * float(s.sum())):
            return curve, left, right


def _ridge(known: csr_array, mask: csr_array, factor: Array, level: float) -> Array:
    """Return argmin 1/2 ||y_i - F_i a||^2 + level/2 ||a||^2 for every row i, all at once."""
    rank = factor.shape[1]
    first, second = np.triu_indices(rank)
    upper = _kernels.matrix_product_csr(
        mask.data, mask.indices, mask.indptr, factor[:, first] * factor[:, second]
    )
    gram = np.empty((mask.shape[0], rank, rank))
    gram[:, first, second] = gram[:, second, first] = upper
    gram += level * np.eye(rank)
    pulled = _kernels.matrix_product_csr(known.data, known.indices, known.indptr, factor)
    return np.asarray(np.linalg.solve(gram, pulled[..., None])[..., 0])
