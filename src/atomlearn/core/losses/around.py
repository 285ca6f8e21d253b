"""Losses that add a term to the predictions of an inner loss: Around (base class) and Offset."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atomlearn.core.interfaces import Array, Loss, Rows
from atomlearn.core.interfaces.forwarding import forward
from atomlearn.core.interfaces.loss import rounded


class Around(Loss):
    """A loss f(z + t) that adds a term t to the predictions z of an inner loss f.

    ``score`` and ``mean`` come from the inner loss, and expect predictions that include the term.
    """

    inner: Loss

    @abstractmethod
    def whole(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return z + t, (n_samples,): z = ``prediction`` plus the term t that this loss adds.

        t may depend on the targets ``y`` and on the sample weights ``weight``.
        """

    @abstractmethod
    def part(self, rows: Rows | slice) -> Loss:
        """Return the loss restricted to the samples ``rows``, with its term restricted, too."""

    @abstractmethod
    def around(self, inner: Loss) -> Self:
        """Return a loss with the same term and another inner loss ``inner``."""

    def check_target(self, y: object) -> Array:
        """Return the targets as float64, after the checks of the inner loss."""
        return self.inner.check_target(y)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z + t) at z = ``prediction``, with f the inner loss and t the added term.

        y : targets; ``weight`` : sample weights.
        """
        return self.inner.value(y, self.whole(y, prediction, weight), weight)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f''(z + t) at z = ``prediction``, (n_samples,), including the sample weights.

        y : targets; ``weight`` : sample weights.
        """
        return self.inner.curvature(y, self.whole(y, prediction, weight), weight)

    def smoothed(self, width: float) -> Loss | None:
        """Return this loss around a smooth approximation of the inner loss; None if f is smooth.

        width : the width of the smoothing, as in ``Loss.smoothed``.
        """
        smooth = self.inner.smoothed(width)
        return None if smooth is None else self.around(smooth)


forward(Around, "inner", "name", "task", "curvature_bounds", "translates", "dispersed", "coupled")
forward(Around, "inner", "mean", "log_probabilities", "score")


def bare_loss(loss: Loss) -> Loss:
    """Return the innermost loss, without the offset and the free columns around it.

    It interprets predictions (mean, score), to which these terms have been added already.
    """
    while isinstance(loss, Around):
        loss = loss.inner
    return loss


def loss_of_rows(loss: Loss, rows: Rows | slice) -> Loss:
    """Return ``loss`` restricted to the samples ``rows``, with its offsets and free columns.

    A loss without such terms depends on no particular samples, and is returned unchanged.
    """
    return loss.part(rows) if isinstance(loss, Around) else loss


def mean_loss(loss: Loss, y: Array, prediction: Array, weight: Array) -> float:
    """Return the weighted mean loss at held-out predictions, which cross-validation minimizes.

    ``y``, ``prediction`` and ``weight`` have one number per prediction; a loss of several classes
    has several predictions per row.
    """
    # A loss that couples the predictions of a row repeats the weight of the row for each of them.
    # The sum of the weights is then ``coupled`` times that of the rows.
    bare = bare_loss(loss)
    return bare.value(y, prediction, weight) * max(bare.coupled, 1) / float(weight.sum())


