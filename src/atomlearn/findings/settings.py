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
    #: ... the gap between the eigenvalues of the last factor and of the rest, ...
    factor_gap: float = 1.5
    #: ... and how far that factor stands above noise.
    above_noise: float = 1.2
    #: From this correlation on a pair of columns is a strong one: ...
    strong_correlation: float = 0.7
    #: ... with this share of strong pairs Ledoit-Wolf's estimate leaks false features.
    many_strong: float = 5e-4
    #: Columns that each one is regressed on: the most correlated ones.
    n_neighbors: int = 8
    #: Standard errors from which on a neighbor stays.
    least_t: float = 4.0
    #: Columns looked at together: what keeps the work in the cache of a laptop.
    columns_together: int = 512
    #: Blocks of so many columns by which it is told whether few neighbors explain them.
    blocks_looked_at: int = 4
    #: Numbers of a piece, of which the largest is found first.
    piece: int = 64
    #: Bytes of noise whose root is taken at a time: what stays in the cache.
    noise_together: int = 1_000_000
    #: Entries of a known precision that are rounding, beside the largest ones, ...
    rounding: float = 1e-12
    #: ... and the share of the others below which it is kept as one with few entries.
    few_entries: float = 0.02
    #: Share of pairs beyond ``least_t`` that shows that few neighbors do not explain a column;
    #: without dependence 6e-5 of them are.
    most_unexplained: float = 1e-3

    # Statistics of columns.

    #: Relative gap of the search for a level, whose differences decide nothing.
    search_gap: float = 1e-3
    #: Relative gap of sizes that are compared.
    exact_gap: float = 1e-6
    #: Last level of the search over the first.
    ratio: float = 0.05
    #: Loss of left-out rows over its least, from which on no further level is tried: it wavers by
    #: less before it falls again.
    risen: float = 1.05
    #: How often the search goes on where its last level is the best.
    rounds: int = 2
    #: Levels that are tried for survival times, from one that selects next to nothing on.
    n_levels_of_times: int = 7
    #: Folds where rows cannot be left out one at a time.
    n_folds: int = 5
    #: Below this correlation a column could hardly have stood for another.
    least_correlation: float = 0.5

    # Stability.

    #: Columns up to which all halves of a lasso walk in lockstep, ...
    most_walked: int = 100
    #: ... and multiplications of a step: 500 x 3,000 with 38 columns takes a third of what paths
    #: do, 1000 x 20,000 with 100 twice that.
    work_of_walks: int = 2**28
    #: Paths that are on their way together where readings are shared.
    parts_together: int = 40

    # The verdict.

    #: Level of the test.
    level: float = 0.05
    #: Of the interval, so that its lower end and the test agree.
    coverage: float = 0.9
    #: Area under the curve that a useful model may be asked to reach, half of the way from a guess
    #: to perfection: where not even it would be told from a guess, rows are too few.
    useful_area: float = 0.75
    #: The same of a correlation.
    useful_correlation: float = 0.5
    #: Numbers drawn at a time ...
    drawn_together: int = 2_000_000
    #: ... and in all: what keeps a verdict below a few seconds.
    most_drawn: int = 20_000_000
    #: Rows beyond which the limit of the permutation distribution stands for draws from it.
    many_rows: int = 20_000
    #: Rows whose pairs are looked at for the concordance index.
    most_paired: int = 1_000

    # Few rows, where the whole cross-validation is repeated: ``benchmarks/findings/few_rows.py``.

    #: Held-out rows below which they alone tell too little: 50 at an area of 0.65 do so every
    #: second time.
    few_rows: int = 50
    #: Draws, of which the first number is taken whose time is within ...
    n_repeats: tuple[int, ...] = (199, 99, 39, 19)
    #: ... so many seconds of the processor; one split decides where even the last one is not.
    most_seconds: float = 10.0
    #: Relative gap of their fits, whose differences decide nothing.
    loose_gap: float = 1e-2
    #: Tables with a signal put in: rows are too few where less than half of them are told, ...
    n_planted: int = 9
    #: ... and features that share the signal.
    features_planted: int = 2

    # Held-out rows that are training rows too: ``benchmarks/tuning/copies.py``.

    #: Distance, beside the median one, below which rows are nearly the same, ...
    near_copy: float = 0.2
    #: ... which tells subjects where this share of the held-out rows is: honest tables (USPS,
    #: tumors, heart patients) have up to 0.15; ...
    many_copies: float = 0.2
    #: ... there, what is less near is a copy too.
    many_near: float = 0.4
    #: Share of the held-out rows up to which those that are the same are left out unasked.
    few_copies: float = 0.05
    #: Share of such rows by chance, of those there are, from which on they are no copies.
    by_chance: float = 0.25
    #: Random sums a row is compared by, ...
    sums_of_rows: int = 32
    #: ... rows and columns up to which all are compared, ...
    most_compared_rows: int = 4_000
    most_compared_columns: int = 2_000_000
    #: ... and rows, columns and pieces of the surrogate.
    surrogate_rows: int = 1_000
    surrogate_columns: int = 256
    pieces: int = 4


SETTINGS = Settings()
