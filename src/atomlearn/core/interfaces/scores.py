"""ArrayScores: scores that are stored, the only kind that norms make themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.interfaces.design import Array, Columns, Scores

Method = TypeVar("Method", bound=Callable[..., Any])


class ArrayScores(Scores):
    """z held as one array, shape (n_columns,), float64."""

    __slots__ = ("_z",)

    def __init__(self, z: Array) -> None:
        self._z = z

    @property
    def n_columns(self) -> int:
        return int(self._z.shape[0])

    def top(self, count: int) -> tuple[Columns, Array]:
        if count <= 0 or not self.n_columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        columns, values = _kernels.top_magnitude(self._z, min(int(count), self.n_columns))
        return columns, values

    def at(self, columns: Columns) -> Array:
        return self._z[columns]

    def full(self) -> Array:
        """Return all of z: the stored array itself, so read-only use."""
        return self._z

    def above(self, bound: float) -> tuple[Columns, Array]:
        columns = np.flatnonzero(np.abs(self._z) >= bound)
        values = self._z[columns]
        order = np.argsort(-np.abs(values), kind="stable")
        return columns[order], values[order]

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        return _kernels.group_norms(self._z, labels, n_groups)


def taking_arrays(method: Method) -> Method:
    """Return the method of a norm so that its first argument may be an array instead of scores."""
    if hasattr(method, "__wrapped__"):
        return method

    @functools.wraps(method)
    def called(norm: Any, scores: Any, *args: Any, **settings: Any) -> Any:
        if isinstance(scores, Scores):
            return method(norm, scores, *args, **settings)
        z = np.ascontiguousarray(scores, dtype=np.float64)
        if z.ndim > 1:
            # A matrix, or a tensor, whose shape the norm may not know yet.
            shaped = norm.with_shape(z.shape) if z.ndim == 2 else norm
            if shaped is norm and not norm.of_matrices:
                raise ValueError(
                    f"{type(norm).__name__}.{method.__name__}: a vector of shape (n,) is expected, "
                    f"got shape {z.shape}; pass z.ravel()"
                )
            return getattr(shaped, method.__name__)(ArrayScores(z.ravel()), *args, **settings)
        return method(norm, ArrayScores(z), *args, **settings)

    return cast(Method, called)
