"""Prices: gauges that are a weighted sum of the weights of columns, or of their magnitudes.

Those of l1, and of rays: columns that are each an atom's image, with a coefficient >= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer


@dataclass(frozen=True, slots=True)
class Prices:
    """gauge(c) = sum_j price_j |c_j|, finite for c >= 0 only unless ``signed``."""

    price: Array
    signed: bool

    def feasible(self, problem: Problem, weights: Array) -> Array:
        """Return the weights, shrunk into the domain of R where they lie outside."""
        return problem.inside(None, weights if self.signed else np.maximum(weights, 0.0))


def prices_of(problem: Problem) -> Prices | None:
    """Return the prices of the norm; None where it has none."""
    norm, size = problem.regularizer.norm, problem.design.shape[1]
    signed = l1_weights(norm, size)
    price = l1_weights(norm, size, nonnegative=True) if signed is None else signed
    return None if price is None else Prices(price, signed is not None)


def check_prices(problem: Problem) -> Prices:
    """Return the prices, or raise TypeError where the norm has none."""
    prices = prices_of(problem)
    if prices is None:
        raise TypeError(
            "this master re-fits columns whose gauge is a weighted sum of their weights' "
            f"magnitudes, got {problem.regularizer.norm!r}; use norms.L1() or "
            "norms.Nonnegative(norms.L1()), or SemismoothNewton for other norms"
        )
    return prices


def model_terms(regularizer: Regularizer) -> tuple[float, float, float]:
    """Return (level, coupling, radius): factors of p'c and (p'c)^2 / 2, and the bound on p'c."""
    form, amount = regularizer.form, regularizer.amount
    level, coupling = amount * (form == "penalized"), amount * (form == "squared")
    return level, coupling, amount if form == "constrained" else math.inf
