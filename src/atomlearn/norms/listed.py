"""ListedGroups: the group norm over lists that may share features; best lists found by bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.interfaces.design import Columns, Scores, SupportsBounds
from atomlearn.norms.expansion import LiftedScores, Selection
from atomlearn.norms.groups import Groups

Array = NDArray[np.float64]

#: Sums of squares are rounded: what is computed must not exceed its bound.
ROUNDING = 1e-12
_EPS = float(np.finfo(np.float64).eps)


@dataclass(slots=True)
class Looked:
    """What a search computed: ``scored`` of ``features`` scores, ``rated`` of ``sets`` lists."""

    features: int = 0
    scored: int = 0
    sets: int = 0
    rated: int = 0

    @property
    def skipped(self) -> float:
        """Share of the scores that were not computed."""
        return 1.0 - self.scored / self.features if self.features else 0.0


class BoundedRatings:
    """||z_B|| / weight_B of lists B: bounds of all, and the values of those that can be among the
    best. What has been computed is kept for the next question about the same scores.
    """

    def __init__(
        self, base: Scores, bounds: Array, members: Columns, starts: Columns, weights: Array
    ) -> None:
        self.base, self.members, self.starts, self.weights = base, members, starts, weights
        squares = bounds * bounds
        slack = 1.0 + ROUNDING + _EPS * np.diff(starts)
        self.norms = np.sqrt(np.add.reduceat(squares, starts[:-1])) * slack
        #: Lists whose entry of ``norms`` is no bound but the norm itself.
        self.known = np.zeros(weights.size, dtype=bool)
        self._features: Columns = np.zeros(0, dtype=np.int64)
        self._values: Array = np.zeros(0)

    def best(self, count: int) -> Columns:
        """Return the ``count`` lists of largest rating, best first, ties by the smaller number.

        The lists that look best are computed, until those that look best are known.
        """
        wanted = min(count, self.known.size)
        batch = max(1, wanted)
        while True:
            ratings = self.norms / self.weights
            best, _ = _kernels.top_magnitude(ratings, wanted)
            if self.known[best].all():
                return best
            ahead, _ = _kernels.top_magnitude(ratings, min(batch, self.known.size))
            self._compute(ahead[~self.known[ahead]])
            batch *= 2

    def ratings(self, lists: Columns) -> Array:
        """Return the ratings of lists that ``best`` has returned."""
        found: Array = self.norms[lists] / self.weights[lists]
        return found

    def _compute(self, lists: Columns) -> None:
        """Replace the bounds of these lists by their norms."""
        sizes = self.starts[lists + 1] - self.starts[lists]
        ends = np.cumsum(sizes)
        entries = np.arange(int(ends[-1])) + np.repeat(self.starts[lists] - (ends - sizes), sizes)
        features = self.members[entries]
        missing = np.setdiff1d(features, self._features)
        if missing.size:
            values = np.concatenate([self._values, self.base.at(missing)])
            known = np.concatenate([self._features, missing])
            order = np.argsort(known, kind="stable")
            self._features, self._values = known[order], values[order]
        z = self._values[np.searchsorted(self._features, features)]
        self.norms[lists] = np.sqrt(np.add.reduceat(z * z, ends - sizes))
        self.known[lists] = True

    def look(self, n_features: int) -> Looked:
        """Return what has been computed so far."""
        rated = int(np.count_nonzero(self.known))
        return Looked(n_features, self._features.size, self.known.size, rated)


class ListedGroups(Groups):
    """sum_B weight_B ||u_B||_2 over the memberships of lists, the norm that latent groups lift to.

    Where the scores have bounds that cost less than the scores themselves, only lists that can be
    among the best are computed; the answers are the same. ``looked`` tells what the last search
    computed (tests and curiosity).
    """

    looked = Looked()

    def reweighted(self, weights: Array) -> ListedGroups:
        """Return the same groups with other weights."""
        return ListedGroups(self.groups, weights)

    def bounded(self, scores: Scores) -> BoundedRatings | None:
        """Return the bounds of all lists, the same object for the same scores; None: none."""
        if not isinstance(scores, LiftedScores) or not isinstance(scores.expansion, Selection):
            return None
        known = scores.bounded.get(id(self))
        if known is not None and known[0] is self:
            found: BoundedRatings = known[1]
            return found
        if not isinstance(scores.base, SupportsBounds):
            return None
        bounds = scores.base.bounds(scores.expansion.members)
        if bounds is None:
            return None
        made = self._ratings_of(scores, bounds)
        scores.bounded[id(self)] = (self, made)
        return made

    def _ratings_of(self, scores: LiftedScores, bounds: Array) -> BoundedRatings:
        partition, weights = self.parts(scores.n_columns)
        ones = np.ones(partition.n_groups) if weights is None else weights
        ends = np.cumsum(partition.sizes)
        starts = np.concatenate([[0], ends]).astype(np.int64)
        members: Columns = scores.expansion.members  # type: ignore[union-attr]
        return BoundedRatings(scores.base, bounds, members, starts, ones)

    def polar(self, scores: Scores) -> float:
        """max_B ||z_B||_2 / weight_B"""
        bounded = self.bounded(scores)
        if bounded is None:
            return super().polar(scores)
        best = bounded.best(1)
        self.looked = bounded.look(scores.base.n_columns)  # type: ignore[attr-defined]
        return float(bounded.ratings(best).max(initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Whole groups of largest rating, until there are ``count`` columns."""
        bounded = self.bounded(scores)
        if bounded is None:
            return super().best_columns(scores, count)
        partition, _ = self.parts(scores.n_columns)
        if count <= 0 or not partition.n_groups:
            return np.zeros(0, dtype=np.int64)
        chosen = bounded.best(1)
        filled = np.cumsum(partition.sizes[chosen])
        # Twice as many each time: the lists computed so far are not computed again.
        while filled[-1] < count and filled.size < partition.n_groups:
            chosen = bounded.best(2 * filled.size)
            filled = np.cumsum(partition.sizes[chosen])
        self.looked = bounded.look(scores.base.n_columns)  # type: ignore[attr-defined]
        return partition.members(chosen[: int(np.searchsorted(filled, count)) + 1])
