"""Regularizer: how a norm enters the objective, with its conjugate and its proximal map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import get_args

from atomlearn.core.interfaces import (
    Array,
    Columns,
    Form,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
    is_number,
    positive,
)
from atomlearn.core.interfaces.certificate import Excess

FORMS: tuple[str, ...] = get_args(Form)


def ridge_per_level(l1_ratio: float, form: Form) -> float:
    """Return tau / level for this share of the norm in the penalty, (1 - l1_ratio) / l1_ratio.

    For the penalty alpha * (l1_ratio * gauge + (1 - l1_ratio) / 2 * ||w||^2) the level is alpha *
    l1_ratio, and the ridge weight is tau = alpha * (1 - l1_ratio). ``form`` is the form of the
    penalty; with the form "constrained" only l1_ratio = 1 is valid.
    """
    if not (is_number(l1_ratio) and 0.0 < l1_ratio <= 1.0):
        raise ValueError(
            f"l1_ratio must be a number in (0, 1], the share of the norm in the penalty, got "
            f"{l1_ratio!r}; 1.0 means no ridge term"
        )
    if form == "constrained" and l1_ratio != 1.0:
        raise ValueError(
            f"form='constrained' needs l1_ratio=1.0, got {l1_ratio!r}; a radius has no alpha to "
            "share: use form='penalized' or form='squared'"
        )
    return (1.0 - l1_ratio) / l1_ratio


@dataclass(frozen=True, slots=True)
class Regularizer:
    """R(w) = amount * gauge(w), (amount / 2) * gauge(w)^2, or 0 where gauge(w) <= amount.

    Attributes
    ----------
    norm : Norm
        The gauge.
    form : Form
        "penalized", "squared" or "constrained".
    amount : float
        The level of the first two, the radius of the third.

    Examples
    --------
    >>> from atomlearn import norms, problem
    >>> problem.Regularizer(norms.L1(), "squared", 2.0).value(3.0)
    9.0
    """

    norm: Norm
    form: Form
    amount: float

    def __post_init__(self) -> None:
        """Raise unless norm, form and amount are valid."""
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {FORMS}, got {self.form!r}")
        if not isinstance(self.norm, Norm):
            raise TypeError(
                f"norm must be a Norm such as norms.KSupport(k=10), got {type(self.norm).__name__}"
            )
        name = "radius" if self.form == "constrained" else "level"
        positive(name, self.amount, f"for form={self.form!r}")

    def of(self, norm: Norm) -> Regularizer:
        """Return the regularizer with another norm, and the same form and amount."""
        return self if norm is self.norm else replace(self, norm=norm)

    def value(self, gauge: float) -> float:
        """Return R at a point of the gauge ``gauge``.

        For the form "constrained" it is 0 inside the ball of radius ``amount``, else infinite.
        """
        if self.form == "penalized":
            return self.amount * gauge
        if self.form == "squared":
            return 0.5 * self.amount * gauge * gauge
        return 0.0 if gauge <= self.amount * (1 + 1e-9) else math.inf

    def inside(self, weights: Array, gauge: float) -> Array:
        """Return the weights of a point, scaled down to the radius for the form "constrained".

        ``gauge`` is the gauge of the point; weights inside the ball are not changed.
        """
        outside = self.form == "constrained" and gauge > self.amount
        return weights * (self.amount / gauge) if outside else weights

    def conjugate(self, polar: float, gauge_bound: float, excess: Excess | None = None) -> float:
        """Return the conjugate R*(z) = sup <z, w> - R(w) over w with gauge(w) <= ``gauge_bound``.

        With p = ``polar``, which is gauge°(z), it is gauge_bound * max(p - level, 0) for the form
        "penalized", p^2 / (2 level) for "squared", and radius * p for "constrained".

        ``excess`` is the term E(t) that constraints on coefficients add; None without constraints.
        With it, the result is the minimum of R*(t) + E(t) over t >= p, where R*(t) is the formula
        above for p = t.
        """
        if excess is not None:
            best_polar = self._best(max(polar, 0.0), gauge_bound, excess)
            return self.conjugate(best_polar, gauge_bound) + excess.at(best_polar)
        if self.form == "squared":
            return 0.5 * polar * polar / self.amount
        if self.form == "constrained":
            return self.amount * max(polar, 0.0)
        beyond = polar - self.amount
        # A polar of NaN gives NaN, which proves no gap.
        return 0.0 if beyond <= 0 else gauge_bound * beyond

    def best_columns(self, scores: Scores, count: int, gauge_bound: float) -> Columns:
        """Return about ``count`` columns whose scores determine the conjugate R*(z), best first.

        ``scores`` are z = X'v, and ``gauge_bound`` is an upper bound on the gauge of the optimum.
        Without linear constraints the result is ``best_columns`` of the norm.
        """
        excess = self.norm.excess(scores)
        if excess is None or not excess.moves_scores:
            return self.norm.best_columns(scores, count)
        polar = excess.polar
        if self.form == "penalized" and polar > self.amount:
            # Duality gaps are computed with the dual point scaled so that its polar is the level.
            excess = excess.scaled(self.amount / polar)
            polar = self.amount
        # This call sets the multipliers of the constraints, which ``excess.columns`` needs.
        self.conjugate(polar, gauge_bound, excess)
        return excess.columns(count)

    def _best(self, polar: float, gauge_bound: float, excess: Excess) -> float:
        """Return the t >= ``polar`` that minimizes R*(t) + E(t), with R* and E as in ``conjugate``.

        ``excess`` is E. ``excess.best(start, constant, slope)`` minimizes E(t) + constant t +
        slope t^2 / 2 over t >= start. For the form "penalized", R*(t) is 0 up to the level, and has
        the slope ``gauge_bound`` beyond it.
        """
        if self.form == "squared":
            return excess.best(polar, 0.0, 1.0 / self.amount)
        if self.form == "constrained":
            return excess.best(polar, self.amount, 0.0)
        return excess.best(max(polar, self.amount), gauge_bound, 0.0)

    def multiplier(self, gauge: float, inner: float) -> float:
        """Return the lambda >= 0 for which z is in lambda * subdifferential of the gauge at w.

        ``gauge`` is gauge(w) at the optimum w, and ``inner`` is <z, w>.
        """
        if self.form == "penalized":
            return self.amount
        if self.form == "squared":
            return self.amount * gauge
        return max(inner, 0.0) / gauge if gauge > 0 else 0.0

    def prox_point(self, v: Array, step: float, tau: float = 0.0) -> ProxPoint:
        """Return argmin_x 1/2||x - v||^2 + step * (tau/2 ||x||^2 + R(x)) with its Jacobian.

        ``v`` (p,) is the point, ``step`` the step size, and ``tau`` the weight of the ridge term.
        Raise FloatingPointError if the point overflows: the solver then shortens its step, or keeps
        the last finite point.
        """
        if not (math.isfinite(step) and math.isfinite(v.sum())):
            raise FloatingPointError("a step of the solver is beyond the largest float")
        # Completing the square: the ridge term only multiplies the point v, and the amount of R, by
        # 1 / (1 + step * tau).
        shrink = 1.0 / (1.0 + step * tau)
        amount = self.amount if self.form == "constrained" else step * shrink * self.amount
        inner = self.norm.prox_point(v * shrink if tau else v, amount, self.form)
        if not tau:
            return inner

        def jacobian() -> ProxJacobian:
            """Return the Jacobian of the inner map, times 1 / (1 + step * tau)."""
            inner_jacobian = inner.jacobian()
            return ProxJacobian(
                inner_jacobian.diagonal * shrink,
                inner_jacobian.factors,
                inner_jacobian.coefficients * shrink,
            )

        return ProxPoint(inner.point, inner.gauge, jacobian)
