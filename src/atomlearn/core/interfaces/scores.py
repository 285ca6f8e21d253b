"""Scores z = X'v: an interface that computes them on request, and scores stored as an array."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import Array, Columns

Method = TypeVar("Method", bound=Callable[..., Any])


class Scores(ABC):
    """The scores z = X'v of all columns for one vector v, computed when they are requested.

    Values are float64 whatever the dtype of X. They have the error of float64 sums only, because
    the certificate is computed from them. They stay the same when the caller writes to v.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import as_design
    >>> z = as_design(np.diag([1.0, -3.0, 2.0])).scores(np.ones(3))
    >>> z.top(2), z.at(np.array([0]))
    ((array([1, 2]), array([-3.,  2.])), array([1.]))
    """

    #: Number of columns of X, which may be too large for an array of this length.
    n_columns: int

    @abstractmethod
    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``min(count, n_columns)`` columns of largest \\|z_j\\| with their z_j.

        Largest magnitude first, ties by the smaller index. O(n_columns + count log count).
        """

    @abstractmethod
    def at(self, columns: Columns) -> Array:
        """Return z at the given ``columns``, in their order."""

    def full(self) -> Array:
        """Return all of z, shape (n_columns,); implicit designs raise TypeError with a remedy."""
        raise TypeError(
            f"{type(self).__name__} never stores all {self.n_columns} scores; "
            "use a norm that asks for the best columns only, or an explicit design"
        )

    def above(self, bound: float) -> tuple[Columns, Array]:
        r"""Return the columns with \|z_j\| >= bound > 0, largest first, with their z_j."""
        # Request four times as many of the largest scores, until one of them is below the bound.
        count = 1024
        while True:
            columns, values = self.top(count)
            is_above = np.abs(values) >= bound
            if columns.size >= self.n_columns or not is_above.all():
                return columns[is_above], values[is_above]
            count *= 4

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        """Return the l2 norm of z over each of ``n_groups`` groups; column j is in labels[j]."""
        # Bounds, certificate and best groups request the norms of the same groups one after the
        # other, so that the last result is kept.
        if self._grouped is None or self._grouped[0] is not labels:
            self._grouped = labels, norms_by_label(self.full(), labels, n_groups)
        return self._grouped[1]

    def group_ratings(
        self, labels: NDArray[np.int64], n_groups: int, weights: Array | None = None
    ) -> Scores:
        """Return the l2 norm of z over each group, divided by its weight, as scores of groups.

        Column j is in group labels[j] of ``n_groups``; ``weights`` (n_groups,) None: all 1.
        """
        norms = self.group_norms(labels, n_groups)
        return ArrayScores(norms if weights is None else norms / weights)

    #: z as a matrix with products, for norms of matrices; None until it is first needed.
    as_matrix: Any = None
    #: The groups whose norms were requested last, and these norms.
    _grouped: tuple[NDArray[np.int64], Array] | None = None


def norms_by_label(z: Array, labels: NDArray[np.int64], n_groups: int) -> Array:
    """Return the l2 norm of the entries of z with each label 0, ..., n_groups - 1, at any scale.

    Entry j of ``z`` has the label labels[j].
    """
    with np.errstate(over="ignore"):
        squares = np.bincount(labels, weights=z * z, minlength=n_groups)
    norms = np.sqrt(squares)
    # If the squares of a group overflow or underflow, its entries are first divided by the largest
    # magnitude among them.
    doubtful = ~((squares > 1e-200) & (squares < 1e200))
    rescaled = np.flatnonzero(doubtful[labels] & (z != 0.0)) if doubtful.any() else labels[:0]
    if rescaled.size:
        largest = np.zeros(n_groups)
        np.maximum.at(largest, labels[rescaled], np.abs(z[rescaled]))
        scaled = z[rescaled] / largest[labels[rescaled]]
        sums = np.bincount(labels[rescaled], weights=scaled * scaled, minlength=n_groups)
        norms[doubtful] = (largest * np.sqrt(sums))[doubtful]
    return norms


class ArrayScores(Scores):
    """z held as one array, shape (n_columns,), float64."""

    def __init__(self, z: Array) -> None:
        """Store ``z``, (n_columns,) float64, without a copy."""
        self._z = z
        self.n_columns = z.size

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``count`` largest scores by magnitude, and their columns."""
        if count <= 0 or not self.n_columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        columns, values = _kernels.top_magnitude(self._z, min(int(count), self.n_columns))
        return columns, values

    def at(self, columns: Columns) -> Array:
        """Return the scores of these ``columns``."""
        return self._z[columns]

    def full(self) -> Array:
        """Return all of z: the stored array itself, which must not be changed."""
        return self._z

    def above(self, bound: float) -> tuple[Columns, Array]:
        """Return the columns with scores of magnitude ``bound`` or more, and these scores."""
        columns = np.flatnonzero(np.abs(self._z) >= bound)
        values = self._z[columns]
        order = np.argsort(-np.abs(values), kind="stable")
        return columns[order], values[order]


def affine_scores(
    scores: Sequence[Scores], V: Array, affine: tuple[Array, Array]
) -> Sequence[Scores]:
    """Return the scores of the columns (x_j - means_j) factors_j for each column of V.

    ``scores`` are those of the columns x_j, and ``affine`` is the pair (means, factors), each
    (n_features,).
    """
    means, factors = affine
    totals = V.sum(axis=0)
    return [
        ArrayScores((unscaled.full() - means * total) * factors)
        for unscaled, total in zip(scores, totals, strict=True)
    ]


def taking_arrays(method: Method) -> Method:
    """Return the method of a norm so that its first argument may be an array instead of scores.

    ``method`` takes Scores. A matrix is an argument for a norm of matrices only.
    """
    # A method that is wrapped already is left as it is.
    if hasattr(method, "__wrapped__"):
        return method

    @functools.wraps(method)
    def called(norm: Any, scores: Any, *args: Any, **settings: Any) -> Any:
        """Call ``method`` with ``scores`` as Scores; the other arguments are passed on.

        ``args`` and ``settings`` are these arguments, by position and by name.
        """
        if isinstance(scores, Scores):
            return method(norm, scores, *args, **settings)
        z = np.ascontiguousarray(scores, dtype=np.float64)
        if z.ndim > 1:
            if norm.matrix_shape is None:
                raise ValueError(
                    f"{type(norm).__name__}.{method.__name__}: a vector of shape (n,) is expected, "
                    f"got shape {z.shape}; pass z.ravel()"
                )
            # A matrix, or a tensor, whose shape the norm may not know yet.
            norm = norm.on(z.size, z.shape if z.ndim == 2 else None)
            return getattr(norm, method.__name__)(ArrayScores(z.ravel()), *args, **settings)
        return method(norm, ArrayScores(z), *args, **settings)

    return cast(Method, called)
