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
    """A rule that ends a run: it returns the reason to stop, or None.

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
        """Return the reason to stop after a step, described by ``progress``, or None."""

    def __or__(self, other: StoppingRule) -> StoppingRule:
        """Return the rule that stops when this rule or ``other`` has a reason."""
        check_rule(other)
        return FirstOf((self, other))


def check_rule(rule: object) -> None:
    """Raise TypeError unless ``rule`` is a StoppingRule."""
    if not isinstance(rule, StoppingRule):
        raise TypeError(
            f"stop must be a StoppingRule such as stopping.Seconds(60), got {type(rule).__name__}; "
            "stopping.Callback(function) makes one of a function"
        )


@dataclass(frozen=True, slots=True)
class FirstOf(StoppingRule):
    """Several rules in one; it stops for the reason of the first rule that has one.

    ``rules`` is a tuple of rules; the order decides between several reasons.
    """

    rules: tuple[StoppingRule, ...]

    def reason(self, progress: Progress) -> Status | None:
        """Return the first reason that a rule gives for ``progress``, or None if all continue."""
        for rule in self.rules:
            if (status := rule.reason(progress)) is not None:
                return status
        return None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """The smallest time limit of the rules, in seconds."""
        return min(rule.seconds for rule in self.rules)

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        """The largest relative gap at which one of the rules returns CONVERGED."""
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
        """Return CONVERGED if the relative gap of ``progress`` is at most ``tol``, else None."""
        certificate = progress.state.certificate
        return Status.CONVERGED if certificate.relative_gap <= self.tol else None

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        """The relative gap at which the rule returns CONVERGED: ``tol``."""
        return self.tol


@dataclass(frozen=True, slots=True)
class Iterations(StoppingRule):
    """Stop after this number of steps.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Iterations(100) | stopping.Seconds(60)
    """

    limit: int

    def reason(self, progress: Progress) -> Status | None:
        """Return ITERATION_LIMIT if ``progress`` has made ``limit`` steps or more, else None."""
        return Status.ITERATION_LIMIT if progress.state.iteration >= self.limit else None


@dataclass(frozen=True, slots=True)
class Passes(StoppingRule):
    """Stop after about this number of passes over the data (checked between steps).

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Passes(100) | stopping.Seconds(60)
    """

    limit: float

    def reason(self, progress: Progress) -> Status | None:
        """Return PASS_LIMIT if ``progress`` has made ``limit`` passes over the data, else None."""
        return Status.PASS_LIMIT if progress.passes >= self.limit else None


@dataclass(frozen=True, slots=True)
class Seconds(StoppingRule):
    """Stop after about this number of seconds of wall time, without the time of observers.

    Checked between steps, and within long ones through the problem's deadline.

    Examples
    --------
    >>> from atomlearn.solvers import stopping
    >>> rule = stopping.Seconds(60) | stopping.Seconds(60)
    """

    limit: float

    def reason(self, progress: Progress) -> Status | None:
        """Return TIME_LIMIT if the run of ``progress`` has taken ``limit`` seconds, else None."""
        return Status.TIME_LIMIT if progress.seconds >= self.limit else None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """The time limit in seconds: ``limit``."""
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
        """Return TARGET_REACHED if the objective of ``progress`` is at most ``value``."""
        is_reached = progress.state.certificate.objective <= self.value
        return Status.TARGET_REACHED if is_reached else None


@dataclass(frozen=True, slots=True)
class RelativeChange(StoppingRule):
    r"""Stop once a step changes the objective by at most tol * \|objective\|.

    This is the rule of [L] section 4, with 1e-4. A small change proves nothing: the status is
    ``SMALL_CHANGE``, or CONVERGED if the gap is within the tolerance as well. Steps that return the
    same point as before, because they found no better one, do not count.

    Parameters
    ----------
    tol : float
        Largest relative change.

    References
    ----------
    [L] Liu, Yuan, Zhang, Liu, Metaxas 2016, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.solvers import FISTA, stopping
    >>> X, y = np.vander([1.0, 2.0, 3.0, 4.0], 4), np.array([1.0, 3.0, 2.0, 5.0])
    >>> rule = stopping.RelativeChange(0.1)
    >>> result = solve(X, y, alpha=0.1, solver=FISTA(iterations=1), stop=rule)
    >>> result.status.name, result.relative_gap > 0.01
    ('SMALL_CHANGE', True)
    """

    tol: float

    def reason(self, progress: Progress) -> Status | None:
        """Return SMALL_CHANGE if the last two objectives of ``progress`` are nearly equal."""
        if len(progress.history) < 2:
            return None
        previous, now = (record.objective for record in progress.history[-2:])
        # A change of exactly 0 means that the step found no better point.
        small = 0.0 < abs(previous - now) <= self.tol * abs(previous)
        return Status.SMALL_CHANGE if small else None


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
        """Return STOPPED_BY_CALLBACK if ``function`` returns true for ``progress``, else None."""
        return Status.STOPPED_BY_CALLBACK if self.function(progress) else None
