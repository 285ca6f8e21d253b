"""Classes that forward attributes to an inner object, and wrappers of designs."""

from __future__ import annotations

from abc import update_abstractmethods
from collections.abc import Iterator
from functools import wraps
from operator import attrgetter
from typing import Any

from atomlearn._support import Array, Columns
from atomlearn.core.interfaces.design import Block, Design, RowAccess, Traits
from atomlearn.core.interfaces.scores import Scores


def forward(cls: type, inner: str, *forwarded: type | str) -> None:
    """Define attributes of ``cls`` that forward to the object in its attribute ``inner``.

    forwarded : names of attributes, or classes; a class means all its public attributes that
    ``cls`` does not define itself.
    """
    for each in forwarded:
        for name in [each] if isinstance(each, str) else vars(each).keys() - vars(cls).keys():
            if not name.startswith("_"):
                setattr(cls, name, _forwarded(inner, name, getattr(cls, name, None)))
    update_abstractmethods(cls)


def _forwarded(inner: str, name: str, declared: Any) -> Any:
    """Return a method or property that reads ``name`` of the object in the attribute ``inner``.

    ``declared`` is the attribute of the base class, which decides between method and property.
    """
    read = attrgetter(f"{inner}.{name}")
    if not callable(declared):
        return property(read)
    return wraps(declared)(lambda self, *args, **settings: read(self)(*args, **settings))


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
        """Store the design that answers."""
        self.inner = inner

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns."""
        return self.inner.scores(v)

    def gather(self, columns: Columns) -> Block:
        """Return these ``columns`` as a block."""
        return self.inner.gather(columns)

    def around(self, design: Design) -> Design:
        """Return ``design`` wrapped like the inner design, for wrappers that must not be lost.

        By default it is returned unwrapped.
        """
        return design


forward(Forwarding, "inner", Design, "shape")


def wrappers(design: Any) -> Iterator[Forwarding]:
    """Yield the forwarding wrappers around ``design``, the outermost first."""
    while isinstance(design, Forwarding):
        yield design
        design = design.inner


def unwrapped(design: Any) -> Any:
    """Return the design inside all forwarding wrappers of ``design``."""
    for wrapper in wrappers(design):
        design = wrapper.inner
    return design


class Derived(Design):
    """A design whose columns are functions of the columns of ``design``.

    Attributes that it does not define itself are those of ``design``.
    """

    def __init__(self, design: Design) -> None:
        """Store the design whose columns are used."""
        self.design = design
        self.traits = Traits(reads_at_once=design.traits.reads_at_once)
        self.dtype = self.design.dtype

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each column fit into memory."""
        return self.design.listable

    @property
    def row_access(self) -> RowAccess:  # type: ignore[override]
        """How the rows of the inner design are reached."""
        return self.design.row_access

    @property
    def searched(self) -> tuple[float, float]:
        """The work of searches over the inner design; see ``Design.searched``."""
        return self.design.searched
