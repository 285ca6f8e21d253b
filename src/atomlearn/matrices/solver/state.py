"""Where generation over matrices stands: its terms, and what may enter them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atomlearn.core.interfaces import State
from atomlearn.core.problem.factored import MatrixPart
from atomlearn.matrices.solver.coordinates import Coordinates, Searched


@dataclass(slots=True)
class MatrixState(State):
    """State of W = sum of terms: ``columns`` and ``weights`` hold the entrywise terms only.

    terms : the coordinates of each term; found : what the last pass found for each.
    """

    terms: tuple[Coordinates, ...] = ()
    found: tuple[Searched, ...] = ()
    patience: float = 8
    master_steps: int = 0

    def n_active(self) -> int:
        """Rank of the spans, number of rays and of entries in use."""
        return sum(term.rank for term in self.terms)

    def matrix_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms as results show them."""
        return tuple(term.part() for term in self.terms)

    def warm_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms with the directions in which a warm start grows them."""
        both = zip(self.matrix_parts(), self.found, strict=True)
        return tuple(replace(part, ahead=found.ahead) for part, found in both)

    def check(self) -> None:
        State.check(self)
        for term in self.terms:
            assert term.x.shape == (term.block().shape[1],)
            term.check()
