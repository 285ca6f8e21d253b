"""Blocks: a norm for each of several disjoint blocks of columns, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atomlearn._support import to_float64
from atomlearn.core.interfaces import Array, Atom, Columns, Norm, ProxJacobian, ProxPoint, Scores
from atomlearn.core.interfaces.proximal import side_by_side
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.base import VectorNorm, checked_norm, refuse_free


class Cover(NamedTuple):
    """The columns of every block, checked; columns in no block have coefficient 0.

    blocks : the column indices (int64) of each block. n_columns : the number of all columns.
    """

    blocks: tuple[Columns, ...]
    n_columns: int


class Blocks(VectorNorm):
    """gauge(w) = sum_b norm_b(w_b): a separable norm over disjoint blocks of columns.

    w_b are the coefficients of block b. The polar (dual) norm of scores z is max_b norm_b°(z_b),
    where ° denotes the polar. An example is an l1 norm of clinical columns plus a k-support norm
    of genes. Use ``Scaled`` to weigh the blocks against each other.

    Parameters
    ----------
    norms : list of Norm
        The norm of each block of columns.
    columns : list of index lists
        The columns of each norm; each column in exactly one block.

    References
    ----------
    [V] section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Blocks([norms.L1(), norms.L2()], [[0], [1, 2]]).value(np.array([3.0, 0.0, -4.0]))
    7.0
    """

    def __init__(self, norms: Sequence[Norm], columns: Sequence[Any]) -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.norms = norms
        self.columns = columns

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """True if all norms depend only on |w|."""
        return all(norm.absolute for norm in self.norms)

    @property
    def proximal(self) -> bool:  # type: ignore[override]
        """True if the proximal maps of all norms are known."""
        return all(norm.proximal for norm in self.norms)

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Blocks:
        """Return the same norm with all inner norms and column lists checked and resolved.

        ``n_features`` is the number of columns; ``shape`` is used only by norms of matrices.
        """
        pairs = self._pairs(n_features)
        blocks = tuple(columns for _, columns in pairs)
        for norm, columns in pairs:
            refuse_free("Blocks", norm, columns.size, "; name it in unpenalized= instead")
        return Blocks([norm.on(c.size) for norm, c in pairs], Cover(blocks, n_features))

    def value(self, w: Array) -> float:
        """Return sum_b norm_b(w_b) for w (n_features,).

        It is infinite if a column in no block has a coefficient.
        """
        w = to_float64(w)
        pairs = self._pairs(w.size)
        # A nonzero coefficient in no block.
        if np.count_nonzero(w) > sum(np.count_nonzero(w[columns]) for _, columns in pairs):
            return float("inf")
        return float(sum(norm.value(w[columns]) for norm, columns in pairs))

    def polar(self, scores: Scores) -> float:
        """Return max_b norm_b°(z_b), the polar (dual norm) of the scores z."""
        return max(self._polars(scores), default=0.0)

    def _polars(self, scores: Scores) -> list[float]:
        """Return norm_b°(z_b) of each block b: the polar (dual norm) of its scores."""
        pairs = self._pairs(scores.n_columns)
        return [
            norm.polar(scores_at(scores, columns)) if columns.size else 0.0
            for norm, columns in pairs
        ]

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the best columns of every block, ordered by decreasing polar of the block.

        The polar is the dual norm of the scores of a block. Each of the B blocks is queried for
        ``count // B`` columns, at least one. scores : z (n_features,).
        """
        pairs = self._pairs(scores.n_columns)
        share = max(1, count // max(len(pairs), 1))
        chosen = [np.zeros(0, dtype=np.int64)]
        for b in np.argsort(-np.asarray(self._polars(scores)), kind="stable"):
            norm, columns = pairs[b]
            if columns.size:
                chosen.append(columns[norm.best_columns(scores_at(scores, columns), share)])
        return np.concatenate(chosen)

    def best_atom(self, scores: Scores) -> Atom:
        """Return the best atom (vector a of norm 1 with the largest <a, z>) for the scores z.

        It is the best atom of the block with the largest polar (dual norm of its scores).
        """
        best = int(np.argmax(self._polars(scores)))
        norm, columns = self._pairs(scores.n_columns)[best]
        atom = norm.best_atom(scores_at(scores, columns))
        return Atom(columns[atom.columns], atom.values)

    def restrict(self, columns: Columns, n_features: int) -> Norm | None:
        """Return the sum of the inner norms' restrictions to ``columns``.

        Blocks without a kept column are dropped. If one block holds all kept columns, its
        restricted norm is returned. If an inner norm has no restriction, the result is None.
        n_features : the number of all columns.
        """
        # The position of each column in the current block, -1 for columns of other blocks.
        position = np.full(n_features, -1, dtype=np.int64)
        norms: list[Norm] = []
        blocks: list[Columns] = []
        for norm, block in self._pairs(n_features):
            position[block] = np.arange(block.size)
            # The kept columns of this block, as indices of ``columns``.
            kept = np.flatnonzero(position[columns] >= 0)
            restricted = norm.restrict(position[columns[kept]], block.size)
            position[block] = -1
            if restricted is None:
                return None
            if kept.size == columns.size:
                return restricted
            if kept.size:
                norms.append(restricted)
                blocks.append(kept)
        return Blocks(norms, Cover(tuple(blocks), columns.size))

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x) for v (n,), block by block.

        The gauge is this norm, the sum of the norms of the blocks.
        """
        point = np.zeros_like(v)
        gauge = 0.0
        # The columns and the proximal point of each block, for the Jacobian.
        maps: list[tuple[Columns, ProxPoint]] = []
        for norm, columns in self._pairs(v.size):
            inner = norm.prox_point(v[columns], step, "penalized")
            point[columns] = inner.point
            gauge += inner.gauge
            maps.append((columns, inner))

        def jacobian() -> ProxJacobian:
            """Return the block-diagonal Jacobian of the proximal map at v, shape (n, n)."""
            parts = [inner.jacobian().embedded(columns, v.size) for columns, inner in maps]
            diagonal = sum((part.diagonal for part in parts), np.zeros(v.size))
            factors = side_by_side([np.zeros((v.size, 0)), *(part.factors for part in parts)])
            coefficients = [np.zeros(0), *(part.coefficients for part in parts)]
            return ProxJacobian(diagonal, factors, np.concatenate(coefficients))

        return ProxPoint(point, gauge, jacobian)

    def _pairs(self, n_features: int) -> list[tuple[Norm, Columns]]:
        """Return each inner norm with the indices of its columns, for n_features columns."""
        blocks = self.columns
        if not isinstance(blocks, Cover) or blocks.n_columns != n_features:
            blocks = self._checked(n_features)
        return list(zip(self.norms, blocks.blocks, strict=True))

    def _checked(self, n_features: int) -> Cover:
        """Return the column indices of every block; raise if they do not partition all columns.

        Raises ValueError or TypeError, whose message says how the lists are wrong. n_features : the
        number of all columns.
        """
        if len(self.norms) != len(self.columns):
            raise ValueError(
                f"Blocks: one list of columns a norm, got {len(self.norms)} norms and "
                f"{len(self.columns)} lists"
            )
        for norm in self.norms:
            checked_norm("Blocks", norm)
        blocks = [np.asarray(columns) for columns in self.columns]
        for number, columns in enumerate(blocks):
            if columns.size and (columns.ndim != 1 or columns.dtype.kind not in "iu"):
                raise TypeError(
                    f"Blocks: columns[{number}] must hold whole column numbers, got dtype "
                    f"{columns.dtype} of shape {columns.shape}"
                )
        blocks = [columns.astype(np.int64) for columns in blocks]
        # All columns together must be 0, 1, ..., n_features - 1, each once.
        all_columns = np.sort(np.concatenate(blocks)) if blocks else np.zeros(0, dtype=np.int64)
        if not np.array_equal(all_columns, np.arange(n_features)):
            raise ValueError(
                f"Blocks: each of the {n_features} columns must be in exactly one block; got "
                f"{all_columns.size} entries, {np.unique(all_columns).size} of them distinct"
            )
        return Cover(tuple(blocks), n_features)


def scores_at(scores: Scores, columns: Columns) -> ArrayScores:
    """Return the scores z of ``columns`` as a vector, in which column i is ``columns[i]``."""
    return ArrayScores(np.asarray(scores.at(columns), dtype=np.float64))
