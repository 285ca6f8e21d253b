"""Rays that turn: atoms near those in use, by searches that cost little beside one everywhere.

A search for sparse atoms is NP-hard, and its heuristics take most of a pass. Near the rays in use
(on their very supports, or a few exchanges of indices away) good atoms are found at a fraction of
the price, as a lazy Frank-Wolfe method does (Braun, Pokutta, Zink 2017); only where those promise
little is a search everywhere worth it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.matrix import Found, ScoreMatrix
from atomlearn.matrices.norms.sparse import SparseNorm
from atomlearn.matrices.solver.terms import Coordinates, Rays, usable

Array = NDArray[np.float64]

#: A term with its coordinates.
Placed = tuple[Coordinates, Array]


def turned_rays(placed: list[Placed], v: Array, multiplier: float) -> tuple[list[Placed], float]:
    """Return the terms with new rays at weight zero: the best ones on the supports in use.

    Also by how much the polar there exceeds the multiplier. What a span does in one re-fit takes
    rays a few; none of them needs a pass or a search.
    """
    result: list[Placed] = []
    gain = 0.0
    for term, x in placed:
        if isinstance(term, Rays) and term.size:
            found = term.on_supports(v)
            gain = max(gain, found.lower / term.term.factor - multiplier)
            level = multiplier * term.term.factor * (1 + 1e-12)
            result.append(term.expanded(x, *usable(found, level)))
        else:
            result.append((term, x))
    return result, gain


def found_near(
    term: Coordinates, matrix: ScoreMatrix, level: float, least: float
) -> tuple[Found | None, float]:
    """Return what is found near the rays in use, None where there are none, and its promise.

    It promises polar / level - 1, and 0 where that is below ``least``, or the level is 0.
    """
    norm = term.term.norm
    if not (isinstance(norm, SparseNorm) and isinstance(term, Rays) and term.size):
        return None, 0.0
    found = norm.search_near(matrix, term.left, term.right)
    promised = found.lower / level - 1.0 if level > 0 else 0.0
    return found, promised if promised >= least else 0.0
