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
    The gradient is U_ij = s_i (P_ij - Y_ij), where P holds the probabilities of the classes. So a
    dual point must make P_ij = Y_ij + U_ij / s_i probabilities, >= 0 with rows that sum to 1; there
    the conjugate is sum_i s_i sum_j P_ij log P_ij, and elsewhere it is infinite.

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
        whole_number("Multinomial", "n_classes", self.n_classes, least=2)
        object.__setattr__(self, "coupled", int(self.n_classes))

    def check_target(self, y: object) -> Array:
        """Return the indicators Y, row after row; rows of Y must be shares that sum to 1."""
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
        """Return the matrix (n_rows, n_classes) of a vector."""
        return np.reshape(vector, (-1, self.n_classes))

    def _by_class(self, vector: Array) -> Array:
        """Return a copy (n_classes, n_rows): sums over few classes are faster along axis 0."""
        return np.array(self.rows(vector).T, order="C")

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i log sum_j exp(Z_ij - <Y_i, Z_i>): never negative, exact near 0."""
        D = self._by_class(prediction)
        D -= (self._by_class(y) * D).sum(axis=0)
        largest = D.max(axis=0)
        is_largest = largest == D
        # The largest terms are exp(0) = 1; without one of them, log1p keeps the digits of the rest.
        D -= largest
        np.exp(D, out=D)
        rest = np.where(is_largest, 0.0, D).sum(axis=0) + (is_largest.sum(axis=0) - 1)
        losses = np.maximum(largest, 0.0) + np.log1p(rest)
        return float(self.rows(weight)[:, 0] @ losses)

    def probabilities(self, prediction: Array) -> Array:
        """Return the softmax of each row, (n_rows, n_classes)."""
        P = self._by_class(prediction)
        P -= P.max(axis=0)
        np.exp(P, out=P)
        P /= P.sum(axis=0)
        return np.asarray(P.T)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the probability of each class, in the shape of the predictions."""
        return self.probabilities(prediction).reshape(prediction.shape)

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the logarithms of the probabilities of all classes, (n_rows, n_classes)."""
        logarithms: NDArray[Any] = log_softmax(self.rows(prediction), axis=1)
        return logarithms

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the weighted accuracy: the share of rows whose most probable class is correct."""
        right = self.rows(prediction).argmax(axis=1) == self.rows(y).argmax(axis=1)
        s = self.rows(weight)[:, 0]
        return float(s @ right / s.sum())

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i (P_ij - Y_ij); the true class's entry is set so that each row sums to 0."""
        Y = self.rows(y)
        U = self.probabilities(prediction) - Y
        top = np.arange(len(Y)), np.argmax(Y, axis=1)
        U[top] = 0.0
        U[top] = -U.sum(axis=1)
        U *= self.rows(weight)
        return U.reshape(-1)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return sum_i s_i sum_j P_ij log P_ij of P = Y + U / s, ``inf`` outside the simplex."""
        share = per_unit_weight(dual, weight)
        if share is None:
            return float("inf")
        U = self._by_class(share)
        Y = self._by_class(y)
        P = U + Y
        # Allow a few rounding errors for the terms of P and for the sum over a row.
        sizes = np.abs(U)
        surplus = np.abs(U.sum(axis=0))
        sums_to_zero = surplus <= EDGE_TOLERANCE * self.n_classes * sizes.sum(axis=0)
        # Written as "not all inside" rather than "any outside", so that NaN counts as outside.
        if not (np.all(-EDGE_TOLERANCE * (sizes + Y) <= P) and np.all(sums_to_zero)):
            return float("inf")
        np.clip(P, 0.0, 1.0, out=P)
        logarithms = np.log(P, out=np.zeros_like(P), where=P > 0.0)
        # Near 1, the logarithm is computed from 1 - P, so that no digits cancel.
        is_true = (Y == 1.0) & (P > 0.0)
        logarithms[is_true] = np.log1p(np.clip(U[is_true], -1.0, 0.0))
        return float((P * logarithms).sum(axis=0) @ self.rows(weight)[:, 0])

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return a diagonal upper bound D of the Hessian: s_i (diag(p) - p p') <= D.

        D = s_i p is always a bound. D = 2 s_i p (1 - p) is one by diagonal dominance, and is used
        if a class has a probability above 1/2.
        """
        P = self.probabilities(prediction)
        peaked = P.max(axis=1, keepdims=True) > 0.5
        top = np.argmax(P, axis=1)[:, None]
        others = P.copy()
        np.put_along_axis(others, top, 0.0, axis=1)
        complement = 1.0 - P
        np.put_along_axis(complement, top, others.sum(axis=1, keepdims=True), axis=1)
        D = np.where(peaked, 2.0 * P * complement, P)
        D *= self.rows(weight)
        return D.reshape(-1)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c = s_i p_ij and K with Hessian diag(c) - K K'.

        K is sparse with one column per row i of Z, which holds sqrt(s_i) p_i.
        """
        P = self.probabilities(prediction)
        s = self.rows(weight)[:, :1]
        n_rows = P.shape[0]
        starts = np.arange(n_rows + 1) * self.n_classes
        parts = ((np.sqrt(s) * P).reshape(-1), np.arange(P.size), starts)
        return (s * P).reshape(-1), sparse.csc_array(parts, shape=(P.size, n_rows))

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Any
    ) -> tuple[Array, Array | None] | None:
        """Return the optimal class intercepts as coefficients of ``basis``, and no dual point.

        basis : sparse, one column per class except the last (the reference class); None is
        returned for other bases. Regularized Newton steps are halved until the norm of the gradient
        decreases, since the gradient is more accurate than the value near the optimum.
        """
        stored: Any = basis
        if not sparse.issparse(basis):
            return None
        Z = self.rows(prediction)
        s = self.rows(weight)[:, 0]
        totals = s @ self.rows(y)

        def at(b: Array) -> tuple[Array, Array]:
            """Return the class probabilities at intercepts b, and the gradient in b."""
            P = self.probabilities(Z + b)
            return P, s @ P - totals

        b = np.zeros(self.n_classes)
        P, slope = at(b)
        for _ in range(200):
            size = float(np.linalg.norm(slope))
            if size <= 1e-15 * float(s.sum()):
                break
            move = _newton_step(P, s, slope)
            move *= min(1.0, 2.0 / (float(np.abs(move).max()) or 1.0))
            # Below this slope, a full Newton step reaches rounding error or at least halves the
            # slope.
            is_fine = size <= 1e-11 * float(s.sum())
            for _ in range(1 if is_fine else 10):
                value, gradient_there = at(b + move)
                limit = (0.5 if is_fine else 1.0) * size
                descends = float(np.linalg.norm(gradient_there)) < limit
                if descends:
                    break
                move *= 0.5
            if not descends:
                break
            b = b + move
            P = value
            slope = gradient_there
        return (b[:-1] - b[-1]) / stored.data[0], None


def _newton_step(P: Array, s: Array, slope: Array) -> Array:
    """Return the regularized Newton step -(diag(s'P) - P' diag(s) P)^-1 slope in class intercepts.

    P : (n_rows, n_classes) class probabilities; s : (n_rows,) weights; slope : (n_classes,).
    """
    H = np.diag(s @ P) - P.T @ (P * s[:, None])
    # b is free up to a constant; the slope bounds the error of the model along flat directions.
    H += float(np.trace(H)) / slope.size**2
    H[np.diag_indices(slope.size)] += 0.1 * float(np.abs(slope).max())
    return np.asarray(-np.linalg.solve(H, slope))
