"""Asked: rows at several places, and what they answered at the last points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.problem.rounding import EPS
from atomlearn.storage.spread.rows import Sums

#: Points whose answers are kept: those of a line search and of the last price.
KEPT = 8
#: Share of the sum of magnitudes of slopes at which the slope along the intercept counts as 0; and
#: from which a quadratic tells the rest, with an error of its square.
LEVEL, NEAR = 4.0 * EPS, 1e-8
#: Rounds to the best intercept, at most: a few from near, a doubling each from far away.
MOST_ROUNDS = 200


@dataclass(slots=True)
class Look:
    """What the rows answered at a point.

    columns, weights : the point; shift : its best intercept; sums : see ``Rows.look``; price : see
    ``Rows.priced``, with the scores X'v, once they were asked for.
    """

    columns: Columns
    weights: Array
    shift: float
    sums: Sums
    price: Sums | None = None

    def is_at(self, columns: Columns, weights: Array) -> bool:
        """Return whether this is the point with these weights, none of them 0, in order."""
        used = np.flatnonzero(self.weights)
        order = used[np.argsort(self.columns[used], kind="stable")]
        return np.array_equal(self.columns[order], columns) and np.array_equal(
            self.weights[order], weights
        )

    @property
    def exact(self) -> bool:
        """Whether the intercept is the best one to rounding."""
        return not self.sums["free"] or abs(self.sums["slope"]) <= 1e-13 * self.sums["size"]

    @property
    def value(self) -> float:
        """F, at the intercept that the quadratic around this one says is the best."""
        slope, curve = self.sums["slope"], self.sums["curve"]
        more = 0.5 * slope * slope / curve if self.sums["free"] and curve > 0.0 else 0.0
        return float(self.sums["value"] - more)

    def places(self, columns: Columns) -> Columns | None:
        """Return where these columns stand in the Hessian; None where it lacks some."""
        if "hessian" not in self.sums:
            return None
        order = np.argsort(self.columns, kind="stable")
        at = np.searchsorted(self.columns, columns, sorter=order)
        found = order[np.minimum(at, order.size - 1)] if order.size else at
        return found if np.array_equal(self.columns[found], columns) else None

    def model(self, places: Columns) -> tuple[Array, Array]:
        """Return gradient and Hessian of F over some columns, the intercept minimized out."""
        pull, curve = self.sums["pull"][places], self.sums["curve"]
        gradient = self.sums["gradient"][places]
        H = self.sums["hessian"][np.ix_(places, places)]
        if self.sums["free"] and curve > 0.0:
            gradient = gradient - pull * (self.sums["slope"] / curve)
            H = H - np.outer(pull, pull / curve)
        return gradient, H

    @property
    def kept(self) -> tuple[float, float]:
        """How much of v above and below zero is kept so that it sums to 0, see without_surplus."""
        slope, size = self.sums["slope"], self.sums["size"]
        above, below = 0.5 * (size - slope), 0.5 * (size + slope)
        if not self.sums["free"] or slope == 0.0:
            return 1.0, 1.0
        return (below / above, 1.0) if above > below else (1.0, above / below)


class Asked(ABC):
    """Rows at several places that answer with sums, and the last answers.

    shape, dtype, names : of X; intercept : whether there is one; quadratic : whether f'' is
    constant.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: list[str] | None
    intercept: bool
    quadratic: bool

    def __init__(self) -> None:
        self.looks: list[Look] = []

    @property
    @abstractmethod
    def sent(self) -> tuple[int, int]:
        """Questions so far, and the bytes of them and of their answers."""

    @abstractmethod
    def ask(self, kind: str, columns: Columns, **given: Any) -> Sums:
        """Return the sums that all places answer with; see ``Rows`` for the kinds."""

    def look(self, columns: Columns, weights: Array, bend: bool) -> Look:
        """Return what is known of a point, with the best intercept; over columns if ``bend``."""
        used = np.flatnonzero(weights)
        used = used[np.argsort(columns[used], kind="stable")]
        point = columns[used], weights[used]
        for known in reversed(self.looks):
            fits = known.exact if not bend else known.places(columns) is not None
            if fits and known.is_at(*point):
                return known
        if not bend:
            columns, weights = point
        shift, sums = self._at_best(columns, weights, bend)
        look = Look(columns, weights.copy(), shift, sums)
        self.looks = [*self.looks[1 - KEPT :], look]
        return look

    def _at_best(self, columns: Columns, weights: Array, bend: bool) -> tuple[float, Sums]:
        """Return the best intercept by safeguarded Newton steps, and the sums there."""

        def at(b: float) -> Sums:
            found = self.ask("look", columns, weights=weights, shift=b, bend=bend)
            return found | {"free": self.intercept}

        b, low, high, stretch = self._guess(columns, weights), -math.inf, math.inf, 1.0
        best: tuple[float, Sums] | None = None
        for _ in range(MOST_ROUNDS if self.intercept else 1):
            sums = at(b)
            slope, size = sums["slope"], sums["size"]
            settled = best is not None and abs(slope) >= 0.5 * abs(best[1]["slope"])
            settled = settled and abs(slope) <= 1e-13 * size
            if best is None or abs(slope) < abs(best[1]["slope"]):
                best = b, sums
            if settled or abs(slope) <= (NEAR if bend else LEVEL) * size:
                break
            low, high = (b, high) if slope < 0 else (low, b)
            proposal = b - slope / sums["curve"] if sums["curve"] > 0 else math.nan
            if not (low < proposal < high and abs(proposal - b) <= 1e3 * stretch):
                proposal = 0.5 * (low + high)
                if not math.isfinite(proposal):
                    proposal, stretch = b - math.copysign(stretch, slope), 2.0 * stretch
            if proposal == b or abs(proposal) > 1e8:
                break
            b = proposal
        assert best is not None
        return best

    def _guess(self, columns: Columns, weights: Array) -> float:
        """Return where the best intercept of a point likely is, from the last look."""
        if not (self.intercept and self.looks):
            return 0.0
        last = self.looks[-1]
        curve, places = last.sums["curve"], last.places(columns)
        if places is None or not curve > 0.0 or np.setdiff1d(last.columns, columns).size:
            return last.shift
        move = weights - last.weights[places]
        slope = last.sums["slope"] + float(last.sums["pull"][places] @ move)
        return float(last.shift - slope / curve)

    def price(self, columns: Columns, weights: Array) -> Look:
        """Return the look at a point with its price, which has the scores of all columns."""
        look = self.look(columns, weights, False)
        if look.price is None:
            look.price = self.ask(
                "price", look.columns, weights=look.weights, shift=look.shift, kept=look.kept
            )
        return look
