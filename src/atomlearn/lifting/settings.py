"""Settings of lifted norms: how exactly their values and parts are found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Accuracies and bounds of the small problems behind a value; each ends with a proved gap.

    ``benchmarks/sensitivity.py`` varies each of them.
    """

    #: Relative gap at which the alternating directions of a value end ...
    gap: float = 1e-8
    #: ... and the iterations after which they give up.
    most_iterations: int = 100_000
    #: Relative gap of the decomposition of w into parts of groups.
    decomposed_gap: float = 1e-10


SETTINGS = Settings()
