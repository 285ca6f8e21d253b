"""Settings of the algorithms of the papers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What the papers leave open; none of it changes what is proved.

    ``benchmarks/tuning/rooms.py`` varies each number.
    """

    #: Feature generation: from this inner tolerance on first-order steps do for the subproblem.
    inexact: float = 1e-4
    #: Relative gap to which its optimum is found, where one is wanted.
    finished: float = 1e-12
    #: Rounds without one more feature after which the optimum itself is looked for ...
    settled: int = 10
    #: ... and where all may be selected, so that nothing but the optimum is wanted.
    settled_of_all: int = 3


SETTINGS = Settings()
