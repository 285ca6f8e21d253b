"""Where on a line of targets y + t a one subset stays the best one, proved over all subsets.

The objective of each subset, at its ridge fit, is a quadratic in t. Those of subsets that a search
lists as near are compared with it exactly. For all others a search proves at one t that they are no
better than a bound; between two such t their objectives, which bend upward by a'a at the most, are
at least the chord of both bounds less a'a (t - t_1) (t_2 - t) / 2. Where that does not do, the
stretch is halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.base import clone

from atomlearn.core import Array, Columns, Problem, dense_part, with_amount
from atomlearn.estimators.subsets import SubsetRegressor
from atomlearn.findings.given import Given
from atomlearn.subsets.solve import best_subset, wanted_of

#: Searches on one line, sets that each may list, and its seconds.
MOST_SEARCHES = 100
MOST_SETS = 1000
SECONDS = 10.0
#: How exactly a search fits a subset, and more: a share of the squares of the targets.
FITTED = 1e-9


@dataclass
class SubsetLine:
    """The region of a line of targets y + t move on which one subset stays the best subset.

    Parameters
    ----------
    data : of squares
    problem : under the squared k-support norm, of weights that add up to 1
    columns, subset : of the subset, with the free ones and without them
    depth : how far above the objective of the subset, times n, others are listed
    """

    data: Given
    problem: Problem
    columns: Columns
    subset: Columns
    depth: float

    def _objective(self, columns: Columns) -> Array:
        X = self.data.projected(dense_part(self.problem.design, columns))
        ridge = self.data.y.size * self.problem.regularizer.amount * np.eye(columns.size)
        pull = X.T @ self._targets
        fitted = pull.T @ la.solve(X.T @ X + ridge, pull, assume_a="pos")
        (one, both), (_, two) = self._targets.T @ self._targets - fitted
        return np.array([two / 2, both, one / 2])

    def kept(self, move: Array, reach: float) -> tuple[Array, Array]:
        """Return the parts of the line on which the subset is the best, and the undecided parts.

        Both are intervals (m, 2) of t, of targets y + t move; beyond ``reach`` all is open.
        """
        # Of each subset that was listed: by how much its objective is above that of ours, as
        # coefficients of t^2, t, 1. For each t that was tried: the smallest one of all others.
        self._others: dict[bytes, Array] = {}
        self._bounds: dict[float, float] = {}
        self._move = move
        self._targets = self.data.projected(np.column_stack([self.data.y, self._move]))
        self._own = self._objective(self.subset)
        self._lost = FITTED * float(np.linalg.norm(self._targets, axis=0) @ [1.0, reach]) ** 2
        self._look(0.0)
        if not (self._where(0.0, 0.0) and self._proved(0.0, 0.0)):
            raise ValueError(
                "that no other subset is better was not proved; use a larger ridge, or fewer "
                "features"
            )
        stretches = [(-reach, 0.0), (0.0, reach)]
        known = []
        unknown = [(-np.inf, -reach), (reach, np.inf)]
        while stretches:
            where = self._where(*stretches.pop())
            if not where:
                continue
            low = where[0][0]
            high = where[-1][1]
            enough = len(self._bounds) >= MOST_SEARCHES or high - low < 1e-6 * reach
            if not enough:
                self._look(low)
                self._look(high)
            where, before = self._where(low, high), len(where)
            if self._proved(low, high):
                known += where
            elif enough:
                unknown += where
            elif len(where) == before:
                middle = 0.5 * (low + high)
                stretches += [(low, middle), (middle, high)]
            else:
                stretches += where
        return np.reshape(known, (-1, 2)), np.array(unknown)

    def _look(self, t: float) -> None:
        """Run a best-subset search at t; store near-optimal subsets and a bound for all others."""
        if t in self._bounds:
            return
        problem = replace(self.problem, y=self.data.y + t * self._move)
        within = self.depth / float(np.polyval(self._own, t))
        wanted = wanted_of(1e-9, within, MOST_SETS, SECONDS, None)
        found = best_subset(problem, self.subset.size, wanted, [self.subset])
        for near in found.near or ():
            key = near.columns.tobytes()
            if key not in self._others and not np.array_equal(near.columns, self.subset):
                self._others[key] = self._objective(near.columns) - self._own
        beyond = found.objective * (1.0 + within)
        self._bounds[t] = self.data.y.size * (beyond if found.near_complete else found.lower_bound)

    def _where(self, low: float, high: float) -> list[tuple[float, float]]:
        """Return the subintervals of (low, high) on which no listed subset is better."""
        if not self._others:
            return [(low, high)]
        rates = np.array(list(self._others.values())) - [0.0, 0.0, self._lost]
        roots = np.concatenate([np.roots(rate) for rate in rates])
        cuts = np.sort(roots[np.isreal(roots)].real)
        cuts = np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]])
        middles = 0.5 * (cuts[1:] + cuts[:-1])
        better = np.min([np.polyval(rate, middles) for rate in rates], axis=0) > 0
        starts = np.flatnonzero(better & ~np.append(False, better[:-1]))
        ends = np.flatnonzero(better & ~np.append(better[1:], False))
        return list(zip(cuts[starts].tolist(), cuts[ends + 1].tolist(), strict=True))

    def _proved(self, low: float, high: float) -> bool:
        """Whether no subset that was not listed is better anywhere between two searches."""
        if low not in self._bounds or high not in self._bounds:
            return False
        rooms = [
            self._bounds[t] - self._lost - float(np.polyval(self._own, t)) for t in (low, high)
        ]
        bend = 0.5 * float(np.sum(self._targets[:, 1] ** 2)) - self._own[0]
        width = high - low
        # With s = (t - low) / (high - low): room_1 (1 - s) + room_2 s - bend width^2 s (1 - s).
        bend = max(bend * width**2, 1e-300)
        s = np.clip(0.5 + 0.5 * (rooms[0] - rooms[1]) / bend, 0.0, 1.0)
        return bool(rooms[0] * (1 - s) + rooms[1] * s - bend * s * (1 - s) > 0)


def subset_line(
    estimator: SubsetRegressor, X: Any, y: Any, data: Given, spread: float
) -> SubsetLine | None:
    """Return the lines of a fitted model of single columns, of one size and ridge; else None."""
    chosen = estimator.cv_scores_ is not None
    if chosen or estimator.groups is not None or not estimator.fit_intercept:
        return None
    model = clone(estimator)
    problem = with_amount(model._problem(model._checked(X, y, data.weight))[0], estimator.l2_)
    subset = np.setdiff1d(estimator.selected_, data.free)
    return SubsetLine(data, problem, np.union1d(subset, data.free), subset, spread)
