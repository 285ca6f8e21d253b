"""Design: the data matrix X, asked only for scores z = X'v and for the columns they point at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


class Scores(ABC):
    """z = X'v for one v: asked, and not necessarily stored.

    Values are float64 whatever the dtype of X; they carry the error of float64 accumulation only,
    because the certificate is computed from them.
    """

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns of X, possibly far beyond what an array could hold."""

    @abstractmethod
    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``min(count, n_columns)`` columns of largest \\|z_j\\| with their z_j.

        Largest magnitude first, ties by the smaller index. O(n_columns + count log count).
        """

    @abstractmethod
    def at(self, columns: Columns) -> Array:
        """Return z at the given columns, in their order."""

    def full(self) -> Array:
        """Return all of z, shape (n_columns,); implicit designs raise TypeError with a remedy."""
        raise TypeError(
            f"{type(self).__name__} never stores all {self.n_columns} scores; "
            "use a norm that asks for the best columns only, or an explicit design"
        )

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        """Return the l2 norm of z over each of ``n_groups`` disjoint groups, given j's label."""
        z = self.full()
        result = np.bincount(labels, weights=z * z, minlength=n_groups)
        return np.sqrt(result[:n_groups])

    def matvec(self, other: Array) -> Array:
        """Return Z @ other where z is a matrix (matrix norms); vectors of scores refuse."""
        raise TypeError(f"{type(self).__name__} is a vector of scores; matrix norms need a matrix")


class Design(ABC):
    """X with ``n_samples`` rows and ``n_features`` columns, wherever it lives."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features); n_features may exceed what could ever be stored."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the precision of the data and of the coefficients given back."""

    @abstractmethod
    def scores(self, v: Array) -> Scores:
        """Return z = X'v: one pass over the data. ``v`` is float64 of shape (n_samples,)."""

    @abstractmethod
    def gather(self, columns: Columns) -> Block:
        """Return the given columns, in their order, as a Block held in memory."""


class Block(Design):
    """A few columns of X in memory: what a master works on. Products are float64 throughout.

    A block is a design too (its scores are cheap), so that the restricted problem is a problem.
    ``np.asarray(block)`` gives the dense (n_samples, n_columns) array.
    """

    @abstractmethod
    def dot(self, weights: Array) -> Array:
        """Return A w, shape (n_samples,)."""

    @abstractmethod
    def transpose_dot(self, v: Array) -> Array:
        """Return A'v, shape (n_columns,)."""

    @abstractmethod
    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, float64, S = ``positions`` (all where None)."""

    @abstractmethod
    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        """Return A_S diag(diagonal) A_S', float64 (n_samples, n_samples), diagonal over S."""

    @abstractmethod
    def take(self, positions: Columns) -> Block:
        """Return the block of the columns at these positions (a copy or a view)."""

    @abstractmethod
    def append(self, other: Block) -> Block:
        """Return the block of these columns followed by those of ``other``.

        Amortised O(columns added): a block may keep spare room and share it with its successor.
        """

    @abstractmethod
    def dense(self) -> Array:
        """Return the dense (n_samples, n_columns) array in Fortran order; read-only use.

        float64, or float32 where that holds the columns exactly.
        """

    @abstractmethod
    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i a_ij^2 for each column j (c = 1 where None)."""

    def gather(self, columns: Columns) -> Block:
        return self.take(columns)

    def predict(self, weights: Array) -> Array:
        return self.dot(weights)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.dense(), dtype=dtype)


@runtime_checkable
class SupportsPredict(Protocol):
    """Designs that can form X w for a dense w: needed by FISTA and ADMM over all columns."""

    def predict(self, weights: Array) -> Array:
        """Return X w, shape (n_samples,): counted as one pass."""
        ...


@runtime_checkable
class SupportsPredictInto(Protocol):
    """Designs that can form X w in an array that is there already."""

    def predict_into(self, weights: Array, out: Array) -> Array:
        """Return X w, in ``out`` (n_samples,) where that spares an array, else in a new one."""
        ...


@runtime_checkable
class SupportsColumnNorms(Protocol):
    """Designs that know sum_i x_ij^2 of every column (screening, step sizes)."""

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column, shape (n_features,): counted as one pass."""
        ...


@runtime_checkable
class SupportsColumnSubset(Protocol):
    """Designs that pass over a few of their columns faster than over all of them."""

    def with_columns(self, columns: Columns) -> Design | None:
        """Return the design of these columns (increasing, no repeats), whose passes read only them.

        None where that would take a copy that does not pay or does not fit.
        """
        ...


@runtime_checkable
class SupportsCompression(Protocol):
    """Blocks whose squared loss is, up to a constant, one over fewer samples."""

    def compressed(self, y: Array, weight: Array) -> tuple[Block, Array] | None:
        """Return B, t with 1/2 sum_i weight_i (y - A w)_i^2 = 1/2 |t - B w|^2 + c for every w.

        c does not depend on w; rounding is of the size of eps A'A. None where B would
        not be much smaller, or would cost too much.
        """
        ...


@runtime_checkable
class SupportsCoupledGram(Protocol):
    """Blocks with a structure that Hessians of losses that couple predictions make use of."""

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return A'(diag(c) - K K')A, (n_columns, n_columns); K sparse (n_samples, k)."""
        ...
