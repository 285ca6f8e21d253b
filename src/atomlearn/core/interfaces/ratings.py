"""Ratings: what paths ask a norm, to guess which columns the next levels will use."""

from __future__ import annotations

from atomlearn.core.interfaces.arrays import Columns
from atomlearn.core.interfaces.scores import Scores


class Ratings:
    """How near each column is to being used, by its scores; a norm that cannot tell says so.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> from atomlearn.designs import ArrayScores
    >>> z = ArrayScores(np.array([3.0, -1.0, 2.5]))
    >>> norm = norms.KSupport(k=2)
    >>> norm.reference(z), norm.rated(z, 0.8 * norm.reference(z))
    (2.5, array([0, 2]))
    """

    @property
    def rates_columns(self) -> bool:
        """Whether the norm answers ``reference``; else its paths are solved level by level."""
        return type(self).reference is not Ratings.reference

    def reference(self, scores: Scores) -> float:
        """Return the rating, in the units of ``rated``, that columns in use have at an optimum.

        Of scores over the columns found so far it is never above that of all.
        """
        raise TypeError(f"{type(self).__name__} rates no columns; see rates_columns")

    def rated(self, scores: Scores, bound: float) -> Columns:
        r"""Return the columns rated ``bound`` > 0 or more, best first; by default \|z_j\| rates."""
        return scores.above(bound)[0]

    @property
    def asks_large(self) -> bool:
        """Whether polar and ratings ask for no score below 0.8 times the reference."""
        return False
