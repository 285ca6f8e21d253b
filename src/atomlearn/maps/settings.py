"""Settings of maps: limits of memory, thresholds between algorithms, tolerances for rounding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MapSettings:
    """Limits of memory, thresholds at which another algorithm becomes faster, and tolerances.

    None of them changes an answer beyond rounding, except for the default ``thermometer_bins``. A
    threshold was chosen by timing both algorithms, in ``benchmarks/implicit.py``, ``additive.py``
    or ``simple_mkl.py``. ``benchmarks/sensitivity.py`` varies each of them.
    """

    # Products of two columns, by tiles.

    #: Inputs on each side of a tile, unless there are too many rows.
    tile: int = 2048
    #: Minimum number of rows of tiles for the threads, if each has at least 64 inputs.
    shares: int = 8
    #: Magnitudes of X for which products are far from overflow and underflow in single precision.
    single_range: tuple[float, float] = (1e-9, 1e12)
    #: Sparse tensors with a smaller share of nonzero entries are searched on the processor, which
    #: forms no product of zeros. At this share it has 10,000 times fewer multiplications than
    #: tiles, and a device is about 10,000 times faster.
    tiles_from: float = 0.01

    # The search for the best products.

    #: Finalists kept in addition to the number requested, before they are computed exactly.
    spare: int = 2**15
    #: A search of all pairs lists this multiple of the number requested, for later searches. From 8
    #: to 32 the time of a selection is the same within a tenth.
    listing: int = 16
    #: Factor of radii, larger than the rounding errors of their computation.
    inflation: float = 1.0 + 1e-6
    #: Largest number of products whose scores, norms and coefficients may be listed (2 GB).
    most_listed: int = 2**28
    #: Largest number of products that are listed for many vectors together; for more, a search for
    #: each vector is faster (4.5 million sparse products: 0.7 s for ten levels, 1.7 s together).
    listed_together: int = 2**20
    #: Multiplications that take about a millisecond, less than the setup of a search.
    small_work: float = 1e7

    # Products of sparse columns.

    #: Multiplications of one piece of a sparse product, which bound its result (64 MB).
    piece_products: int = 2**22

    # Curves, surfaces and kernels.

    #: Default number of levels of an input with thermometer columns.
    thermometer_bins: int = 100
    #: A residual below this share of the largest k(x, x) is rounding.
    negligible: float = 1e-14
    #: Tolerance for kernels being symmetric and positive semidefinite, as a share of the largest
    #: entry.
    indefinite: float = 1e-8


SETTINGS = MapSettings()
