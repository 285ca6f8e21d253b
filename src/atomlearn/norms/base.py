"""VectorNorm: a norm of vectors that has one proximal map in three forms, ``prox_point``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces.norm import Form, Norm, ProxPoint
from atomlearn.norms.parameters import Parameters, amount_of_prox
from atomlearn.norms.vectors import like, to_float64

Array = NDArray[np.float64]


class VectorNorm(Parameters, Norm):
    """A gauge of vectors with ``_point``, from which prox, prox_squared and project follow."""

    @property
    def absolute(self) -> bool:
        """True where gauge(w) = gauge(|w|), growing with each |w_j|: what Nonnegative needs."""
        return True

    @abstractmethod
    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at the float64 vector v, amount >= 0 finite."""

    def prox(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """argmin_x 1/2 ||x - w||^2 + step * gauge(x), in the dtype of w."""
        return like(self.prox_point(w, step, "penalized").point, w)

    def prox_squared(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """argmin_x 1/2 ||x - w||^2 + (step / 2) * gauge(x)^2, in the dtype of w."""
        return like(self.prox_point(w, step, "squared").point, w)

    def project(self, w: NDArray[Any], radius: float) -> NDArray[Any]:
        """argmin_x 1/2 ||x - w||^2 subject to gauge(x) <= radius, in the dtype of w."""
        return like(self.prox_point(w, radius, "constrained").point, w)

    def prox_point(self, w: NDArray[Any], amount: float, form: Form) -> ProxPoint:
        """One of the three maps in float64, with its gauge and (when called) its Jacobian."""
        name = "radius" if form == "constrained" else "step"
        return self._point(to_float64(w), amount_of_prox(type(self).__name__, name, amount), form)
