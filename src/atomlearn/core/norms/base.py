"""VectorNorm: a norm of vectors that has one proximal map in three forms, ``prox_point``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Form, Lift, Norm, ProxPoint
from atomlearn.core.norms.forms import three_forms
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.vectors import to_float64


class VectorNorm(Parameters, Norm):
    """A gauge of vectors that knows the proximal map of step * gauge: the other two follow."""

    absolute = True

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

    def prox(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """Return argmin_x 1/2 ||x - w||^2 + step * gauge(x), in the dtype of w."""
        return self._mapped(w, step, "penalized")

    def prox_squared(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """Return argmin_x 1/2 ||x - w||^2 + (step / 2) * gauge(x)^2, in the dtype of w."""
        return self._mapped(w, step, "squared")

    def project(self, w: NDArray[Any], radius: float) -> NDArray[Any]:
        """Return the point of { x : gauge(x) <= radius } nearest to w, in the dtype of w."""
        return self._mapped(w, radius, "constrained")

    def _mapped(self, w: NDArray[Any], amount: float, form: Form) -> NDArray[Any]:
        point = self.prox_point(w, amount, form).point
        return point.astype(np.float32) if np.asarray(w).dtype == np.float32 else point


def checked_norm(owner: str, norm: Any) -> Norm:
    """Return one of the norms that a norm is made of; raise where it is none."""
    if not isinstance(norm, Norm):
        raise TypeError(
            f"{owner}: norm must be a norm object such as norms.KSupport(k=10), got "
            f"{type(norm).__name__}"
        )
    return norm


class Wrapper(VectorNorm):
    """A norm made of another one, ``norm``, as which it answers unless it says otherwise."""

    norm: Norm

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """As the norm inside."""
        return self.norm.absolute

    @property
    def over_columns(self) -> bool:  # type: ignore[override]
        """As the norm inside."""
        return self.norm.over_columns

    @property
    def proximal(self) -> bool:  # type: ignore[override]
        """As the norm inside."""
        return self.norm.proximal

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """Those of the norm inside."""
        return self.norm.thresholds(w, columns, n_features)

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, Norm]:
        """The same of the norm inside without them."""
        free, inner = self.norm.without(columns, n_features)
        return free, self._of(inner)

    def adapted(self, w: Array, power: float) -> Norm:
        """The same of the norm inside with adaptive weights."""
        return self._of(self.norm.adapted(w, power))

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """The same norm with the norm inside read."""
        return self._of(checked_norm(type(self).__name__, self.norm).on(n_features, shape))

    def with_names(self, names: Sequence[str]) -> Norm:
        """The same norm with names of columns in the norm inside replaced by their indices."""
        return self._of(self.norm.with_names(names))

    def restrict(self, columns: Columns, n_features: int) -> Norm | None:
        """The same of the restriction of the norm inside; None where it has none."""
        inner = self.norm.restrict(columns, n_features)
        return None if inner is None else self._of(inner)

    def lift(self, n_features: int) -> Lift | None:
        """That of the norm inside, with the same of the norm over it; None where it has none."""
        inner = self.norm.lift(n_features)
        return None if inner is None else replace(inner, norm=self._of(inner.norm))

    def _of(self, inner: Norm) -> Norm:
        """Return the same norm of another one."""
        return self if inner is self.norm else self.replaced(norm=inner)
