"""Where generation over matrices stands: terms, their values, and what may enter them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.interfaces.factored import MatrixPart
from atomlearn.core.masters.master import Refit
from atomlearn.core.problem.problem import Problem
from atomlearn.core.solvers.solver import State
from atomlearn.matrices.solver.coordinates import Coordinates, Placed


@dataclass(slots=True)
class MatrixState(State):
    """State of W = sum of terms: ``columns`` and ``weights`` hold the entrywise terms only.

    terms : the coordinates of each term; values : x of each; candidates : what the last pass
    found, (left, right) or columns for each term; ahead : the same for a problem with a lower
    level.
    """

    terms: tuple[Coordinates, ...] = ()
    values: tuple[Array, ...] = ()
    candidates: tuple[Any, ...] = ()
    ahead: tuple[Any, ...] = ()
    patience: float = 8
    master_steps: int = 0

    def n_active(self) -> int:
        """Rank of the spans, number of rays and of entries in use."""
        return sum(term.rank for term in self.terms)

    def matrix_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms as results show them."""
        return tuple(term.part(x) for term, x in zip(self.terms, self.values, strict=True))

    def warm_parts(self) -> tuple[MatrixPart, ...]:
        """Return the terms with the directions in which a warm start grows them."""
        both = zip(self.matrix_parts(), self.ahead, strict=True)
        return tuple(replace(part, ahead=ahead) for part, ahead in both)

    def check(self) -> None:
        State.check(self)
        for term, x in zip(self.terms, self.values, strict=True):
            assert x.shape == (term.size,)
            term.check()


def with_candidates(state: MatrixState) -> tuple[list[Coordinates], list[Array]]:
    """Return the terms with the candidates of the last pass, at weight zero."""
    both = zip(state.terms, state.values, state.candidates, strict=True)
    return apart([term.expanded(x, wanting) for term, x, wanting in both])


def inside(
    problem: Problem, terms: list[Coordinates], values: list[Array]
) -> tuple[list[Coordinates], list[Array]]:
    """Return the warm start, scaled into the ball of the constrained form."""
    if problem.regularizer.form != "constrained":
        return terms, values
    gauge = sum(term.norm.value(x) for term, x in zip(terms, values, strict=True) if x.size)
    radius = problem.regularizer.amount
    if gauge > radius:
        values = [x * (radius / gauge) for x in values]
    return terms, values


def compressed(terms: list[Coordinates], refit: Refit) -> list[Placed]:
    """Return the terms with their coordinates of the re-fit, without what carries no weight."""
    sizes = np.cumsum([0, *(term.size for term in terms)])
    pieces = [refit.weights[a:b] for a, b in pairwise(sizes)]
    return [term.compressed(x) for term, x in zip(terms, pieces, strict=True)]


def apart(placed: list[Placed]) -> tuple[list[Coordinates], list[Array]]:
    """Return terms and values by themselves."""
    return [term for term, _ in placed], [x for _, x in placed]


def summed_entries(terms: list[Coordinates], values: list[Array]) -> tuple[Columns, Array]:
    """Return the sum of the entrywise terms: distinct columns, and their weights."""
    mine = [term.entries(x) for term, x in zip(terms, values, strict=True)]
    columns, places = np.unique(np.concatenate([c for c, _ in mine]), return_inverse=True)
    weights = np.bincount(
        places.ravel(), weights=np.concatenate([x for _, x in mine]), minlength=columns.size
    )
    return columns, weights.astype(np.float64)
