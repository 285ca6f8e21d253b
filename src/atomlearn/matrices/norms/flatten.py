"""terms_of: the terms of any norm made of matrix norms and norms of vectors."""

from __future__ import annotations

from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.norms.combine import Scaled
from atomlearn.lifting.union import Union
from atomlearn.matrices.norms.tensor import TensorTrace
from atomlearn.matrices.norms.terms import Term, scaled_terms


def terms_of(norm: Norm) -> list[Term]:
    """Return the terms whose union the norm is; one term where it is no union."""
    if isinstance(norm, Scaled):
        return scaled_terms(terms_of(norm.norm), norm.factor)
    if isinstance(norm, Union):
        return [term for part in norm.norms for term in terms_of(part)]
    if isinstance(norm, TensorTrace):
        return norm.terms()
    return [Term(norm)]
