"""Best subsets of problems that are stated in sums over samples, for ``solve_subset``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from atomlearn import solve_subset
from atomlearn.subsets.result import SubsetResult
from tests.oracles.sums import weight_sum


def subset_sum(
    X: object,
    y: object,
    *,
    ridge: float | None = None,
    price: float | None = None,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    **settings: Any,
) -> SubsetResult:
    """Minimize  sum_i s_i loss_i + (ridge/2) ||w||^2 + price * (number of columns)."""
    total = weight_sum(X, sample_weight)
    result = solve_subset(
        X,
        y,
        l2=None if ridge is None else ridge / total,
        alpha=None if price is None else price / total,
        fit_intercept=fit_intercept,
        sample_weight=sample_weight,
        **settings,
    )
    result.fitted.objective *= total
    result.fitted.gap *= total
    result.lower_bound *= total
    result.l2 *= total
    if result.near is not None:
        result.near_models.subsets = [
            replace(each, objective=total * each.objective) for each in result.near
        ]
    result.history = [
        replace(r, objective=total * r.objective, lower_bound=total * r.lower_bound)
        for r in result.history
    ]
    return result
