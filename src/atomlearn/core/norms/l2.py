"""L2: gauge(w) = ||w||_2, whose atoms are all unit vectors. Not sparse: a baseline."""

from __future__ import annotations

import numpy as np

from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition


class L2(Groups):
    """gauge(w) = ||w||_2, which is its own polar: that of one group of all columns.

    Its one best atom is z / ||z||_2, so ``best_columns`` returns every column whatever the count:
    it needs all scores, and fits designs whose scores can be stored.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L2().value(np.array([3.0, 0.0, -4.0]))
    5.0

    References
    ----------
    A. E. Hoerl, R. W. Kennard 1970, Ridge regression.
    """

    def __init__(self) -> None:
        super().__init__(groups=None)

    def partition(self, n_features: int) -> Partition:
        """One group of all columns."""
        n_groups = min(n_features, 1)
        return Partition(np.zeros(n_features, dtype=np.int64), n_groups, n_groups)
