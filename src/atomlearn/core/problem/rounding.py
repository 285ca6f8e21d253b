"""Rounding: how far a sum of floats can be from the truth, and what has to be known to say it.

Errors of independent roundings add up like a random walk: a sum of n terms is off by about sqrt(n)
units in the last place of the sum of their magnitudes, and ``growth`` has a factor of a few over
that (the worst case, n units, never happens).
Higham, Mary (2019), A new approach to probabilistic rounding error analysis, SIAM Journal on
Scientific Computing 41(5), doi:10.1137/18M1226312.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import EPS, TINY, Array, Block, Columns, Design, Loss
from atomlearn.core.losses import pieces
from atomlearn.core.losses.around import bare_loss


@dataclass(frozen=True, slots=True)
class Lengths:
    """Euclidean lengths of the columns of a point, (m,) each, over the samples that have weight.

    scored : of the columns of X, of which the scores are made; summed : of the columns of which the
    prediction is made, which may have offsets taken off; offsets : those offsets.
    """

    scored: Array
    summed: Array
    offsets: Array

    @classmethod
    def none(cls) -> Lengths:
        """Return those of no columns."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def take(self, positions: Columns) -> Lengths:
        """Return those of the columns at these positions."""
        return Lengths(self.scored[positions], self.summed[positions], self.offsets[positions])

    def append(self, other: Lengths) -> Lengths:
        """Return those of these columns followed by the others."""
        mine = (self.scored, self.summed, self.offsets)
        theirs = (other.scored, other.summed, other.offsets)
        return Lengths(*map(np.concatenate, zip(mine, theirs, strict=True)))


class Measured:
    """What is measured of a problem once: f(0), and lengths of columns, for solvers that keep none.

    Problems that are made of one another share it.
    """

    def __init__(self) -> None:
        self._known: tuple[Design | None, Array, Columns, Array, Array] = _nothing
        self._zero: tuple[object, object, object, float] = None, None, None, 0.0

    def loss_at_zero(self, loss: Loss, y: Array, weight: Array) -> float:
        """Return f(0) of these very parts."""
        known = self._zero
        if known[0] is not loss or known[1] is not y or known[2] is not weight:
            value = pieces.value(bare_loss(loss), y, np.zeros(y.size), weight)
            self._zero = known = loss, y, weight, value
        return known[3]

    def of(self, design: Design, weight: Array, columns: Columns) -> Lengths:
        """Return the lengths of these columns; those that are new are gathered."""
        # One assignment at the end: threads that measure at a time lose nothing but work.
        same = self._known[0] is design and self._known[1] is weight
        _, _, known, lengths, scored = self._known if same else _nothing
        new = np.setdiff1d(columns, known)
        if new.size:
            # Some at a time: a solver over all columns must not hold them twice.
            at_once = max(1, LIMITS.piece_entries // design.shape[0])
            parts = np.split(new, range(at_once, new.size, at_once))
            used = counted(weight)
            lengths_of = [measured(design.gather(part), used, part) for part in parts]
            more = np.concatenate(lengths_of)
            over = more + math.sqrt(design.shape[0]) * design.taken_off(new)
            order = np.argsort(known := np.append(known, new), kind="stable")
            known = known[order]
            lengths = np.append(lengths, more)[order]
            scored = np.append(scored, over)[order]
            self._known = design, weight, known, lengths, scored
        at = np.searchsorted(known, columns)
        return Lengths(scored[at], lengths[at], np.zeros(columns.size))


_nothing = None, np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)


def measured(block: Block, used: Array | None, columns: Columns) -> Array:
    """Return the Euclidean norm of each column of ``block``; raise if its square overflows.

    ``used`` has a 1 for each row that counts, None for all; ``columns`` are the numbers in errors.
    """
    with np.errstate(over="ignore"):
        squares = block.squared_norms(used)
    doubtful = np.flatnonzero(~((squares >= TINY) & (squares < math.inf)))
    for some in LIMITS.pieces(doubtful.size, block.shape[0]):
        sizes = np.abs(block.gather(doubtful[some]).dense())
        largest = (sizes if used is None else sizes * used[:, None]).max(axis=0, initial=0.0)
        if largest.any():
            first = int(np.flatnonzero(largest)[0])
            raise ValueError(
                f"X: column {columns[doubtful[some][first]]} holds numbers up to "
                f"{largest[first]:.3g}, whose squares are beyond float64; divide it by its largest "
                "number"
            )
    return np.sqrt(squares)


def counted(weight: Array) -> Array | None:
    """Return 1 for each sample that has a weight and 0 for others; None where all have one."""
    return None if weight.all() else (weight > 0.0).astype(np.float64)


def less(numbers: Array, *others: Array | float) -> Array:
    """Return the numbers less all others, rounded once: off by half a digit of the result.

    One after the other, each difference would be off by half a digit of itself, which may be more
    than all that is left at the end. [Dekker 1971, doi:10.1007/BF01397083]
    """
    total = numbers
    lost = 0.0 * numbers
    for other in others:
        following = total - other
        back = following - total
        lost += (total - (following - back)) - (other + back)
        total = following
    return np.asarray(total + lost)


def growth(count: int) -> float:
    """Return eps * (4 + sqrt(count)), which bounds the relative error of a sum of count terms."""
    return EPS * (4.0 + math.sqrt(count))
