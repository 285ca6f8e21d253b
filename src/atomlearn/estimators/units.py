"""Units: standardized columns, and coefficients converted back to units of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import Affine, Array, Columns, Design, Standardized, scales_of_inputs
from atomlearn.maps.feature_map import map_of

#: Up to this number, products of two columns are scaled one by one (their moments take 32 MB
#: each). If there are more, their factors are scaled.
MOST_LISTED = 2**22


@dataclass(frozen=True, slots=True)
class Units:
    """The scaled columns of a fit, and the conversion of coefficients to units of the data.

    Attributes
    ----------
    design : Design
        The scaled columns; each is (x - mean) / scale.
    of : callable
        Function of column indices (m,) that returns their means and scales, (m,) each, in units of
        the data.
    words : str
        The scaling in words.
    around : callable
        Function that scales another design with the same columns by these means and scales.
    """

    design: Design
    of: Callable[[Columns], tuple[Array, Array]]
    words: str
    around: Callable[[Any], Design]

    def to_data(self, columns: Columns, weights: Array, intercepts: Any) -> tuple[Array, Any]:
        """Return weights (..., m) of these columns, and intercepts, in units of the data.

        columns : (m,). A scaled column is (x - mean) / scale. So a weight is divided by the scale,
        and the intercept decreases by the sum of these weights times the means.
        """
        means, scales = self.of(columns)
        weights = weights / scales
        return weights, intercepts - weights @ means


def too_many(design: Design) -> bool:
    """Return True if there are too many products to scale them one by one.

    ``design`` are the features.
    """
    return map_of(design).implicit and design.shape[1] > MOST_LISTED


def unscaled_units(design: Design, words: str = "as they are") -> Units:
    """Return the units of features that are not scaled, described by ``words``.

    ``design`` are the features.
    """

    def unchanged(columns: Columns) -> tuple[Array, Array]:
        """Return means 0 and scales 1 for these columns: they are not scaled."""
        return np.zeros(columns.size), np.ones(columns.size)

    return Units(design, unchanged, words, lambda other: other)


def standardized_design(design: Design, center: bool, weight: Array | None = None) -> Units:
    """Return the features divided by their standard deviations, and centered if ``center``.

    weight : sample weights. With an intercept, centering changes the solution only by rounding, so
    sparse data is only scaled. If there are too many products to list, they are products of scaled
    inputs, not centered. ``design`` are the features.
    """
    if map_of(design).unit is not None:
        return unscaled_units(design, "of variance 1 each, as their map makes them")
    if too_many(design):
        return _product_units(design)
    standard = Standardized(design, center=center, weight=weight)

    def divided(columns: Columns) -> tuple[Array, Array]:
        """Return the means and the scales of these columns."""
        return standard.means[columns], standard.scales[columns]

    def around(other: Design) -> Design:
        """Return other rows of the same columns, with the means and scales of these rows."""
        return Affine(other, standard.means, standard.scales, standard.factors)

    return Units(standard, divided, "divided by their standard deviation", around)


def units_of(estimator: Any, design: Design, weight: Array) -> Units:
    """Return the features in the units of the fit of an estimator, weighted by ``weight``.

    ``design`` are the features.
    """
    if not estimator.standardize:
        return unscaled_units(design)
    center = estimator.fit_intercept and not design.traits.is_sparse
    return standardized_design(design, center, weight)


def _product_units(design: Any) -> Units:
    """Return the units of a design of products (``designs.Polynomial``, ``Cubic``).

    The inputs are scaled, so that a product is divided by the product of its scales.
    """
    scales, name = scales_of_inputs(design.base)

    def multiplied(columns: Columns) -> tuple[Array, Array]:
        """Return means 0, and the products of the scales of the inputs of each of the columns.

        columns : (m,). Both results are (m,).
        """
        # Row i has the inputs of column i, filled up with -1, which selects the appended scale 1.
        inputs = design.map.inputs_of(columns)
        return np.zeros(columns.size), np.append(scales, 1.0)[inputs].prod(axis=1)

    words = f"products of columns divided by their {name}"
    return Units(
        design.scaled(1.0 / scales), multiplied, words, lambda other: other.scaled(1.0 / scales)
    )


def batch_of(count: int) -> int:
    """Return the number of features per block for a selection of ``count`` features.

    The number is at most a tenth of ``count``, because small blocks find better features. It is
    also at most 10, or a 25th of ``count`` if that is more. (For 500 of 130,107 words, this takes
    two thirds of the time of blocks of 10, and the score is better by a hundredth.)
    """
    return max(1, min(10, count // 10), count // 25)
