"""Certificate: how near the optimum a point is proved to be; Status: why a fit ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from atomlearn._support import TINY, Array, Columns


class Status(StrEnum):
    """Why a fit ended, as a sentence with a remedy. Only CONVERGED claims the requested gap."""

    CONVERGED = "converged: the duality gap at the returned point proves the requested accuracy"
    TARGET_REACHED = "the target objective was reached; the gap tells how far the optimum can be"
    ITERATION_LIMIT = "iteration limit reached before the gap; raise max_iter or loosen the gap"
    PASS_LIMIT = "limit of passes over the data reached before the gap; raise it or loosen the gap"
    TIME_LIMIT = "time limit reached before the gap; raise it or loosen the gap"
    COLUMN_LIMIT = "the requested number of columns was reached"
    SELECTED = "the rule of feature generation stopped the search; the gap is that of its point"
    SMALL_CHANGE = (
        "a step changed the objective by less than the rule allows, which proves nothing; the gap "
        "tells how far the optimum can be"
    )
    STOPPED_BY_CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard; this is the best point found until then"
    PERFECT_FIT = (
        "converged: the objective is zero up to rounding, so the fit is perfect and nothing is "
        "left to reduce; the gap is what rounding leaves open"
    )
    STALLED = (
        "no further progress is possible in double precision; the gap is what could be proved. "
        "Rescale the columns or the target, or ask for a looser gap"
    )
    SEARCH_RELATIVE = (
        "the search for better atoms, which is NP-hard, finds none beyond the accuracy asked for, "
        "and no bound proves that there are none; gap is what could be proved, search_gap what "
        "it would be if the search was exhaustive"
    )

    @property
    def is_converged(self) -> bool:
        """Whether the requested gap is proved, or the objective is zero up to rounding."""
        return self in (Status.CONVERGED, Status.PERFECT_FIT)


class Excess(ABC):
    """E(t): the term that constraints on coefficients add to the conjugate of a penalty.

    Let gauge(w) be the value of the norm, h the penalty as a function of the gauge, and C the set
    of coefficients that satisfy the constraints. Then

        sup over w in C of <z, w> - h(gauge(w))  =  min over t >= polar of  h*(t) + E(t),

    where z are the scores, and ``polar`` is the smallest t for which E(t) is finite. [Rockafellar
    1970, theorem 16.4 and corollary 28.3.1]
    """

    #: Whether the multipliers of the constraints change the scores by which columns are chosen.
    moves_scores: ClassVar[bool] = False
    polar: float

    @abstractmethod
    def at(self, t: float) -> float:
        """Return E(t), or a bound on it, for a ``t`` that ``best`` returned, or a larger one."""

    @abstractmethod
    def scaled(self, factor: float) -> Excess:
        """Return the Excess for the scores factor * z in place of z."""

    @abstractmethod
    def repriced(self, factor: float) -> Excess:
        """Return the Excess for the gauge factor * gauge in place of gauge."""

    @abstractmethod
    def best(self, start: float, constant: float, slope: float) -> float:
        """Return the t >= ``start`` that minimizes E(t) + constant t + (slope / 2) t^2, convex.

        From ``start`` on, the last two terms are the conjugate h*(t) of the penalty, or a bound on
        it, up to a constant.
        """

    def columns(self, count: int) -> Columns:
        """Return about ``count`` columns that E depends on, if it ``moves_scores``."""
        raise NotImplementedError


@dataclass(frozen=True)
class BoxExcess(Excess):
    """E(t) = sum_k width_k max(size_k - t price_k, 0), over the bounded sides of w.

    This is for gauge(w) = sum_j p_j |w_j| and bounds l <= w <= u. Each bounded side (z_j > 0 with
    u_j, or z_j < 0 with l_j) has size |z_j|, price p_j and width u_j or -l_j. For fixed t the
    supremum separates over the coefficients.

    Attributes
    ----------
    polar : float
        The polar over the sides without a bound.
    sizes, prices, widths : (n_sides,)
        Of each bounded side.
    """

    polar: float
    sizes: Array
    prices: Array
    widths: Array

    def at(self, t: float) -> float:
        """Return E(t)."""
        return float(self.widths @ np.maximum(self.sizes - t * self.prices, 0.0))

    def scaled(self, factor: float) -> BoxExcess:
        """Return the Excess for the scores factor * z in place of z."""
        return BoxExcess(factor * self.polar, factor * self.sizes, self.prices, self.widths)

    def repriced(self, factor: float) -> BoxExcess:
        """Return the Excess for the gauge factor * gauge in place of gauge."""
        return replace(self, polar=self.polar / factor, prices=factor * self.prices)

    def best(self, start: float, constant: float, slope: float) -> float:
        """Return the t >= ``start`` that minimizes E(t) + constant t + (slope / 2) t^2, convex.

        E is piecewise linear, so the derivative is linear between its kinks. The minimum is at the
        first kink after which the derivative is >= 0, or between that kink and the one before it.
        """
        # Sides of price 0 add the same for every t.
        has_price = self.prices > 0.0
        kinks = self.sizes[has_price] / self.prices[has_price]
        order = np.argsort(kinks)
        kinks = np.concatenate([[start], np.maximum(kinks[order], start)])
        slope_changes = (self.widths * self.prices)[has_price][order]
        # remaining[k] is -E'(t) for t just above kinks[k].
        remaining = np.concatenate(
            [[slope_changes.sum()], slope_changes.sum() - np.cumsum(slope_changes)]
        )
        # The derivative after kink k is constant + slope t - remaining[k]. Kink k is the first one
        # with a derivative >= 0. The derivative may be zero at a point before it, unless it is
        # constant between kinks (slope 0).
        is_increasing = constant + slope * kinks >= remaining
        k = int(np.argmax(is_increasing)) if is_increasing.any() else kinks.size - 1
        if k == 0 or not slope:
            return float(kinks[k])
        return float(np.clip((remaining[k - 1] - constant) / slope, kinks[k - 1], kinks[k]))


@dataclass(frozen=True, slots=True)
class Certificate:
    """Objective F(w, b) and a proved bound gap >= F(w, b) - F* of the same point.

    Attributes
    ----------
    polar : float
        gauge°(z) at the scores z, the negative gradient of the smooth part, or the upper bound on
        it that the gap uses.
    search_gap : float, optional
        For norms whose best atom is searched heuristically, the gap if the atom that was found is
        the best, else None.
    rounding : float
        The part of the gap that bounds rounding errors.
    shortfall : float
        How far the computed gap was below zero, which only rounding can explain.
    terms : tuple[Array, float, tuple[float, float], Excess | None], optional
        Arguments of ``certify`` for this point: weights, gauge, bounds on the polar, and excess.
        They allow a problem with another loss to be certified too.
    """

    objective: float
    gap: float
    polar: float
    search_gap: float | None = None
    rounding: float = 0.0
    shortfall: float = 0.0
    terms: tuple[Array, float, tuple[float, float], Excess | None] | None = None

    @property
    def gauge(self) -> float:
        """The gauge of the point, or the upper bound on it that the objective uses."""
        return 0.0 if self.terms is None else self.terms[1]

    @property
    def closable(self) -> float:
        """The gap that more atoms can close: ``search_gap`` if atoms are searched, else gap."""
        return self.gap if self.search_gap is None else self.search_gap

    def leaves_open(self, tolerance: float) -> bool:
        r"""Whether only the bounds of a search keep the gap above ``tolerance`` * \|objective\|.

        The search itself finds nothing more there, and further atoms will not close the gap.
        """
        allowed = tolerance * abs(self.objective)
        return self.search_gap is not None and self.search_gap <= allowed < self.gap

    def widened(self, slack: float, raised: float = 0.0) -> Certificate:
        """Return the certificate with ``slack + raised`` added to the gaps, ``raised`` to F.

        ``slack`` is a bound on rounding errors, and ``raised`` an increase of the objective.
        """
        slack += raised
        searched = None if self.search_gap is None else self.search_gap + slack
        return replace(
            self,
            objective=self.objective + raised,
            gap=self.gap + slack,
            search_gap=searched,
            rounding=self.rounding + slack,
        )

    @property
    def relative_gap(self) -> float:
        """The gap divided by abs(objective), or by the smallest normal number if that is larger."""
        return self.gap / max(abs(self.objective), TINY)
