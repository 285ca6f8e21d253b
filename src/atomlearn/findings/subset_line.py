"""The part of a line of targets y + t move on which a subset is proved to be the best one.

The objective of each subset, at its ridge fit, is a quadratic in t. A search at one t lists the
near-best subsets. Their objectives are compared with that of the selected subset exactly, for all
t. For all other subsets the search proves a lower bound at this t. Let a be ``move`` after
projecting out the unpenalized columns. Then a'a bounds the second derivative of every objective. So
between searches at t_1 and t_2, the objective of an unlisted subset is at least

    (linear interpolation of both bounds)  -  a'a (t - t_1) (t_2 - t) / 2.

If that is too small to prove anything, the interval is halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.base import clone

from atomlearn.core import Array, Columns, Problem, changed, dense_part
from atomlearn.estimators.subsets import SubsetRegressor
from atomlearn.findings.one_step import FitData
from atomlearn.subsets.solve import best_subset, search_settings

#: Limits for one line: the number of searches, the number of subsets that each search lists, and
#: the time limit of each in seconds.
MOST_SEARCHES = 100
MOST_SETS = 1000
SECONDS = 10.0
#: Bound on the errors of a search's fits, as a share of the squares of the targets.
FITTED = 1e-9


@dataclass
class SubsetLine:
    """The part of a line of targets y + t move on which one subset remains the best subset.

    Attributes
    ----------
    data : FitData
        The data, for the squared loss.
    problem : Problem
        The best-subset problem, with sample weights of sum 1.
    subset : Columns
        The selected columns, increasing.
    columns : Columns
        The selected and the unpenalized columns, increasing.
    depth : float
        A search lists the subsets with n objective <= n objective of ``subset`` + depth.
    """

    data: FitData
    problem: Problem
    columns: Columns
    subset: Columns
    depth: float

    def _objective(self, columns: Columns) -> Array:
        """Return the minimum of n times the objective on these columns, as a quadratic in t.

        The result has the coefficients of t^2, t and 1. The minimum is
        (z'z - z'X (X'X + ridge)^-1 X'z) / 2 with z = y + t move.
        """
        # ``_targets`` (n, 2) has y and ``move``, and X these columns, all after projecting out the
        # unpenalized columns. The products below have a row and a column for y, then for ``move``.
        X = self.data.projected(dense_part(self.problem.design, columns))
        ridge = self.data.y.size * self.problem.regularizer.amount * np.eye(columns.size)
        scores = X.T @ self._targets
        fitted = scores.T @ la.solve(X.T @ X + ridge, scores, assume_a="pos")
        (constant, linear), (_, quadratic) = self._targets.T @ self._targets - fitted
        return np.array([quadratic / 2, linear, constant / 2])

    def same_selection(self, move: Array, reach: float) -> tuple[Array, Array]:
        """Return the intervals of t on which the subset is proved the best, and undecided ones.

        Both are (m, 2), for targets y + t move; every abs(t) > ``reach`` is undecided.
        """
        # ``_differences``: for each listed subset, its objective minus that of our subset, as
        # coefficients of t^2, t, 1. ``_bounds``: for each t that was searched, a lower bound on the
        # objective of all subsets that are not listed.
        self._differences: dict[bytes, Array] = {}
        self._bounds: dict[float, float] = {}
        self._move = move
        self._targets = self.data.projected(np.column_stack([self.data.y, self._move]))
        self._quadratic = self._objective(self.subset)
        self._rounding = FITTED * float(np.linalg.norm(self._targets, axis=0) @ [1.0, reach]) ** 2
        self._search(0.0)
        if not (self._undominated(0.0, 0.0) and self._proved(0.0, 0.0)):
            raise ValueError(
                "that no other subset is better was not proved; use a larger ridge, or fewer "
                "features"
            )
        intervals_to_do = [(-reach, 0.0), (0.0, reach)]
        proved = []
        undecided = [(-np.inf, -reach), (reach, np.inf)]
        while intervals_to_do:
            intervals = self._undominated(*intervals_to_do.pop())
            if not intervals:
                continue
            low = intervals[0][0]
            high = intervals[-1][1]
            is_last = len(self._bounds) >= MOST_SEARCHES or high - low < 1e-6 * reach
            if not is_last:
                self._search(low)
                self._search(high)
            intervals, n_before = self._undominated(low, high), len(intervals)
            # Searches at both ends may list further subsets, which cut the interval. If nothing was
            # cut and nothing proved, halve it.
            if self._proved(low, high):
                proved += intervals
            elif is_last:
                undecided += intervals
            elif len(intervals) == n_before:
                middle = 0.5 * (low + high)
                intervals_to_do += [(low, middle), (middle, high)]
            else:
                intervals_to_do += intervals
        return np.reshape(proved, (-1, 2)), np.array(undecided)

    def _search(self, t: float) -> None:
        """Run a best-subset search at t; store near-best subsets and a lower bound for all others.

        The near-best subsets are stored as quadratics in t: their objective minus that of our
        subset.
        """
        if t in self._bounds:
            return
        problem = replace(self.problem, y=self.data.y + t * self._move)
        # List subsets whose objective is at most 1 + within times that of our subset.
        within = self.depth / float(np.polyval(self._quadratic, t))
        request = search_settings(1e-9, within, MOST_SETS, SECONDS, None)
        result = best_subset(problem, self.subset.size, request, [self.subset])
        for subset in result.near or ():
            key = subset.columns.tobytes()
            if key not in self._differences and not np.array_equal(subset.columns, self.subset):
                self._differences[key] = self._objective(subset.columns) - self._quadratic
        limit = result.objective * (1.0 + within)
        self._bounds[t] = self.data.y.size * (limit if result.near_complete else result.lower_bound)

    def _undominated(self, low: float, high: float) -> list[tuple[float, float]]:
        """Return the subintervals of (low, high) on which no listed subset is better.

        The other objectives minus ours are quadratics in t; they change sign only at their roots.
        """
        if not self._differences:
            return [(low, high)]
        # A subset that is worse by at most the rounding error counts as better.
        differences = np.array(list(self._differences.values())) - [0.0, 0.0, self._rounding]
        roots = np.concatenate([np.roots(each) for each in differences])
        cuts = np.sort(roots[np.isreal(roots)].real)
        cuts = np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]])
        middles = 0.5 * (cuts[1:] + cuts[:-1])
        # Between two neighboring roots all signs are constant: test the middle, then join
        # neighbors.
        is_best = np.min([np.polyval(each, middles) for each in differences], axis=0) > 0
        starts = np.flatnonzero(is_best & ~np.append(False, is_best[:-1]))
        ends = np.flatnonzero(is_best & ~np.append(is_best[1:], False))
        return list(zip(cuts[starts].tolist(), cuts[ends + 1].tolist(), strict=True))

    def _proved(self, low: float, high: float) -> bool:
        """Return whether no unlisted subset is better anywhere between the searches at both ends.

        low, high : the ends, where a search must have been run.
        """
        if low not in self._bounds or high not in self._bounds:
            return False
        margins = [
            self._bounds[t] - self._rounding - float(np.polyval(self._quadratic, t))
            for t in (low, high)
        ]
        curvature = 0.5 * float(np.sum(self._targets[:, 1] ** 2)) - self._quadratic[0]
        width = high - low
        # With s = (t - low) / width, the margin at t is at least
        # margins[0] (1 - s) + margins[1] s - curvature width^2 s (1 - s). The minimum over s in
        # [0, 1] is at the s below.
        curvature = max(curvature * width**2, 1e-300)
        s = np.clip(0.5 + 0.5 * (margins[0] - margins[1]) / curvature, 0.0, 1.0)
        return bool(margins[0] * (1 - s) + margins[1] * s - curvature * s * (1 - s) > 0)


def subset_line(
    estimator: SubsetRegressor, X: Any, y: Any, data: FitData, dispersion: float
) -> SubsetLine | None:
    """Return the ``SubsetLine`` of a fitted model.

    None if the model searched over sizes, has groups of columns, or has no intercept.

    X, y : the data of the fit. data : the same, checked. dispersion : the noise variance, which
    sets how many near-best subsets each search lists. ``estimator`` is the fitted estimator.
    """
    is_searched = estimator.cv_scores_ is not None
    if is_searched or estimator.groups is not None or not estimator.fit_intercept:
        return None
    model = clone(estimator)
    problem = changed(model._problem(model._checked(X, y, data.weight))[0], amount=estimator.l2_)
    subset = np.setdiff1d(estimator.selected_, data.free)
    return SubsetLine(data, problem, np.union1d(subset, data.free), subset, dispersion)
