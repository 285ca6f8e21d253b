"""race: the same problem to the same accuracy, side by side, one round after the other."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn.result import Result

#: A run that takes longer than this is not repeated.
ONCE_ABOVE_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its time, the objective it reached, and what it says about its own accuracy.

    passes over the data are known for our solvers only; ended : why it stopped, in a word.
    """

    seconds: float
    objective: float
    relative_gap: float = math.nan
    passes: float = math.nan
    n_selected: int = -1
    ended: str = ""

    @property
    def was_cut(self) -> bool:
        """True where it did not come to its own end."""
        return self.ended in ("TIME_LIMIT", "PASS_LIMIT", "ITERATION_LIMIT", "STALLED")


class Entrant(ABC):
    """A solver with its settings, ready to run to the accuracy asked for."""

    name: str

    @property
    def settings(self) -> str:
        """What it is run with, in a few words."""
        return ""

    @abstractmethod
    def run(self) -> Outcome:
        """Solve once, from nothing."""


def solve_outcome(result: Result) -> Outcome:
    """Return the outcome of a fit of ours, timed by the one loop."""
    return Outcome(
        result.seconds,
        result.objective,
        result.relative_gap,
        result.passes,
        result.columns.size,
        result.status.name,
    )


def race(
    entrants: Sequence[Entrant], repeats: int, reference: float = math.inf
) -> list[dict[str, Any]]:
    """Run all entrants round by round; return a row for each: medians, and ratios to the first.

    ``reference`` is an objective known from elsewhere; the best known counts as optimal. Rounds
    are interleaved and each begins with another entrant, so that a busy minute hits all alike.
    Long runs (over a minute) and runs that were cut short are made once.
    """
    runs: list[list[Outcome]] = [[] for _ in entrants]
    for turn in range(repeats):
        for shift in range(len(entrants)):
            which = (turn + shift) % len(entrants)
            if turn and (runs[which][0].was_cut or runs[which][0].seconds > ONCE_ABOVE_S):
                continue
            runs[which].append(entrants[which].run())
    best = min(reference, *(run.objective for group in runs for run in group))
    medians = [float(np.median([run.seconds for run in group])) for group in runs]
    rows = []
    for entrant, group, median in zip(entrants, runs, medians, strict=True):
        last = replace(group[-1], seconds=median)
        rows.append(
            {
                "solver": entrant.name,
                "settings": entrant.settings,
                "seconds": median,
                "ratio": median / medians[0] if medians[0] else math.nan,
                "least_s": min(run.seconds for run in group),
                "most_s": max(run.seconds for run in group),
                "runs": len(group),
                "suboptimality": (last.objective - best) / abs(best) if best else math.nan,
                "relative_gap": last.relative_gap,
                "passes": last.passes,
                "selected": last.n_selected,
                "ended": last.ended,
            }
        )
    return rows
