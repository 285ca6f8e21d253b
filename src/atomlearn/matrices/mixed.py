"""Mixed: another loss for each part of the samples, such as the entries of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Loss, Rows


@dataclass(frozen=True, eq=False)
class Mixed(Loss):
    """f(z) = sum_i s_i loss_k(i)(y_i, z_i): each sample has the loss of its kind k(i).

    Parameters
    ----------
    losses : sequence of Loss
        Of bounded curvature, without parts of their own that couple samples.
    kinds : (n_samples,) ndarray of int
        The place of each sample's loss in ``losses``.

    Notes
    -----
    A sum over samples, as its conjugate is: f*(u) = sum_k loss_k*(u of kind k).

    References
    ----------
    M. Udell, C. Horn, R. Zadeh, S. Boyd. Generalized low rank models. Foundations and Trends in
    Machine Learning 9 (2016) 1-118, doi:10.1561/2200000055.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.matrices.mixed import Mixed
    >>> from atomlearn.losses import Logistic, Squared
    >>> loss = Mixed((Squared(), Logistic()), np.array([0, 1]))
    >>> loss.gradient(np.array([2.0, -1.0]), np.array([0.5, -1.0]), np.ones(2))
    array([-1.5       ,  0.26894142])
    """

    losses: Sequence[Loss]
    kinds: NDArray[np.int64]
    name: ClassVar[str] = "mixed"

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """The largest of those of its losses."""
        return max(loss.smoothness for loss in self.losses)

    def part(self, rows: Rows | slice) -> Mixed:
        """Return the loss of these samples."""
        return Mixed(self.losses, self.kinds[rows])

    def _parts(self) -> list[tuple[Loss, Rows]]:
        return [(loss, np.flatnonzero(self.kinds == k)) for k, loss in enumerate(self.losses)]

    def _assembled(self, of: Callable[[Loss, Rows], Array]) -> Array:
        result = np.zeros(self.kinds.size)
        for loss, mine in self._parts():
            result[mine] = of(loss, mine)
        return result

    def check_target(self, y: object) -> Array:
        """Return the targets, each as its loss takes it."""
        values: Array = np.asarray(y, dtype=np.float64)
        return self._assembled(lambda loss, mine: loss.check_target(values[mine]))

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the sum of the values of the parts."""
        return sum(
            loss.value(y[mine], prediction[mine], weight[mine]) for loss, mine in self._parts()
        )

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the derivatives, each of its own loss."""
        return self._assembled(lambda loss, m: loss.gradient(y[m], prediction[m], weight[m]))

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return the sum of the conjugates of the parts."""
        return sum(loss.conjugate(y[m], dual[m], weight[m]) for loss, m in self._parts())

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the second derivatives, each of its own loss."""
        return self._assembled(lambda loss, m: loss.curvature(y[m], prediction[m], weight[m]))
