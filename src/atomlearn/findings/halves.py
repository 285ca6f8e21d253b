"""What many parts of the rows select: a model of ours is fitted to all of them at once.

Paths share each reading of the data; those of a lasso over an array in memory walk in lockstep.

Between two breakpoints the solution moves along a line. With A the columns in use, s the signs of
their scores, and rows and columns centered over the part,

    w = (A'A)^-1 s,  u = A w:  scores of A fall like lambda, those of x_j by x_j'u,

and the next breakpoint is where another score reaches lambda, or a coefficient of A zero. One
product X'U moves all parts to their next breakpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.core.interfaces import Array, Mask, Rows
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.pool import Pool
from atomlearn.core.solvers.schedule import drive
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.paths import NumberOfFeatures, Settings
from atomlearn.problem import Problem
from atomlearn.result import Result

#: Multiplications of all steps, and numbers in use, up to which halves of a lasso walk in lockstep:
#: 500 x 3,000 with 38 columns takes a fifth of what paths do, 1000 x 20,000 with 100 three times.
WORK_OF_WALKS = 2**27


def own_problem(model: Any, X: Any, y: NDArray[Any]) -> Problem | None:
    """Return what a model of ours minimizes for X and y, where that is one fit of plain columns."""
    if type(model) not in (AtomicRegressor, AtomicClassifier) or y.ndim != 1:
        return None
    if model.features != "linear" or model.relax or model.adaptive or model.form == "constrained":
        return None
    data = model._checked(X, y, None)
    return model._problems(data, model.norm, 1.0)[0] if len(data.targets) == 1 else None


def masks_of_parts(
    model: Any,
    X: Any,
    y: NDArray[Any],
    parts: Sequence[Rows],
    levels: Array,
    most: int | None,
    walks: bool,
) -> list[Mask] | None:
    """Return the columns that each part of the rows selects at any of the levels.

    None where the model is not one that can be fitted to several parts at once.

    Parameters
    ----------
    model : estimator, X, y : its data, parts : rows of each part.
    levels : weights of the penalty, falling.
    most : the first so many columns of each path; walks : whether columns in use between two of the
    levels may count.
    """
    model = clone(model)
    problem = own_problem(model, X, y)
    if problem is None or not model._settings().shares_levels(problem):
        return None
    masks, left = [np.zeros(0, dtype=bool)] * len(parts), list(range(len(parts)))
    walks = walks and _is_lasso(problem) and isinstance(X, np.ndarray) and levels.size > 1
    # The systems of all parts are solved afresh at each step.
    n_parts = len(parts)
    if walks and most and most * max(X.size, n_parts * max(most**2, len(y))) <= WORK_OF_WALKS:
        array, ends = np.asarray(X, dtype=np.float64), (levels[0], levels[-1])
        how = problem.fit_intercept, model.tol
        found, sure = first_columns(array, problem.y, parts, most, *ends, *how)
        masks, left = list(found), np.flatnonzero(~sure).tolist()
    if not left:
        return masks
    results = _together(problem, [parts[k] for k in left], levels, most, model._settings())
    for k, path in zip(left, results, strict=True):
        masks[k] = _first(path, problem.design.shape[1], most)
    return masks


def _is_lasso(problem: Problem) -> bool:
    """Whether it is least squares with equal weights and the plain l1 norm."""
    weights = l1_weights(problem.regularizer.norm, problem.design.shape[1])
    plain = weights is not None and bool((weights == 1.0).all())
    equal = np.ptp(problem.weight) == 0 and problem.loss.name == "squared"
    unscaled = problem.regularizer.form == "penalized" and not problem.tau
    return plain and equal and unscaled and problem.free is None and problem.offset is None


def _together(
    problem: Problem, parts: Sequence[Rows], levels: Array, most: int | None, settings: Settings
) -> list[list[Result]]:
    """Return the results of paths that share every reading, each ended at ``most`` columns."""
    end, waiting = None if most is None else NumberOfFeatures(most), []
    for rows, pool in zip(parts, Pool(problem).of_each(len(parts)), strict=True):
        weight = problem.weight * np.bincount(rows, minlength=problem.y.size)
        weight *= problem.weight.sum() / weight.sum()
        reached = None if end is None else end.begin()
        part = replace(problem, weight=weight)
        waiting.append(settings.task(part, levels, pool, reached=reached))
    if drive(problem.design, waiting):
        raise KeyboardInterrupt("stability selection was interrupted")
    return [task.results for task in waiting]


def _first(results: Sequence[Result], n_columns: int, most: int | None) -> Mask:
    """Return the columns of any of these levels; the first ones, of the largest coefficients."""
    found = np.zeros(n_columns, dtype=bool)
    for result in results:
        new = result.columns[~found[result.columns]]
        room = new.size if most is None else most - int(found.sum())
        if new.size > room:
            sizes = np.zeros(n_columns)
            sizes[result.columns] = np.abs(result.weights)
            new = new[np.argsort(-sizes[new], kind="stable")[:room]]
        found[new] = True
        if most is not None and int(found.sum()) >= most:
            break
    return found


def first_columns(
    X: Array,
    y: Array,
    parts: Sequence[Rows],
    most: int,
    top: float,
    bottom: float,
    centered: bool,
    tolerance: float,
) -> tuple[Mask, Mask]:
    """Return (n_parts, p): the columns in use between two levels, and which walks may be believed.

    Parameters
    ----------
    X, y : (n, p), (n,)
    parts : the rows of each.
    most : the walk of a part ends at so many columns, the first ones.
    top, bottom : levels of  1/(2m) ||y - X w - b||^2 + level ||w||_1  over the m rows of a part.
    centered : whether there is an intercept b.
    tolerance : relative error of scores from which a walk is not believed.

    References
    ----------
    M. Osborne, B. Presnell, B. Turlach. A new approach to variable selection in least squares
    problems. IMA Journal of Numerical Analysis 20 (2000) 389-403. B. Efron, T. Hastie,
    I. Johnstone, R. Tibshirani. Least angle regression. Annals of Statistics 32 (2004) 407-499.
    """
    walk = _Walk(X, y, parts, most, top, bottom, centered)
    walk.go(X, most)
    return walk.found, walk.checked(X, tolerance)


class _Walk:
    """All parts on their way; h counts parts, k places of columns in use, 0 beyond the last one.

    inside (h, n), sizes (h,) : rows of a part; level, top, bottom (h,) : of sums, not means;
    residual (h, n), scores (h, p), found (h, p); columns (h, k), -1 where there is none; signs,
    weights (h, k); gram (h, k, k), the identity where there is none; block (h, k, n).
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        parts: Sequence[Rows],
        most: int,
        top: float,
        bottom: float,
        centered: bool,
    ) -> None:
        (n, p), h = X.shape, len(parts)
        self.inside, self.centered = np.zeros((h, n)), centered
        for row, rows in zip(self.inside, parts, strict=True):
            row[rows] = 1.0
        self.sizes = self.inside.sum(axis=1)
        self.residual = self._centered(self.inside * y, np.arange(h))
        self.scores = self.residual @ X
        self.level = np.abs(self.scores).max(axis=1)
        self.top, self.bottom = top * self.sizes, bottom * self.sizes
        self.found = np.zeros((h, p), dtype=bool)
        self.columns = np.full((h, most), -1)
        self.signs, self.weights = np.zeros((h, most)), np.zeros((h, most))
        self.gram = np.tile(np.eye(most), (h, 1, 1))
        self.block = np.zeros((h, most, n))
        self._enter(X, np.arange(h), np.argmax(np.abs(self.scores), axis=1))

    def _centered(self, values: Array, parts: Rows) -> Array:
        """Return values of the rows of these parts (m, n), centered where there is an intercept."""
        if self.centered:
            values -= self.inside[parts] * (values.sum(axis=1) / self.sizes[parts])[:, None]
        return values

    def go(self, X: Array, most: int) -> None:
        """Walk until each part has ``most`` columns, or is at its last level."""
        dropped, rough = np.full(len(self.level), -1), X.astype(np.float32)
        live = self.level > self.bottom
        for _ in range(20 * most):
            full = (self.columns >= 0).all(axis=1)
            self._note(np.flatnonzero(full))
            going = np.flatnonzero(live & ~full & (self.found.sum(axis=1) < most))
            if not going.size:
                return
            try:
                entering, leaving = self._step(rough, going, dropped[going])
            except np.linalg.LinAlgError:
                self.residual[going] = np.nan  # columns that depend on each other: not believed
                return
            dropped[:] = -1
            drops, enters = leaving >= 0, entering >= 0
            at, place = going[drops], leaving[drops]
            dropped[at] = self.columns[at, place]
            self._drop(at, place)
            self._enter(X, going[enters], entering[enters])
            live[going] = enters | drops
        self.residual[live] = np.nan

    def _step(self, rough: NDArray[np.float32], going: Rows, dropped: Rows) -> tuple[Rows, Rows]:
        """Move these parts to their next breakpoints; return who enters there, and who leaves."""
        count = int((self.columns[going] >= 0).sum(axis=1).max())
        columns, signs = self.columns[going, :count], self.signs[going, :count]
        gram = self.gram[going, :count, :count]
        w = np.linalg.solve(gram, signs[:, :, None])[:, :, 0]
        # One by one: what is large is not copied.
        direction = np.array([w[i] @ self.block[k, :count] for i, k in enumerate(going)])
        # Half the digits: what is added up by them is checked in the end.
        slope = (direction.astype(np.float32) @ rough).astype(np.float64)
        level, scores, rows = self.level[going], self.scores[going], np.arange(going.size)[:, None]
        far = _when(level[:, None] - scores, 1.0 - slope)
        far = np.minimum(far, _when(level[:, None] + scores, 1.0 + slope), out=far)
        used = columns >= 0
        far[np.broadcast_to(rows, columns.shape)[used], columns[used]] = np.inf
        back = np.flatnonzero(dropped >= 0)
        again = far[back, dropped[back]] <= 1e-10 * level[back]
        far[back[again], dropped[back[again]]] = np.inf
        weights = self.weights[going, :count]
        with np.errstate(divide="ignore", invalid="ignore"):
            until = np.where(weights * w < 0, -weights / w, np.inf)
        entry, exit = far.min(axis=1), until.min(axis=1)
        end = level - self.bottom[going]
        step = np.minimum(np.minimum(entry, exit), end)
        self.weights[going, :count] += step[:, None] * w
        self.residual[going] -= step[:, None] * direction
        self.scores[going] -= step[:, None] * slope
        self.level[going] -= step
        self._note(going[self.level[going] < self.top[going]])
        last = step >= end
        entering = np.where((entry <= exit) & ~last, far.argmin(axis=1), -1)
        leaving = np.where((exit < entry) & ~last, until.argmin(axis=1), -1)
        return entering, leaving

    def _note(self, parts: Rows) -> None:
        """Count the columns in use of these parts."""
        columns = self.columns[parts]
        used = columns >= 0
        self.found[np.broadcast_to(parts[:, None], columns.shape)[used], columns[used]] = True

    def _enter(self, X: Array, parts: Rows, entering: Rows) -> None:
        if not parts.size:
            return
        place = (self.columns[parts] >= 0).sum(axis=1)
        new = self._centered(self.inside[parts] * X.T[entering], parts)
        self.block[parts, place] = new
        count = int(place.max()) + 1
        products = np.array([self.block[k, :count] @ new[i] for i, k in enumerate(parts)])
        self.gram[parts, place, :count] = products
        self.gram[parts, :count, place] = products
        self.columns[parts, place] = entering
        self.signs[parts, place] = np.sign(self.scores[parts, entering])
        self.weights[parts, place] = 0.0
        self._note(parts[self.level[parts] < self.top[parts]])

    def _drop(self, parts: Rows, places: Rows) -> None:
        """Put the last column in use of each of these parts in the place of the one that leaves."""
        for part, place in zip(parts.tolist(), places.tolist(), strict=True):
            last = int((self.columns[part] >= 0).sum()) - 1
            for of in (self.columns, self.signs, self.weights, self.block):
                of[part, place] = of[part, last]
            gram = self.gram[part]
            gram[place], gram[:, place] = gram[last], gram[:, last].copy()
            gram[place, place] = gram[last, last]
            gram[last], gram[:, last] = 0.0, 0.0
            gram[last, last] = 1.0
            self.columns[part, last], self.signs[part, last], self.weights[part, last] = -1, 0, 0
            self.block[part, last] = 0.0

    def checked(self, X: Array, tolerance: float) -> Mask:
        """Return where scores of the residuals are what they must be at a point of the path."""
        scores = self.residual @ X
        allowed = self.level * (1.0 + tolerance) + tolerance * np.abs(self.scores).max(
            axis=1, initial=0.0
        )
        small = (np.abs(scores) <= allowed[:, None]).all(axis=1)
        used = self.columns >= 0
        of_used = np.take_along_axis(scores, np.maximum(self.columns, 0), axis=1)
        off = np.abs(np.where(used, of_used - self.signs * self.level[:, None], 0.0)).max(axis=1)
        return np.asarray(small & (off <= allowed - self.level))


def _when(distance: Array, speed: Array) -> Array:
    """Return distance / speed, infinite where there is no approach; the arguments are used up."""
    np.maximum(distance, 0.0, out=distance)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(distance, speed, out=distance)
    distance[speed <= 1e-12] = np.inf
    return distance
