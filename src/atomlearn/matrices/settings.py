"""Settings of the package of matrices: sizes, shares and numbers of steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    """Thresholds between two ways of computing, and tolerances for rounding.

    They do not change any proof. Sizes bound memory or come from measurements of both ways
    (``benchmarks/matrices``). ``benchmarks/sensitivity.py`` varies each of them.
    """

    # Norms and the search for their best atoms.

    #: Relative distance of lower and upper bounds that a certificate needs.
    accuracy: float = 1e-9
    #: Probability that an upper bound fails, over the random start (delta in norms/spectral.py).
    failure: float = 1e-12
    #: Largest number of entries of a matrix that is decomposed.
    decomposed_entries: int = 2**17
    #: Minimum number of steps of Lanczos, or of the convex relaxation, between two computations of
    #: the bounds, ...
    look: int = 8
    #: ... and maximum number of all steps of Lanczos.
    most_steps: int = 500
    #: Relative tolerance for rounding: of values, of bounds, and of the inner products (1) of equal
    #: atoms.
    rounding: float = 1e-12
    #: Supports at which a search for sparse atoms starts: of vectors, of discs, and at random.
    starts: int = 20
    #: Indices that may leave a support, and that may enter it, in one exchange.
    exchanges: int = 2
    #: Largest number of nodes of branch and bound, ...
    branch_nodes: int = 3000
    #: ... and the largest mean of rows and columns that may take them: a node's work is cubic.
    branch_side: int = 32
    #: Maximum number of steps of the convex relaxation of the polar.
    relaxed_steps: int = 200

    # The solver.

    #: Largest number of entries of a matrix that a span represents completely, because
    #: decompositions of W cost less than a second pass.
    whole_entries: int = 1024
    #: Share of the last relative gap, and of 1, that the bounds on the polar may leave open.
    loose: float = 0.1
    #: Gradient steps before exact sweeps; they only have to admit new atoms.
    before_sweeps: int = 15
    #: Steps of an interior point method without progress after which it ends.
    interior_patience: int = 20
    #: Smallest gain of a sweep, as a share of the gain of all sweeps so far, times the square of
    #: the rank, because of its cost.
    sweep_gain: float = 1e-6


SETTINGS = MatrixSettings()
