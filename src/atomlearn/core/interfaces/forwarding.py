"""Classes that forward attributes to an inner object, and wrappers of designs."""

from __future__ import annotations

from abc import update_abstractmethods
from collections.abc import Iterator
from functools import wraps
from operator import attrgetter
from typing import Any

from atomlearn.core.interfaces.arrays import Array, Columns
from atomlearn.core.interfaces.design import Block, Design, RowAccess, Traits
from atomlearn.core.interfaces.scores import Scores


def forward(cls: type, inner: str, *asked: type | str) -> None:
    """Define attributes of ``cls`` that forward to its attribute ``inner``.

    asked : names of attributes, or classes, which stand for all their public attributes that
    ``cls`` does not define itself.
    """
    for each in asked:
        for name in [each] if isinstance(each, str) else vars(each).keys() - vars(cls).keys():
            if not name.startswith("_"):
                setattr(cls, name, _forwarded(inner, name, getattr(cls, name, None)))
    update_abstractmethods(cls)


def _forwarded(inner: str, name: str, question: Any) -> Any:
    """Return a method or property that reads ``name`` of the inner object."""
    ask = attrgetter(f"{inner}.{name}")
    if not callable(question):
        return property(ask)
    return wraps(question)(lambda self, *given, **named: ask(self)(*given, **named))


class Forwarding(Design):
    """A design that forwards everything to ``inner``; wrappers override what they change.

    Every public attribute of ``Design`` is forwarded, new ones included.

    Parameters
    ----------
    inner : Design

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.interfaces.forwarding import Forwarding
    >>> from atomlearn.core.data.dense import DenseDesign
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

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns."""
        return self.inner.scores(v)

    def gather(self, columns: Columns) -> Block:
        """Return these columns as a block."""
        return self.inner.gather(columns)

    def around(self, design: Design) -> Design:
        """Return another design in this wrapper, if the wrapper should follow it."""
        return design


forward(Forwarding, "inner", Design, "shape")


def wrappers(design: Any) -> Iterator[Forwarding]:
    """Yield the forwarding wrappers around a design, the outermost first."""
    while isinstance(design, Forwarding):
        yield design
        design = design.inner


def unwrapped(design: Any) -> Any:
    """Return the design inside all its forwarding wrappers."""
    for wrapper in wrappers(design):
        design = wrapper.inner
    return design


class Derived(Design):
    """A design whose columns are functions of the columns of ``design``; forwards the rest."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.traits = Traits(reads_at_once=design.traits.reads_at_once)
        self.dtype = self.design.dtype

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each column fit into memory."""
        return self.design.listable

    @property
    def row_access(self) -> RowAccess:  # type: ignore[override]
        return self.design.row_access

    @property
    def searched(self) -> tuple[float, float]:
        return self.design.searched