class Offset(Around):
    """f_o(z) = f(z + o): the offset o is known, and no coefficient multiplies it.

    Examples are the logarithm of an exposure for counts, and the predictions of another model. The
    offset is a part of the loss, so every certificate, norm, solver and design works with it.

    Parameters
    ----------
    inner : Loss
        f, the loss of predictions that include the offset.
    offset : (n_samples,) float64
        One finite number for each prediction.

    Notes
    -----
    The conjugate is f_o*(u) = sup_z <u, z> - f(z + o) = f*(u) - <u, o>: the dual gains a linear
    term, and its domain does not change.

    References
    ----------
    R. T. Rockafellar. Convex Analysis. Princeton University Press, 1970; theorem 12.3.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.losses.around import Offset
    >>> from atomlearn.losses import Squared
    >>> y, s = np.array([1.0, 3.0]), np.ones(2)
    >>> Offset(Squared(), np.array([0.0, 2.0])).value(y, np.ones(2), s)
    0.0
    """

    def __init__(self, inner: Loss, offset: Array) -> None:
        """Store the inner loss and the offset, (n_samples,)."""
        self.inner = inner
        self.offset = offset

    def part(self, rows: Rows | slice) -> Loss:
        """Return the loss of the samples ``rows``, with their offsets."""
        return Offset(loss_of_rows(self.inner, rows), self.offset[rows])

    def around(self, inner: Loss) -> Offset:
        """Return the loss ``inner`` with the same offset."""
        return Offset(inner, self.offset)

    def whole(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return z + o, the predictions with the offset, (n_samples,).

        z is ``prediction``; the targets and weights have no effect.
        """
        return prediction + self.offset

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error that the offset adds to the duality gap.

        The error is of the product <u, o>, u = ``dual``; the bound of the inner loss at z + o is
        added. z is ``prediction``. y : targets; ``weight`` : sample weights.
        """
        shifted = prediction + self.offset
        return rounded(dual, self.offset, weight) + self.inner.slack(y, shifted, dual, weight)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient f'(z + o) of the inner loss, (n_samples,), at z = ``prediction``.

        y : targets; ``weight`` : sample weights.
        """
        return self.inner.gradient(y, prediction + self.offset, weight)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) - <u, o> for u = ``dual``, with f* the conjugate of the inner loss.

        y : targets; ``weight`` : sample weights.
        """
        return self.inner.conjugate(y, dual, weight) - float(dual @ self.offset)

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return f*(factor u) - <factor u, o>, or an upper bound, for u = ``dual``.

        u is the gradient at ``prediction`` z, and f* the conjugate of the inner loss, at z + o.
        ``factor`` is in [0, 1]. y : targets; ``weight`` : sample weights.
        """
        shifted = prediction + self.offset
        along = self.inner.conjugate_along(y, shifted, dual, weight, factor)
        return along - factor * float(dual @ self.offset)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c (n_samples,) and K of the inner loss at z + o, z = ``prediction``.

        The Hessian there is diag(c) - K K'. y : targets; ``weight`` : sample weights.
        """
        return self.inner.coupling(y, prediction + self.offset, weight)

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Array
    ) -> tuple[Array, Array | None] | None:
        """Return argmin_c f(z + o + Q c), Q = ``basis``, and a dual point, from the inner loss.

        None if the inner loss has no formula; z = ``prediction``. y : targets; ``weight`` : sample
        weights.
        """
        return self.inner.along(y, prediction + self.offset, weight, basis)

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return a b near argmin_b f(linear + o + b), if the inner loss has a formula for b.

        Otherwise ``start`` is returned. linear : the predictions without b. y : targets;
        ``weight`` : sample weights.
        """
        return self.inner.best_shift(y, linear + self.offset, weight, start)


@dataclass(frozen=True, slots=True)
class Joined:
    """The horizontally stacked matrix [first, others] as an operator that has only products.

    first : a matrix or operator (n, k); others : a dense array (n, m). ``transposed`` : whether the
    operator is the transpose of that matrix.
    """

    first: Any
    others: Array
    transposed: bool = False

    @property
    def T(self) -> Joined:
        """The transpose, an operator of the same kind."""
        return Joined(self.first, self.others, not self.transposed)

    @property
    def shape(self) -> tuple[int, int]:
        """(number of rows, number of columns), of the transpose if ``transposed``."""
        rows = self.others.shape[0]
        columns = self.first.shape[1] + self.others.shape[1]
        return (columns, rows) if self.transposed else (rows, columns)

    def __matmul__(self, other: Array) -> Array:
        """Return the product with a vector or matrix ``other``.

        The first rows of ``other`` are multiplied by ``first``, and the remaining rows by
        ``others``. For the transpose, the products with both matrices are stacked.
        """
        if self.transposed:
            return np.concatenate([self.first.T @ other, self.others.T @ other])
        count = self.first.shape[1]
        return np.asarray(self.first @ other[:count] + self.others @ other[count:])
