"""Scores z = X'v of explicit designs: all of them, or only the large ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.interfaces.scores import norms_by_label


def largest(columns: Columns, values: Array, count: int) -> tuple[Columns, Array]:
    """Return the ``count`` candidates of largest |value|, largest first.

    columns, values : the candidates, (m,). Ties are broken by the smaller column.
    """
    order = np.lexsort((columns, -np.abs(values)))[: max(count, 0)]
    return columns[order], values[order]


class ShiftedScores(Scores):
    """z_j - shift_j at a few distinct ``columns``, z_j elsewhere, without storing all of z.

    A ridge penalty adds tau * w to the gradient, which shifts only the scores of non-zero
    coefficients. ``top(count)`` requests count + len(columns) scores of the base, so it is exact.

    Parameters
    ----------
    base : Scores
        The scores z.
    columns : (m,) int64, distinct
        The columns with a shift.
    shift : (m,) float64
        The number subtracted from each of their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.scores import ShiftedScores
    >>> from atomlearn.interfaces import ArrayScores
    >>> z = ArrayScores(np.array([1.0, -3.0, 2.0]))
    >>> ShiftedScores(z, np.array([1]), np.array([-3.0])).top(1)
    (array([2]), array([2.]))
    """

    def __init__(self, base: Scores, columns: Columns, shift: Array) -> None:
        """Store the scores z, ``base``, and the shift of each of the ``columns``."""
        columns = np.asarray(columns, dtype=np.int64)
        shift = np.asarray(shift, dtype=np.float64)
        if columns.ndim != 1 or columns.shape != shift.shape:
            raise ValueError(
                f"ShiftedScores needs one shift a column, got columns of shape {columns.shape} "
                f"and shift of shape {shift.shape}"
            )
        # Columns are kept sorted, so that they can be searched.
        order = np.argsort(columns, kind="stable")
        self._base = base
        self._columns: Columns = columns[order]
        self._shift: Array = shift[order]
        if (self._columns[1:] == self._columns[:-1]).any():
            raise ValueError("ShiftedScores needs distinct columns; add up shifts of one column")
        self.n_columns = self._base.n_columns

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the columns and values of the ``count`` largest |z_j - shift_j|.

        They are among the shifted columns and the largest scores of the base.
        """
        count = max(0, min(int(count), self.n_columns))
        columns, values = self._base.top(min(count + self._columns.size, self.n_columns))
        is_unshifted = ~np.isin(columns, self._columns)
        shifted = self._base.at(self._columns) - self._shift
        return largest(
            np.concatenate([columns[is_unshifted], self._columns]),
            np.concatenate([values[is_unshifted], shifted]),
            count,
        )

    def at(self, columns: Columns) -> Array:
        """Return z_j - shift_j of these columns, (len(columns),)."""
        values = np.array(self._base.at(columns), dtype=np.float64)
        if self._columns.size:
            is_shifted = np.isin(columns, self._columns)
            positions = np.searchsorted(self._columns, columns[is_shifted])
            values[is_shifted] -= self._shift[positions]
        return values

    def full(self) -> Array:
        """Return z_j - shift_j of all columns, (n_columns,)."""
        z = np.array(self._base.full(), dtype=np.float64)
        z[self._columns] -= self._shift
        return z

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        """Return the l2 norm of z - shift over each group, (n_groups,).

        labels : (n_columns,), the group of each column.
        """
        norms = np.array(self._base.group_norms(labels, n_groups), dtype=np.float64)
        has_shift = np.zeros(n_groups, dtype=bool)
        has_shift[labels[self._columns]] = True
        # The norms of groups with shifted columns are recomputed, because a correction of their
        # squares would lose digits by cancellation.
        members = np.flatnonzero(has_shift[labels])
        values = self.at(members)
        norms[has_shift] = norms_by_label(values, labels[members], n_groups)[has_shift]
        return norms


