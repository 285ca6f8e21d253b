"""Blocks: a norm for each of several disjoint blocks of columns, added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import (
    Array,
    Atom,
    Columns,
    Form,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
)
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.forms import three_forms
from atomlearn.core.norms.scores import subset_scores
from atomlearn.core.norms.vectors import to_float64


class Cover(tuple[Columns, ...]):
    """The columns of every block, int64: read and checked, each column in exactly one block."""

    @property
    def n_columns(self) -> int:
        """Number of columns of all blocks together."""
        return sum(columns.size for columns in self)


class Blocks(VectorNorm):
    """gauge(w) = sum_b norm_b(w_b) over disjoint blocks of columns; polar max_b norm_b°(z_b).

    The gauge of a product: clinical columns under an l1 norm beside genes under a k-support norm.
    Use ``Scaled`` to weigh the blocks against each other.

    Parameters
    ----------
    norms : list of Norm
    columns : list of index lists
        The columns of each norm; each column in exactly one block.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Blocks([norms.L1(), norms.L2()], [[0], [1, 2]]).value(np.array([3.0, 0.0, -4.0]))
    7.0

    References
    ----------
    [V] section 2.1.
    """

    def __init__(self, norms: Sequence[Norm], columns: Sequence[Any]) -> None:
        self.norms = norms
        self.columns = columns

    @property
    def absolute(self) -> bool:
        """True where all norms depend on |w| only."""
        return all(norm.absolute for norm in self.norms)

    def check(self, n_features: int) -> None:
        """Raise where the blocks are not a partition of the columns, or a norm does not fit."""
        for norm, columns in zip(self.norms, self._blocks(n_features), strict=True):
            norm.check(columns.size)

    def on(self, n_features: int) -> Blocks:
        """The same norm with all norms and columns read."""
        blocks = self._blocks(n_features)
        norms = [norm.on(c.size) for norm, c in zip(self.norms, blocks, strict=True)]
        return Blocks(norms, Cover(blocks))

    def value(self, w: Array) -> float:
        """sum_b norm_b(w_b)"""
        w = to_float64(w)
        blocks = self._blocks(w.size)
        return float(sum(norm.value(w[c]) for norm, c in zip(self.norms, blocks, strict=True)))

    def polar(self, scores: Scores) -> float:
        """max_b norm_b°(z_b)"""
        return max(self._polars(scores)[1], default=0.0)

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Those of every block, best block first, each asked for its share."""
        blocks, polars = self._polars(scores)
        order = np.argsort(-np.asarray(polars), kind="stable")
        share = max(1, count // max(len(self.norms), 1))
        chosen = [
            blocks[b][self.norms[b].best_columns(subset_scores(scores, blocks[b]), share)]
            for b in order
            if blocks[b].size
        ]
        return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)

    def best_atom(self, scores: Scores) -> Atom:
        """The best atom of the block of largest polar."""
        blocks, polars = self._polars(scores)
        best = int(np.argmax(polars))
        atom = self.norms[best].best_atom(subset_scores(scores, blocks[best]))
        return Atom(blocks[best][atom.columns], atom.values)

    @property
    def over_columns(self) -> bool:
        """True where all norms can be restricted."""
        return all(norm.over_columns for norm in self.norms)

    @property
    def proximal(self) -> bool:
        """True where all norms have a proximal map."""
        return all(norm.proximal for norm in self.norms)

    def restrict(self, columns: Columns, n_features: int) -> Blocks | None:
        """Each norm restricted to its columns among these; None where one cannot be."""
        owner, place = self._owners(n_features)
        mine, local = owner[columns], place[columns]
        norms: list[Norm] = []
        parts: list[Columns] = []
        sizes = [block.size for block in self._blocks(n_features)]
        for number in np.unique(mine):
            chosen = np.flatnonzero(mine == number)
            restriction = self.norms[int(number)].restrict(local[chosen], sizes[int(number)])
            if restriction is None:
                return None
            norms.append(restriction)
            parts.append(chosen)
        return Blocks(norms, Cover(parts))

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        return three_forms(v, amount, form, self._penalized, self.polar_of)

    def polar_of(self, z: Array) -> float:
        """Return the polar at a stored vector."""
        used = [(norm, columns) for norm, columns in self._pairs(z.size) if columns.size]
        return max((norm.polar(ArrayScores(z[columns])) for norm, columns in used), default=0.0)

    def _pairs(self, n_features: int) -> list[tuple[Norm, Columns]]:
        return list(zip(self.norms, self._blocks(n_features), strict=True))

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        point, gauge = np.empty_like(v), 0.0
        jacobians: list[tuple[Columns, Callable[[], ProxJacobian]]] = []
        for norm, columns in self._pairs(v.size):
            inner = norm.prox_point(v[columns], step, "penalized")
            point[columns] = inner.point
            gauge += inner.gauge
            jacobians.append((columns, inner.jacobian))

        def jacobian() -> ProxJacobian:
            return _assembled([(c, call()) for c, call in jacobians], v.size)

        return ProxPoint(point, gauge, jacobian)

    def _polars(self, scores: Scores) -> tuple[Sequence[Columns], list[float]]:
        blocks = self._blocks(scores.n_columns)
        return blocks, [
            norm.polar(subset_scores(scores, c)) if c.size else 0.0
            for norm, c in zip(self.norms, blocks, strict=True)
        ]

    def labels(self, columns: Columns, n_features: int) -> Columns:
        """The number of the block of each column."""
        return self._owners(n_features)[0][columns]

    def _owners(self, n_features: int) -> tuple[Columns, Columns]:
        owner, place = np.zeros((2, n_features), dtype=np.int64)
        for number, columns in enumerate(self._blocks(n_features)):
            owner[columns] = number
            place[columns] = np.arange(columns.size)
        return owner, place

    def _blocks(self, n_features: int) -> Sequence[Columns]:
        if isinstance(self.columns, Cover) and self.columns.n_columns == n_features:
            return self.columns
        return self._checked(n_features)

    def _checked(self, n_features: int) -> list[Columns]:
        if len(self.norms) != len(self.columns):
            raise ValueError(
                f"Blocks: one list of columns a norm, got {len(self.norms)} norms and "
                f"{len(self.columns)} lists"
            )
        for norm in self.norms:
            if not isinstance(norm, Norm):
                raise TypeError(
                    f"Blocks: norms must be norm objects such as norms.L1(), got "
                    f"{type(norm).__name__}"
                )
        blocks = [np.asarray(columns) for columns in self.columns]
        for number, columns in enumerate(blocks):
            if columns.size and (columns.ndim != 1 or columns.dtype.kind not in "iu"):
                raise TypeError(
                    f"Blocks: columns[{number}] must hold whole column numbers, got dtype "
                    f"{columns.dtype} of shape {columns.shape}"
                )
        blocks = [columns.astype(np.int64) for columns in blocks]
        together = np.sort(np.concatenate(blocks)) if blocks else np.zeros(0, dtype=np.int64)
        if not np.array_equal(together, np.arange(n_features)):
            raise ValueError(
                f"Blocks: each of the {n_features} columns must be in exactly one block; got "
                f"{together.size} entries, {np.unique(together).size} of them distinct"
            )
        return blocks


def _assembled(parts: list[tuple[Columns, ProxJacobian]], size: int) -> ProxJacobian:
    """Return the Jacobian of maps on disjoint coordinates: diagonals and factors side by side."""
    diagonal = np.zeros(size)
    factors, coefficients = [], []
    for columns, jacobian in parts:
        diagonal[columns] = jacobian.diagonal
        if jacobian.coefficients.size:
            local = sparse.coo_array(jacobian.factors)
            shape = (size, jacobian.coefficients.size)
            rows = columns[local.row]
            factors.append(sparse.csc_array((local.data, (rows, local.col)), shape=shape))
            coefficients.append(jacobian.coefficients)
    if not factors:
        return ProxJacobian(diagonal)
    joined = sparse.hstack(factors, format="csc")
    together = np.concatenate(coefficients)
    if size * together.size <= 2**18:
        return ProxJacobian(diagonal, joined.toarray(), together)
    return ProxJacobian(diagonal, joined, together)
