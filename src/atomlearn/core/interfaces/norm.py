"""Norm: the gauge of a convex hull of atoms, known by its value, its polar and its best columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.interfaces.design import Columns, Scores

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How the gauge enters the objective: level * gauge, (level / 2) * gauge^2, gauge <= radius.
Form = Literal["penalized", "squared", "constrained"]


class Norm(ABC):
    """gauge(w) = inf { t >= 0 : w in t * conv(atoms) }.

    Parameters are plain attributes under their constructor names, so that ``get_params`` and
    ``set_params`` reach them; a norm never stores anything about one data set.
    """

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return gauge(w)."""

    @abstractmethod
    def polar(self, scores: Scores) -> float:
        """Return gauge°(z) = max over atoms a of <a, z>, computed in float64."""

    @abstractmethod
    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of the best atoms, best first: about ``count``, whole atoms only.

        Never fewer than the columns of the one best atom (so k for the k-support norm): where
        none of them is new, the polar of the restricted problem is the polar of the whole one.
        """

    def check(self, n_features: int) -> None:  # noqa: B027 - most norms fit any number of columns
        """Raise ValueError or TypeError, with the remedy, where a parameter is unusable."""


class ProxJacobian:
    """J = diag(diagonal) + factors @ diag(coefficients) @ factors', symmetric, 0 <= J <= I.

    A generalized Jacobian of a proximal map; ``diagonal`` is (m,), ``coefficients`` (r,), and
    ``factors`` (m, r): a dense array where r is a few, a SciPy sparse CSC array where there are
    many factors with few rows each (norms over groups: one factor a group). Rows outside the
    support are zero.
    """

    __slots__ = ("coefficients", "diagonal", "factors")

    def __init__(
        self,
        diagonal: Array,
        factors: Array | sparse.csc_array | None = None,
        coefficients: Array | None = None,
    ) -> None:
        self.diagonal = diagonal
        self.factors: Any = np.zeros((diagonal.size, 0)) if factors is None else factors
        self.coefficients = np.zeros(0) if coefficients is None else coefficients

    @property
    def support(self) -> Columns:
        """Positions where J is not zero."""
        nonzero = self.diagonal != 0
        if isinstance(self.factors, np.ndarray):
            nonzero |= (self.factors != 0).any(axis=1)
        else:
            nonzero[self.factors.indices[self.factors.data != 0]] = True
        return np.flatnonzero(nonzero)

    def apply(self, v: Array) -> Array:
        """Return J v."""
        low_rank: Array = self.factors @ (self.coefficients * (self.factors.T @ v))
        return self.diagonal * v + low_rank

    def plus(self, factors: Array, coefficients: Array) -> ProxJacobian:
        """Return J + factors diag(coefficients) factors'."""
        joined = (
            np.column_stack([self.factors, factors])
            if isinstance(self.factors, np.ndarray)
            else sparse.hstack([self.factors, sparse.csc_array(factors)], format="csc")
        )
        return ProxJacobian(
            self.diagonal, joined, np.concatenate([self.coefficients, coefficients])
        )

    def dense_factors(self) -> Array:
        """Return the factors as a dense (m, r) array: where r is known to be small."""
        dense = isinstance(self.factors, np.ndarray)
        return np.asarray(self.factors if dense else self.factors.toarray())

    def dense(self) -> Array:
        """Return J as an (m, m) array (tests)."""
        factors = self.dense_factors()
        return np.diag(self.diagonal) + (factors * self.coefficients) @ factors.T


@dataclass(frozen=True, slots=True)
class ProxPoint:
    """One evaluation of a proximal map: the point, its gauge, and the way to its Jacobian."""

    point: Array
    gauge: float
    jacobian: Callable[[], ProxJacobian]


@runtime_checkable
class SupportsProx(Protocol):
    """Norms whose proximal maps are computable: what masters, FISTA and ADMM need."""

    def prox(self, w: Array, step: float) -> Array:
        """Return argmin_x 1/2 ||x - w||^2 + step * gauge(x)."""
        ...

    def prox_squared(self, w: Array, step: float) -> Array:
        """Return argmin_x 1/2 ||x - w||^2 + (step / 2) * gauge(x)^2."""
        ...

    def project(self, w: Array, radius: float) -> Array:
        """Return the point of { x : gauge(x) <= radius } nearest to w."""
        ...

    def prox_point(self, w: Array, amount: float, form: Form) -> ProxPoint:
        """Return one of the three maps above with gauge and Jacobian; ``amount`` = step or radius.

        The point equals that of the plain method; the Jacobian is only computed when called.
        """
        ...


@runtime_checkable
class SupportsRestriction(Protocol):
    """Norms that stay a norm of their own kind on a subset of the coordinates."""

    def restrict(self, columns: Columns, n_features: int) -> Norm:
        """Return the norm on R^len(columns) that equals this one on vectors zero elsewhere.

        ``restrict(c).value(w[c]) == value(w)`` wherever w is zero outside ``columns``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Atom:
    """a = sum_j values_j e_(columns_j): columns (s,) int64 without repeats, values (s,) float64."""

    columns: Columns
    values: Array


@runtime_checkable
class SupportsAtoms(Protocol):
    """Norms that hand out their best atom: what Frank-Wolfe methods and rays are made of."""

    def best_atom(self, scores: Scores) -> Atom:
        """Return a = argmax <a, z> over the atoms, so <a, z> = gauge°(z) and gauge(a) = 1.

        Where no atom has <a, z> > 0 (z = 0, or a gauge without symmetry) the atom is empty.
        """
        ...


@runtime_checkable
class SupportsZeroThreshold(Protocol):
    """Norms for which one number tells which zero coordinates may stay zero."""

    def zero_threshold(self, w: Array) -> float:
        """Return the largest t for which a subgradient of gauge at w has |s_j| = t where w_j = 0.

        A zero coordinate whose |z_j| <= multiplier * t does not want to enter. ``w`` holds the
        non-zero coordinates (zeros may be left out). 0 where w is 0 or every coordinate enters.
        """
        ...


@runtime_checkable
class SupportsPrices(Protocol):
    """Norms that can be gauges of rays: each column an atom with a coefficient >= 0."""

    def prices(self, n_features: int) -> Array | None:
        """Return p > 0 with gauge(w) = p'w for w >= 0 and infinite elsewhere; None if no such p."""
        ...


@runtime_checkable
class SupportsScreening(Protocol):
    """Norms that can tell from scores which coordinates no optimum uses (safe screening)."""

    def possible_support(self, z: Array, error: Array, polar: float) -> Mask | None:
        """Mark every coordinate that may be non-zero where w is aligned with some z* near z.

        z* : any vector with |z_j* - z_j| <= error_j for all j and gauge°(z*) >= ``polar``;
        aligned : <z*, w> = gauge°(z*) gauge(w), which holds at an optimum of every form. ``polar``
        is 0 where nothing is known. Shapes (n_features,); errors may be infinite. Coordinates left
        unmarked are strictly out: scores near z* have the same polar without them. None where the
        norm has no rule. O(n_features) expected.
        """
        ...
