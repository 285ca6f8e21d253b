"""Ends: conditions on the solutions of a path at which it stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import whole_number
from atomlearn.core.losses.around import mean_loss
from atomlearn.core.problem.problem import Problem, gauge_of, loss_value, optimal_intercept
from atomlearn.core.problem.result import Result

#: Called with the problem of each level and its solution, in order; True ends the path there.
Reached = Callable[[Problem, Result], bool]
#: Called with the mean held-out score of each level of a cross-validation; True ends it there.
Settled = Callable[[float], bool]


class End(ABC):
    """Decides at which level a path ends; ``first | second`` ends it at the earlier of two ends.

    Examples
    --------
    >>> from atomlearn import paths
    >>> end = paths.NumberOfFeatures(50) | paths.ExplainedDeviance(0.99)
    """

    @abstractmethod
    def begin(self) -> Reached:
        """Return a new function to call at each level of one path; it may remember earlier levels.

        It takes the problem and the result of a level, and returns True to end the path there.
        """

    def begin_folds(self) -> tuple[Reached, Settled]:
        """Return the functions for one path of a cross-validation, and for its mean scores.

        The first is that of ``begin``. The second takes the mean held-out score of each level and
        returns True to end the search there; by default it never does.
        """
        return self.begin(), lambda score: False

    def __or__(self, other: End) -> End:
        """Return the end that is the earlier of this one and ``other``."""
        return _FirstOf((self, other))


@dataclass(frozen=True, slots=True)
class _FirstOf(End):
    """The earliest of several ends."""

    ends: tuple[End, ...]

    def begin(self) -> Reached:
        """Return the function that is True where any of the ends is reached; see ``End``."""
        ends = [end.begin() for end in self.ends]

        def reached(problem: Problem, result: Result) -> bool:
            """Return whether any end is reached at a level, from its problem and result."""
            # Call all of them: each remembers earlier levels.
            answers = [end(problem, result) for end in ends]
            return any(answers)

        return reached

    def begin_folds(self) -> tuple[Reached, Settled]:
        """Return two functions that are True where any of the ends is reached; see ``End``."""
        ends, settled = zip(*(end.begin_folds() for end in self.ends), strict=True)
        # Lists, so that all are called: each remembers earlier levels.
        return (
            lambda problem, result: True in [each(problem, result) for each in ends],
            lambda score: True in [each(score) for each in settled],
        )


@dataclass(frozen=True, slots=True)
class NumberOfFeatures(End):
    """End at the first level that selects ``count`` columns or more.

    Parameters
    ----------
    count : int
        Number of columns with a non-zero coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.0])
    >>> alphas = [0.7, 0.6, 0.25, 0.2]
    >>> until = paths.NumberOfFeatures(2)
    >>> paths.path(X, y, alphas=alphas, fit_intercept=False, until=until).alphas.tolist()
    [0.7, 0.6, 0.25]
    """

    count: int

    def begin(self) -> Reached:
        """Return the function that compares the number of selected columns; see ``End``."""
        count = whole_number("NumberOfFeatures", "count", self.count)
        return lambda problem, result: result.columns.size >= count


@dataclass(frozen=True, slots=True)
class ExplainedDeviance(End):
    """End at the first level at which 1 - f(fit) / f(no columns) reaches ``share``.

    f is the loss on the training rows. The fit without columns has the optimal intercept and the
    unpenalized columns, if any.

    Parameters
    ----------
    share : float
        In (0, 1]. The explained deviance of least squares with an intercept is R^2.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> paths.path(X, y, until=paths.ExplainedDeviance(0.9)).alphas.size < 100
    True
    """

    share: float

    def begin(self) -> Reached:
        """Return the function that computes the explained deviance of a level; see ``End``."""
        if not 0 < self.share <= 1:
            raise ValueError(f"ExplainedDeviance: share must be in (0, 1], got {self.share!r}")

        def reached(problem: Problem, result: Result) -> bool:
            """Return whether the loss of ``result`` is at most 1 - share times the null loss.

            The null loss is the loss without penalized columns, with the optimal intercept.
            ``problem`` is the problem of the level, on the training rows.
            """
            linear = np.zeros(problem.y.size)
            null_loss = loss_value(problem, linear, optimal_intercept(problem, linear))
            # The loss of the fit is its objective minus norm penalty and ridge term, which leave
            # out unpenalized columns.
            penalized = np.isin(
                result.columns, [] if problem.free is None else problem.free, invert=True
            )
            w = result.weights[penalized]
            penalty = problem.regularizer.value(gauge_of(problem, result.columns[penalized], w))
            loss = result.objective - penalty - 0.5 * problem.tau * float(w @ w)
            return loss <= (1.0 - self.share) * null_loss

        return reached


@dataclass(frozen=True, slots=True)
class NoImprovement(End):
    """End when the mean loss on other rows has not fallen for some levels.

    Parameters
    ----------
    X, y : array_like, optional
        Data and targets of the other rows, in any form that ``solve`` takes. A cross-validation
        does not need them: without them it compares its own mean held-out scores.
    patience : int, default=5
        Number of levels without a new lowest loss.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 30))
    >>> y = X[:, 0] + rng.standard_normal(60)
    >>> end = paths.NoImprovement(X[40:], y[40:])
    >>> paths.path(X[:40], y[:40], until=end).alphas.size < 100
    True
    """

    X: Any = None
    y: Any = None
    patience: int = 5

    def begin(self) -> Reached:
        """Return the function that computes the loss on the other rows; see ``End``."""
        if self.X is None or self.y is None:
            raise ValueError(
                "NoImprovement needs rows that the path does not use: NoImprovement(X, y); only a "
                "cross-validation needs none"
            )
        design = as_design(self.X)
        settled = self._settled()

        def reached(problem: Problem, result: Result) -> bool:
            """Return whether the loss on the other rows has not fallen for ``patience`` levels.

            ``result`` is the fit of the next level, ``problem`` has its loss.
            """
            target = problem.loss.check_target(self.y)
            predicted = result.predict(design)
            return settled(-mean_loss(problem.loss, target, predicted, np.ones(target.size)))

        return reached

    def begin_folds(self) -> tuple[Reached, Settled]:
        """Return functions of the loss on the other rows if given, else of mean scores."""
        if self.X is not None:
            return self.begin(), lambda score: False
        return lambda problem, result: False, self._settled()

    def _settled(self) -> Settled:
        """Return a function that is True once scores have not risen for ``patience`` levels."""
        patience = whole_number("NoImprovement", "patience", self.patience)
        highest = -np.inf
        n_levels_since = 0  # since the highest score

        def settled(score: float) -> bool:
            """Return whether to end at the next level, which has this ``score``."""
            nonlocal highest, n_levels_since
            n_levels_since = 0 if score > highest else n_levels_since + 1
            highest = max(highest, score)
            return n_levels_since >= patience

        return settled