class ConcatenatedScores(Scores):
    """The scores of concatenated designs, X = [X_1, X_2, ...]; ``_starts`` has their first columns.

    Parameters
    ----------
    parts : sequence of Scores
        The scores of X_1, X_2, ...

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.scores import ConcatenatedScores
    >>> from atomlearn.interfaces import ArrayScores
    >>> ConcatenatedScores([ArrayScores(np.ones(2)), ArrayScores(np.array([5.0]))]).top(1)
    (array([2]), array([5.]))
    """

    def __init__(self, parts: Sequence[Scores]) -> None:
        """Store ``parts``, the scores of each design, and the column where each begins."""
        self._parts = list(parts)
        self._starts: Columns = np.cumsum([0] + [part.n_columns for part in parts], dtype=np.int64)
        self.n_columns = int(self._starts[-1])

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the columns and values of the ``count`` largest |z_j|.

        They are among the largest scores of each part.
        """
        tops = [part.top(count) for part in self._parts]
        columns = [top[0] + start for top, start in zip(tops, self._starts[:-1], strict=True)]
        return largest(np.concatenate(columns), np.concatenate([top[1] for top in tops]), count)

    def at(self, columns: Columns) -> Array:
        """Return the scores of these columns, each from the part that has the column."""
        values = np.empty(columns.shape[0])
        owner = np.searchsorted(self._starts, columns, side="right") - 1
        for index, part in enumerate(self._parts):
            is_owned = owner == index
            values[is_owned] = part.at(columns[is_owned] - self._starts[index])
        return values

    def full(self) -> Array:
        """Return the scores of all columns, (n_columns,)."""
        return np.concatenate([part.full() for part in self._parts])


class FoundScores(Scores):
    """The scores z_j of some columns, which include all columns with \\|z_j\\| >= ``bound``.

    Parameters
    ----------
    columns : (f,) int64, increasing
        The columns whose scores are known.
    values : (f,) float64
        Their scores.
    bound : float
        The magnitude from which all scores are known.
    n_columns : int
        Number of all columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> z = FoundScores(np.array([2, 5]), np.array([1.0, -3.0]), 0.9, 100)
    >>> z.top(1), z.at(np.array([2]))
    ((array([5]), array([-3.])), array([1.]))
    """

    def __init__(self, columns: Columns, values: Array, bound: float, n_columns: int) -> None:
        """Store the known scores, and the order of their magnitudes; see the class."""
        self._columns = columns
        self._values = values
        self._bound = bound
        self.n_columns = n_columns
        self._order: Columns = np.argsort(-np.abs(values), kind="stable")

    def _unknown(self, columns: str) -> LookupError:
        """Return the error for scores that were not kept.

        columns : the requested scores in words, for the message.
        """
        return LookupError(
            f"only scores of magnitude {self._bound:.3g} and more were kept, not {columns}; ask "
            "the design for scores_many"
        )

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the columns and values of the ``count`` largest |z_j|.

        Raises LookupError if some of them were not kept.
        """
        # ``_order`` has the known scores by decreasing magnitude.
        positions = self._order[: min(int(count), self.n_columns)]
        values = self._values[positions]
        # The result is unknown if too few scores were kept, or if one of them is below the bound: a
        # column that was not kept may have a larger score.
        is_short = positions.size < min(count, self.n_columns)
        if is_short or (values.size and abs(values[-1]) < self._bound):
            raise self._unknown(f"the {count} largest")
        return self._columns[positions], values

    def above(self, bound: float) -> tuple[Columns, Array]:
        """Return the columns and scores with |z_j| >= bound, largest first.

        Raises LookupError if some of them were not kept.
        """
        if bound < self._bound:
            raise self._unknown(f"all from {bound:.3g} on")
        positions = self._order
        positions = positions[
            : np.searchsorted(-np.abs(self._values[positions]), -bound, side="right")
        ]
        return self._columns[positions], self._values[positions]

    def at(self, columns: Columns) -> Array:
        """Return the scores of these columns; raise LookupError if one was not kept."""
        positions = np.searchsorted(self._columns, columns)
        # A column beyond the last known one has no position.
        clipped = np.minimum(positions, self._columns.size - 1)
        if columns.size and (not self._columns.size or (self._columns[clipped] != columns).any()):
            raise self._unknown("those of each column")
        return self._values[clipped] if columns.size else np.zeros(0)
