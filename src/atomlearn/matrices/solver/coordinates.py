"""Coordinates: one term of a point over matrices, in numbers that can be re-fitted.

A point W is a sum of terms, one for each norm of a union. Each is kept in coordinates of its own:
a span U S V' of a low-rank term, rays of sparse atoms, entries under a norm of vectors. What a
step asks of a term is the same for all, and is listed here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Design, Norm, Scores, Term
from atomlearn.core.interfaces.factored import Factored, MatrixPart
from atomlearn.core.norms.combine import scaled


@dataclass(frozen=True, slots=True)
class TermPricing:
    """What a pass tells of a point, and how hard to search for what may enter.

    scores : X'v; multiplier : of the whole gauge there; tau : weight of the ridge term; accuracy,
    thorough : of the bounds on the polar; batch : atoms asked for; columns : entries asked for;
    deadline : when searches should return what they have.
    """

    scores: Scores
    v: Array
    tau: float
    multiplier: float
    accuracy: float
    thorough: bool
    batch: int
    columns: int
    deadline: Deadline = field(default_factory=Deadline.never)


@dataclass(frozen=True, slots=True)
class Searched:
    """What the scores of a pass say of one term.

    bounds : lower <= polar <= upper of its norm, without the factor; wanting : what may enter, as
    ``Coordinates.expanded`` takes it; ahead : the same for a problem with a lower level.
    """

    bounds: tuple[float, float]
    wanting: Any
    ahead: Any


@dataclass(frozen=True, slots=True)
class Coordinates(ABC):
    """One term of W in coordinates x (m,) of a block: W_i = L x, with the gauge of x as a norm.

    term : the norm over W_i, with its factor; design : whose columns are the entries of W_i.
    """

    kind: ClassVar[Literal["span", "rays", "entries"]]

    term: Term
    design: Design

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates m."""

    @property
    def matrix_norm(self) -> Any:
        """The norm over W_i as one of matrices, whose module builds on this one."""
        return self.term.norm

    @property
    def rank(self) -> int:
        """Number of atoms or entries in use."""
        return self.size

    @property
    def is_whole(self) -> bool:
        """Whether every W_i can be written in these coordinates."""
        return False

    @property
    def turns_freely(self) -> bool:
        """Whether sweeps over factors may pay, see ``sweeps``."""
        return False

    @abstractmethod
    def block(self) -> Block:
        """Return the design of the coordinates."""

    @abstractmethod
    def inner_norm(self) -> Norm:
        """Return the norm of the coordinates, without the factor."""

    @property
    def norm(self) -> Norm:
        """The norm of the coordinates: its value bounds factor * norm(W_i), tight at best."""
        return scaled(self.inner_norm(), self.term.factor)

    @abstractmethod
    def compressed(self, x: Array) -> Placed:
        """Return the same term without what carries no weight."""

    @abstractmethod
    def expanded(self, x: Array, wanting: Any) -> Placed:
        """Return the term with what may enter, at weight zero."""

    @abstractmethod
    def searched(self, x: Array, at: TermPricing) -> Searched:
        """Return bounds on the polar of the term's norm, and what may enter."""

    def turned(self, x: Array, v: Array, multiplier: float) -> tuple[Placed, float]:
        """Return the term with what may enter without a pass, and by how much the polar is beyond.

        ``v`` : the negative gradient at the point; a relative gain of 0 where nothing may enter.
        """
        return (self, x), 0.0

    @abstractmethod
    def part(self, x: Array) -> MatrixPart:
        """Return the term as results show it."""

    @abstractmethod
    def placed(self, part: MatrixPart) -> Placed | None:
        """Return the term where an earlier fit left it; None where that does not fit."""

    def factors_of(self, part: MatrixPart) -> Factored | None:
        """Return the factors of an earlier fit by the same kind of norm; None where it is not."""
        fits = part.factored is not None and part.factored.shape == self.design.matrix_shape
        return part.factored if fits and type(part.norm) is type(self.term.norm) else None

    def entries(self, x: Array) -> tuple[Columns, Array]:
        """Return the term by its entries, where it is kept as these; none elsewhere."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    def check(self) -> None:  # noqa: B027 - most coordinates have no invariant beside their shape
        """Raise AssertionError where an invariant fails (tests and debugging)."""


#: A term with its coordinates.
Placed = tuple[Coordinates, Array]
