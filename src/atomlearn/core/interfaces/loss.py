"""Loss: f(z) = sum_i s_i loss(y_i, z_i), a smooth convex function of the predictions z."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Loss(ABC):
    """f(z) = sum_i s_i loss(y_i, z_i) for targets y, predictions z and sample weights s >= 0.

    All arrays are float64 of shape (n_samples,); every method is O(n_samples), allocates no more
    than a few such arrays, and neither overflows nor loses its sign at margins of +-1e4.
    A loss is bounded below by zero: ``value >= 0`` (the certificate relies on it).
    """

    #: Name by which users ask for it, for example ``"logistic"``.
    name: ClassVar[str]
    #: True when targets are the two labels -1 and +1.
    is_classification: ClassVar[bool]
    #: Least L with loss'' <= L for a unit sample weight (``inf`` where there is none).
    smoothness: ClassVar[float]
    #: True when loss'' does not depend on z: one Newton step is exact.
    is_quadratic: ClassVar[bool] = False

    @property
    def coupled(self) -> int:
        """Number of successive samples whose predictions the loss couples; 0: all of them.

        Everything else is a sum over such groups of samples, and may be computed piece by piece.
        """
        return 1

    @abstractmethod
    def check_target(self, y: object) -> Array:
        """Return the targets as float64, or raise ValueError that names object and remedy."""

    @abstractmethod
    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i loss(y_i, z_i)."""

    @abstractmethod
    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the n_samples derivatives s_i loss'(y_i, z_i) with respect to z_i."""

    @abstractmethod
    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sup_z <u, z> - f(z), ``inf`` outside its domain.

        Where s_i = 0 the domain is u_i = 0.
        """

    @abstractmethod
    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i loss''(y_i, z_i) >= 0; at a kink the larger of the two one-sided values.

        Losses that couple predictions return a diagonal that bounds their Hessian from above.
        """


@runtime_checkable
class SupportsAlign(Protocol):
    """Losses with flat pieces, where one dual value u_i belongs to many predictions z_i."""

    def align(self, y: Array, prediction: Array, target: Array) -> Array:
        """Return, for each i, the point nearest target_i whose derivative is that at z_i."""
        ...


@runtime_checkable
class SupportsCoupling(Protocol):
    """Losses that couple predictions, whose Hessian is a diagonal less a product of few columns."""

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c (n_samples,) and K, sparse (n_samples, k): the Hessian is diag(c) - K K'."""
        ...
