"""LastAnswer: what a loss found at the last point, as value, gradient and proof ask in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LastAnswer:
    """The answer to the last question, for as long as the same is asked again.

    Answers are replaced whole, never changed, so that threads lose nothing but work; copies and
    pickles begin without one.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[Any, ...], Any] | None = None

    @property
    def answer(self) -> Any:
        """What was found last, None at first."""
        return None if self._known is None else self._known[1]

    def of(self, find: Callable[[], Any], *given: Any) -> Any:
        """Return what was found of these arrays, or find it."""
        known = self._known
        if known is None or not all(map(_same, known[0], given)):
            known = tuple(array.copy() for array in given), find()
            self._known = known
        return known[1]

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return LastAnswer, ()


def _same(one: Any, other: Any) -> bool:
    return one is other or (one.shape == other.shape and bool((one == other).all()))
