"""Pool: the working set of columns of X that are likely active, shared by paths on one design."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import TINY, Array, Block, Columns
from atomlearn.core.problem.problem import Problem, enter, over_sums
from atomlearn.core.problem.result import Result
from atomlearn.core.problem.rounding import Lengths
from atomlearn.core.solvers.column_generation import centered_columns
from atomlearn.core.solvers.run import Run

#: Most columns that join a pool after one reading of the data.
JOINING = 3000
#: Maximum number of entries of X (128 MB) for a pool that has all columns, and of all its cached
#: Gram matrices together.
WHOLE = 2**24


@dataclass(slots=True)
class Point:
    """A solution restricted to the pool's columns, before a pass over X has certified its gap.

    Attributes
    ----------
    positions, weights : (m,)
        Positions in the pool and the weights there, all non-zero.
    shift : float
        The constant in ``prediction`` = A w + shift; A has the columns of the pool.
    prediction : (n_samples,)
        Predictions of the samples.
    dual : (n_samples,), optional
        The dual vector v = -f'(prediction), the negative gradient of the loss f; None if it is not
        computed yet.
    reference : float
        ``Norm.reference`` of the scores X'v over the pool: the rating (l1: |x_j'v|) that all
        columns in use have at an optimum.
    objective : float
        Objective of the problem restricted to the pool; NaN if it is not known.
    """

    positions: Columns
    weights: Array
    shift: float
    prediction: Array
    dual: Array | None = None
    reference: float = 0.0
    objective: float = math.nan


class Pool:
    """Columns of X, gathered once for all paths. The position of a column never changes.

    Parameters
    ----------
    problem : Problem
        Its design gives the columns, lifted ones if the norm is lifted. If the problem has an
        intercept, columns with large means are centered.
    source : Pool, optional
        The common pool of several paths. This pool, of one path, copies its columns from it.

    Attributes
    ----------
    columns : (m,) int64
        Numbers of the columns in X, in the order in which they joined.
    block : Block (n_samples, m)
        Data of the columns, minus the offsets of ``lengths``.
    lengths : Lengths
        Norms and offsets of the columns, for bounds on rounding errors.
    """

    #: Maximum number of entries in float64 (2 GB). The pool of one of several paths may have half
    #: of it, since the paths have most columns in common.
    MOST_ENTRIES = 2**28

    def __init__(self, problem: Problem, source: Pool | None = None) -> None:
        """Begin a pool without columns."""
        problem = enter(over_sums(problem), lifts=True)[0]
        self._problem = problem
        self._source = source
        self._lock = threading.Lock()
        self.columns: Columns = np.zeros(0, dtype=np.int64)
        self.lengths = Lengths.none()
        self.block: Block = problem.design.gather(self.columns)
        #: Positions in the increasing order of the columns.
        self._order: Columns = self.columns
        self._gram: Array | None = None
        self._grams: dict[bytes, Array] = {}

    @property
    def _most(self) -> int:
        """Maximum number of entries: as many as fill the bytes of MOST_ENTRIES in float64."""
        return int(self.MOST_ENTRIES * 8.0 / self.block.traits.bytes_an_entry)

    @property
    def room(self) -> int:
        """Number of columns that may still join.

        These are all columns if X is sparse and has at most ``MOST_ENTRIES`` stored entries.

        A pool with a ``source`` has half of the memory, and cannot exceed the room of its source.
        """
        n_samples, n_features = self._problem.design.shape
        design = self._problem.design
        stored = design.stored() if design.traits.is_sparse else None
        if stored is not None and stored.nnz <= self.MOST_ENTRIES:
            return n_features - self.columns.size
        most = self._most if self._source is None else self._most // 2
        free = max(most // max(n_samples, 1) - self.columns.size, 0)
        return free if self._source is None else min(free, self._source.room)

    @property
    def most_at_once(self) -> int:
        """Maximum number of columns that may join together: a quarter of ``room``, rounded up."""
        return -(-self.room // 4)

    @property
    def most_joining(self) -> int:
        """Maximum number of columns that join after one reading: more if X is packed in bits.

        Packed columns take less than a byte per entry and are gathered faster.
        """
        return JOINING if self.block.traits.bytes_an_entry >= 1.0 else 4 * JOINING

    def for_paths(self, count: int) -> list[Pool]:
        """Return the pools of ``count`` paths: a pool for each if memory allows, else one pool.

        The pool of one path is smaller than a common one, since paths of different folds use
        different columns. If X has few columns, all paths share this pool, which then has them all.
        """
        n_samples, n_features = self._problem.design.shape
        few = n_features <= JOINING
        if count == 1 or few or count * JOINING * n_samples > self._most:
            return [self] * count
        return [Pool(self._problem, self) for _ in range(count)]

    def positions(self, columns: Columns) -> Columns:
        """Return the position in the pool of each of ``columns`` of X, -1 for those not in it."""
        if not self.columns.size:
            return np.full(columns.size, -1, dtype=np.int64)
        # Search the sorted columns; then check whether the column at the position is equal.
        places = np.searchsorted(self.columns, columns, sorter=self._order)
        found = self._order[np.minimum(places, self.columns.size - 1)]
        return np.where(self.columns[found] == columns, found, -1)

    def add(self, columns: Columns) -> int:
        """Add columns of X to the pool by number; return how many of them are new.

        Their data is gathered later, by ``settle``.
        """
        fresh = np.unique(columns[self.positions(columns) < 0])
        if fresh.size:
            if self._source is not None:
                self._source.add(fresh)
                self._source.settle()
            self.columns = np.concatenate([self.columns, fresh])
            self._order = np.argsort(self.columns, kind="stable")
        return int(fresh.size)

    def settle(self) -> None:
        """Gather the data of the columns that joined since the last call.

        Several threads may call this at the same time.
        """
        with self._lock:
            settled = self.block.shape[1]
            if settled < self.columns.size:
                gathered, lengths = self._gathered(self.columns[settled:])
                self.block = self.block.append(gathered) if settled else gathered
                self.lengths = self.lengths.append(lengths)

    def gram(self, weight: Array) -> Array:
        """Return the weighted Gram matrix A' diag(weight) A, for a pool A that is complete.

        ``weight`` (n_samples,) are the sample weights of one fold. Its matrix is computed from that
        of all rows by subtracting the part of the held-out rows. It is cached for other norms.
        """
        key = weight.tobytes()
        if key not in self._grams:
            found = self._gram_of(weight)
            if (len(self._grams) + 1) * found.size > WHOLE:
                return found
            self._grams[key] = found
        return self._grams[key]

    def _gram_of(self, weight: Array) -> Array:
        """Return A' diag(weight) A, from the Gram matrix of all rows if few rows differ.

        A has the columns of the pool. ``weight`` (n_samples,) are the weights of one fold: those of
        the problem (``all_weight``) times a common ``share``, but zero (or otherwise different) on
        the held-out rows.
        """
        all_weight = self._problem.weight
        block = self.block
        share = float(weight.sum()) / max(float(all_weight[weight > 0].sum()), TINY)
        difference = share * all_weight - weight
        held_out = np.flatnonzero(np.abs(difference) > 1e-14 * share * all_weight)
        if 2 * held_out.size > weight.size:
            return block.gram(weight)
        with self._lock:
            if self._gram is None:
                self._gram = block.gram(all_weight)
        whole = share * self._gram
        if not held_out.size:
            return whole
        rows = np.asarray(block.dense()[held_out], dtype=np.float64)
        result: Array = whole - (rows * difference[held_out, None]).T @ rows
        # If the difference nearly cancels in a column, compute the matrix without subtraction.
        remaining = np.diag(result) >= LIMITS.cancelled * np.diag(whole)
        return result if remaining.all() else block.gram(weight)

    def _gathered(self, columns: Columns) -> tuple[Block, Lengths]:
        """Return the data and the norms of these columns of X, from the source pool if possible."""
        source = self._source
        if source is None:
            return centered_columns(self._problem, columns)
        positions = source.positions(columns)
        return source.block.gather(positions), source.lengths.take(positions)


class Level(Run):
    """The run of one level of the path, with its last point over the pool.

    Attributes
    ----------
    point : Point, optional
        The last solution over the columns of the pool.
    readings : int
        Number of readings of X that computed the scores at a point of the level.
    needs_steps : bool
        Whether the re-fit over the pool failed, so that the level needs steps of a solver.
    begun : bool
        Whether the observers were called at the beginning of the level.
    """

    point: Point | None = None
    readings = 0
    needs_steps = False
    begun = False
    _result: Result | None = None

    def begin_once(self) -> None:
        """Call the observers at the beginning, once; not if a checkpoint resumed the level."""
        if not self.begun and not self.resumes:
            self.begun = True
            self.begin()

    def result(self) -> Result:
        """Return the result of a final level, without the solver's state."""
        if self._result is None:
            self._result = super().result()
            self._result.state = None
        return self._result
