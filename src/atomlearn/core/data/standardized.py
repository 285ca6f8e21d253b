"""Standardized: columns centered and scaled on the fly, without a copy of X."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from atomlearn._support import normalized
from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.compressed import scaled_columns
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.parts import RowSubset, dense_part
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Block, Columns, Design, Rows, Scores
from atomlearn.core.interfaces.forwarding import Derived
from atomlearn.core.interfaces.scores import affine_scores


@singledispatch
def affine_block(block: Block, means: Array, factors: Array) -> Block:
    """Return the block of the columns (x_j - means_j) factors_j; means, factors : (n_columns,).

    It is a dense copy, unless the kind of block has a better method.
    """
    array = block.dense() - means
    array *= factors
    return DenseBlock(array)


class Affine(Derived):
    """Column j is (x_j - means_j) factors_j, computed on the fly; the base of ``Standardized``.

    Parameters
    ----------
    design : Design
        The data matrix X, with the columns x_j.
    means, scales, factors : (n_features,) float64
        One number for each column. ``factors`` are 1 / scales, but 0 for columns that become 0.
    """

    def __init__(self, design: Design, means: Array, scales: Array, factors: Array) -> None:
        """Store the design, and the means, scales and factors of its columns."""
        super().__init__(design)
        self.means = means
        self.scales = scales
        self.factors = factors
        self._centered = bool(means.any())
        self.shape = self.design.shape

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None if they have none."""
        return self.design.names

    def scores(self, v: Array) -> Scores:
        """Return the scores of the transformed columns for v (n_samples,), in one pass over X."""
        return self._affine([self.design.scores(v)], v[:, None])[0]

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of the transformed columns for each column v of V (n_samples, m)."""
        return self._affine(self.design.scores_many(V), V)

    def _affine(self, scores: Sequence[Scores], V: Array) -> Sequence[Scores]:
        """Return the scores (z - means sum(v)) factors of the transformed columns.

        scores : z = X'v for each column v of V (n_samples, m).
        """
        return affine_scores(scores, V, (self.means, self.factors))

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Return the large scores of the transformed columns, found by the inner design.

        A column has large scores if the magnitude of its score reaches the entry of ``bounds`` (m,)
        for some column v of V (n_samples, m). affine : means and factors (n_features,) of another
        transformation of these columns, if any.
        """
        if affine is not None:
            return super().scores_above(V, bounds, affine)
        return self.design.scores_above(V, bounds, (self.means, self.factors))

    def gather(self, columns: Columns) -> Block:
        """Return the transformed columns with these indices as a block.

        Sparse columns stay sparse, with their means stored separately.
        """
        block = self.design.gather(columns)
        means = self.means[columns]
        factors = self.factors[columns]
        if not block.traits.is_sparse:
            return affine_block(block, means, factors)
        scaled = SparseBlock.of(scaled_columns(block.stored(), factors))
        # The kind of block does not depend on the columns, so that blocks can be appended.
        return CenteredBlock(scaled, means * factors) if self._centered else scaled

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return the magnitudes that are subtracted from the scores of ``columns`` after summation.

        They are (|mean_j| + offset_j of the inner design) |factor_j|; scores lose digits in
        proportion.
        """
        magnitudes = np.abs(self.means[columns]) + np.abs(self.design.subtracted_offsets(columns))
        return magnitudes * np.abs(self.factors[columns])

    def predict(self, weights: Array) -> Array:
        """Return X (f * w) - m'(f * w) for w = ``weights``, with means m and factors f."""
        weights = weights * self.factors
        return self.design.predict(weights) - self.means @ weights

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return the product of the transformed columns with W, (n_samples, t).

        W : (n_features, t), or (len(columns), t) for some ``columns``.
        """
        if columns is not None:
            return super().product(W, columns)
        scaled = W * self.factors[:, None]
        return self.design.product(scaled) - self.means @ scaled

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i ((x_ij - means_j) factors_j)^2 of each column j, for w = ``weights``.

        It is sum_i w_i (deviation_j^2 + (mean_j - means_j)^2) factors_j^2, with the weighted mean
        and deviation of the column, which does not cancel digits.
        """
        if not weights.any():
            return np.zeros(self.shape[1])
        means, deviations = column_moments(self.design, weights)
        distances = (means - self.means) * self.factors
        deviations = deviations * self.factors
        return np.asarray(weights.sum() * (deviations**2 + distances**2))

    def with_rows(self, rows: Rows) -> Affine:
        """Return the design of these ``rows``, transformed by the same means and factors."""
        return Affine(RowSubset(self.design, rows), self.means, self.scales, self.factors)


