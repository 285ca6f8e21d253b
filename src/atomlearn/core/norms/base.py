"""VectorNorm: a norm of vectors that has one proximal map in three forms, ``prox_point``."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Form, Norm, ProxPoint
from atomlearn.core.norms.forms import three_forms
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.vectors import to_float64


class VectorNorm(Parameters, Norm):
    """A gauge of vectors that knows the proximal map of step * gauge: the other two follow."""

    @property
    def absolute(self) -> bool:
        """True where gauge(w) = gauge(|w|), growing with each |w_j|: what Nonnegative needs."""
        return True

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x), v float64, step >= 0 finite."""
        raise NotImplementedError

    def _last_step(self, v: Array) -> float:
        """Return the step from which on the gauge of that point is 0: the polar of v."""
        return self.polar(v)  # type: ignore[arg-type]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form``; a norm may know a faster way."""
        return three_forms(v, amount, form, self._penalized, self._last_step)

    def prox_point(self, w: NDArray[Any], amount: float, form: Form) -> ProxPoint:
        """One of the three maps in float64, with its gauge and (when called) its Jacobian."""
        value = float(amount)
        if not (math.isfinite(value) and value >= 0):
            name = "radius" if form == "constrained" else "step"
            raise ValueError(
                f"{type(self).__name__}: {name} must be finite and at least 0, got {amount!r}; "
                "check the step size or level that produced it"
            )
        return self._point(to_float64(w), value, form)


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
