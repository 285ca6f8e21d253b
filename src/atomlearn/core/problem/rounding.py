"""Rounding: bounds on the errors of floating-point sums, and column norms for them.

Errors of independent roundings add up like a random walk: a sum of n terms has an error of about
sqrt(n) units in the last place of the sum of their magnitudes. ``growth`` is a few times that. The
worst case, n units, never happens. [Higham, Mary 2019, A new approach to probabilistic rounding
error analysis, SIAM Journal on Scientific Computing 41(5), doi:10.1137/18M1226312]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn._support import counted
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import TINY, Array, Block, Columns, Design, Loss
from atomlearn.core.losses import pieces
from atomlearn.core.losses.around import bare_loss


@dataclass(frozen=True, slots=True)
class Lengths:
    """Euclidean norms of the m columns in use, over samples of positive weight; (m,) each.

    Solvers may center columns: then predictions are sums of x_j - offset_j for the columns x_j of
    X.

    Attributes
    ----------
    scored : ndarray
        Norms ||x_j||, since scores are computed from the columns of X.
    summed : ndarray
        Norms ||x_j - offset_j||, since predictions are computed from the centered columns.
    offsets : ndarray
        The offsets; 0 for columns that are not centered.
    """

    scored: Array
    summed: Array
    offsets: Array

    @classmethod
    def none(cls) -> Lengths:
        """Return the lengths of no columns."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def take(self, positions: Columns) -> Lengths:
        """Return the lengths of some of the columns, those at the indices ``positions``."""
        return Lengths(self.scored[positions], self.summed[positions], self.offsets[positions])

    def append(self, other: Lengths) -> Lengths:
        """Return the lengths of these columns followed by those of ``other``."""
        these = (self.scored, self.summed, self.offsets)
        others = (other.scored, other.summed, other.offsets)
        return Lengths(*map(np.concatenate, zip(these, others, strict=True)))


class Measured:
    """A cache of f(0) and of column norms, for solvers that do not keep the norms themselves.

    A problem shares it with the problems derived from it.
    """

    def __init__(self) -> None:
        """Begin with empty caches."""
        # Design, sample weights, columns, and two norms of each of these columns, defined in
        # ``Lengths``: ``summed`` for the rounding of predictions, ``scored`` for that of scores.
        # ``_nothing`` has no design and no columns.
        self._known: tuple[Design | None, Array, Columns, Array, Array] = _nothing
        # Loss, targets, sample weights, and f(0) for these.
        self._zero: tuple[object, object, object, float] = None, None, None, 0.0

    def loss_at_zero(self, loss: Loss, y: Array, weight: Array) -> float:
        """Return f(0) of ``loss``, for targets ``y`` and sample weights ``weight``.

        The value is cached for these three objects, not for equal ones.
        """
        cached = self._zero
        if cached[0] is not loss or cached[1] is not y or cached[2] is not weight:
            value = pieces.value(bare_loss(loss), y, np.zeros(y.size), weight)
            self._zero = cached = loss, y, weight, value
        return cached[3]

    def of(self, design: Design, weight: Array, columns: Columns) -> Lengths:
        """Return the lengths of ``columns`` of ``design``, over samples of positive ``weight``.

        They are cached for one design and one array of sample weights.
        """
        # A single assignment at the end is thread-safe: concurrent threads may only repeat work.
        is_current = self._known[0] is design and self._known[1] is weight
        _, _, known, lengths, scored = self._known if is_current else _nothing
        new = np.setdiff1d(columns, known)
        if new.size:
            # The lengths are computed in pieces, so that a solver over all columns does not hold a
            # second copy of X.
            at_once = max(1, LIMITS.piece_entries // design.shape[0])
            parts = np.split(new, range(at_once, new.size, at_once))
            has_weight = counted(weight)
            lengths_of = [measured(design.gather(piece), has_weight, piece) for piece in parts]
            new_lengths = np.concatenate(lengths_of)
            # If the design subtracts column means m, ||x_j|| + sqrt(n) |m_j| bounds the norm of the
            # original column.
            new_scored = new_lengths + math.sqrt(design.shape[0]) * design.subtracted_offsets(new)
            # Merge the new columns with the known ones, in increasing order.
            known = np.append(known, new)
            order = np.argsort(known, kind="stable")
            known = known[order]
            lengths = np.append(lengths, new_lengths)[order]
            scored = np.append(scored, new_scored)[order]
            self._known = design, weight, known, lengths, scored
        # The solver does not center these columns: their offsets are 0.
        positions = np.searchsorted(known, columns)
        return Lengths(scored[positions], lengths[positions], np.zeros(columns.size))


_nothing = None, np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)


def measured(block: Block, has_weight: Array | None, columns: Columns) -> Array:
    """Return the Euclidean norm of each column of ``block``; raise if its square overflows.

    ``has_weight`` (n,) : 1 for each row that counts, 0 for others; None: all count.
    ``columns`` (m,) : the column numbers that the error names.
    """
    with np.errstate(over="ignore"):
        squares = block.squared_norms(has_weight)
    # If a sum of squares overflowed or underflowed, look at the entries themselves: a column of
    # zeros is fine, any other is an error.
    suspects = np.flatnonzero(~((squares >= TINY) & (squares < math.inf)))
    for piece in LIMITS.pieces(suspects.size, block.shape[0]):
        sizes = np.abs(block.gather(suspects[piece]).dense())
        largest = (sizes if has_weight is None else sizes * has_weight[:, None]).max(
            axis=0, initial=0.0
        )
        if largest.any():
            first = int(np.flatnonzero(largest)[0])
            raise ValueError(
                f"X: column {columns[suspects[piece][first]]} holds numbers up to "
                f"{largest[first]:.3g}, whose squares are beyond float64; divide it by its largest "
                "number"
            )
    return np.sqrt(squares)


def less(numbers: Array, *others: Array | float) -> Array:
    """Return ``numbers`` minus all ``others``, rounded once, to half a unit in the last place.

    ``numbers`` is an array (n,), and each of ``others`` an array (n,) or a number. If they were
    subtracted one after the other, each difference would have a rounding error, which may exceed
    the final result. [Dekker 1971, doi:10.1007/BF01397083]
    """
    total = numbers
    error = 0.0 * numbers
    for other in others:
        # The difference of two floats, and the exact error of that difference.
        following = total - other
        back = following - total
        error += (total - (following - back)) - (other + back)
        total = following
    return np.asarray(total + error)
