"""FreeColumns: a loss profiled over unpenalized columns (partial minimization)."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from atomlearn._support import LastAnswer
from atomlearn.core.interfaces import EPS, Array, Loss, Rows
from atomlearn.core.losses.around import Around, Joined, Offset, bare_loss, loss_of_rows
from atomlearn.core.losses.domain import EDGE_TOLERANCE

#: Collinearity tolerance: a column whose distance from the span of the others is below this share
#: of its length is dropped (coefficient 0). Predictions change by at most that share.
COLLINEAR = 1e-9


#: The optimal c = argmin_c f(z + Q c), the predictions z + Q c, and an optimal dual point. The dual
#: point is None if the minimization does not yield one; then it is computed from the predictions.
Best = tuple[Array, Array, Array | None]


class FreeColumns(Around):
    """f~(z) = min over g and b of f(z + Z g + b): the profile loss of unpenalized covariates.

    z = X w are the predictions of the penalized columns; g (q,) are the coefficients of the
    unpenalized columns Z, and b is the intercept. Solvers see only f~, a convex loss of z. Its
    gradient v satisfies Z'v = 0, and sum v = 0 with an intercept. So the dual point is feasible for
    the unpenalized columns, and the duality gap holds for the whole problem.

    Parameters
    ----------
    inner : Loss
        f, the loss of predictions that include the unpenalized columns.
    columns : (n_samples, q) float64, or a sparse array
        Z. Columns may be collinear, also with the intercept. The columns of a sparse array must
        be orthogonal, as the intercepts of several tasks are (``of_tasks``).
    intercept : bool
        Whether an intercept b is minimized over, too.

    Notes
    -----
    The columns are replaced by an orthonormal basis Q of their span: f~(z) = min_c f(z + Q c). It
    is computed by Newton's method with a line search, in O(n r^2) per step for r basis vectors,
    and in one step for the squared loss. The conjugate of f~ is f*(u) if Q'u = 0 and infinite
    otherwise, since f~ is constant along Q. If Newton's method ends with a small Q'u != 0, the
    entries of u are multiplied by factors near 1 and at most 1 that make Q'u = 0. So u stays in the
    domain of f*, which is convex and contains 0. The remaining rounding error of Q'u is added to
    the gap (``slack``). The attribute ``_Q`` is Q, ``_back`` is the matrix B with Q = [1, Z] B, and
    ``last`` caches the last minimizer.

    References
    ----------
    R. T. Rockafellar. Convex Analysis. Princeton University Press, 1970; theorem 16.3.
    R. Frisch, F. V. Waugh. Partial time regressions as compared with individual trends.
    Econometrica 1 (1933) 387-401, doi:10.2307/1907330 (the squared loss).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.losses.free_columns import FreeColumns
    >>> from atomlearn.losses import Squared
    >>> y, s = np.array([1.0, 2.0, 3.0]), np.ones(3)
    >>> loss = FreeColumns(Squared(), np.array([[0.0], [1.0], [2.0]]), intercept=True)
    >>> round(loss.value(y, np.zeros(3), s), 12)
    0.0
    >>> g, b = loss.free_part(y, np.zeros(3), s)
    >>> g.round(6), round(b, 6)
    (array([1.]), 1.0)
    """

    coupled = 0

    def __init__(self, inner: Loss, columns: Any, intercept: bool) -> None:
        """Compute an orthonormal basis Q of the columns, and B with Q = [1, Z] B.

        The parameters are those of the class.
        """
        self._begin(inner)
        self.columns = columns
        self.intercept = intercept
        # A loss of several classes couples the predictions of a row. It does not change if all of
        # them move by the same amount.
        shift_invariant = bare_loss(inner).coupled > 1 and not intercept
        # Sparse columns are orthogonal, so that they only need to be scaled.
        if self.is_sparse:
            self._Q, self._back = _of_tasks(columns, shift_invariant)
            return
        self._Q, self._back = _basis(columns, intercept)
        if shift_invariant:
            # So the mean over the entries of each row is subtracted from the columns.
            rows = columns.reshape(-1, bare_loss(inner).coupled, columns.shape[1])
            centered = (rows - rows.mean(axis=1, keepdims=True)).reshape(columns.shape)
            self._Q, _ = _basis(centered, intercept)
            self._back = np.linalg.lstsq(centered, self._Q, rcond=COLLINEAR)[0]

    @classmethod
    def of_tasks(cls, inner: Loss, n_rows: int, n_tasks: int) -> FreeColumns:
        """Return ``inner`` profiled over one intercept per task.

        A task is one of the ``n_tasks`` targets or classes of each row. Predictions are the matrix
        (n_rows, n_tasks), flattened row after row.
        """
        indicators = sparse.kron(np.ones((n_rows, 1)), sparse.eye_array(n_tasks), format="csc")
        return cls(inner, indicators, intercept=False)

    @property
    def curvature_bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Bounds on f'' of the loss with the free columns fitted: 0, and the inner upper bound.

        The lower bound is 0, because the loss is constant along the unpenalized columns.
        """
        return 0.0, self.inner.curvature_bounds[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are a sparse array."""
        return sparse.issparse(self.columns)

    @property
    def separable(self) -> bool:
        """Whether samples are coupled only by dense unpenalized columns."""
        return self.inner.coupled == 1 and not self.is_sparse

    @property
    def basis(self) -> Array:
        """Q (n_samples, r), an orthonormal basis of the span of the unpenalized columns."""
        return _dense(self._Q)

    def _begin(self, inner: Loss) -> None:
        """Set the inner loss, and clear the cached minimizer, which belongs to another loss."""
        self.inner = inner
        self.last = LastAnswer()

    def part(self, rows: Rows | slice) -> Loss:
        """Return the loss of the samples ``rows`` only.

        Its unpenalized columns are restricted to these samples, and their coefficients are fitted
        again.
        """
        n = self.columns.shape[0]
        if isinstance(rows, slice) and rows.indices(n) == (0, n, 1):
            return self
        return FreeColumns(loss_of_rows(self.inner, rows), self.columns[rows], self.intercept)

    def around(self, inner: Loss) -> FreeColumns:
        """Return a copy with the same columns and the loss ``inner``, and an empty cache."""
        other = copy(self)
        other._begin(inner)
        return other

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient u of f~ at z = ``prediction``, (n_samples,).

        It is the gradient of f at the optimal coefficients, with Q'u = 0 to rounding. ``weight``
        are the sample weights. y : the targets. f~(z) = min_c f(z + Q c) is the loss f with the
        unpenalized columns fitted.
        """
        _, z, dual = self._optimal(y, prediction, weight)
        if dual is not None:
            return self._balanced(dual)
        dual = self.inner.gradient(y, z, weight)
        # Rescaling may leave the domain of a loss that couples all samples (coupled = 0). Then Q'u
        # keeps its rounding error, whose effect ``slack`` bounds.
        return self._balanced(dual) if self.inner.coupled else dual

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return the conjugate f~*(u) at u = ``dual``: f*(u) if Q'u = 0 to rounding, else ``inf``.

        ``weight`` are the sample weights. f~(z) = min_c f(z + Q c) is the loss f with the
        unpenalized columns fitted.
        """
        if not self._is_balanced(dual):
            return float("inf")
        return self.inner.conjugate(y, dual, weight)

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return f~*(factor u), or an upper bound on it, for u = ``dual``; ``inf`` if Q'u is not 0.

        u is the gradient at ``prediction``, and ``factor`` is in [0, 1]. Inner losses that couple
        samples have a formula for this case, which needs the predictions with the free columns.
        y : targets; ``weight`` : sample weights. f~(z) = min_c f(z + Q c) is the loss f with the
        unpenalized columns fitted.
        """
        if self.inner.coupled == 1:
            return self.conjugate(y, factor * dual, weight)
        if not self._is_balanced(dual):
            return float("inf")
        total = self.whole(y, prediction, weight)
        return self.inner.conjugate_along(y, total, dual, weight, factor)

    def _is_balanced(self, dual: Array) -> bool:
        """Return whether Q'u is zero to rounding, for u = ``dual`` and the basis Q.

        Q spans the unpenalized columns. Only then is the conjugate of the loss finite at u.
        """
        allowed = 64 * EDGE_TOLERANCE * float(np.sqrt(dual @ dual))
        return bool(np.all(np.abs(self._Q.T @ dual) <= allowed))

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c and K with Hessian diag(c) - K K' of f~ at z = ``prediction``.

        It is the Schur complement of Q: with H the Hessian of f at the optimal coefficients, the
        Hessian of f~ is H - H Q (Q'H Q)^+ Q'H. c has shape (n_samples,), and K has one column per
        basis vector after the columns of K of f. If f'' vanishes at a sample, H is replaced by its
        upper bound, because a quadratic model without curvature gives steps that are far too long.
        y : targets; ``weight`` : sample weights. f~(z) = min_c f(z + Q c) is the loss f with the
        unpenalized columns fitted.
        """
        z = self.whole(y, prediction, weight)
        largest_curvature = self.inner.curvature_bounds[1]
        c, K = self.inner.coupling(y, z, weight)
        # A sample has no curvature: all samples get the largest possible curvature instead.
        if (
            largest_curvature < np.inf
            and self.inner.coupled == 1
            and np.any(c[weight > 0.0] <= 0.0)
        ):
            c = largest_curvature * weight
        HQ = _dense(self._Q * c[:, None])
        if K.shape[1]:
            HQ -= _dense(K @ _dense(K.T @ self._Q))
        # H Q (Q'H Q)^+ Q'H = C C' with C = ``correction``, by the eigenvectors of Q'H Q.
        values, vectors = np.linalg.eigh(self._Q.T @ HQ)
        is_positive = values > 1e-12 * float(np.abs(values).max(initial=0.0))
        correction = HQ @ (vectors[:, is_positive] / np.sqrt(values[is_positive]))
        if not K.shape[1]:
            return c, correction
        if not sparse.issparse(K):  # K may be an implicit matrix
            return c, Joined(K, correction)
        stacked: Any = [K, sparse.csc_array(correction)]
        return c, sparse.hstack(stacked, format="csc")

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the error <Q'u, c> of the duality gap: Q'u is 0 only to rounding.

        u is ``dual``, and c are the coefficients of an optimum. The bound assumes that their norm
        is at most ten times this sum: the norm of the coefficients at this ``prediction``, plus the
        norm of ``prediction``. y : targets; ``weight`` : sample weights. Q is the basis of the
        unpenalized columns.
        """
        c = self._optimal(y, prediction, weight)[0]
        norms = float(np.linalg.norm(c)) + float(np.linalg.norm(prediction))
        # |Q'u|, and the rounding error of this product itself; columns of Q have length 1.
        residual = float(np.linalg.norm(self._Q.T @ dual))
        residual += EPS * float((4.0 + np.sqrt(dual.size)) * np.linalg.norm(dual))
        return 10.0 * residual * norms + self.inner.slack(y, prediction, dual, weight)

    def whole(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the full predictions z + Z g + b at the optimal g and b, (n_samples,).

        z = ``prediction`` are those of the penalized columns. y : targets; weight : sample weights.
        """
        return self._optimal(y, prediction, weight)[1]

    def free_part(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, float]:
        """Return the optimal coefficients g (q,) of the unpenalized columns, and the intercept b.

        With c the coefficients of the basis Q = [1, Z] B, b and g are B c, for B = ``_back``.
        prediction : z (n_samples,), those of the penalized columns. y : targets; weight : sample
        weights. Coefficients of dropped collinear columns are 0, and so is b without an intercept.
        """
        coefficients = self._back @ self._optimal(y, prediction, weight)[0]
        return (coefficients[1:], float(coefficients[0])) if self.intercept else (coefficients, 0.0)

    def _optimal(self, y: Array, prediction: Array, weight: Array) -> Best:
        """Return c = argmin_c f(z + Q c), z + Q c, and a dual point or None, at z = ``prediction``.

        The result for the last arguments is cached, because value, gradient and curvature need it
        in turn. y : targets; ``weight`` : sample weights. Q is the basis of the unpenalized
        columns.
        """
        best: Best = self.last.of(
            lambda: self._searched(y, prediction, weight), y, weight, prediction
        )
        return best

    def _searched(self, y: Array, prediction: Array, weight: Array) -> Best:
        """Return c = argmin_c f(z + Q c) by damped Newton steps, z + Q c, and a dual point or None.

        z is ``prediction``, y are the targets, ``weight`` the sample weights, and Q the basis of
        the unpenalized columns. The dual point is the one of ``_start``.

        A step is halved until the loss decreases by at least 1e-4 of the ``predicted`` linear
        decrease (Armijo's rule), and doubled while the loss keeps falling. Near the minimum
        (``is_near``) values differ only by rounding. There a step is accepted if it reduces the
        largest entry of the ``slope`` Q'f' by a factor of 0.9. ``damping`` is the share of the
        upper bound of the Hessian that ``_step`` adds; it grows after short steps and falls after
        full ones. The search ends at a slope of 0 up to rounding, or when no step descends.
        """
        Q = self._Q
        inner = self.inner
        c, z, value, closed_form_dual = self._start(y, prediction, weight)
        if closed_form_dual is not None:
            return c, z, closed_form_dual
        dual = inner.gradient(y, z, weight)
        slope = Q.T @ dual
        damping = 0.0
        for _ in range(200):
            largest_slope = float(np.abs(slope).max(initial=0.0))
            if largest_slope <= 4.0 * EPS * float(np.sqrt(dual @ dual)):
                break
            step = self._step(y, z, weight, slope, damping)
            predicted = -float(slope @ step)
            # Below this decrease, values differ only by rounding, and gradients are compared.
            is_near = predicted <= 1e-11 * abs(value)
            length = 1.0
            descends = False
            for _ in range(4 if is_near else 30):
                trial = c + length * step
                trial_z = prediction + Q @ trial
                trial_value = inner.value(y, trial_z, weight)
                if is_near or trial_value <= value - 1e-4 * length * predicted:
                    # A quadratic decreases by half of the linear prediction. A larger decrease
                    # means that the curvature fades along the step, so the step is lengthened;
                    # this saves a quarter of the time of a quantile fit with covariates.
                    extends = not is_near and value - trial_value >= 0.55 * length * predicted > 0.0
                    while extends:
                        farther = inner.value(y, prediction + Q @ (c + 2.0 * length * step), weight)
                        if not farther < trial_value:
                            break
                        length = 2.0 * length
                        trial_value = farther
                        trial = c + length * step
                        trial_z = prediction + Q @ trial
                    gradient = inner.gradient(y, trial_z, weight)
                    next_slope = Q.T @ gradient
                    descends = trial_value < value
                    if is_near:
                        descends = float(np.abs(next_slope).max()) < 0.9 * largest_slope
                    if descends:
                        break
                # A flat exponential may give a step of 1e80, so the step shrinks fast after an
                # overflow.
                length *= 0.5 if np.isfinite(trial_value) else 1e-3
            if not descends and (is_near or damping == 1.0):
                break
            # If curvatures vanish or change too fast, a share of their upper bound is added.
            if length < 0.25:
                damping = min(1.0, max(10.0 * damping, 1e-3))
            elif length >= 1.0:
                damping = 0.1 * damping if damping > 1e-6 else 0.0
            if descends:
                c = trial
                z = trial_z
                value = trial_value
                dual = gradient
                slope = next_slope
        return c, z, None

    def _start(
        self, y: Array, prediction: Array, weight: Array
    ) -> tuple[Array, Array, float, Array | None]:
        """Return the initial c, the predictions z + Q c, their loss, and a dual point or None.

        z is ``prediction``. A dual point is returned if the inner loss minimizes along Q in closed
        form (``Loss.along``). Otherwise c is the better of two: the cached minimizer (a warm
        start), if f has curvature there, and c = -Q'z, which removes the component of z along Q.
        y : targets; ``weight`` : sample weights. Q is the basis of the unpenalized columns.
        """
        Q = self._Q
        # Start at the coefficients of the last call, which are near the new ones in a path.
        previous = np.zeros(Q.shape[1]) if self.last.answer is None else self.last.answer[0]
        previous_z = prediction + Q @ previous
        exact = self.inner.along(y, previous_z, weight, Q)
        if exact is not None:
            c = previous + exact[0]
            z = prediction + Q @ c
            return c, z, self.inner.value(y, z, weight), exact[1]
        projected = -(Q.T @ prediction)
        projected_z = prediction + Q @ projected
        value = self.inner.value(y, previous_z, weight)
        projected_value = self.inner.value(y, projected_z, weight)
        if value <= projected_value and self.inner.curvature(y, previous_z, weight).any():
            return previous, previous_z, value, None
        return projected, projected_z, projected_value, None

    def _step(self, y: Array, z: Array, weight: Array, slope: Array, damping: float) -> Array:
        """Return the Newton step -H^-1 slope in c, (r,), with a regularized Hessian H.

        ``slope`` is the gradient Q'f'(z) in c, at the predictions z, which include Q c. H is
        Q'f''(z)Q plus ``damping`` (in [0, 1]) times its upper bound. Small eigenvalues of H are
        raised, so that the step is finite. y : targets; ``weight`` : sample weights.
        """
        Q = self._Q
        inner = self.inner
        diagonal, K = inner.coupling(y, z, weight)
        H = _dense(Q.T @ (Q * diagonal[:, None]))
        if K.shape[1]:
            KQ = _dense(K.T @ Q)
            H = H - KQ.T @ KQ
        if damping or not diagonal.any():
            # The upper bound of f'', or the largest f'' here if there is no bound.
            largest = inner.curvature_bounds[1]
            if not np.isfinite(largest):
                largest = float(diagonal.max(initial=0.0)) / float(weight.max())
            H = H + (damping or 1.0) * largest * _dense(Q.T @ (Q * weight[:, None]))
        values, vectors = np.linalg.eigh(H)
        largest = float(values.max(initial=0.0))
        # Without a usable Hessian, take a gradient step.
        if not (np.isfinite(largest) and 1e-13 * largest > 0):
            return np.asarray(-slope / max(float(weight.max()), 1e-300))
        values = np.maximum(values, 1e-13 * largest)
        return np.asarray(-(vectors @ ((vectors.T @ slope) / values)))

    def _balanced(self, dual: Array) -> Array:
        """Return u = ``dual`` rescaled row by row so that Q'u = 0 to rounding, (n_samples,).

        Q (n_samples, r) is the basis of the unpenalized columns. A row u_i is one entry of u, or
        the entries of a sample that the loss couples, and Q_i are its rows of Q. It is multiplied
        by 1 - t'p_i / ||u_i|| with p_i = Q_i'u_i. Here t solves (sum_i p_i p_i' / ||u_i||) t = Q'u,
        so that Q'u becomes 0. If some factors exceed 1, all of u is divided by the largest factor
        of a row that is not tiny, so that the conjugate stays finite.
        """
        Q = self._Q
        coupled = self.inner.coupled
        largest = 1.0
        # The second round removes the rounding error of the first.
        for _ in range(2):
            surplus = Q.T @ dual
            length = float(np.sqrt(dual @ dual))
            if not 4.0 * EPS * length < float(np.abs(surplus).max(initial=0.0)) < np.inf:
                break
            rows = dual.reshape(-1, coupled)
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
            # Row i of P is p_i, which row i adds to Q'u: P = B Q, where row i of the block-diagonal
            # matrix B has the entries of u_i. U has the rows p_i / ||u_i||.
            blocks = dual, np.arange(dual.size), np.arange(0, dual.size + 1, coupled)
            P = _dense(sparse.csr_array(blocks, shape=(lengths.size, dual.size)) @ Q)
            U = np.divide(P, lengths, out=np.zeros_like(P), where=lengths > 0.0)
            factors = 1.0 - U @ np.linalg.lstsq(U.T @ P, surplus, rcond=1e-14)[0]
            # If a column separates the classes, the rows of a group may be so small that their
            # factors would change sign.
            dual = (rows * np.maximum(factors, 0.0)[:, None]).reshape(-1)
            # Tiny rows (of separable classes) remain in the domain even if they grow.
            large = lengths[:, 0] > 1e-6 * lengths.max()
            largest *= float(factors[large].max(initial=1.0))
        return dual / largest if largest > 1.0 else dual


def free_columns(loss: Loss) -> FreeColumns | None:
    """Return the loss itself if it is a ``FreeColumns``; None if it has no unpenalized columns."""
    return loss if isinstance(loss, FreeColumns) else None


def plain_loss(loss: Loss) -> Loss:
    """Return the inner loss of a ``FreeColumns``, or any other loss itself.

    The inner loss needs predictions that include the unpenalized columns.
    """
    columns = free_columns(loss)
    return loss if columns is None else columns.inner


def known_offset(loss: Loss) -> Array | None:
    """Return the numbers that a loss adds to predictions, (n_samples,); None if it adds none.

    They are the ``offset`` of an ``Offset``, perhaps inside a ``FreeColumns``.
    """
    bare = plain_loss(loss)
    return bare.offset if isinstance(bare, Offset) else None


def _dense(matrix: Any) -> Array:
    """Return a NumPy or SciPy sparse matrix as a dense array."""
    stored: Any = matrix
    return np.asarray(stored.toarray() if sparse.issparse(matrix) else matrix)


def _of_tasks(columns: Any, shift_invariant: bool) -> tuple[Any, Array]:
    """Return Q and B as ``_basis`` does, for a sparse array of orthogonal columns.

    shift_invariant : whether the loss does not change if all predictions of a row move by the same
    amount. The last column is then redundant and dropped, and the coefficients sum to zero.
    """
    lengths = np.sqrt(np.asarray(columns.power(2).sum(axis=0)))
    # I - 1 1'/q projects the q coefficients onto those of sum zero; without shift invariance it is
    # I. ``determined`` selects the columns of Q: all, or all but the last.
    projection = np.eye(lengths.size) - shift_invariant / lengths.size
    determined = slice(lengths.size - shift_invariant)
    Q = sparse.csc_array(columns * (1.0 / lengths))[:, determined]
    return Q, projection[:, determined] / lengths[determined]


def _basis(columns: Array, intercept: bool) -> tuple[Array, Array]:
    """Return Q (n_samples, r) with orthonormal columns that span [1, Z], and B with Q = [1, Z] B.

    Z = ``columns``; the column 1 is present only with ``intercept``. The basis comes from a QR
    factorization with column pivoting. Columns are scaled to unit length before it, so that their
    units do not matter. The intercept is pivoted first, and collinear columns are dropped.
    """
    if intercept:
        columns = np.hstack([np.ones((columns.shape[0], 1)), columns])
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    if intercept:
        lengths[0] *= 0.5  # division by it makes the intercept the longest column, the first pivot
    nonzero = np.flatnonzero(lengths)
    if not nonzero.size:
        return np.zeros((columns.shape[0], 0)), np.zeros((columns.shape[1], 0))
    Q, R, order = qr(columns[:, nonzero] / lengths[nonzero], mode="economic", pivoting=True)
    # A small diagonal entry of R belongs to a column near the span of the columns before it.
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > COLLINEAR))
    independent = nonzero[order[:rank]]
    back = np.zeros((columns.shape[1], rank))
    back[independent] = solve_triangular(R[:rank, :rank], np.eye(rank)) / lengths[independent, None]
    return np.asfortranarray(Q[:, :rank]), back
