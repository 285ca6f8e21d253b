"""FreeIntercepts: a loss of several targets, minimized over one intercept for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.around import Around
from atomlearn.core.losses.domain import EDGE_TOLERANCE
from atomlearn.core.losses.last_answer import LastAnswer
from atomlearn.core.losses.shift import optimal_shift, without_surplus

#: Predictions of classes that no sample with a weight has: their best intercept is -infinity, and
#: their probability underflows to 0. Only the magnitude matters: far beyond any prediction.
IMPOSSIBLE = -1e30


class FreeIntercepts(Around):
    """f~(Z) = min over b of f(Z + 1 b'), Z (n_rows, n_tasks) read row after row; convex in Z.

    Its conjugate is that of f where all columns of the dual matrix sum to zero, and infinite
    elsewhere. ``gradient`` is such a dual point whatever b was found: certificates made of it are
    bounds, and tight where b is optimal. A point costs a few Newton steps on b, O(n_rows n_tasks)
    each (times n_tasks for the multinomial loss).

    Parameters
    ----------
    inner : Loss
        ``Multinomial``, or any loss that treats each prediction by itself.
    n_tasks : int
        Number of columns of Z, each with its own intercept.

    Notes
    -----
    That the conjugate is infinite where a column of the dual matrix does not sum to zero says that
    b is free: <U, 1 b'> would grow without bound, since f~ does not change with b.

    References
    ----------
    R. T. Rockafellar. Convex Analysis. Princeton University Press, 1970; theorem 16.3 (the
    conjugate of a function minimized over some of its directions).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import FreeIntercepts, Squared
    >>> loss = FreeIntercepts(Squared(), 1)
    >>> y, s = np.array([1.0, 3.0]), np.ones(2)
    >>> loss.value(y, np.array([11.0, 13.0]), s), loss.intercepts(y, np.zeros(2), s)
    (0.0, array([2.]))
    """

    is_quadratic = False

    def __init__(self, inner: Loss, n_tasks: int) -> None:
        self.describe(inner)
        self.n_tasks = n_tasks
        self.last = LastAnswer()

    @property
    def coupled(self) -> int:
        """All: they share the intercepts."""
        return 0

    def intercepts(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the minimizing b (n_tasks,); far below the others where the best is -infinity."""
        b, absent = self._optimal(y, prediction, weight)
        if absent.any():
            Z = self._rows(prediction)
            b = np.where(absent, 0.0, b)
            # Far enough below the others for a probability of 0 at all of these predictions.
            b[absent] = b[~absent].min() - 1e4 - float(np.ptp(Z))
        return b

    def apart(self, y: Array, weight: Array) -> tuple[Loss, Array]:
        """Return the loss inside and indicators of the tasks, where each has samples."""
        if self.inner.coupled == 1 or self._absent(y, weight).any():
            return super().apart(y, weight)
        return self.inner, np.tile(np.eye(self.n_tasks), (y.size // self.n_tasks, 1))

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f at the best intercepts."""
        return self.inner.value(y, self._shifted(y, prediction, weight), weight)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f' at the best intercepts, balanced: each column sums to zero."""
        dual = self.inner.gradient(y, self._shifted(y, prediction, weight), weight)
        if self.inner.coupled > 1:
            return _balanced_shares(self._rows(y), self._rows(dual), self._rows(weight)[:, 0])
        columns = [without_surplus(column) for column in self._rows(dual).T]
        return np.column_stack(columns).reshape(-1)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) where each column of u sums to zero, else ``inf``."""
        U = self._rows(dual)
        # Sums of a column differ from zero by rounding: a part of the sum of magnitudes.
        rounding = 16 * EDGE_TOLERANCE * np.abs(U).sum(axis=0)
        if not np.all(np.abs(U.sum(axis=0)) <= rounding):
            return float("inf")
        return self.inner.conjugate(y, dual, weight)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the curvature of f at the best intercepts: a bound, since b follows Z."""
        return self.inner.curvature(y, self._shifted(y, prediction, weight), weight)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c and K of f at the best intercepts; K has one column more a task.

        With H the Hessian of f and E = 1 kron I what b is multiplied with, that of f~ is
        H - H E (E'H E)^+ E'H.
        """
        shifted = self._shifted(y, prediction, weight)
        c, K = self.inner.coupling(y, shifted, weight)
        K = sparse.csc_array(K)
        n_rows = c.size // self.n_tasks
        E = sparse.csc_array(np.tile(np.eye(self.n_tasks), (n_rows, 1)))
        HE = (E * c[:, None] - K @ (K.T @ E)).toarray()
        values, Q = np.linalg.eigh(E.T @ HE)
        kept = values > 1e-12 * float(np.abs(values).max(initial=0.0))
        return c, sparse.hstack([K, HE @ (Q[:, kept] / np.sqrt(values[kept]))], format="csc")

    def _rows(self, vector: Array) -> Array:
        return np.reshape(vector, (-1, self.n_tasks))

    def _shifted(self, y: Array, prediction: Array, weight: Array) -> Array:
        b, absent = self._optimal(y, prediction, weight)
        Z = self._rows(prediction) + b
        if absent.any():
            Z[:, absent] = IMPOSSIBLE
        return Z.reshape(-1)

    def _absent(self, y: Array, weight: Array) -> Any:
        """Return which classes no sample with a weight has."""
        return ~((self._rows(weight) > 0) & (self._rows(y) > 0)).any(axis=0)

    def _optimal(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return b, and which classes no sample with a weight has."""
        found: tuple[Array, Any] = self.last.of(
            lambda: self._searched(y, prediction, weight), y, weight, prediction
        )
        return found

    def _searched(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return the same, whatever was asked before."""
        absent: Any = np.zeros(self.n_tasks, dtype=bool)
        if self.inner.coupled > 1:
            absent = self._absent(y, weight)
            b = _coupled(y, prediction, weight, absent)
        else:
            Y, Z, S = self._rows(y), self._rows(prediction), self._rows(weight)
            b = np.empty(self.n_tasks)
            for task in range(self.n_tasks):
                y_t, s_t, z_t = (np.ascontiguousarray(part[:, task]) for part in (Y, S, Z))
                b[task] = optimal_shift(self.inner, y_t, s_t, z_t)
        return b, absent


def _coupled(y: Array, prediction: Array, weight: Array, absent: Any) -> Array:
    """Return argmin_b f(Z + 1 b') by regularized Newton steps; sum b = 0 over present classes.

    Steps are halved until the slope is smaller, which tells the last digits, as values do not.
    """
    present = np.flatnonzero(~absent)
    Z = np.reshape(prediction, (-1, absent.size))[:, present]
    S, Y = weight.reshape(-1, absent.size), y.reshape(-1, absent.size)
    s, totals = S[:, 0], (S * Y).sum(axis=0)[present]

    def at(b: Array) -> tuple[Array, Array]:
        P = Z + b
        P = np.exp(P - P.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return P, s @ P - totals

    b = np.zeros(present.size)
    P, slope = at(b)
    for _ in range(200):
        size = float(np.linalg.norm(slope))
        if size <= 1e-15 * float(s.sum()):
            break
        move = _newton_step(P, s, slope)
        move *= min(1.0, 2.0 / (float(np.abs(move).max()) or 1.0))
        move -= move.mean()
        for _ in range(10):
            there, ahead = at(b + move)
            better = float(np.linalg.norm(ahead)) < size
            if better:
                break
            move *= 0.5
        if not better:
            break
        b, P, slope = b + move, there, ahead
    found = np.zeros(absent.size)
    found[present] = b
    return found


def _newton_step(P: Array, s: Array, slope: Array) -> Array:
    """Return -(P' diag(s) P - diag(s'P))^-1 slope, regularized, for probabilities P."""
    H = np.diag(s @ P) - P.T @ (P * s[:, None])
    # b is free up to a constant; the slope bounds the error of the model where it is flat.
    H += float(np.trace(H)) / slope.size**2
    H[np.diag_indices(slope.size)] += 0.1 * float(np.abs(slope).max())
    return np.asarray(-np.linalg.solve(H, slope))


def _balanced_shares(Y: Array, U: Array, s: Array) -> Array:
    """Return U moved into { columns sum to 0 }, within the domain of the multinomial conjugate.

    With P = Y + U / s in the simplex, row by row, (1 - t) P + t r for one distribution r is too;
    r takes off what the columns sum to, and t is the least for which r >= 0.
    """
    surplus = U.sum(axis=0)
    if not np.any(np.abs(surplus) > 1e-16 * np.abs(U).sum(axis=0)):
        return U.reshape(-1)
    totals = s @ Y
    present = totals > 0
    t = float(np.max(surplus[present] / (totals + surplus)[present], initial=0.0))
    if t <= 0.0:
        return U.reshape(-1)
    r = np.zeros_like(totals)
    r[present] = (t * totals - (1.0 - t) * surplus)[present] / (t * float(s.sum()))
    moved = (1.0 - t) * U + (t * s)[:, None] * (r / r.sum() - Y)
    return np.asarray(moved).reshape(-1)
