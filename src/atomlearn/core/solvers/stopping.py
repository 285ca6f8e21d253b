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
        """Return the reason to stop after this step, or None to continue."""

    def __or__(self, other: StoppingRule) -> StoppingRule:
        check_rule(other)
        return FirstOf((self, other))


def check_rule(rule: object) -> None:
    """Raise TypeError unless this is a stopping rule."""
    if not isinstance(rule, StoppingRule):
        raise TypeError(
            f"stop must be a StoppingRule such as stopping.Seconds(60), got {type(rule).__name__}; "
            "stopping.Callback(function) makes one of a function"
        )


@dataclass(frozen=True, slots=True)
class FirstOf(StoppingRule):
    """Several rules; the reason is that of the first rule that has one."""

    rules: tuple[StoppingRule, ...]

    def reason(self, progress: Progress) -> Status | None:
        """Return the reason of the first rule that has one."""
        for rule in self.rules:
            if (status := rule.reason(progress)) is not None:
                return status
        return None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """The time limit of the rule in seconds."""
        return min(rule.seconds for rule in self.rules)

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        """The relative gap at which the rule reports convergence."""
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
        """Return the status if the rule holds after this step, else None."""
        certificate = progress.state.certificate
        return Status.CONVERGED if certificate.relative_gap <= self.tol else None

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        """The relative gap at which the rule reports convergence."""
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
        """Return the status if the rule holds after this step, else None."""
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
        """Return the status if the rule holds after this step, else None."""
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
        """Return the status if the rule holds after this step, else None."""
        return Status.TIME_LIMIT if progress.seconds >= self.limit else None

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """The time limit of the rule in seconds."""
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
        """Return the status if the rule holds after this step, else None."""
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
        """Return the status if the rule holds after this step, else None."""
        if len(progress.history) < 2:
            return None
        previous, now = (record.objective for record in progress.history[-2:])
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
        """Return the status if the rule holds after this step, else None."""
        return Status.STOPPED_BY_CALLBACK if self.function(progress) else None
