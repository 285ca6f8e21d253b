"""Least squares over rays from X'X and X'y alone, as [V] 3.3 has it: no pass over X a step.

1/2 sum_i s_i (y_i - x_i'w - b)^2 is 1/2 ||t - R w||^2 + c once b is minimized out, with R'R the
moments of the (centered) columns: as many rows as there are columns, however many samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.moments import from_moments
from atomlearn.core.interfaces import Array, Deadline
from atomlearn.core.losses.squared import Squared
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import growth
from atomlearn.core.solvers.centered_columns import centered_columns

if TYPE_CHECKING:
    from atomlearn.core.solvers.atom_generation import RayState


#: Moments are taken of so many columns at most, and where samples are so many times as many: then
#: they cost about as much as p / 20 passes.
MOST_COLUMNS, TIMES_COLUMNS = 1000, 4


@dataclass(frozen=True, slots=True)
class Moments:
    """problem : the one over R and t, without an intercept; constant : c; means : of the columns.

    shift : mean of y; size : (sum_i s_i y_i^2)^1/2 of the centered y; n_samples : of X.
    """

    problem: Problem
    constant: float
    means: Array
    shift: float
    size: float
    n_samples: int

    @classmethod
    def of(cls, problem: Problem) -> Moments | None:
        """Return the problem over the moments, None where there is none, or it does not pay."""
        (n_samples, n_features), loss = problem.design.shape, problem.loss
        enough = TIMES_COLUMNS * n_features <= n_samples and n_features <= MOST_COLUMNS
        if not (enough and isinstance(loss, Squared) and problem.metric is None):
            return None
        weight, y, total = problem.weight, problem.y, float(problem.weight.sum())
        shift = float(weight @ y) / total if problem.fit_intercept else 0.0
        y = y - shift
        X, lengths = centered_columns(problem, np.arange(n_features))
        # Asked of the design, so that the reading counts as the pass that it is.
        gram, correlation = X.gram(weight), problem.design.scores(weight * y).full()
        means = lengths.offsets
        if means.any():
            correlation = X.transpose_dot(weight * y)
        if problem.fit_intercept:
            rest = X.transpose_dot(weight) / total
            before, means = np.diag(gram), means + rest
            gram = gram - total * np.outer(rest, rest)
            if (np.diag(gram) < LIMITS.cancelled * before).any():
                return None
        square = float(weight @ (y * y))
        try:
            R, t = from_moments(gram, correlation)
        except ValueError:  # too ill-conditioned: rounding would count
            return None
        smaller = replace(
            problem, design=R, y=t, weight=np.ones(t.size), fit_intercept=False, origin=0.0
        )
        constant = 0.5 * (square - float(t @ t))
        return cls(smaller, constant, means, shift, float(np.sqrt(square)), n_samples)

    def until(self, deadline: Deadline) -> Problem:
        """Return the problem, to be solved by then."""
        return replace(self.problem, deadline=deadline)

    def told(self, problem: Problem, state: RayState, tolerance: float) -> RayState:
        """Return the state with intercept and certificate of ``problem``, the one over X.

        What rounding of the moments may hide widens the gap; it bounds the objective's distance to
        the optimum of the rest, F less c, which losses over X do not know to be positive. Once the
        relative gap is within ``tolerance``, prediction and objective are made of X itself.
        """
        assert state.atoms is not None
        state.moments = self
        state.intercept = self.shift - float(self.means[state.columns] @ state.weights)
        if not problem.fit_intercept:
            state.intercept = 0.0
        images = np.sqrt(state.atoms.images.squared_norms())
        reach = self.size + float(state.shares @ images)
        slack = growth(self.n_samples) * reach * reach
        state.certificate = replace(
            state.certificate, objective=max(state.certificate.objective + self.constant, 0.0)
        ).widened(slack)
        if state.certificate.relative_gap <= tolerance:
            X = problem.design.gather(state.columns)
            state.prediction = X.dot(state.weights) + state.intercept
            gauge = float(state.shares.sum())
            objective = problem.objective(state.weights, state.prediction, gauge)
            known = replace(state.certificate, objective=objective)
            v = problem.negative_gradient(state.prediction)
            lengths = problem.measured.of(problem, state.columns)
            at = state.weights, state.prediction, v, state.columns
            state.certificate = problem.rounded(known, *at, lengths)
        return state
