"""What norms made of norms ask of the norm inside, with a sentence where it cannot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.design import Columns
from atomlearn.core.interfaces.lift import Lift, SupportsLift
from atomlearn.core.interfaces.norm import (
    Mask,
    Norm,
    SupportsProx,
    SupportsRestriction,
    SupportsScreening,
)
from atomlearn.core.norms.base import VectorNorm
from atomlearn.lifting.latent import LatentNorm

Array = NDArray[np.float64]


def with_prox(norm: Norm, owner: str) -> SupportsProx:
    if not isinstance(norm, SupportsProx):
        raise TypeError(
            f"{owner} of {norm!r} has no proximal map because {type(norm).__name__} has none; "
            "use a solver over atoms"
        )
    return norm


def lift_inside(norm: Norm, n_features: int) -> Lift | None:
    return norm.lift(n_features) if isinstance(norm, SupportsLift) else None


def restriction(norm: Norm, columns: Columns, n_features: int, owner: str) -> Norm:
    if not isinstance(norm, SupportsRestriction):
        raise TypeError(
            f"{owner} of {norm!r} cannot be restricted to columns because "
            f"{type(norm).__name__} cannot; use a solver over atoms"
        )
    return norm.restrict(columns, n_features)


def least_polar_inside(norm: Norm, z: Array, error: Array) -> float:
    return norm.least_polar(z, error) if isinstance(norm, VectorNorm) else 0.0


def possible_support_inside(norm: Norm, z: Array, error: Array, polar: float) -> Mask | None:
    if not isinstance(norm, SupportsScreening):
        return None
    return norm.possible_support(z, error, polar)


def check_inside(norm: object, owner: str, absolute: bool) -> None:
    if not isinstance(norm, Norm):
        raise TypeError(
            f"{owner}: norm must be a norm object such as norms.KSupport(k=10), "
            f"got {type(norm).__name__}"
        )
    if absolute and not (isinstance(norm, VectorNorm | LatentNorm) and norm.absolute):
        raise TypeError(
            f"{owner} needs a norm of vectors that depends on |w| only and grows with it, "
            f"got {norm!r}; use l1, l2, groups or k-support"
        )
