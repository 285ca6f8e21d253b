"""The multinomial logistic (softmax cross-entropy) loss for several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax

from atomlearn.core.interfaces import Array, Loss, Task, whole_number
from atomlearn.core.interfaces.targets import regression_target
from atomlearn.core.losses.domain import EDGE_TOLERANCE, per_unit_weight


@final
@dataclass(frozen=True)
class Multinomial(Loss):
    """f(z) = sum_i s_i (log sum_j exp(Z_ij) - sum_j Y_ij Z_ij), the softmax cross-entropy.

    Z (n_rows, n_classes) holds the predictions; s_i is the weight of row i. y, prediction, weight
    and dual are such matrices flattened row after row, as in ``designs.Tasks``. Y is the one-hot
    encoding of the classes (or shares that sum to 1), and a row's weight is repeated n_classes
    times. The loss couples the entries of a row. Its Hessian diag(p) - p p', with p the class
    probabilities of a row, is bounded by the diagonal that ``curvature`` returns, and by 1/2.

    Parameters
    ----------
    n_classes : int
        At least 2.

    Notes
    -----
    The gradient is U_ij = s_i (P_ij - Y_ij), where P holds the probabilities of the classes. The
    conjugate of a dual point U is finite if P_ij = Y_ij + U_ij / s_i are probabilities, >= 0 with
    rows that sum to 1. There it is sum_i s_i sum_j P_ij log P_ij.

    References
    ----------
    D. Boehning. Multinomial logistic regression algorithm. Annals of the Institute of Statistical
    Mathematics 44 (1992) 197-200, doi:10.1007/BF00048682 (the bound 1/2 on the Hessian).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Multinomial
    >>> loss = Multinomial(3)
    >>> loss.probabilities(np.log([1.0, 2.0, 1.0]))
    array([[0.25, 0.5 , 0.25]])
    >>> bool(np.isclose(loss.value(np.eye(3)[1], np.log([1.0, 2.0, 1.0]), np.ones(3)), np.log(2)))
    True
    """

    n_classes: int
    name: ClassVar[str] = "multinomial"
    task: ClassVar[Task] = "classification"
    dispersed: ClassVar[bool] = False
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, 0.5

    def __post_init__(self) -> None:
        """Check the number of classes, and set ``coupled`` to it."""
        whole_number("Multinomial", "n_classes", self.n_classes, least=2)
        object.__setattr__(self, "coupled", int(self.n_classes))

    def check_target(self, y: object) -> Array:
        """Return the indicators Y as float64, row after row, (n_rows * n_classes,).

        Raises ValueError unless each row of Y holds shares >= 0 that sum to 1.
        """
        values = regression_target(y)
        if values.size % self.n_classes:
            raise ValueError(
                f"y must hold {self.n_classes} indicators a sample, got {values.size} numbers; pass"
                " np.eye(n_classes)[codes] of shape (n_samples, n_classes), or use "
                "AtomicClassifier(multi_class='multinomial'), which takes labels"
            )
        rows = self.rows(values)
        wrong = (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1.0) > 1e-9)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"y must hold shares >= 0 of the {self.n_classes} classes that sum to 1; those of "
                f"sample {first} are {rows[first].tolist()}; pass np.eye(n_classes)[codes]"
            )
        return values

    def rows(self, vector: Array) -> Array:
        """Return a vector of n_rows * n_classes entries as a matrix (n_rows, n_classes)."""
        return np.reshape(vector, (-1, self.n_classes))

    def _by_class(self, vector: Array) -> Array:
        """Return ``vector`` (n_rows * n_classes,) as a contiguous matrix (n_classes, n_rows).

        Sums over a few classes are faster along axis 0.
        """
        return np.array(self.rows(vector).T, order="C")

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i log sum_j exp(Z_ij - <Y_i, Z_i>), the loss at Z = ``prediction``.

        y is Y, flattened row after row. s = ``weight`` are the weights of rows, each repeated
        n_classes times. The largest exponent of a row is subtracted before the exponentials, so
        that nothing overflows. The result is never negative, and exact near 0.
        """
        # Z_ij - <Y_i, Z_i>, with one row for each class j.
        differences = self._by_class(prediction)
        differences -= (self._by_class(y) * differences).sum(axis=0)
        largest = differences.max(axis=0)
        is_largest = largest == differences
        # The largest terms are exp(0) = 1. Without one of them, log1p keeps all digits of the sum
        # of the others.
        differences -= largest
        np.exp(differences, out=differences)
        others = np.where(is_largest, 0.0, differences).sum(axis=0) + (is_largest.sum(axis=0) - 1)
        # The largest difference is >= 0, up to rounding.
        losses = np.maximum(largest, 0.0) + np.log1p(others)
        return float(self.rows(weight)[:, 0] @ losses)

    def probabilities(self, prediction: Array) -> Array:
        """Return P_ij = exp(Z_ij) / sum_k exp(Z_ik), the softmax of each row of Z.

        Z is ``prediction`` as a matrix (n_rows, n_classes), which is also the shape of P.
        """
        P = self._by_class(prediction)
        P -= P.max(axis=0)
        np.exp(P, out=P)
        P /= P.sum(axis=0)
        return np.asarray(P.T)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the probability of each class, P_ij, in the shape of ``prediction``."""
        return self.probabilities(prediction).reshape(prediction.shape)

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return log P_ij of all classes at Z = ``prediction``, (n_rows, n_classes)."""
        logarithms: NDArray[Any] = log_softmax(self.rows(prediction), axis=1)
        return logarithms

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the weighted accuracy: the share of rows whose most probable class is correct.

        y, ``prediction`` and ``weight`` are flattened matrices (n_rows, n_classes).
        """
        right = self.rows(prediction).argmax(axis=1) == self.rows(y).argmax(axis=1)
        s = self.rows(weight)[:, 0]
        return float(s @ right / s.sum())

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i (P_ij - Y_ij) at Z = ``prediction``, flattened row after row.

        P are the class probabilities. y are the targets, and s = ``weight`` the sample weights. The
        entry of the true class is computed from the others, so that each row sums to 0 exactly.
        """
        Y = self.rows(y)
        U = self.probabilities(prediction) - Y
        # The entry of the true class is minus the sum of the others.
        true_class = np.arange(len(Y)), np.argmax(Y, axis=1)
        U[true_class] = 0.0
        U[true_class] = -U.sum(axis=1)
        U *= self.rows(weight)
        return U.reshape(-1)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i s_i sum_j P_ij log P_ij for P_ij = Y_ij + u_ij / s_i.

        u = ``dual`` and y (Y) are flattened row after row, and s = ``weight``. The result is
        ``inf`` if a row of P is not a vector of probabilities.
        """
        slope = per_unit_weight(dual, weight)
        # None: u_ij != 0 for a row of weight 0.
        if slope is None:
            return float("inf")
        U = self._by_class(slope)
        Y = self._by_class(y)
        P = U + Y  # U is u / s
        # A dual point is feasible if P >= 0 and its rows sum to 1 (those of U to 0), up to a few
        # rounding errors.
        magnitudes = np.abs(U)
        surplus = np.abs(U.sum(axis=0))
        sums_to_zero = surplus <= EDGE_TOLERANCE * self.n_classes * magnitudes.sum(axis=0)
        # "Not all inside" instead of "any outside", because no comparison holds for NaN.
        if not (np.all(-EDGE_TOLERANCE * (magnitudes + Y) <= P) and np.all(sums_to_zero)):
            return float("inf")
        np.clip(P, 0.0, 1.0, out=P)
        logarithms = np.log(P, out=np.zeros_like(P), where=P > 0.0)
        # Near 1, the logarithm is computed from 1 - P, so that no digits cancel.
        is_true = (Y == 1.0) & (P > 0.0)
        logarithms[is_true] = np.log1p(np.clip(U[is_true], -1.0, 0.0))
        return float((P * logarithms).sum(axis=0) @ self.rows(weight)[:, 0])

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return a diagonal upper bound D of the Hessian: s_i (diag(p) - p p') <= D, flattened.

        p are the class probabilities of a row at ``prediction``. y are the targets, and
        s = ``weight`` the sample weights. D = s_i p is always a bound. D = 2 s_i p (1 - p) is a
        bound by diagonal dominance, and is smaller for the rows in which a class has a probability
        above 1/2.
        """
        P = self.probabilities(prediction)
        peaked = P.max(axis=1, keepdims=True) > 0.5
        likeliest = np.argmax(P, axis=1)[:, None]
        others = P.copy()
        np.put_along_axis(others, likeliest, 0.0, axis=1)
        # 1 - P; for the likeliest class it is the sum of the others, so that no digits cancel.
        complement = 1.0 - P
        np.put_along_axis(complement, likeliest, others.sum(axis=1, keepdims=True), axis=1)
        bound = np.where(peaked, 2.0 * P * complement, P)
        bound *= self.rows(weight)
        return bound.reshape(-1)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c_ij = s_i P_ij, flattened, and K with Hessian diag(c) - K K'.

        P are the class probabilities at Z = ``prediction``. y are the targets, and s = ``weight``
        the sample weights. K is sparse with one column per row i of Z, which holds sqrt(s_i) P_i.
        """
        P = self.probabilities(prediction)
        s = self.rows(weight)[:, :1]
        n_rows = P.shape[0]
        # The column pointers of K: column i has the n_classes entries of row i.
        starts = np.arange(n_rows + 1) * self.n_classes
        entries = (np.sqrt(s) * P).reshape(-1)
        K = sparse.csc_array((entries, np.arange(P.size), starts), shape=(P.size, n_rows))
        return (s * P).reshape(-1), K

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Any
    ) -> tuple[Array, Array | None] | None:
        """Return the optimal class intercepts as coefficients of ``basis``, and no dual point.

        basis : sparse, one column per class except the last (the reference class). For other bases,
        None is returned. Regularized Newton steps start at ``prediction``. They are halved until
        the norm of the gradient decreases, because the gradient is more accurate than the value
        near the optimum. y : targets; ``weight`` : sample weights.
        """
        stored: Any = basis
        if not sparse.issparse(basis):
            return None
        Z = self.rows(prediction)
        s = self.rows(weight)[:, 0]
        totals = s @ self.rows(y)

        def probabilities_and_slope(b: Array) -> tuple[Array, Array]:
            """Return the probabilities at intercepts b (n_classes,), and the gradient in b."""
            P = self.probabilities(Z + b)
            return P, s @ P - totals

        b = np.zeros(self.n_classes)
        P, slope = probabilities_and_slope(b)
        for _ in range(200):
            # A slope of 0, up to rounding, is the minimum.
            slope_norm = float(np.linalg.norm(slope))
            if slope_norm <= 1e-15 * float(s.sum()):
                break
            move = _newton_step(P, s, slope)
            # Intercepts move by at most 2, the range in which the quadratic model is useful.
            move *= min(1.0, 2.0 / (float(np.abs(move).max()) or 1.0))
            # At slopes this small, a slow decrease is only rounding. So only full steps are tried,
            # and each has to halve the slope.
            is_nearly_zero = slope_norm <= 1e-11 * float(s.sum())
            for _ in range(1 if is_nearly_zero else 10):
                trial_P, trial_slope = probabilities_and_slope(b + move)
                limit = (0.5 if is_nearly_zero else 1.0) * slope_norm
                descends = float(np.linalg.norm(trial_slope)) < limit
                if descends:
                    break
                move *= 0.5
            if not descends:
                break
            b = b + move
            P = trial_P
            slope = trial_slope
        # The intercepts relative to the last class; the entries of the basis are all equal.
        return (b[:-1] - b[-1]) / stored.data[0], None


def _newton_step(P: Array, s: Array, slope: Array) -> Array:
    """Return the regularized Newton step -(diag(s'P) - P' diag(s) P)^-1 slope in class intercepts.

    P : (n_rows, n_classes) class probabilities; s : (n_rows,) weights of rows;
    slope : (n_classes,), the gradient in the intercepts. The result has shape (n_classes,).
    """
    H = np.diag(s @ P) - P.T @ (P * s[:, None])
    # H is singular, as adding a constant to all intercepts changes nothing. A constant matrix makes
    # it regular; a multiple of the slope on the diagonal limits steps along flat directions.
    H += float(np.trace(H)) / slope.size**2
    H[np.diag_indices(slope.size)] += 0.1 * float(np.abs(slope).max())
    return np.asarray(-np.linalg.solve(H, slope))
