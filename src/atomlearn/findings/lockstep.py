"""The columns that enter the lasso's path first, of many parts of the rows at once.

Between two breakpoints the solution moves along a line. With A the columns in use, s the signs of
their scores, and rows and columns centered over the part,

    w = (A'A)^-1 s,  u = A w:  scores of A fall like lambda, those of x_j by x_j'u,

and the next breakpoint is where another score reaches lambda, or a coefficient of A zero. One
product X'U moves all parts to their next breakpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Mask, Rows

#: Numbers that the columns in use of all parts may take (128 MB), beyond which parts take turns.
MOST_NUMBERS = 2**24
#: Relative error of scores from which a walk is not believed.
ERROR = 1e-6


def first_columns(
    X: Array, y: Array, parts: Sequence[Rows], most: int, top: float, bottom: float, centered: bool
) -> tuple[Mask, Mask]:
    """Return (n_parts, p): the columns in use between two levels, and which walks may be believed.

    Parameters
    ----------
    X, y : (n, p), (n,)
    parts : the rows of each.
    most : the walk of a part ends at so many columns, the first ones.
    top, bottom : levels of  1/(2m) ||y - X w - b||^2 + level ||w||_1  over the m rows of a part.
    centered : whether there is an intercept b.

    References
    ----------
    M. Osborne, B. Presnell, B. Turlach. A new approach to variable selection in least squares
    problems. IMA Journal of Numerical Analysis 20 (2000) 389-403. B. Efron, T. Hastie,
    I. Johnstone, R. Tibshirani. Least angle regression. Annals of Statistics 32 (2004) 407-499.
    """
    at_once = max(MOST_NUMBERS // (most * len(y)), 1)
    found, sure = [], []
    for first in range(0, len(parts), at_once):
        walk = _Walk.begin(X, y, parts[first : first + at_once], most, top, bottom, centered)
        walk.go(X, most)
        found.append(walk.found)
        sure.append(walk.checked(X))
    return np.vstack(found), np.concatenate(sure)


@dataclass(slots=True)
class _Walk:
    """All parts on their way; h counts parts, k places of columns in use, 0 beyond the last one.

    inside (h, n), sizes (h,) : rows of a part; level, top, bottom (h,) : of sums, not means;
    residual (h, n), scores (h, p), found (h, p); columns (h, k), -1 where there is none; signs,
    weights (h, k); gram (h, k, k), the identity where there is none; block (h, k, n).
    """

    inside: Array
    sizes: Array
    level: Array
    top: Array
    bottom: Array
    residual: Array
    scores: Array
    found: Mask
    columns: Rows
    signs: Array
    weights: Array
    gram: Array
    block: Array
    centered: bool

    @classmethod
    def begin(
        cls,
        X: Array,
        y: Array,
        parts: Sequence[Rows],
        most: int,
        top: float,
        bottom: float,
        centered: bool,
    ) -> _Walk:
        (n, p), h = X.shape, len(parts)
        inside = np.zeros((h, n))
        for row, rows in zip(inside, parts, strict=True):
            row[rows] = 1.0
        sizes = inside.sum(axis=1)
        residual = inside * y
        if centered:
            residual -= inside * (residual.sum(axis=1) / sizes)[:, None]
        scores = residual @ X
        walk = cls(
            inside=inside,
            sizes=sizes,
            level=np.abs(scores).max(axis=1),
            top=top * sizes,
            bottom=bottom * sizes,
            residual=residual,
            scores=scores,
            found=np.zeros((h, p), dtype=bool),
            columns=np.full((h, most), -1),
            signs=np.zeros((h, most)),
            weights=np.zeros((h, most)),
            gram=np.tile(np.eye(most), (h, 1, 1)),
            block=np.zeros((h, most, n)),
            centered=centered,
        )
        walk._enter(X, np.arange(h), np.argmax(np.abs(scores), axis=1))
        return walk

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
        new = self.inside[parts] * X.T[entering]
        if self.centered:
            new -= self.inside[parts] * (new.sum(axis=1) / self.sizes[parts])[:, None]
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

    def checked(self, X: Array) -> Mask:
        """Return where scores of the residuals are what they must be at a point of the path."""
        scores = self.residual @ X
        allowed = self.level * (1.0 + ERROR) + ERROR * np.abs(self.scores).max(axis=1, initial=0.0)
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
