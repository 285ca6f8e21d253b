"""Deadline: the moment by which long work should come to an end, and return what it has."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from atomlearn.core.interfaces.numbers import positive


class TimeIsUp(Exception):
    """The moment came within one long piece of work; ``run`` keeps the last certified point."""


@dataclass(eq=False, slots=True)
class Work:
    """How many more steps a run may make, of those that loops count with ``Deadline.use_step``."""

    left: int


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, or never.

    A ``Problem`` carries one. Masters ask ``problem.deadline.use_step()`` once a step of their
    loops, and other long work ``passed``: once it has, they return the best point they have, with
    its certificate, and ``run`` ends with ``Status.TIME_LIMIT``. Asking costs nothing if there is
    no limit.

    Parameters
    ----------
    at : float
        Value of ``time.monotonic()`` from which on it has passed; infinite: never.
    work : Work, optional
        Steps after which it has passed too, whatever the clock says: as many on every machine.

    Examples
    --------
    >>> Deadline().passed
    False
    >>> Deadline.after(-1.0).sooner(Deadline.after(60.0)).passed
    True
    """

    at: float = math.inf
    work: Work | None = None

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline so many seconds from now."""
        return cls(time.monotonic() + seconds)

    @classmethod
    def limited(cls, time_limit: float | None) -> Deadline:
        """Return the deadline of a limit in seconds from now, checked; of None it is never."""
        if time_limit is None:
            return cls()
        return cls.after(positive("time_limit", time_limit, "seconds, for example 60"))

    @classmethod
    def current(cls) -> Deadline:
        """Return that of the step that this thread makes: never outside of a run."""
        return _current.get()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Make it the ``current`` one of this thread, or a sooner one that is so already."""
        before = _current.get()
        try:  # before anything is set: Ctrl-C may come between any two lines
            _current.set(self.sooner(before))
            yield
        finally:
            _current.set(before)

    def check(self) -> None:
        """Raise ``TimeIsUp`` where the moment has come: for long work whose parts are no use."""
        if self.passed:
            raise TimeIsUp

    def use_step(self) -> bool:
        """Use up one step; return whether the deadline has passed."""
        if self.work is not None:
            self.work.left -= 1
        return self.passed

    @property
    def passed(self) -> bool:
        """Whether the moment has come, or all steps are made."""
        return self.exhausted or time.monotonic() >= self.at

    @property
    def exhausted(self) -> bool:
        """Whether all steps are made."""
        return self.work is not None and self.work.left < 0

    @property
    def left(self) -> float:
        """Seconds until the moment: infinite for never, 0 where it has come."""
        return max(self.at - time.monotonic(), 0.0)

    def sooner(self, other: Deadline) -> Deadline:
        """Return whichever of the two passes first."""
        first = self if self.at <= other.at else other
        work = self.work or other.work
        return first if first.work is work else Deadline(first.at, work)


# A deadline is never changed.
_current: ContextVar[Deadline] = ContextVar("deadline", default=Deadline())  # noqa: B039
