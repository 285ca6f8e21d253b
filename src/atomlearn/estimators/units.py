"""Units: features divided by their deviations while selecting, and the way back to the data's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import Array, Columns, Design, Standardized, scales_of_inputs
from atomlearn.maps.feature_map import map_of

#: So many products of two columns are scaled one by one (their moments take 32 MB each); beyond
#: it their factors are.
MOST_LISTED = 2**22


@dataclass(frozen=True, slots=True)
class Units:
    """The features as they are fitted, and the way back to units of the data.

    design : the scaled features; of : columns -> their means and scales in units of the data (a
    column of the design is (x - mean) / scale); words : the scaling in words.
    """

    design: Design
    of: Callable[[Columns], tuple[Array, Array]]
    words: str

    def to_data(self, columns: Columns, weights: Array, intercepts: Any) -> tuple[Array, Any]:
        """Return weights (..., m) of these columns, and intercepts, in units of the data."""
        means, scales = self.of(columns)
        weights = weights / scales
        return weights, intercepts - weights @ means


def too_many(design: Design) -> bool:
    """Tell whether these are products too many to be scaled one by one."""
    return map_of(design).implicit and design.shape[1] > MOST_LISTED


def as_they_are(design: Design, words: str = "as they are") -> Units:
    """Return the units of features that nothing is done to."""

    def given(columns: Columns) -> tuple[Array, Array]:
        return np.zeros(columns.size), np.ones(columns.size)

    return Units(design, given, words)


def standardized_design(design: Design, center: bool, weight: Array | None = None) -> Units:
    """Return the features divided by their standard deviations, and centered where asked.

    An intercept without penalty makes centering change nothing but the rounding, so data that is
    sparse is only scaled. Products too many to be listed are products of scaled inputs instead,
    which no centering belongs to.
    """
    if map_of(design).unit is not None:
        return as_they_are(design, "of variance 1 each, as their map makes them")
    if too_many(design):
        return _of_scaled_inputs(design)
    standard = Standardized(design, center=center, weight=weight)

    def divided(columns: Columns) -> tuple[Array, Array]:
        return standard.means[columns], standard.scales[columns]

    return Units(standard, divided, "divided by their standard deviation")


def units_of(estimator: Any, design: Design, weight: Array) -> Units:
    """Return the features in the units in which an estimator selects."""
    if not estimator.standardize:
        return as_they_are(design)
    center = estimator.fit_intercept and not design.traits.is_sparse
    return standardized_design(design, center, weight)


def _of_scaled_inputs(design: Any) -> Units:
    """Return the units of a design of products (``designs.Polynomial``)."""
    scales, name = scales_of_inputs(design.base)

    def multiplied(columns: Columns) -> tuple[Array, Array]:
        i, j = design.pairs(columns)
        return np.zeros(columns.size), scales[i] * np.where(j < 0, 1.0, scales[j])

    words = f"products of columns divided by their {name}"
    return Units(design.scaled(1.0 / scales), multiplied, words)


def batch_of(count: int) -> int:
    """Return how many features generation takes in at a time where ``count`` are asked for.

    Never more than a tenth: small blocks find better features, and of few each one counts. At
    most 10, but a 25th where that is more: 500 of 130,107 words are selected in two thirds of the
    time of blocks of 10, and predict a hundredth better.
    """
    return max(1, min(10, count // 10), count // 25)
