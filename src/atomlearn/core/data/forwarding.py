"""Designs around one design: those that answer everything as it does, and those that change X."""

from __future__ import annotations

from abc import update_abstractmethods
from functools import wraps
from typing import Any

from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores


class Forwarding(Design):
    """A design that asks ``inner`` everything; wrappers inherit it and change what they change.

    It asks whatever Design asks, so an ability that is new reaches through every wrapper at once.

    Parameters
    ----------
    inner : Design

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import DenseDesign, Forwarding
    >>> class Loud(Forwarding):
    ...     def scores(self, v):
    ...         print("a pass")
    ...         return self.inner.scores(v)
    >>> z = Loud(DenseDesign(np.eye(3))).scores(np.ones(3))
    a pass
    """

    inner: Design

    def __init__(self, inner: Design) -> None:
        self.inner = inner
        self.shape = self.inner.shape

    def scores(self, v: Array) -> Scores:
        return self.inner.scores(v)

    def gather(self, columns: Columns) -> Block:
        return self.inner.gather(columns)


def _forwarded(name: str, question: Any) -> Any:
    """Return what asks ``inner`` a question of Design: a method, or a property."""
    if not callable(question):
        return property(lambda self: getattr(self.inner, name))
    return wraps(question)(lambda self, *given, **named: getattr(self.inner, name)(*given, **named))


def forward_the_rest(cls: type, *bases: type) -> None:
    """Have a class ask ``inner`` what its bases are asked and it does not answer itself."""
    for base in bases:
        for name, question in vars(base).items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _forwarded(name, question))
    update_abstractmethods(cls)


forward_the_rest(Forwarding, Design)


def unwrapped(design: Any) -> Any:
    """Return the design that answers, without those around it that only forward."""
    while isinstance(design, Forwarding):
        design = design.inner
    return design


class Derived(Design):
    """A design whose columns are made of those of ``design``: what is the same of both."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.reads_at_once = design.reads_at_once
        self.dtype = self.design.dtype

    @property
    def listable(self) -> bool:
        return self.design.listable

    @property
    def searched(self) -> tuple[float, float]:
        return self.design.searched
