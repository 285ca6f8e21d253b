"""Stopping rules: each looks at the progress and returns a Status, or None to continue.

Rules compose: ``RelativeGap(1e-6) | Passes(100) | Seconds(60)`` stops at the first that has a
reason. Units are in the names.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.solvers.progress import Progress


class StoppingRule(ABC):
    """Gives the reason to stop, or None.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> class Sparse(stopping.StoppingRule):
    ...     def reason(self, progress):
    ...         return stopping.Status.COLUMN_LIMIT if progress.n_columns > 9 else None
    >>> rule = Sparse() | stopping.Seconds(60)
    """

    #: Seconds after which the rule stops a run; infinite if it may never do so.
    seconds: float = math.inf
    #: The relative gap at which the rule returns CONVERGED; 0.0 if it never does.
    relative_gap: float = 0.0

    @abstractmethod
    def reason(self, progress: Progress) -> Status | None:
        """Return why to stop after this step, or None."""

    def __or__(self, other: StoppingRule) -> StoppingRule:
        check_rule(other)
        return FirstOf((self, other))


def check_rule(rule: object) -> None:
    """Raise TypeError if this is no stopping rule."""
    if not isinstance(rule, StoppingRule):
        raise TypeError(
            f"stop must be a StoppingRule such as stopping.Seconds(60), got {type(rule).__name__}; "
            "stopping.Callback(function) makes one of a function"
        )


@dataclass(frozen=True, slots=True)
class FirstOf(StoppingRule):
    """The first of several rules that has a reason."""

    rules: tuple[StoppingRule, ...]

    def reason(self, progress: Progress) -> Status | None:
        for rule in self.rules:
            if (status := rule.reason(progress)) is not None:
                return status
        return None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return min(rule.seconds for rule in self.rules)

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        return max(rule.relative_gap for rule in self.rules)


@dataclass(frozen=True, slots=True)
class RelativeGap(StoppingRule):
    """gap <= tol * max(\\|objective\\|, tiny): the only rule that means CONVERGED.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.RelativeGap(1e-6) | stopping.Seconds(60)
    """

    tol: float

    def reason(self, progress: Progress) -> Status | None:
        certificate = progress.state.certificate
        return Status.CONVERGED if certificate.relative_gap <= self.tol else None

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        return self.tol


@dataclass(frozen=True, slots=True)
class Iterations(StoppingRule):
    """At most this many steps.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Iterations(100) | stopping.Seconds(60)
    """

    limit: int

    def reason(self, progress: Progress) -> Status | None:
        return Status.ITERATION_LIMIT if progress.state.iteration >= self.limit else None


@dataclass(frozen=True, slots=True)
class Passes(StoppingRule):
    """At most about this many passes over the data (checked between steps).

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Passes(100) | stopping.Seconds(60)
    """

    limit: float

    def reason(self, progress: Progress) -> Status | None:
        return Status.PASS_LIMIT if progress.passes >= self.limit else None


@dataclass(frozen=True, slots=True)
class Seconds(StoppingRule):
    """At most about this number of seconds of wall time, time of observers excluded.

    Checked between steps, and within long ones through the problem's deadline.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Seconds(60) | stopping.Seconds(60)
    """

    limit: float

    def reason(self, progress: Progress) -> Status | None:
        return Status.TIME_LIMIT if progress.seconds >= self.limit else None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return self.limit


@dataclass(frozen=True, slots=True)
class TargetObjective(StoppingRule):
    """Stop as soon as the objective is at or below this value.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.TargetObjective(1.5) | stopping.Seconds(60)
    """

    value: float

    def reason(self, progress: Progress) -> Status | None:
        reached = progress.state.certificate.objective <= self.value
        return Status.TARGET_REACHED if reached else None


@dataclass(frozen=True, slots=True)
class Callback(StoppingRule):
    """Stop when ``function(progress)`` is true.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Callback(lambda progress: progress.n_columns > 9) | stopping.Seconds(60)
    """

    function: Callable[[Progress], bool]

    def reason(self, progress: Progress) -> Status | None:
        return Status.STOPPED_BY_CALLBACK if self.function(progress) else None
