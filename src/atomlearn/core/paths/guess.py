"""Guess: how far a path looks ahead, and whether one more guess is worth its re-fit."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Design


@dataclass(frozen=True, slots=True)
class Guess:
    """How far a path looks ahead; ``benchmarks/paths.py`` measures what that saves.

    levels : solved and priced together. Measured on dense and sparse data: 16 take a tenth of the
    readings that one takes, more spoil re-fits by columns that are not needed. share : columns
    rated so much of the reference join the pool; wider : so much after wrong guesses
    that cost more than a reading (k-support paths then take fewer of both); joining : at most so
    many a reading; readings :
    of one level without proof, after which it is solved by itself; whole : entries of X up to
    which the pool holds all of it (128 MB); elsewhere : what reading an entry costs that is not an
    array in memory (a store, a cluster, columns made on the way), at a guess.
    """

    levels: int = 16
    share: float = 0.8
    wider: float = 0.6
    joining: int = 3000
    readings: int = 8
    whole: int = 2**24
    elsewhere: float = 8.0


GUESS = Guess()


@dataclass(slots=True)
class Worth:
    """Whether one more guess is worth its re-fit, by what guesses of this path were worth so far.

    reading : work of one, in entries; final, wasted : work of the re-fits of levels that the
    reading after them proved, and of the others.
    """

    reading: float
    final: float = 0.0
    wasted: float = 0.0

    def one_more(self, work: list[float]) -> bool:
        """Return whether what is likely wasted, all after the first, is less than a reading.

        One more guess is taken to cost what the last one did.
        """
        wrong = (self.wasted + self.reading) / (self.wasted + self.final + self.reading)
        return wrong * (sum(work[1:]) + work[-1]) <= self.reading

    def learn(self, work: float, proved: bool) -> None:
        """Count the work of a level once it was priced."""
        if proved:
            self.final += work
        else:
            self.wasted += work


def reading_work(design: Design) -> float:
    """Return what a reading costs, in entries of an array in memory."""
    sparse, (n_samples, n_features) = design.stored_sparse(), design.shape
    if sparse is not None:
        return float(sparse.nnz)
    entries = float(n_samples) * n_features
    return entries if design.stored() is not None else GUESS.elsewhere * entries
