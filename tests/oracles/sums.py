"""Problems that are stated in sums over samples, as the papers state them, for ``solve``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn import solve
from atomlearn.designs import as_design
from atomlearn.result import Result


def weight_sum(X: object, sample_weight: Any = None) -> float:
    """Return the number of rows of X, or the sum of their weights; sites know their own."""
    if sample_weight is not None:
        return float(np.sum(sample_weight))
    # No conversion of what has a shape: a race would pay for it.
    held: Any = X if hasattr(X, "shape") else as_design(X)
    weight = getattr(held, "weight", None)
    return weight if isinstance(weight, float) else float(held.shape[0])


def solve_sum(
    X: object,
    y: object,
    *,
    level: float | None = None,
    tau: float = 0.0,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    **settings: Any,
) -> Result:
    """Minimize  sum_i s_i loss_i + level R(w) + (tau/2) ||w||^2;  the result is of this sum."""
    total = weight_sum(X, sample_weight) or 1.0
    penalty: dict[str, float] = {}
    if level is not None:
        penalty["alpha"] = (level + tau) / total
        penalty["l1_ratio"] = level / (level + tau)
    elif tau:
        penalty["alpha"] = tau / total
        penalty["l1_ratio"] = 0.0
    result = solve(
        X, y, fit_intercept=fit_intercept, sample_weight=sample_weight, **penalty, **settings
    )
    result.objective *= total
    result.gap *= total
    if result.search_gap is not None:
        result.search_gap *= total
    result.history = [
        replace(record, objective=total * record.objective, gap=total * record.gap)
        for record in result.history
    ]
    return result
