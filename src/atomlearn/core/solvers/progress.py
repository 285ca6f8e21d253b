"""Progress: what stopping rules and observers see; Observer: what an observer may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from atomlearn.core.interfaces.solver import State, WarmStart
from atomlearn.core.problem.result import Record


def unchanged(warm: WarmStart) -> WarmStart:
    """Return the point as it is: the solver works on the problem's own coordinates."""
    return warm


@dataclass(slots=True)
class Progress:
    """What stopping rules and observers see after each step.

    state : the solver's state; passes : passes over the data so far; seconds : wall time so far,
    observers excluded; history : one Record a step, this one included; skipped : of Record;
    lowered : what takes a point of the solver to one of the problem as it was given.
    """

    state: State
    passes: float = 0.0
    seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    skipped: float | None = None
    lowered: Callable[[WarmStart], WarmStart] = unchanged

    @property
    def n_columns(self) -> int:
        """Number of columns with a non-zero weight."""
        return self.state.n_active()

    def warm_start(self) -> WarmStart:
        """Return this very point, as the place where another solve of the problem can begin."""
        return self.lowered(self.state.warm_start())


#: Called with the Progress after each step, outside the timed part.
Observer = Callable[[Progress], None]
