"""Guess: how far a path looks ahead."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Design


@dataclass(frozen=True, slots=True)
class Guess:
    """How far a path looks ahead; ``benchmarks/tuning/guesses.py`` varies it.

    levels : solved and priced together. Measured on dense and sparse data: 16 take a tenth of the
    readings that one takes, more spoil re-fits by columns that are not needed. share : columns
    rated so much of the reference join the pool; wider : so much once a re-fit takes ``dear`` of a
    reading or more (k-support, 1000 x 20,000, k = 10, 20 levels: 5 readings, 11 without). sure :
    once the re-fits of a batch take more than a reading, guesses go on down to so much of the
    reference of the last level that columns joined for (k-support paths to 1e-4 of the largest
    level: 0.45 takes 6 to 9 readings, 0.4 takes 5 to 9, one level a reading 20 to 50). joining : at
    most so many a reading; readings : of one level without proof, after which it is solved by
    itself; whole : entries of X up to which the pool holds all of it (128 MB); elsewhere : what
    reading an entry costs that is not an array in memory (a store, a cluster, columns made on the
    way), at a guess.
    """

    levels: int = 16
    share: float = 0.8
    wider: float = 0.6
    dear: float = 0.5
    sure: float = 0.4
    joining: int = 3000
    readings: int = 8
    whole: int = 2**24
    elsewhere: float = 8.0


GUESS = Guess()


def entries(design: Design) -> float:
    """Return how many entries are read in a pass: those that are stored, where others are zero."""
    sparse, (n_samples, n_features) = design.stored_sparse(), design.shape
    return float(n_samples) * n_features if sparse is None else float(sparse.nnz)


def reading_work(design: Design) -> float:
    """Return what a reading costs, in entries of an array in memory."""
    known = design.stored() is not None or design.stored_sparse() is not None
    return entries(design) * (1.0 if known else GUESS.elsewhere)
