"""What is inside of scaled norms."""

from __future__ import annotations

from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.norms.combine import Scaled


def unscaled(norm: Norm) -> Norm:
    """Return the norm inside all ``Scaled``."""
    while isinstance(norm, Scaled):
        norm = norm.norm
    return norm


def scale_of(norm: Norm) -> float:
    """Return the product of the factors of all ``Scaled`` around the norm inside."""
    factor = 1.0
    while isinstance(norm, Scaled):
        factor *= norm.factor
        norm = norm.norm
    return factor
