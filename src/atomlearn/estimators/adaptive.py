"""Second fits: with weights from a first one, and without a penalty on what was selected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import is_number
from atomlearn.core.paths.relax import relaxed
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result


def checked_power(adaptive: Any) -> float:
    """Return the power of adaptive weights as a float >= 0, or say what is wrong with it."""
    if not is_number(adaptive):
        raise TypeError(f"adaptive must be a number >= 0 (0: no second fit), got {adaptive!r}")
    if not (math.isfinite(adaptive) and adaptive >= 0):
        raise ValueError(f"adaptive must be finite and >= 0 (0: no second fit), got {adaptive!r}")
    return float(adaptive)


def adapted(problem: Problem, result: Result, power: float) -> Problem:
    """Return the problem with weights 1 / |w_j|^power of its first solution w.

    Columns that the first fit did not select are left out of the second.
    """
    return problem.with_norm(problem.regularizer.norm.adapted(dense(result), power))


def dense(result: Result) -> NDArray[np.float64]:
    """Return w (n_features,) of a result, in float64."""
    w = np.zeros(result.n_features)
    w[result.columns] = result.weights
    return w


def blended(problems: Sequence[Problem], results: Sequence[Result], share: float) -> list[Result]:
    """Return each fit with its share of the refit on what was selected."""
    return [
        relaxed(problem, result, share) for problem, result in zip(problems, results, strict=True)
    ]
