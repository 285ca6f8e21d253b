"""Settings of the algorithms of the papers and of rivals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What the papers leave open, and the memory that their arrays may take.

    None of it changes what is proved: all of these are certified as everything else is.
    ``benchmarks/tuning/rooms.py`` varies each number.
    """

    #: ADMM: after this many changes rho stays, as convergence is proved for a rho that settles.
    rho_changes: int = 60
    #: Block coordinate descent: sweeps between two certificates of the active groups.
    sweeps_together: int = 10
    #: Its eigenvalues below this share of the largest are rounding.
    rank: float = 1e-13
    #: Frank-Wolfe: local steps go on as long as they promise this share of what the step toward v
    #: did.
    lazy: float = 0.5
    #: A share of zero below this is rounding, not a vertex in use.
    no_share: float = 1e-14
    #: Line search: the slope counts as zero below this share of what it was at the start.
    flat: float = 1e-12
    #: Feature generation: from this inner tolerance on first-order steps do for the subproblem.
    inexact: float = 1e-4
    #: Relative gap to which its optimum is found, where one is wanted.
    finished: float = 1e-12
    #: Rounds without one more feature after which the optimum itself is looked for ...
    settled: int = 10
    #: ... and where all may be selected, so that nothing but the optimum is wanted.
    settled_of_all: int = 3
    #: Interior point: what is tried until the gap is reached. An accuracy, in units of the relative
    #: gap wanted (small residuals are not yet a small gap), and how far to go toward the border of
    #: the cones at once: Clarabel's own 0.99 now and then ends in a corner, far too early.
    attempts: tuple[tuple[float, float], ...] = (
        (0.1, 0.9),
        (1e-5, 0.9),
        (1e-5, 0.8),
        (1.0, 0.99),
        (1e-3, 0.7),
    )
    #: The finest accuracy that it is asked for ...
    finest: float = 1e-14
    #: ... and the coarsest.
    coarsest: float = 1e-5
    #: Trace lasso: steps of the search for its polar ...
    polar_steps: int = 2000
    #: ... and the relative distance of the bounds at which it ends.
    polar_gap: float = 1e-7
    #: Columns gathered at a time for K = X X'.
    columns_together: int = 4096
    #: The largest Gram matrix of ADMM, in bytes.
    gram_bytes: int = 8 * 2**30
    #: The kernels of all blocks of the dual of multiple kernel learning, in bytes.
    kernel_bytes: int = 4 * 2**30
    #: Entries of X that stochastic methods hold as rows; more of them belong to another solver.
    row_entries: int = 2**27


SETTINGS = Settings()
