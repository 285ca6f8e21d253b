"""Coordinates: the variables in which the solver represents and re-fits one term of W.

The iterate W (p, q) is a sum of terms W_i, one for each norm of a union of norms. A term is a
low-rank matrix U S V' with variable S (``Span``), a conic combination of sparse rank-one atoms
(``Rays``), or a sparse matrix given by its entries (``Entrywise``). The class ``Coordinates``
defines the operations that a solver iteration needs.
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
    Scaled,
    Scores,
    State,
    Term,
)


@dataclass(frozen=True, slots=True)
class TermPricing:
    """Gradient information at an iterate, and the requested effort of the search for new atoms.

    Attributes
    ----------
    problem : Problem
        The problem.
    v : (n_samples,) float64
        Negative gradient of the loss with respect to the predictions.
    scores : Scores
        X'v, the negative gradient of the loss with respect to vec(W).
    multiplier : float
        Lagrange multiplier of the gauge; an atom a improves the objective if <a, X'v> exceeds it.
    batch, columns : int
        Number of rank-one atoms, and of entries, to return.
    accuracy : float
        Relative gap between the bounds on the polar at which the search may stop.
    thorough : bool
        Whether to spend more work, such as branch and bound, on tighter bounds.
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
    """Result of the search for new atoms (or entries) of one term.

    Attributes
    ----------
    bounds : (float, float)
        Lower and upper bound on the polar of the term's norm, before division by its factor.
    to_add : object
        Atoms to add in the next iteration, as an argument of ``Coordinates.expanded``: two matrices
        (left, right) with the vectors of the atoms as columns, or the indices of entries.
    ahead : object
        The same for a warm start at a smaller regularization parameter, which begins with them.
    """

    bounds: tuple[float, float]
    to_add: Any
    ahead: Any


@dataclass(frozen=True, slots=True)
class Coordinates(ABC):
    """One term W_i of W as a linear function of coordinates x (m,), with a norm on x.

    vec(W_i) = L x for a linear map L that the subclass defines by its atoms or bases. The norm on
    x is at least the norm of W_i.

    Attributes
    ----------
    term : Term
        The norm of W_i, and the factor (weight) by which it is multiplied.
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
        """Whether every matrix W_i can be represented, so that no atoms are left to add."""
        return False

    @abstractmethod
    def block(self) -> Block:
        """Return the matrix X L (n_samples, m), which maps coordinates to predictions."""

    @abstractmethod
    def inner_norm(self) -> Norm:
        """Return the norm on the coordinates x, without the factor of the term."""

    @property
    def norm(self) -> Norm:
        """The norm on the coordinates x with the factor: at least factor * norm(W_i)."""
        inner = self.inner_norm()
        return inner if self.term.factor == 1.0 else Scaled(inner, self.term.factor)

    @property
    def gauge(self) -> float:
        """The value of ``norm`` at the current coordinates x."""
        return self.norm.value(self.x) if self.x.size else 0.0

    @abstractmethod
    def compressed(self) -> Self:
        """Return the term with the same matrix W_i, without atoms or entries of weight zero."""

    @abstractmethod
    def expanded(self, to_add: Any) -> Self:
        """Return the term with the atoms (or entries) ``to_add`` added at weight zero.

        They are those that ``searched`` has found.
        """

    @abstractmethod
    def searched(self, pricing: TermPricing) -> Searched:
        """Search for atoms with the largest scores: return them with bounds on the polar.

        ``pricing`` has the scores and the requested effort. The polar is the dual norm of
        the scores.
        """

    def closer_dual(self, pricing: TermPricing, accuracy: float) -> tuple[Array, float] | None:
        """Return a dual point v with a small proven polar of X'v, and the bound on this polar.

        ``pricing.v`` is the negative gradient of a squared loss at W = 0. Among the dual points for
        which the norm can prove the polar, the result is the best one up to a share ``accuracy``.
        It is None if the norm proves the polar of every v, or if the design restricts X'v.
        """
        return None

    def with_atoms_on_supports(self, v: Array, multiplier: float) -> tuple[Coordinates, float]:
        """Return the term with atoms added on the current supports, and their violation.

        No pass over the data is needed. ``v`` (n_samples,) is the negative gradient with respect to
        the predictions, and ``multiplier`` the Lagrange multiplier of the gauge. The violation is
        the largest score of such an atom minus ``multiplier``, or 0 if there are none.
        """
        return self, 0.0

    def sweeps(self, problem: Problem) -> bool:
        """Return whether alternating ridge regressions for the factors of W_i are possible."""
        return False

    def swept(
        self, problem: Problem, linear: Array, intercept: float, enough: float
    ) -> tuple[Coordinates, Array]:
        """Return the term and the predictions of all terms after alternating minimization.

        ``linear`` (n_samples,) are the predictions of all terms without ``intercept``. Sweeps stop
        when one decreases the objective by at most ``enough``. Terms without such a method are
        returned unchanged.
        """
        return self, linear

    @abstractmethod
    def part(self) -> MatrixPart:
        """Return the term as a ``MatrixPart`` of the result."""

    @abstractmethod
    def with_value_of(self, part: MatrixPart) -> Self | None:
        """Return the term with the value ``part`` (warm start); None if the kinds or shapes differ.

        ``part`` is a term of the result of an earlier fit.
        """

    def factors_of(self, part: MatrixPart) -> Factored | None:
        """Return the factors of ``part``; None if its shape or the class of its norm differs."""
        fits = part.factored is not None and part.factored.shape == self.design.traits.matrix_shape
        return part.factored if fits and type(part.norm) is type(self.term.norm) else None

    def entries(self) -> tuple[Columns, Array]:
        """Return the columns and values of an entrywise term; empty arrays for other terms."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    def check(self) -> None:  # noqa: B027 - most coordinates have no invariant
        """Raise AssertionError if an invariant fails (for tests and debugging)."""


