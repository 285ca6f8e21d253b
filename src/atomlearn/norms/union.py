"""Union: atoms of several norms together; w is a sum of parts, each under its own norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces.lift import Lift
from atomlearn.interfaces.norm import Norm, SupportsProx, SupportsRestriction
from atomlearn.norms.latent import LiftedNorm
from atomlearn.norms.lifting import lift_of, plain_lift, union
from atomlearn.norms.names import named

Array = NDArray[np.float64]


class Union(LiftedNorm):
    """gauge(w) = inf { sum_i norm_i(w_i) : sum_i w_i = w }; polar max_i norm_i°(z).

    The atoms are those of all norms: single features and whole groups, several families of groups.
    Weigh the norms by ``Scaled``: Union([Scaled(L1(), 2.0), Groups(...)]). [V] section 2.1.

    Parameters
    ----------
    norms : list of Norm
        Each with a proximal map, or latent itself.
    """

    def __init__(self, norms: Sequence[Norm]) -> None:
        self.norms = norms

    def _lift(self, n_features: int) -> Lift:
        norms = list(self.norms)
        if not norms:
            raise ValueError("Union needs at least one norm, got none")
        for norm in norms:
            if not isinstance(norm, Norm):
                raise TypeError(
                    f"Union: norms must be norm objects such as norms.L1(), got "
                    f"{type(norm).__name__}"
                )
            norm.check(n_features)
            if lift_of(norm, n_features) is None and not (
                isinstance(norm, SupportsProx) and isinstance(norm, SupportsRestriction)
            ):
                raise TypeError(
                    f"Union: {norm!r} has no proximal map, so that the parts cannot be re-fitted; "
                    "use a UserNorm whose oracle returns the best of both atoms"
                )
        return union([plain_lift(norm, n_features) for norm in norms])

    def with_names(self, names: Sequence[str]) -> Union:
        """Return the same norm with the names of columns in its parts replaced by indices."""
        return Union([named(norm, names) for norm in self.norms])