class Standardized(Affine):
    """Column j becomes (x_j - mean_j) / scale_j.

    Parameters
    ----------
    design : Design
        A design that gives all its scores and squared norms, as every explicit design does.
    center, scale : bool, default=True
        Whether to subtract the means, and whether to divide by the population standard deviations.
    weight : array, shape (n_samples,), optional
        Sample weights of means and deviations.

    Attributes
    ----------
    means, scales : (n_features,) float64
        Zeros without ``center``, ones without ``scale``. A column that is constant where
        weight > 0 has scale 1, and is exactly zero after centering. Coefficients w of the
        standardized columns become w / scales for the original columns, and means @ (w / scales)
        is subtracted from the intercept.
    factors : (n_features,) float64
        The factors of columns after centering: 1 / scale, 0 for constant ones.

    Notes
    -----
    Construction takes two passes. Means and deviations keep their digits also for columns that
    are far from zero: such columns are computed again, one by one. Entries below 1e-154 count as
    zero, because their squares underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> from atomlearn.designs import Standardized
    >>> design = Standardized(DenseDesign(np.array([[1.0, 5.0], [3.0, 5.0]])))
    >>> design.means, design.scales
    (array([2., 5.]), array([1., 1.]))
    >>> design.gather(np.array([0, 1])).dense()
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    def __init__(
        self,
        design: Design,
        center: bool = True,
        scale: bool = True,
        weight: ArrayLike | None = None,
    ) -> None:
        """Compute means and deviations by two passes; the parameters are those of the class."""
        n_features = design.shape[1]
        # This comes first, because it raises an error for designs with too many columns to list.
        moments = column_moments(design, weight) if center or scale else None
        means = np.zeros(n_features)
        scales = np.ones(n_features)
        factors = np.ones(n_features)
        if moments is not None:
            mean, deviation = moments
            constant = deviation == 0
            means = mean if center else means
            scales = np.where(constant, 1.0, deviation) if scale else scales
            # Rounding must not turn a constant column into noise at the scale of its value.
            factors = np.where(constant, 0.0, 1.0 / scales) if center else 1.0 / scales
        super().__init__(design, means, scales, factors)


def centered(design: Design, weight: ArrayLike | None = None) -> Standardized | None:
    """Return the design with centered columns; None for sparse or implicit columns.

    weight : (n_samples,), the weights of the means. Centering sparse columns would make them dense
    once gathered.
    """
    if design.traits.is_sparse or not design.listable:
        return None
    return Standardized(design, scale=False, weight=weight)


def column_moments(
    design: Design, weight: ArrayLike | None = None, columns: Columns | None = None
) -> tuple[Array, Array]:
    """Return the means and population standard deviations of columns of the design.

    weight : (n_samples,); None: all ones. columns : indices (m,); None: all columns. Both results
    have one entry for each column. Some columns are gathered, in pieces. All columns take two
    passes, and those whose variance would lose digits are gathered. A column that is constant
    where weight > 0 has exactly its value as mean, and deviation 0.
    """
    if columns is not None:
        weights = normalized(weight, design.shape[0])
        means, deviations = np.empty((2, columns.size))
        for part in LIMITS.pieces(columns.size, design.shape[0]):
            array = dense_part(design, columns[part])
            means[part], deviations[part] = _exact_moments(array, weights)
        return means, deviations
    if not design.listable:
        raise TypeError(
            f"{type(design).__name__} does not list its columns, so they cannot be standardized; "
            "standardize the data it is made of instead"
        )
    weights = normalized(weight, design.shape[0])
    means = np.array(design.scores(weights).full(), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = design.squared_norms(weights)
        variance = squares - means * means
        # If most digits cancelled or a number is not finite, the column itself is used below.
        doubtful = ~(variance > LIMITS.cancelled * squares) & ((squares != 0) | (means != 0))
        deviations = np.sqrt(np.maximum(variance, 0.0))
    keep = np.flatnonzero(weights)
    for columns, array in _dense_pieces(design, np.flatnonzero(doubtful)):
        means[columns], deviations[columns] = _exact_moments(array[keep], weights[keep])
    return means, deviations


def scales_of_inputs(design: Design) -> tuple[Array, str]:
    """Return divisors (n_features,) of columns that are multiplied later, and the divisors' name.

    They are the standard deviations of the columns of the design, or for a sparse design their
    largest magnitudes. The standard deviation of a column with few non-zeros is small. Division by
    it would enlarge the product of two columns in the few rows where both are non-zero.
    """
    if design.traits.is_sparse:
        scales = largest_magnitudes(design)
        name = "largest magnitudes"
    else:
        scales = column_moments(design)[1]
        name = "standard deviations"
    return np.where(scales > 0, scales, 1.0), name


def largest_magnitudes(design: Design) -> Array:
    """Return max_i |x_ij| of every column j of the design, float64 (n_features,)."""
    stored = design.stored()
    if design.traits.is_sparse and stored is not None:
        return np.asarray(abs(stored).max(axis=0).toarray().ravel(), dtype=np.float64)
    result = np.empty(design.shape[1])
    for columns, array in _dense_pieces(design, np.arange(design.shape[1])):
        result[columns] = np.abs(array).max(axis=0, initial=0.0)
    return result


def scaled_design(design: Design, factors: Array) -> Design:
    """Return X diag(factors), for the X of the design and factors (n_features,).

    The values of a sparse X are multiplied in a copy; the columns of other designs are scaled when
    they are used.
    """
    stored = design.stored()
    if design.traits.is_sparse and stored is not None:
        return SparseDesign(scaled_columns(stored, factors))
    return Affine(design, np.zeros(design.shape[1]), 1.0 / factors, factors)


def _dense_pieces(design: Design, columns: Columns) -> Iterator[tuple[Columns, Array]]:
    """Yield pieces of the numbers ``columns``, each with its dense array of the design."""
    for part in LIMITS.pieces(columns.size, design.shape[0]):
        yield columns[part], design.gather(columns[part]).dense()


def _exact_moments(array: Array, weights: Array) -> tuple[Array, Array]:
    """Return means and standard deviations of dense columns, without cancellation or overflow.

    array : (n_samples, m); weights : (n_samples,), of sum 1.
    """
    low = array.min(axis=0)
    high = array.max(axis=0)
    # Differences from the smallest entry are exact, unlike those from a mean far from zero.
    height = array - low
    mean_height = weights @ height
    deviation = height - mean_height
    # Deviations are divided by their largest magnitude before they are squared.
    largest = np.abs(deviation).max(axis=0)
    divisor = np.where(largest > 0, largest, 1.0)
    deviations = divisor * np.sqrt(weights @ np.square(deviation / divisor))
    constant = low == high
    return np.where(constant, low, low + mean_height), np.where(constant, 0.0, deviations)
