"""Entrywise: a term of W by its entries, under a norm of vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import numpy as np

from atomlearn.core.interfaces import Array, Block, Columns, Norm, Scores
from atomlearn.core.interfaces.factored import MatrixPart
from atomlearn.matrices.solver.coordinates import Coordinates, Placed, Searched, TermPricing


@dataclass(frozen=True, slots=True)
class Entrywise(Coordinates):
    """W_i by its entries at ``columns`` (m,), under a norm of vectors that can be restricted."""

    kind: ClassVar[Literal["entries"]] = "entries"

    columns: Columns

    def __post_init__(self) -> None:
        if self.term.norm.restrict(self.columns[:0], self.design.shape[1]) is None:
            raise TypeError(
                f"{self.term.norm!r} beside matrix norms must be one that can be restricted to "
                "some entries, such as norms.L1() or norms.Groups(...); use "
                "solvers.AtomGeneration() for others"
            )

    @property
    def size(self) -> int:
        return self.columns.size

    def block(self) -> Block:
        return self.design.gather(self.columns)

    def inner_norm(self) -> Norm:
        return cast(Norm, self.term.norm.restrict(self.columns, self.design.shape[1]))

    def compressed(self, x: Array) -> Placed:
        kept = np.flatnonzero(x)
        return replace(self, columns=self.columns[kept]), x[kept]

    def expanded(self, x: Array, wanting: Columns) -> Placed:
        """Return the term with these columns too, increasing; new ones at weight zero."""
        union = np.union1d(self.columns, wanting)
        padded = np.zeros(union.size)
        padded[np.searchsorted(union, self.columns)] = x
        return replace(self, columns=union), padded

    def searched(self, x: Array, at: TermPricing) -> Searched:
        # A share of all entries at least: passes are dearer than idle columns.
        count = max(at.columns, 4 * self.size, at.scores.n_columns // 100)
        best = self.term.norm.best_columns(at.scores, count)
        wanting = self._wanting(x, at.scores, best, at.multiplier)
        return Searched(self.term.norm.polar_bounds(at.scores), wanting, best)

    def _wanting(self, x: Array, scores: Scores, columns: Columns, multiplier: float) -> Columns:
        """Return those of the best columns that may want to enter."""
        threshold = self.term.norm.thresholds(x, columns, scores.n_columns)
        scaled = np.asarray(multiplier * self.term.factor * threshold)
        return columns[(np.abs(scores.at(columns)) > scaled) | (scaled <= 0)]

    def part(self, x: Array) -> MatrixPart:
        gauge = self.norm.value(x) if x.size else 0.0
        term = self.term
        return MatrixPart(term.norm, term.factor, gauge, columns=self.columns, weights=x.copy())

    def placed(self, part: MatrixPart) -> Placed | None:
        if part.columns is None or part.weights is None:
            return None
        if part.columns.size and int(part.columns.max()) >= self.design.shape[1]:
            return None
        return replace(self, columns=part.columns), part.weights

    def entries(self, x: Array) -> tuple[Columns, Array]:
        return self.columns, x