@dataclass(frozen=True, slots=True)
class Entrywise(Coordinates):
    """W_i as a sparse matrix with entries x (m,) at the flat indices ``columns`` (m,).

    The norm is one of vectors that can be restricted to some entries, such as ``L1``.
    """

    columns: Columns

    def __post_init__(self) -> None:
        """Raise TypeError if the norm cannot be restricted to some entries."""
        if self.term.norm.restrict(self.columns[:0], self.design.shape[1]) is None:
            raise TypeError(
                f"{self.term.norm!r} in a union with matrix norms must be restrictable to "
                "some entries, such as norms.L1() or norms.Groups(...); use "
                "solvers.AtomGeneration() for others"
            )

    def block(self) -> Block:
        """Return the columns of the design at the entries in use."""
        return self.design.gather(self.columns)

    def inner_norm(self) -> Norm:
        """Return the norm restricted to the entries in use."""
        return cast(Norm, self.term.norm.restrict(self.columns, self.design.shape[1]))

    def compressed(self) -> Self:
        """Return the term without entries that are 0."""
        nonzero = np.flatnonzero(self.x)
        return replace(self, columns=self.columns[nonzero], x=self.x[nonzero])

    def expanded(self, to_add: Columns) -> Self:
        """Return the term with the entries ``to_add`` added at zero; indices remain sorted."""
        union = np.union1d(self.columns, to_add)
        padded = np.zeros(union.size)
        padded[np.searchsorted(union, self.columns)] = self.x
        return replace(self, columns=union, x=padded)

    def searched(self, pricing: TermPricing) -> Searched:
        """Search for entries with the largest scores; return them with bounds on the polar.

        ``pricing`` has the scores, and the least number of entries to search for.
        """
        norm = self.term.norm
        n_columns = pricing.scores.n_columns
        # Request at least 1% of all entries: another pass costs more than unused columns.
        best = norm.best_columns(
            pricing.scores, max(pricing.columns, 4 * self.x.size, n_columns // 100)
        )
        # Only entries whose scores can improve the objective are added; a warm start gets all.
        threshold = pricing.multiplier * self.term.factor * norm.thresholds(self.x, best, n_columns)
        to_add = best[(np.abs(pricing.scores.at(best)) > threshold) | (np.asarray(threshold) <= 0)]
        return Searched(norm.polar_bounds(pricing.scores), to_add, best)

    def part(self) -> MatrixPart:
        """Return the term with its entries."""
        term = self.term
        return MatrixPart(
            term.norm, term.factor, self.gauge, columns=self.columns, weights=self.x.copy()
        )

    def with_value_of(self, part: MatrixPart) -> Self | None:
        """Return the term with the entries of ``part`` (warm start); None if it has none."""
        if part.columns is None or part.weights is None:
            return None
        if part.columns.max(initial=0) >= self.design.shape[1]:
            return None
        return replace(self, columns=part.columns, x=part.weights)

    def entries(self) -> tuple[Columns, Array]:
        """Return the columns in use and their values."""
        return self.columns, self.x


@dataclass(slots=True)
class MatrixState(State):
    """Solver state for W = sum of terms.

    The inherited ``columns`` and ``weights`` contain the entries of ``Entrywise`` terms only.

    Attributes
    ----------
    terms : tuple of Coordinates
        The terms of W.
    found : tuple of Searched
        Atoms and polar bounds that the last pass found for each term.
    patience : float
        Number of iterations without progress after which the solver stops.
    """

    terms: tuple[Coordinates, ...] = ()
    found: tuple[Searched, ...] = ()
    patience: float = 8

    def n_active(self) -> int:
        """Return the number of active atoms: ranks of spans plus numbers of rays and entries."""
        return sum(term.rank for term in self.terms)

    def matrix_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms as parts of the result."""
        return tuple(term.part() for term in self.terms)

    def warm_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms, each with the atoms that a warm start adds first."""
        pairs = zip(self.matrix_parts(), self.found, strict=True)
        return tuple(replace(part, ahead=candidates.ahead) for part, candidates in pairs)

    def check(self) -> None:
        """Raise AssertionError if an invariant of the state or of a term fails."""
        State.check(self)
        for term in self.terms:
            assert term.x.shape == (term.block().shape[1],)
            term.check()
