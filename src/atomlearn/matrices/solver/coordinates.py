"""Coordinates: one term of a point over matrices, as numbers that can be re-fitted.

A point W is a sum of terms, one for each norm of a union. Each term has its kind of coordinates: a
span U S V' of a low-rank term, rays of sparse atoms, entries under a norm of vectors. The class
``Coordinates`` lists the operations that a step needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from atomlearn.core import (
    Array,
    Block,
    Columns,
    Design,
    Factored,
    MatrixPart,
    Norm,
    Problem,
    Scores,
    State,
    Term,
    scaled,
)


@dataclass(frozen=True, slots=True)
class TermPricing:
    """Results of a pass at a point, and the effort of searches for new atoms.

    Attributes
    ----------
    problem : Problem
        The problem.
    v : array
        Negative gradient of the loss.
    scores : Scores
        X'v.
    multiplier : float
        Multiplier of the whole gauge at the point.
    batch, columns : int
        Number of atoms, and of entries, wanted.
    accuracy : float
        Accuracy of the bounds on the polar.
    thorough : bool
        Whether the bounds are worth more work.
    """

    problem: Problem
    v: Array
    scores: Scores
    multiplier: float
    batch: int
    columns: int
    accuracy: float
    thorough: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """Result of the search for one term.

    Attributes
    ----------
    bounds : (float, float)
        lower <= polar <= upper of its norm, without the factor.
    wanting : object
        Candidates, as an argument of ``Coordinates.expanded``.
    ahead : object
        Candidates for a problem with a lower level.
    """

    bounds: tuple[float, float]
    wanting: Any
    ahead: Any


@dataclass(frozen=True, slots=True)
class Coordinates(ABC):
    """One term of W in coordinates x (m,) of a block: W_i = L x, with the gauge of x as a norm.

    Attributes
    ----------
    term : Term
        The norm over W_i, with its factor.
    design : Design
        Design whose columns are the entries of W_i.
    x : (m,) float64
        The coordinates.
    """

    #: Whether the search for the best atom is heuristic, with bounds that may differ.
    hard: ClassVar[bool] = False

    term: Term
    design: Design
    x: Array

    @property
    def rank(self) -> int:
        """Number of atoms or entries in use."""
        return self.x.size

    @property
    def is_whole(self) -> bool:
        """Whether these coordinates can represent every W_i."""
        return False

    @abstractmethod
    def block(self) -> Block:
        """Return the design of the coordinates."""

    @abstractmethod
    def inner_norm(self) -> Norm:
        """Return the norm of the coordinates, without the factor."""

    @property
    def norm(self) -> Norm:
        """The norm of the coordinates: an upper bound on factor * norm(W_i), equal at best."""
        return scaled(self.inner_norm(), self.term.factor)

    @property
    def gauge(self) -> float:
        """The norm of the coordinates at x."""
        return self.norm.value(self.x) if self.x.size else 0.0

    @abstractmethod
    def compressed(self) -> Self:
        """Return the same term without coordinates of weight zero."""

    @abstractmethod
    def expanded(self, wanting: Any) -> Self:
        """Return the term with the candidates added at weight zero."""

    @abstractmethod
    def searched(self, at: TermPricing) -> Searched:
        """Return bounds on the polar of the term's norm, and candidates."""

    def turned(self, v: Array, multiplier: float) -> tuple[Coordinates, float]:
        """Return the term with candidates that need no pass, and the excess of the polar.

        ``v`` : the negative gradient at the point. The relative excess is 0 if there are no
        candidates.
        """
        return self, 0.0

    def sweeps(self, problem: Problem) -> bool:
        """Return whether the factors of W_i can be fitted in turn."""
        return False

    def swept(
        self, problem: Problem, linear: Array, intercept: float, enough: float
    ) -> tuple[Coordinates, Array]:
        """Return the term and the predictions of all terms after sweeps, if these may pay off."""
        return self, linear

    @abstractmethod
    def part(self) -> MatrixPart:
        """Return the term in the form of results."""

    @abstractmethod
    def placed(self, part: MatrixPart) -> Self | None:
        """Return the term at its value in an earlier fit; None if that does not fit."""

    def factors_of(self, part: MatrixPart) -> Factored | None:
        """Return the factors of an earlier fit by the same kind of norm, or None."""
        fits = part.factored is not None and part.factored.shape == self.design.traits.matrix_shape
        return part.factored if fits and type(part.norm) is type(self.term.norm) else None

    def entries(self) -> tuple[Columns, Array]:
        """Return the columns and values of an entrywise term; empty arrays for other terms."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    def check(self) -> None:  # noqa: B027 - most coordinates have no invariant
        """Raise AssertionError if an invariant fails (for tests and debugging)."""


@dataclass(frozen=True, slots=True)
class Entrywise(Coordinates):
    """W_i by its entries at ``columns`` (m,), under a norm of vectors that can be restricted."""

    columns: Columns

    def __post_init__(self) -> None:
        if self.term.norm.restrict(self.columns[:0], self.design.shape[1]) is None:
            raise TypeError(
                f"{self.term.norm!r} in a union with matrix norms must be restrictable to "
                "some entries, such as norms.L1() or norms.Groups(...); use "
                "solvers.AtomGeneration() for others"
            )

    def block(self) -> Block:
        return self.design.gather(self.columns)

    def inner_norm(self) -> Norm:
        return cast(Norm, self.term.norm.restrict(self.columns, self.design.shape[1]))

    def compressed(self) -> Self:
        kept = np.flatnonzero(self.x)
        return replace(self, columns=self.columns[kept], x=self.x[kept])

    def expanded(self, wanting: Columns) -> Self:
        """Return the term with these columns added at weight zero, in increasing order."""
        union = np.union1d(self.columns, wanting)
        padded = np.zeros(union.size)
        padded[np.searchsorted(union, self.columns)] = self.x
        return replace(self, columns=union, x=padded)

    def searched(self, at: TermPricing) -> Searched:
        norm = self.term.norm
        n_columns = at.scores.n_columns
        # At least a share of all entries, because passes cost more than unused columns.
        best = norm.best_columns(at.scores, max(at.columns, 4 * self.x.size, n_columns // 100))
        threshold = at.multiplier * self.term.factor * norm.thresholds(self.x, best, n_columns)
        wanting = best[(np.abs(at.scores.at(best)) > threshold) | (np.asarray(threshold) <= 0)]
        return Searched(norm.polar_bounds(at.scores), wanting, best)

    def part(self) -> MatrixPart:
        term = self.term
        return MatrixPart(
            term.norm, term.factor, self.gauge, columns=self.columns, weights=self.x.copy()
        )

    def placed(self, part: MatrixPart) -> Self | None:
        if part.columns is None or part.weights is None:
            return None
        if part.columns.max(initial=0) >= self.design.shape[1]:
            return None
        return replace(self, columns=part.columns, x=part.weights)

    def entries(self) -> tuple[Columns, Array]:
        return self.columns, self.x


@dataclass(slots=True)
class MatrixState(State):
    """State of W = sum of terms; ``columns`` and ``weights`` are those of entrywise terms only.

    Attributes
    ----------
    terms : tuple of Coordinates
        The coordinates of each term.
    found : tuple of Searched
        Result of the last pass for each term.
    """

    terms: tuple[Coordinates, ...] = ()
    found: tuple[Searched, ...] = ()
    patience: float = 8

    def n_active(self) -> int:
        """Return the sum of the ranks of spans and of the numbers of rays and entries in use."""
        return sum(term.rank for term in self.terms)

    def matrix_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms in the form of results."""
        return tuple(term.part() for term in self.terms)

    def warm_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms, with the directions in which a warm start expands them."""
        both = zip(self.matrix_parts(), self.found, strict=True)
        return tuple(replace(part, ahead=found.ahead) for part, found in both)

    def check(self) -> None:
        State.check(self)
        for term in self.terms:
            assert term.x.shape == (term.block().shape[1],)
            term.check()
