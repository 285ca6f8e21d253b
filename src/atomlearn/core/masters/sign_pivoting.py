"""Block pivoting on signs: l1 and a quadratic, all exchanges of a round at once.

min over w of 1/2 w'(H + ridge I)w - c'w + sum_j p_j |w_j|: where the support S and its signs s
are known, w is one system, H_SS w_S = c_S - p_S s_S. Coordinates whose sign comes out wrong leave,
those whose gradient exceeds its p enter, until none is left. From the solution of the level before,
two or three systems are enough; where exchanges cycle, ``active_set_qp``, which descends, takes
over.

The Cholesky factor is kept: columns that enter are appended by triangular solves, one that leaves
is a constraint w_j = 0 that is projected off, until many have left and the factor is made afresh.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from atomlearn._kernels import active_set_qp, scores_dense

Array = NDArray[np.float64]
Columns = NDArray[np.int64]

#: Rounds without fewer exchanges than ever before, after which pivoting is left.
PATIENCE = 3
#: Rounds of one solve at most.
MOST_ROUNDS = 100
#: Columns that may have left before the factor is made afresh, and as a share of those in it.
MOST_LEFT, SHARE_LEFT = 16, 0.1
#: Gradients beyond p by this part of it are rounding.
SLACK = 1e-11


class SupportFactor:
    """L L' = H_FF + ridge I for a list F of columns that holds the support.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    >>> factor = SupportFactor()
    >>> factor.solve(H, 0.0, np.array([0, 1, 2]), np.array([5.0, 5.0, 3.0])).round(12)
    array([1., 1., 1.])
    >>> factor.solve(H, 0.0, np.array([0, 2]), np.array([4.0, 2.0])).round(12)
    array([1., 1.])
    """

    def __init__(self) -> None:
        # Two buffers in turn: fresh memory for each factor would cost as much as its numbers.
        self._room = [np.empty(0), np.empty(0)]
        self.forget()

    def forget(self) -> None:
        """Let the next solve factor afresh."""
        self._columns: Columns = np.zeros(0, dtype=np.int64)
        self._lower: Array = np.zeros((0, 0), order="F")

    def solve(self, H: Array, ridge: float, support: Columns, right: Array) -> Array:
        """Return (H_SS + ridge I)^-1 right for the support S, in its order.

        Raises LinAlgError where the matrix is not positive definite.
        """
        left = self._reach(H, ridge, support)
        place = np.full(H.shape[0], -1, dtype=np.int64)
        place[support] = np.arange(support.size)
        at = place[self._columns]
        full = np.where(at >= 0, right[np.maximum(at, 0)], 0.0)
        u = _triangular(self._lower, full[:, None], False)
        if left.size:
            unit = np.zeros((self._columns.size, left.size), order="F")
            unit[left, np.arange(left.size)] = 1.0
            basis, _ = np.linalg.qr(_triangular(self._lower, unit, False))
            u -= basis @ (basis.T @ u)
        x = _triangular(self._lower, u, True)[:, 0]
        result = np.zeros(support.size)
        result[at[at >= 0]] = x[at >= 0]
        return result

    def _reach(self, H: Array, ridge: float, support: Columns) -> Columns:
        """Bring all of the support into the factor; return the places there that are not in it."""
        inside = np.zeros(H.shape[0], dtype=bool)
        inside[support] = True
        left = np.flatnonzero(~inside[self._columns])
        if left.size > max(MOST_LEFT, SHARE_LEFT * self._columns.size):
            self.forget()
            left = left[:0]
        known = np.zeros(H.shape[0], dtype=bool)
        known[self._columns] = True
        fresh = support[~known[support]]
        if fresh.size:
            self._append(H, ridge, fresh)
        return left

    def _matrix(self, size: int) -> Array:
        """Return a Fortran array of garbage that is not the present factor's."""
        self._room.reverse()
        if self._room[0].size < size * size:
            self._room[0] = np.empty(2 * size * size)
        return self._room[0][: size * size].reshape((size, size), order="F")

    def _append(self, H: Array, ridge: float, fresh: Columns) -> None:
        old, size = self._columns, self._columns.size
        corner = np.array(H[np.ix_(fresh, fresh)], order="F")
        corner[np.diag_indices(fresh.size)] += ridge
        total = size + fresh.size
        lower = self._matrix(total)
        if size:
            cross = _triangular(self._lower, np.asfortranarray(H[np.ix_(old, fresh)]), False)
            corner -= cross.T @ cross
            lower[:size, :size] = self._lower
            lower[size:, :size] = cross.T
        factor, info = lapack.dpotrf(corner, lower=1, clean=1)
        pivots = np.diag(factor)
        scale = H[fresh, fresh] + ridge
        if info != 0 or (pivots * pivots <= 1e-13 * scale).any():
            raise np.linalg.LinAlgError("columns of the support depend on each other")
        lower[size:, size:] = factor
        self._columns, self._lower = np.concatenate([old, fresh]), lower


