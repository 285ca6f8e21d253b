"""Sizes at which one algorithm becomes faster than another one with the same result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataLimits:
    """Sizes and densities that decide between two algorithms with the same result.

    None of them changes a result beyond rounding. They were found by timing both algorithms (the
    scripts of ``benchmarks/micro``) on processors with 1 to 2 MB of cache a core.
    ``benchmarks/sensitivity.py`` varies each of them.
    """

    #: Share of nonzero entries from which BLAS is faster than sparse products, also for sums of
    #: squares of sparse vectors (BLAS is four times slower at 0.1, and as fast at 0.2).
    dense_from: float = 0.15
    #: Share of nonzero entries from which a search over products of two columns uses BLAS on dense
    #: pieces of X.
    blas_from: float = 0.05
    #: Number of entries that are checked, multiplied or made dense at a time (8 MB).
    piece_entries: int = 2**20
    #: A difference smaller than this share of its terms has lost 4 of 16 digits, and is recomputed
    #: from the column itself.
    cancelled: float = 1e-4
    #: Maximum number of entries of dense arrays (512 MB in float64): coefficients of implicit
    #: columns, gathered columns, the vectors of one pass and their scores.
    most_dense: int = 2**26
    #: Maximum number of columns of explicit data; the scores of one vector then take 17 GB.
    most_columns: int = 2**31 - 1

    def pieces(self, count: int, size: int, most: int | None = None) -> list[slice]:
        """Return slices of range(count), each of which covers a bounded number of entries.

        count : the number of rows or columns; size : the entries of each of them. most : the bound,
        by default ``piece_entries``.
        """
        width = max(1, (most or self.piece_entries) // max(size, 1))
        return [slice(start, min(start + width, count)) for start in range(0, count, width)]

    def check_columns(self, n_features: int) -> None:
        """Raise ValueError if n_features exceeds the limit, before any array is allocated."""
        if n_features > self.most_columns:
            raise ValueError(
                f"X has {n_features:,} columns, and at most {self.most_columns:,} are taken, as "
                "each pass keeps 8 bytes or more a column; leave out the empty ones of a sparse X "
                "(X[:, numpy.unique(X.tocoo().col)]), or screen parts of the columns first"
            )


LIMITS = DataLimits()
