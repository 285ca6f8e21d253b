"""What norms made of norms ask of the norm inside, with a sentence where it cannot."""

from __future__ import annotations

from atomlearn.core.interfaces.norm import Norm


def check_inside(norm: object, owner: str, absolute: bool) -> None:
    if not isinstance(norm, Norm):
        raise TypeError(
            f"{owner}: norm must be a norm object such as norms.KSupport(k=10), "
            f"got {type(norm).__name__}"
        )
    if absolute and not norm.absolute:
        raise TypeError(
            f"{owner} needs a norm of vectors that depends on |w| only and grows with it, "
            f"got {norm!r}; use l1, l2, groups or k-support"
        )
