"""Settings: what decides between ways to the same columns and sums, and what tells rounding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MapSettings:
    """Sizes and shares from which on one way is taken rather than another.

    None of them changes an answer beyond rounding. Sizes bound memory; the others were found by
    timing both ways (``benchmarks/implicit.py``, ``additive.py`` and ``simple_mkl.py``);
    ``benchmarks/sensitivity.py`` varies each of them.
    """

    # Products of two columns, by tiles.

    #: Inputs in a tile each way, where there are not too many rows.
    tile: int = 2048
    #: There are this many rows of tiles at least, to be shared out, if that leaves 64 inputs each.
    shares: int = 8
    #: Magnitudes of X for which products stay far from the ends of single precision.
    single_range: tuple[float, float] = (1e-9, 1e12)
    #: Sparse tensors with a smaller share of entries are searched by the processor, which forms no
    #: product of zeros: at this share it multiplies 10,000 times less than tiles, as much as a
    #: device is faster.
    tiles_from: float = 0.01

    # The search for the best products.

    #: Finalists kept beyond what was asked for, before they are computed exactly.
    spare: int = 2**15
    #: A search of all pairs lists so many times as many as are asked for, for the next searches.
    #: From 8 to 32 all of a selection takes the same time within a tenth.
    listing: int = 16
    #: Radii are inflated by this much: more than the roundings of their own computation.
    inflation: float = 1.0 + 1e-6
    #: Scores, norms and coefficients of up to this many products (2 GB) may be listed.
    most_listed: int = 2**28
    #: Up to so many products are listed for many vectors together; of more, searches for each of
    #: them are faster (4.5 million sparse ones: 0.7 s for ten levels, 1.7 s together).
    listed_together: int = 2**20
    #: So many multiplications take about a millisecond: less than a search costs to set up.
    small_work: float = 1e7

    # Products of sparse columns.

    #: Multiplications of one piece of a sparse product: bounds what it may bring forth (64 MB).
    piece_products: int = 2**22

    # Curves, surfaces and kernels.

    #: Levels of an input whose columns are thermometers, unless another number is asked for.
    thermometer_bins: int = 100
    #: A residual this small against the largest k(x, x) is rounding.
    negligible: float = 1e-14
    #: A kernel that is positive semidefinite, and symmetric, is so up to this share of its largest
    #: entry.
    indefinite: float = 1e-8


SETTINGS = MapSettings()
