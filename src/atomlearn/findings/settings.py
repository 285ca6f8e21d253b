"""Settings of findings: sizes of samples of pairs, levels of tests, and what counts as near."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What a finding takes for enough, and how much it looks at.

    Error rates at these values are measured by ``benchmarks/findings/error_control.py``, and how
    often verdicts are right by ``benchmarks/findings/verdict.py``.
    """

    # Knockoffs.

    #: How near S comes to where the joint covariance is singular.
    edge: float = 0.999
    #: The most factors that columns are taken to share, ...
    most_factors: int = 10
    #: ... and the gap between the eigenvalues of the last factor and of the rest.
    factor_gap: float = 1.5
    #: Columns that each one is regressed on: the most correlated ones.
    n_neighbors: int = 8
    #: Standard errors from which on a neighbor stays.
    least_t: float = 4.0
    #: Share of pairs beyond ``least_t`` that shows that few neighbors do not explain a column;
    #: without dependence 6e-5 of them are.
    most_unexplained: float = 1e-3
    #: Columns looked at together: what keeps the work in the cache of a laptop.
    columns_together: int = 512

    # Statistics of columns.

    #: Last level of the search over the first.
    ratio: float = 0.05
    #: Loss of left-out rows over its least, from which on no further level is tried: it wavers by
    #: less before it falls again.
    risen: float = 1.05

    # Stability.

    #: Columns up to which all halves of a lasso walk in lockstep, ...
    most_walked: int = 100
    #: ... and multiplications of a step: 500 x 3,000 with 38 columns takes a fifth of what paths
    #: do, 1000 x 20,000 with 100 three times that.
    work_of_walks: int = 2**28

    # The verdict.

    #: Level of the test; the interval leaves out as much on each side.
    level: float = 0.05
    #: How far from a guess to perfection a useful model may be asked to come: where not even it
    #: would be told from a guess, rows are too few.
    useful: float = 0.5
    #: Numbers of all permutations: what keeps a verdict below a second, and in memory.
    most_drawn: int = 10_000_000
    #: Rows whose pairs are looked at for the concordance index.
    most_paired: int = 1_000

    # Few rows, where the whole cross-validation is repeated: ``benchmarks/findings/few_rows.py``.

    #: Held-out rows below which they alone tell too little: 50 at an area of 0.65 do so every
    #: second time.
    few_rows: int = 50
    #: The most repetitions, as far as their time is within ...
    n_repeats: int = 199
    #: ... so many seconds of the processor; one split decides where not even 19 are.
    most_seconds: float = 10.0
    #: Relative gap of their fits, whose differences decide nothing.
    loose_gap: float = 1e-2
    #: Tables with a signal put in: rows are too few where less than half of them are told, ...
    n_planted: int = 9
    #: ... and features that share the signal.
    features_planted: int = 2

    # Held-out rows that are training rows too: ``benchmarks/tuning/copies.py``.

    #: Distance, over the median one, below which rows are nearly the same, which tells subjects
    #: where this share of the held-out rows is: honest tables (USPS, tumors, heart patients) have
    #: up to 0.15.
    near_copy: float = 0.2
    #: Share of such rows by chance, of those there are, from which on they are no copies.
    by_chance: float = 0.25
    #: Random sums a row is compared by, ...
    sums_of_rows: int = 32
    #: ... and rows and columns of what is compared beyond rows that are the same.
    most_compared_rows: int = 2_000
    most_compared_columns: int = 256


SETTINGS = Settings()
