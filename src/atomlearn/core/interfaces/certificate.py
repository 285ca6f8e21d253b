"""Certificate: how near the optimum a point is proved to be; Status: why a fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from atomlearn.core.interfaces.arrays import TINY, Array


class Status(StrEnum):
    """Why a fit ended, as a sentence with a remedy. Only CONVERGED claims the requested gap."""

    CONVERGED = "converged: the duality gap at the returned point proves the requested accuracy"
    TARGET_REACHED = "the target objective was reached; the gap tells how far the optimum can be"
    ITERATION_LIMIT = "iteration limit reached before the gap; raise max_iter or loosen the gap"
    PASS_LIMIT = "limit of passes over the data reached before the gap; raise it or loosen the gap"
    TIME_LIMIT = "time limit reached before the gap; raise it or loosen the gap"
    COLUMN_LIMIT = "the requested number of columns was reached"
    SELECTED = "the rule of feature generation stopped the search; the gap is that of its point"
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
        """True where the requested gap is proved, or the objective is zero up to rounding."""
        return self in (Status.CONVERGED, Status.PERFECT_FIT)


@dataclass(frozen=True, slots=True)
class Excess:
    """E(t) = sum_k width_k max(size_k - t price_k, 0), over the bounded sides of w.

    With gauge(w) = sum_j p_j |w_j| and l <= w <= u, and h the penalty as a function of the gauge,

        sup over l <= w <= u of <z, w> - h(gauge(w))  =  min over t >= polar of  h*(t) + E(t),

    where ``polar`` is that of the sides without a bound, and each bounded side (z_j > 0 with u_j,
    or z_j < 0 with l_j) has size |z_j|, price p_j and width u_j or -l_j: for fixed t the supremum
    is one over each coefficient by itself. [Rockafellar 1970, theorem 16.4 and corollary 28.3.1]
    """

    polar: float
    sizes: Array
    prices: Array
    widths: Array

    def at(self, t: float) -> float:
        """Return E(t)."""
        return float(self.widths @ np.maximum(self.sizes - t * self.prices, 0.0))

    def scaled(self, factor: float) -> Excess:
        """Return the Excess for the scores factor * z in place of z."""
        return Excess(factor * self.polar, factor * self.sizes, self.prices, self.widths)

    def best(self, start: float, constant: float, slope: float) -> float:
        """Return the t >= start that minimizes E(t) + constant t + (slope / 2) t^2, convex."""
        ends = self.sizes / self.prices
        order = np.argsort(ends)
        ends = np.concatenate([[start], np.maximum(ends[order], start)])
        falls = (self.widths * self.prices)[order]
        # From ends[k] on, -E' is what is left of the falls.
        left = np.concatenate([[falls.sum()], falls.sum() - np.cumsum(falls)])
        rising = constant + slope * ends >= left
        k = int(np.argmax(rising)) if rising.any() else ends.size - 1
        if k == 0 or not slope:
            return float(ends[k])
        return float(np.clip((left[k - 1] - constant) / slope, ends[k - 1], ends[k]))


@dataclass(frozen=True, slots=True)
class Certificate:
    """Objective F(w, b) and a proved bound gap >= F(w, b) - F* of the same point.

    polar : gauge°(z) of the scores z of the smooth part's negative gradient there, or the best
    known upper bound of it, from which the gap is made; search_gap : the gap if the best atom that
    was found is the best there is (norms whose oracle is a search), None where it is known to be;
    rounding : how much of the gap is the bound of what floating point may have lost in proving it;
    shortfall : how far below zero the gap was computed, which only rounding can explain; terms :
    weights of the ridge term, gauge, bounds on the polar and excess that it was computed from, as
    ``Problem.certificate`` takes them: a problem with another loss can be certified with them.
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
        """The gauge of the point, or the bound on it, that the objective is of."""
        return 0.0 if self.terms is None else self.terms[1]

    @property
    def closable(self) -> float:
        """The gap that more atoms can close: ``search_gap`` if the oracle is a search, else gap."""
        return self.gap if self.search_gap is None else self.search_gap

    def leaves_open(self, tolerance: float) -> bool:
        r"""Whether only the bounds of a search keep the gap above ``tolerance`` * \|objective\|.

        The search itself finds nothing more there, and further atoms will not close the gap.
        """
        enough = tolerance * abs(self.objective)
        return self.search_gap is not None and self.search_gap <= enough < self.gap

    def widened(self, slack: float, raised: float = 0.0) -> Certificate:
        """Return it with ``slack + raised`` added to the gaps, and ``raised`` to the objective."""
        slack += raised
        searched = None if self.search_gap is None else self.search_gap + slack
        bounds = self.objective + raised, self.gap + slack, self.polar, searched
        return Certificate(*bounds, self.rounding + slack, self.shortfall, self.terms)

    @property
    def relative_gap(self) -> float:
        """Return gap / max(|objective|, smallest normal number)."""
        return self.gap / max(abs(self.objective), TINY)