def _triangular(lower: Array, right: Array, transposed: bool) -> Array:
    if not lower.size:
        return right
    x, info = lapack.dtrtrs(lower, right, lower=1, trans=int(transposed))
    if info != 0:
        raise np.linalg.LinAlgError("a pivot of the factor is zero")
    return np.asarray(x)


def l1_quadratic(
    H: Array,
    slope: Array,
    price: Array,
    weights: Array,
    *,
    ridge: float = 0.0,
    factor: SupportFactor | None = None,
    most: int | None = None,
) -> tuple[Array, int]:
    """argmin_w of 1/2 d'(H + ridge I)d + slope'd + sum_j p_j |w_j| with d = w - weights.

    Parameters
    ----------
    H : (m, m), symmetric positive semidefinite, rows contiguous
    slope : (m,) gradient of the quadratic at ``weights``, the ridge included
    price : (m,) p > 0
    weights : (m,) warm start
    factor : SupportFactor kept between calls with the same (or a larger) H and ridge
    most : bound on the support, beyond which H is singular

    Returns
    -------
    w : (m,) solution; systems : number of systems solved, negative where ``active_set_qp`` was
    called after them.
    """
    factor = factor or SupportFactor()
    most = weights.size if most is None else most
    linear = scores_dense(H, weights) + ridge * weights - slope
    signs = np.sign(weights)
    _enter(signs, -slope, price, most)
    fewest, patience, systems = weights.size + 1, PATIENCE, 0
    while systems < MOST_ROUNDS:
        support = np.flatnonzero(signs)
        if support.size > most:
            break
        trial = np.zeros(weights.size)
        try:
            right = linear[support] - price[support] * signs[support]
            trial[support] = factor.solve(H, ridge, support, right)
        except np.linalg.LinAlgError:
            factor.forget()
            break
        systems += 1
        # Rows of H at zeros are not read.
        gradient = linear - scores_dense(H, trial) - ridge * trial
        wrong = (signs != 0) & (trial * signs <= 0)
        over = (signs == 0) & (np.abs(gradient) > price * (1 + SLACK))
        exchanges = int(np.count_nonzero(wrong) + np.count_nonzero(over))
        if not exchanges:
            return trial, systems
        patience = PATIENCE if exchanges < fewest else patience - 1
        fewest = min(fewest, exchanges)
        if patience < 0:
            break
        signs[wrong] = 0.0
        _enter(signs, gradient, price, most, ~wrong)
    w, _ = active_set_qp(
        H, slope, weights, price=price, level=1.0, signed=True, ridge=ridge, from_gradient=True
    )
    return w, -systems - 1


def _enter(
    signs: Array, gradient: Array, price: Array, most: int, allowed: NDArray[np.bool_] | None = None
) -> None:
    """Give signs to the coordinates whose gradient exceeds p: at most half of the room there is."""
    over = (signs == 0) & (np.abs(gradient) > price * (1 + SLACK))
    if allowed is not None:
        over &= allowed
    found = np.flatnonzero(over)
    room = max(1, (most - int(np.count_nonzero(signs))) // 2)
    if found.size > room:
        excess = np.abs(gradient[found]) / price[found]
        found = found[np.argsort(-excess, kind="stable")[:room]]
    signs[found] = np.sign(gradient[found])
