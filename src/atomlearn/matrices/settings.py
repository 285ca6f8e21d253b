"""Settings: sizes, shares and steps of the wing of matrices, none of which a user has to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    """What decides between ways to the same answer, and what tells rounding.

    None of them changes what is proved. Sizes bound memory or were found by timing both ways
    (``benchmarks/matrices``; ``benchmarks/sensitivity.py`` varies each of them); shares of a
    default alpha are of the papers.
    """

    # Norms and the search for their best atoms.

    #: Relative distance of the bounds from below and above that a certificate asks for.
    accuracy: float = 1e-9
    #: Probability that a bound from above fails (over the random start; that is delta above).
    failure: float = 1e-12
    #: Matrices of at most so many entries are decomposed in full.
    decomposed_entries: int = 2**17
    #: Steps of Lanczos between two looks at the bounds, at least, ...
    look: int = 8
    #: ... and in all.
    most_steps: int = 500
    #: Relative rounding of values, of inner products of atoms that are one, and of bounds.
    rounding: float = 1e-12
    #: Supports a search for sparse atoms starts from: of vectors, of discs, and at random.
    starts: int = 20
    #: Indices that may leave a support, and that may enter it, in one exchange.
    exchanges: int = 2
    #: Matrices of at most so many rows, and columns, on average, see branch and bound, ...
    branch_side: int = 32
    #: ... to so many nodes.
    branch_nodes: int = 3000

    # The solver.

    #: Matrices of at most so many entries are held whole by a span, where decompositions of all of
    #: W cost less than a second pass.
    whole_entries: int = 1024
    #: Share of the last relative gap, and of 1, that the bounds on the polar may leave open.
    loose: float = 0.1
    #: Gradient steps before sweeps that are exact: all that they do is to let new atoms in.
    before_sweeps: int = 10
    #: Share of what all sweeps gained so far that one must gain, times the square of the rank, as
    #: its cost grows.
    sweep_gain: float = 1e-6


SETTINGS = MatrixSettings()
