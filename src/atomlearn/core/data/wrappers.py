"""Designs made of designs: concatenated columns, and a counter of passes.

Parts of designs are in ``parts.py``, ``Standardized`` has a separate file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from atomlearn.core.data.parts import RowSubset
from atomlearn.core.data.scores import ConcatenatedScores, FoundScores
from atomlearn.core.interfaces import Array, Block, Columns, Design, Rows, Scores, Traits
from atomlearn.core.interfaces.forwarding import Forwarding


class Concatenated(Design):
    """Designs with the same rows, concatenated: X = [X_1, X_2, ...].

    The best columns are the best of each part's best: [T] Algorithm 5, the incremental search over
    pieces of the columns, with a cache of the B best. Parts may be files (``designs.OnDisk``).

    Parameters
    ----------
    designs : sequence of Design
        The parts.

    References
    ----------
    [T] M. Tan, I. W. Tsang, L. Wang 2014, Algorithm 5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> from atomlearn.designs import Concatenated
    >>> both = Concatenated([DenseDesign(np.eye(2)), DenseDesign(np.ones((2, 1)))])
    >>> both.scores(np.array([1.0, 2.0])).full()
    array([1., 2., 3.])
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        self.designs = list(designs)
        if not self.designs:
            raise ValueError("Concatenated needs at least one design, got none")
        rows = [design.shape[0] for design in self.designs]
        if len(set(rows)) > 1:
            raise ValueError(f"Concatenated needs designs of the same rows, got {rows} rows")
        sizes = [design.shape[1] for design in self.designs]
        self._starts: Columns = np.cumsum([0, *sizes], dtype=np.int64)
        self.dtype = np.result_type(*(design.dtype for design in self.designs))
        at_once = all(design.traits.reads_at_once for design in self.designs)
        self.traits = Traits(reads_at_once=at_once)
        self.shape = self.designs[0].shape[0], int(self._starts[-1])

    @property
    def names(self) -> list[str] | None:
        """The names of all columns; None if one of the designs has no names."""
        all_names: list[str] = []
        for design in self.designs:
            names = design.names
            if names is None:
                return None
            all_names += names
        return all_names

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each column fit into memory."""
        return all(design.listable for design in self.designs)

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns."""
        return ConcatenatedScores([design.scores(v) for design in self.designs])

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V."""
        parts = [design.scores_many(V) for design in self.designs]
        return [ConcatenatedScores(scores) for scores in zip(*parts, strict=True)]

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Return the large scores; a column is included if its score is large for some vector."""
        columns = []
        values = []
        for design, (a, b) in zip(self.designs, pairwise(self._starts.tolist()), strict=True):
            above = design.scores_above(V, bounds, affine and (affine[0][a:b], affine[1][a:b]))
            large = [z.above(bound)[0] for z, bound in zip(above, bounds.tolist(), strict=True)]
            distinct = np.unique(np.concatenate(large))
            columns.append(distinct + a)
            values.append([z.at(distinct) for z in above])
        numbers = np.concatenate(columns)
        size = self.shape[1]
        of_each = zip(bounds.tolist(), *values, strict=True)
        return [FoundScores(numbers, np.concatenate(z), bound, size) for bound, *z in of_each]

    def _owned(self, columns: Columns) -> Iterator[tuple[Design, Columns, Columns]]:
        """Yield each design that owns some columns, their positions, and their indices in it."""
        owner = np.searchsorted(self._starts, columns, side="right") - 1
        for index in np.unique(owner):
            positions = np.flatnonzero(owner == index)
            yield self.designs[index], positions, columns[positions] - self._starts[index]

    def gather(self, columns: Columns) -> Block:
        """Return these columns, gathered from the designs that own them, in the given order."""
        parts = list(self._owned(columns))
        if not parts:
            return self.designs[0].gather(columns)
        block, *others = [design.gather(own_columns) for design, _, own_columns in parts]
        for part in others:
            block = block.append(part)
        return block.gather(np.argsort(np.concatenate([positions for _, positions, _ in parts])))

    def taken_off(self, columns: Columns) -> Array:
        """Return the offsets that are subtracted from the scores of these columns."""
        offsets = np.zeros(columns.size)
        for design, positions, own_columns in self._owned(columns):
            offsets[positions] = design.taken_off(own_columns)
        return offsets

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return the product of these columns and W."""
        total = np.zeros((self.shape[0], W.shape[1]))
        if columns is None:
            for design, part in zip(self.designs, np.split(W, self._starts[1:-1]), strict=True):
                total += design.product(part)
            return total
        for design, positions, own_columns in self._owned(columns):
            total += design.product(W[positions], own_columns)
        return total

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for w = ``weights``."""
        total = np.zeros(self.shape[0])
        for design, part in zip(self.designs, np.split(weights, self._starts[1:-1]), strict=True):
            total += design.predict(part)
        return total

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, for c = ``curvature``."""
        return np.concatenate([design.squared_norms(curvature) for design in self.designs])

    def with_rows(self, rows: Rows) -> Concatenated:
        """Return the design of these rows of this one."""
        return Concatenated([RowSubset(design, rows) for design in self.designs])


class Counted(Forwarding):
    """A design that counts passes: one for each scores, dense predict and squared_norms.

    A pass over a RowSubset or another wrapper of a counted design counts as one pass, whatever
    the share of rows or columns. Spans of matrix designs hold factors in memory, as blocks do:
    their products are no passes. What happens before X is a design, such as its conversion and the
    search for NaN, is not counted.

    Parameters
    ----------
    design : Design
    source : Counted, optional
        Where to count: parts of a counted design count into it.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.wrappers import Counted
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> design = Counted(DenseDesign(np.eye(3)))
    >>> z = design.scores(np.ones(3))
    >>> design.predict(np.ones(3)), design.passes
    (array([1., 1., 1.]), 2.0)
    """

    def __init__(self, design: Design, source: Counted | None = None) -> None:
        super().__init__(design)
        self._source: Counted = self if source is None else source._source
        self._passes = 0.0

    @classmethod
    def of(cls, design: Design) -> Counted:
        """Return the design itself if it counts already, else a wrapper that counts its passes."""
        return design if isinstance(design, Counted) else cls(design)

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self._source._passes

    def around(self, design: Design) -> Counted:
        """Return a wrapper of ``design`` whose passes are added to the count of this one."""
        return Counted(design, self)

    def _read(self, vectors: int) -> None:
        """Count one pass for these vectors, or one for each if the design reads them one by one."""
        self._source._passes += min(vectors, 1) if self.inner.traits.reads_at_once else vectors

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns."""
        self._source._passes += 1.0
        return self.inner.scores(v)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V."""
        self._read(V.shape[1])
        return self.inner.scores_many(V)

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Count the passes that the scores of these vectors take, and return them."""
        self._read(V.shape[1])
        return self.inner.scores_above(V, bounds, affine)

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for w = ``weights``."""
        self._source._passes += 1.0
        return self.inner.predict(weights)

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return the product of these columns and W."""
        if columns is None:
            self._read(W.shape[1])
        return self.inner.product(W, columns)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, for c = ``curvature``."""
        self._source._passes += 1.0
        return self.inner.squared_norms(curvature)

    def with_rows(self, rows: Rows) -> Counted:
        """Return the design of these rows, whose passes are added to the count of this one."""
        return self.around(RowSubset(self.inner, rows))
