"""VectorNorm: a norm of vectors that has one proximal map in three forms, ``prox_point``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Form, Norm, ProxPoint
from atomlearn.core.norms.parameters import Parameters, amount_of_prox
from atomlearn.core.norms.vectors import like, to_float64


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


class Wrapper(VectorNorm):
    """A norm made of another one, ``norm``, as which it answers unless it says otherwise."""

    norm: Norm

    @property
    def absolute(self) -> bool:
        """As the norm inside."""
        return self.norm.absolute

    @property
    def over_columns(self) -> bool:
        """As the norm inside."""
        return self.norm.over_columns

    @property
    def proximal(self) -> bool:
        """As the norm inside."""
        return self.norm.proximal

    def labels(self, columns: Columns, n_features: int) -> Columns:
        """Those of the norm inside."""
        return self.norm.labels(columns, n_features)

    def zero_threshold(self, w: Array) -> float:
        """That of the norm inside."""
        return self.norm.zero_threshold(w)

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """Those of the norm inside."""
        return self.norm.thresholds(w, columns, n_features)

    def free(self, n_features: int) -> Columns:
        """Those of the norm inside."""
        return self.norm.free(n_features)

    def _check_inside(self) -> None:
        """Raise where the norm inside is no norm."""
        owner = type(self).__name__
        if not isinstance(self.norm, Norm):
            raise TypeError(
                f"{owner}: norm must be a norm object such as norms.KSupport(k=10), "
                f"got {type(self.norm).__name__}"
            )
