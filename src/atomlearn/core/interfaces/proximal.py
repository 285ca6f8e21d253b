"""The result of a proximal map: the point, its gauge, and a generalized Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn._support import Array, Columns

#: Maximum number of entries of factors that are kept as a dense array.
MAX_DENSE_FACTORS = 2**18


class ProxJacobian:
    """J = diag(diagonal) + factors @ diag(coefficients) @ factors', symmetric, 0 <= J <= I.

    It is a generalized Jacobian of a proximal map. Rows outside the support are zero.

    Parameters
    ----------
    diagonal : (m,)
    factors : (m, r), optional
        A dense array for small r, or a SciPy CSC array of many factors with few nonzero rows each.
        A norm over groups has one factor for each group. None: no factors.
    coefficients : (r,), optional
    """

    __slots__ = ("coefficients", "diagonal", "factors")

    def __init__(
        self,
        diagonal: Array,
        factors: Array | sparse.csc_array | None = None,
        coefficients: Array | None = None,
    ) -> None:
        """Store the parts; without factors, J is diagonal."""
        self.diagonal = diagonal
        self.factors: Any = np.zeros((diagonal.size, 0)) if factors is None else factors
        self.coefficients = np.zeros(0) if coefficients is None else coefficients

    @property
    def is_dense(self) -> bool:
        """Whether the factors are a dense array."""
        return isinstance(self.factors, np.ndarray)

    @property
    def support(self) -> Columns:
        """The positions of the nonzero rows of J."""
        nonzero = self.diagonal != 0
        if self.is_dense:
            nonzero |= (self.factors != 0).any(axis=1)
        else:
            nonzero[self.factors.indices[self.factors.data != 0]] = True
        return np.flatnonzero(nonzero)

    def apply(self, v: Array) -> Array:
        """Return J v, (m,)."""
        low_rank: Array = self.factors @ (self.coefficients * (self.factors.T @ v))
        return self.diagonal * v + low_rank

    def plus(self, factors: Array, coefficients: Array) -> ProxJacobian:
        """Return J + factors diag(coefficients) factors', for dense ``factors`` (m, r)."""
        return ProxJacobian(
            self.diagonal,
            side_by_side([self.factors, factors]),
            np.concatenate([self.coefficients, coefficients]),
        )

    def dense_factors(self) -> Array:
        """Return the factors as a dense (m, r) array, for small r."""
        return np.asarray(self.factors if self.is_dense else self.factors.toarray())

    def masked(self, keep: NDArray[np.bool_]) -> ProxJacobian:
        """Return D J D with D = diag(keep): rows and columns outside ``keep`` (m,) become zero."""
        # Sparse factors keep their pattern; entries in other rows become explicit zeros.
        mask = keep.astype(np.float64)
        factors = self.factors
        if self.is_dense:
            factors = factors * mask[:, None]
        else:
            factors = factors.copy()
            factors.data *= mask[factors.indices]
        return ProxJacobian(self.diagonal * mask, factors, self.coefficients)

    def embedded(self, columns: Columns, size: int) -> ProxJacobian:
        """Return J embedded in a (size, size) zero matrix, at rows and columns ``columns`` (m,)."""
        diagonal = np.zeros(size)
        diagonal[columns] = self.diagonal
        inner = self.factors
        factors: Any
        if self.is_dense:
            factors = np.zeros((size, inner.shape[1]))
            factors[columns] = inner
        else:
            # The entries of a sparse array move to other rows.
            shape = (size, inner.shape[1])
            factors = type(inner)((inner.data, columns[inner.indices], inner.indptr), shape=shape)
            factors.sort_indices()
        return ProxJacobian(diagonal, factors, self.coefficients)

    def dense(self) -> Array:
        """Return J as an (m, m) array (tests)."""
        factors = self.dense_factors()
        return np.diag(self.diagonal) + (factors * self.coefficients) @ factors.T


def side_by_side(factors: list[Any]) -> Any:
    """Return ``factors`` of sizes (m, r_i) as one (m, sum r_i) array, sparse if it is large."""
    if factors[0].shape[0] * sum(factor.shape[1] for factor in factors) <= MAX_DENSE_FACTORS:
        return np.hstack(
            [factor if isinstance(factor, np.ndarray) else factor.toarray() for factor in factors]
        )
    return sparse.hstack([sparse.csc_array(factor) for factor in factors], format="csc")


@dataclass(frozen=True, slots=True)
class ProxPoint:
    """The result of a proximal map.

    Attributes
    ----------
    point : (m,)
        The value of the map.
    gauge : float
        The norm of the point.
    jacobian : callable
        Returns the Jacobian of the map there, which is computed only when it is called.
    """

    point: Array
    gauge: float
    jacobian: Callable[[], ProxJacobian]
