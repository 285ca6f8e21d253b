"""terms_of: a norm as a union of scaled terms, each of one kind of coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.norms.combine import Scaled


@dataclass(frozen=True, slots=True)
class Term:
    """factor * norm over W, or over the ``mode``-th unfolding of a tensor of shape ``tensor``.

    gauge(W) = inf { sum_i factor_i norm_i(W_i) : sum_i W_i = W } over the terms of a norm.
    """

    norm: Norm
    factor: float = 1.0
    tensor: tuple[int, ...] | None = None
    mode: int = 0


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


def scaled_terms(terms: list[Term], factor: float) -> list[Term]:
    """Return the terms with their factors multiplied."""
    return [replace(term, factor=term.factor * factor) for term in terms]
