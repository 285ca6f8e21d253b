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
    """Designs with the same rows, concatenated: X = [X_1, X_2, ...]; ``_starts``: first columns.

    The best columns are found among the best columns of each part, as in [T] Algorithm 5, the
    incremental search over pieces of the columns. Parts may be files (``designs.OnDisk``).

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
        """Store the designs; raise ValueError unless all have the same number of rows."""
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
        """Return the scores z = X'v of all columns, for v (n_samples,)."""
        return ConcatenatedScores([design.scores(v) for design in self.designs])

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m)."""
        scores_by_design = [design.scores_many(V) for design in self.designs]
        return [ConcatenatedScores(scores) for scores in zip(*scores_by_design, strict=True)]

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Return the large scores X'v for each column v of V (n_samples, m).

        A column has large scores if the magnitude of its score reaches the entry of ``bounds`` (m,)
        for some v. affine : means and factors (n_features,) of transformed columns,
        (x_j - mean_j) factor_j, whose scores are then returned.
        """
        columns = []
        values = []
        # Each design finds its large scores. A column that is large for one vector needs a score
        # for all vectors.
        spans = pairwise(self._starts.tolist())
        for design, (start, end) in zip(self.designs, spans, strict=True):
            part = affine and (affine[0][start:end], affine[1][start:end])
            above = design.scores_above(V, bounds, part)
            # The columns of the large scores of each vector, then of any vector.
            large = [z.above(bound)[0] for z, bound in zip(above, bounds.tolist(), strict=True)]
            distinct = np.unique(np.concatenate(large))
            columns.append(distinct + start)
            values.append([z.at(distinct) for z in above])
        numbers = np.concatenate(columns)
        # For each vector: its bound, and the scores found in each design.
        by_vector = zip(bounds.tolist(), *values, strict=True)
        p = self.shape[1]
        return [FoundScores(numbers, np.concatenate(z), bound, p) for bound, *z in by_vector]

    def _by_design(self, columns: Columns) -> Iterator[tuple[Design, Columns, Columns]]:
        """Yield each design that has some of ``columns``, for methods that work design by design.

        With each design come the positions of its columns in ``columns``, and their numbers in the
        design.
        """
        design_numbers = np.searchsorted(self._starts, columns, side="right") - 1
        for index in np.unique(design_numbers):
            positions = np.flatnonzero(design_numbers == index)
            yield self.designs[index], positions, columns[positions] - self._starts[index]

    def gather(self, columns: Columns) -> Block:
        """Return these columns in the given order, gathered from the designs that have them."""
        parts = list(self._by_design(columns))
        if not parts:
            return self.designs[0].gather(columns)
        block, *others = [design.gather(local_columns) for design, _, local_columns in parts]
        for part in others:
            block = block.append(part)
        # The columns are now in the order of the designs: restore the requested order.
        return block.gather(np.argsort(np.concatenate([positions for _, positions, _ in parts])))

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return the offsets that are subtracted from the scores of ``columns``, (len(columns),).

        Scores lose digits in proportion to them.
        """
        offsets = np.zeros(columns.size)
        for design, positions, local_columns in self._by_design(columns):
            offsets[positions] = design.subtracted_offsets(local_columns)
        return offsets

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X W, or X_S W for S = ``columns``, as a sum over the designs, (n_samples, t)."""
        total = np.zeros((self.shape[0], W.shape[1]))
        if columns is None:
            for design, part in zip(self.designs, np.split(W, self._starts[1:-1]), strict=True):
                total += design.product(part)
            return total
        for design, positions, local_columns in self._by_design(columns):
            total += design.product(W[positions], local_columns)
        return total

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for w = ``weights`` (n_features,)."""
        total = np.zeros(self.shape[0])
        for design, part in zip(self.designs, np.split(weights, self._starts[1:-1]), strict=True):
            total += design.predict(part)
        return total

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, for c = ``curvature`` (None: ones)."""
        return np.concatenate([design.squared_norms(curvature) for design in self.designs])

    def with_rows(self, rows: Rows) -> Concatenated:
        """Return the design of these ``rows`` of this one."""
        return Concatenated([RowSubset(design, rows) for design in self.designs])


class Counted(Forwarding):
    """A design that counts passes: one for each scores, dense predict and squared_norms.

    A pass is one reading of all columns. A pass over a RowSubset or another wrapper of a counted
    design counts as one pass, whatever the share of rows or columns. Products of blocks, which are
    in memory, are not passes. Readings of X before it is a design, such as its conversion and the
    search for NaN, are not counted.

    Parameters
    ----------
    design : Design
        The data matrix X, to which all calls are passed on.
    source : Counted, optional
        The counted design to whose count passes are added; parts of a design share its count.
        None: a separate count.

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
        """Wrap ``design``; passes are counted in ``source``, or here if it is None."""
        super().__init__(design)
        self._source: Counted = self if source is None else source._source
        self._passes = 0.0

    @classmethod
    def of(cls, design: Design) -> Counted:
        """Return the design itself if it counts already, else a wrapper that counts its passes."""
        return design if isinstance(design, Counted) else cls(design)

    @property
    def passes(self) -> float:
        """Number of passes over the data so far, in this and all wrappers that share its count."""
        return self._source._passes

    def around(self, design: Design) -> Counted:
        """Return a wrapper of ``design`` whose passes are added to the count of this one."""
        return Counted(design, self)

    def _read(self, vectors: int) -> None:
        """Add the passes that scores of a number of ``vectors`` take.

        It is one pass if the design reads its data once for all of them, else one for each.
        """
        self._source._passes += min(vectors, 1) if self.inner.traits.reads_at_once else vectors

    def scores(self, v: Array) -> Scores:
        """Count one pass, and return the scores z = X'v of all columns."""
        self._source._passes += 1.0
        return self.inner.scores(v)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Count the passes of the columns v of V (n_samples, m), and return the scores X'v."""
        self._read(V.shape[1])
        return self.inner.scores_many(V)

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Count the passes of the columns v of V (n_samples, m), and return the large scores X'v.

        A column has large scores if the magnitude of its score reaches the entry of ``bounds`` (m,)
        for some v. affine : means and factors (n_features,) of transformed columns,
        (x_j - mean_j) factor_j, whose scores are then returned.
        """
        self._read(V.shape[1])
        return self.inner.scores_above(V, bounds, affine)

    def predict(self, weights: Array) -> Array:
        """Count one pass, and return X w, (n_samples,), for w = ``weights``."""
        self._source._passes += 1.0
        return self.inner.predict(weights)

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X W, (n_samples, t), or X_S W for S = ``columns``.

        Passes are counted only for all columns, because some columns are gathered.
        """
        if columns is None:
            self._read(W.shape[1])
        return self.inner.product(W, columns)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Count one pass, and return sum_i c_i x_ij^2 of each column j.

        c = ``curvature`` (n_samples,), None: ones.
        """
        self._source._passes += 1.0
        return self.inner.squared_norms(curvature)

    def with_rows(self, rows: Rows) -> Counted:
        """Return the design of these ``rows``, whose passes are added to this count."""
        return self.around(RowSubset(self.inner, rows))
