"""Deadline: the time at which long computations stop and return their best point so far."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from atomlearn._support.numbers import positive


class TimeIsUp(Exception):
    """The deadline passed within a computation without partial results; ``run`` handles it."""


@dataclass(eq=False, slots=True)
class Work:
    """The number of steps left in a run; ``Deadline.use_step`` counts them."""

    left: int


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time of the monotonic clock, or never.

    Every ``Problem`` has one. Masters call ``problem.deadline.use_step()`` in each step of their
    loops, and other long computations read ``passed``. After the deadline they return their best
    point with its certificate, and ``run`` ends with ``Status.TIME_LIMIT``.

    Parameters
    ----------
    at : float
        The deadline, a value of ``time.monotonic()``; infinite: never.
    work : Work, optional
        The number of steps left, after which the deadline passes independently of the clock; it
        makes runs reproducible.

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
        """Return the deadline in ``seconds`` from now."""
        return cls(time.monotonic() + seconds)

    @classmethod
    def limited(cls, time_limit: float | None) -> Deadline:
        """Return the deadline after ``time_limit`` seconds; None: never. The number is checked."""
        if time_limit is None:
            return cls()
        return cls.after(positive("time_limit", time_limit, "seconds, for example 60"))

    @classmethod
    def current(cls) -> Deadline:
        """Return the deadline of the step that this thread is making; outside of a run, never."""
        return _current.get()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Make this the ``current`` deadline of the thread within a ``with`` block.

        If the thread already has an earlier deadline, that one remains in force.
        """
        previous = _current.get()
        # The try block begins before the deadline is set, as Ctrl-C may come between any two lines.
        try:
            _current.set(self.sooner(previous))
            yield
        finally:
            _current.set(previous)

    def check(self) -> None:
        """Raise ``TimeIsUp`` after the deadline, for computations without partial results."""
        if self.passed:
            raise TimeIsUp

    def use_step(self) -> bool:
        """Count one step; return whether the deadline has passed."""
        if self.work is not None:
            self.work.left -= 1
        return self.passed

    @property
    def passed(self) -> bool:
        """Whether the time has come, or no steps are left."""
        return self.exhausted or time.monotonic() >= self.at

    @property
    def exhausted(self) -> bool:
        """Whether no steps are left."""
        return self.work is not None and self.work.left < 0

    @property
    def left(self) -> float:
        """Seconds until the deadline: infinite for never, 0 after it."""
        return max(self.at - time.monotonic(), 0.0)

    def sooner(self, other: Deadline) -> Deadline:
        """Return the deadline that passes when either this one or ``other`` does.

        If both count steps, only the steps of this one are counted.
        """
        first = self if self.at <= other.at else other
        work = self.work or other.work
        return first if first.work is work else Deadline(first.at, work)


# A deadline is never changed.
_current: ContextVar[Deadline] = ContextVar("deadline", default=Deadline())  # noqa: B039
