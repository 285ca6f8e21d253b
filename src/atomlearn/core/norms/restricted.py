"""Restricted: a norm of vectors that are zero outside some columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Form, Norm, ProxJacobian, ProxPoint, Scores
from atomlearn.core.norms.base import Wrapper
from atomlearn.core.norms.scores import subset_scores
from atomlearn.core.norms.vectors import to_float64


class Restricted(Wrapper):
    """gauge(w) = norm(w) where w is zero outside ``columns``, infinite elsewhere.

    Its polar, best columns and proximal maps are those of the norm's restriction to the columns.

    Parameters
    ----------
    norm : Norm
        One that can be restricted (l1, l2, elastic net, k-support, groups).
    columns : array-like of int
        The columns that may be used, without repetition.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Restricted(norms.L1(), [0, 2]).value(np.array([3.0, 0.0, -4.0]))
    7.0

    References
    ----------
    [V] section 2.1, cones of atoms.
    """

    def __init__(self, norm: Norm, columns: Any) -> None:
        self.norm = norm
        self.columns = columns

    def check(self, n_features: int) -> None:
        """Raise where columns are out of range or repeated, or the norm inside is unusable."""
        self._check_inside()
        self.norm.check(n_features)
        self._inner(n_features)

    def with_names(self, names: Sequence[str]) -> Restricted:
        """The same norm with names of columns in the norm inside replaced by their indices."""
        return Restricted(self.norm.with_names(names), self.columns)

    def on(self, n_features: int) -> Restricted:
        """The same norm with the norm inside read."""
        self._check_inside()
        restricted = Restricted(self.norm.on(n_features), self.columns)
        restricted._inner(n_features)
        return restricted

    def value(self, w: Array) -> float:
        """norm(w), or infinity where w is not zero outside the columns"""
        w = to_float64(w)
        columns, inner = self._inner(w.size)
        if np.count_nonzero(w) > np.count_nonzero(w[columns]):
            return math.inf
        return inner.value(w[columns])

    def polar(self, scores: Scores) -> float:
        """The polar of the restriction at z over the columns."""
        columns, inner = self._inner(scores.n_columns)
        return inner.polar(subset_scores(scores, columns))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Those of the restriction, in the numbers of all columns."""
        columns, inner = self._inner(scores.n_columns)
        return columns[inner.best_columns(subset_scores(scores, columns), count)]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        columns, norm = self._inner(v.size)
        inner = norm.prox_point(v[columns], amount, form)
        point = np.zeros_like(v)
        point[columns] = inner.point

        def jacobian() -> ProxJacobian:
            return inner.jacobian().embedded(columns, v.size)

        return ProxPoint(point, inner.gauge, jacobian)

    def restrict(self, columns: Columns, n_features: int) -> Norm:
        """The restriction to these columns, of which only those of this norm may be used."""
        allowed = self._inner(n_features)[0]
        inner = self._restriction(columns, n_features)
        usable = np.flatnonzero(np.isin(columns, allowed))
        return inner if usable.size == len(columns) else Restricted(inner, usable)

    def _inner(self, n_features: int) -> tuple[Columns, Norm]:
        """Return the columns, checked, and the restriction of the norm to them."""
        columns = np.asarray(self.columns)
        if columns.ndim != 1 or columns.size == 0 or columns.dtype.kind not in "iu":
            raise TypeError(
                "Restricted: columns must be a non-empty list of whole column numbers, got dtype "
                f"{columns.dtype} of shape {columns.shape}; pass [0, 3, 5] or np.flatnonzero(mask)"
            )
        outside = columns[(columns < 0) | (columns >= n_features)]
        if outside.size:
            raise ValueError(
                f"Restricted: column {int(outside[0])} does not exist among {n_features}; columns "
                f"are numbered 0 to {n_features - 1}"
            )
        columns = columns.astype(np.int64)
        if np.unique(columns).size != columns.size:
            raise ValueError("Restricted: columns repeat; pass each once, as np.unique(columns)")
        return columns, self._restriction(columns, n_features)

    def _restriction(self, columns: Columns, n_features: int) -> Norm:
        """Return the restriction of the norm inside, or say that there is none."""
        inner = self.norm.restrict(columns, n_features)
        if inner is None:
            raise TypeError(
                f"Restricted needs a norm that can be restricted to columns, and {self.norm!r} "
                "cannot; use a solver over its atoms"
            )
        return inner
