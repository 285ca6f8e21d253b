"""Result: what a fit found, how close to optimal it is proved to be, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = NDArray[np.int64]

_TINY = float(np.finfo(np.float64).tiny)


class Status(Enum):
    """Why a fit ended, as a sentence with a remedy. Only CONVERGED claims the requested gap."""

    CONVERGED = "converged: the duality gap at the returned point proves the requested accuracy"
    TARGET_REACHED = "the target objective was reached; the gap tells how far the optimum can be"
    ITERATION_LIMIT = "iteration limit reached before the gap; raise max_iter or loosen the gap"
    PASS_LIMIT = "limit of passes over the data reached before the gap; raise it or loosen the gap"
    TIME_LIMIT = "time limit reached before the gap; raise it or loosen the gap"
    COLUMN_LIMIT = "the requested number of columns was reached"
    SELECTED = "the rule of feature generation stopped the search; the gap is that of its point"
    SMALL_CHANGE = (
        "the objective changed by less than the relative change asked for, which proves nothing; "
        "the gap tells how far the optimum can be"
    )
    STOPPED_BY_CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard; this is the best point found until then"
    STALLED = (
        "no further progress is possible in double precision; the gap is what could be proved. "
        "Rescale the columns or the target, or ask for a looser gap"
    )

    def __str__(self) -> str:
        return self.value

    @property
    def is_converged(self) -> bool:
        """True only where the requested gap is proved."""
        return self is Status.CONVERGED


@dataclass(frozen=True, slots=True)
class Certificate:
    """Objective F(w, b) and a proved bound gap >= F(w, b) - F* of the same point.

    polar : gauge°(z) of the scores z of the smooth part's negative gradient there.
    """

    objective: float
    gap: float
    polar: float

    @property
    def relative_gap(self) -> float:
        """Return gap / max(|objective|, smallest normal number)."""
        return self.gap / max(abs(self.objective), _TINY)


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a fit's history. Seconds since the start; passes over the data so far.

    skipped : over implicit pairs of columns, the share of the multiplications so far that bounds
    made unnecessary; None where nothing was searched.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float
    gap: float
    relative_gap: float
    n_columns: int
    skipped: float | None = None


@dataclass(slots=True)
class Result:
    """The outcome of ``solve``.

    Attributes
    ----------
    columns : (m,) int64
        Columns of X with a non-zero coefficient, increasing.
    weights : (m,) float64
        Their coefficients.
    intercept : float
        Unpenalized intercept, 0.0 where none was asked for.
    objective, gap, relative_gap : float
        F at this point and the proved bound on F - F*, absolute and divided by abs(F).
    status : Status
        Why the fit ended; ``str(status)`` is a sentence.
    passes : float
        Passes over the data: one X'v or one dense X w over all columns is one pass.
    seconds : float
        Wall time of the loop.
    history : list of Record
        One record for each step.
    parts : list of Part, or None
        For norms with latent parts: what w is the sum of, one for each set in use, with its
        number, name, columns and weights.
    lifted : (columns, weights), or None
        The same in the lifted coordinates, from which another fit can start.
    """

    columns: Columns
    weights: Array
    intercept: float
    objective: float
    gap: float
    relative_gap: float
    status: Status
    passes: float
    seconds: float
    n_features: int
    dtype: np.dtype[Any]
    iterations: int
    history: list[Record] = field(default_factory=list)
    parts: list[Any] | None = None
    lifted: tuple[Columns, Array] | None = None
    state: Any = field(default=None, repr=False)

    #: Above this many features ``coef`` is refused and ``columns``/``weights`` are the answer.
    MAX_DENSE = 2**31

    @property
    def coef(self) -> NDArray[Any]:
        """Coefficients as a dense (n_features,) array in the dtype of X."""
        if self.n_features > self.MAX_DENSE:
            raise ValueError(
                f"coef would need {self.n_features} entries; use result.columns and result.weights"
            )
        dense = np.zeros(self.n_features, dtype=self.dtype)
        dense[self.columns] = self.weights
        return dense

    @property
    def active(self) -> Columns:
        """The selected columns: those with a non-zero coefficient."""
        return self.columns

    @property
    def converged(self) -> bool:
        """True where the requested gap is proved at this point."""
        return self.status.is_converged
