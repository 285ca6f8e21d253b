"""Designs made of designs: rows of one, several side by side, one that counts its passes.

``Standardized`` lives in its own file. Wrappers have ``predict`` and ``squared_norms`` exactly
where the designs they wrap have them, so those two are attributes set by the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.core.data.centered import rows_of
from atomlearn.core.data.column_subset import ColumnSubset
from atomlearn.core.data.scores import ConcatenatedScores
from atomlearn.core.interfaces.design import (
    Array,
    Block,
    Columns,
    Design,
    Scores,
    SupportsColumnNorms,
    SupportsColumnSubset,
    SupportsPredict,
)
from atomlearn.core.interfaces.matrix import SupportsMatrix, SupportsRidgeSteps, SupportsUnfolding
from atomlearn.maps.pairs.search import PairWork

Rows = NDArray[np.int64]


@runtime_checkable
class SupportsRows(Protocol):
    """Designs that restrict themselves to a few rows faster than RowSubset could."""

    def with_rows(self, rows: Rows) -> Design:
        """Return the design of these rows, in their order, without copying X."""
        ...


def check_rows(rows: ArrayLike, n_samples: int) -> Rows:
    """Return row numbers as int64 from numbers or a boolean mask, or say what is wrong."""
    given = np.asarray(rows)
    if given.dtype == np.bool_ and given.shape == (n_samples,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be a 1-d array of row numbers, or a boolean mask of length {n_samples}; "
            f"got {given.dtype} of shape {given.shape}"
        )
    if given.size == 0:
        raise ValueError("rows is empty; keep at least one row")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= n_samples:
        raise ValueError(
            f"rows must lie between 0 and {n_samples - 1}, got values from {low} to {high}"
        )
    return given.astype(np.int64, copy=False)


class RowSubset(Design):
    """Some rows of a design, in any order, repeats allowed, without copying X.

    Designs that support it read X through the row numbers; for others v is spread over all rows
    and a full pass is made.
    """

    #: Present where the wrapped design has them.
    predict: Callable[[Array], Array]
    squared_norms: Callable[..., Array]
    matrix_shape: tuple[int, int]
    span: Callable[[Array, Array], Block]
    rays: Callable[[Array, Array], Block]
    unfolded: Callable[[tuple[int, ...], int], Design]

    def __init__(self, design: Design, rows: ArrayLike) -> None:
        self.design = design
        self.rows = check_rows(rows, design.shape[0])
        self._view = design.with_rows(self.rows) if isinstance(design, SupportsRows) else None
        if self._view is not None:
            _copy_abilities(self._view, self)
            return
        if isinstance(design, SupportsPredict):
            self.predict = partial(_predict_rows, design, self.rows)
        if isinstance(design, SupportsColumnNorms):
            self.squared_norms = partial(_norms_of_rows, design, design.shape[0], self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.design.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.design.dtype

    def scores(self, v: Array) -> Scores:
        if self._view is not None:
            return self._view.scores(v)
        return self.design.scores(_spread(v, self.rows, self.design.shape[0]))

    def gather(self, columns: Columns) -> Block:
        if self._view is not None:
            return self._view.gather(columns)
        return rows_of(self.design.gather(columns), self.rows)

    def with_rows(self, rows: Rows) -> Design:
        """Return the design of these rows of this one."""
        return RowSubset(self.design, self.rows[rows])

    def with_columns(self, columns: Columns) -> Design | None:
        """Return the design of these columns, where the rows can be read through a view."""
        if not isinstance(self._view, SupportsColumnSubset):
            return None
        return self._view.with_columns(columns)


def _copy_abilities(source: Design, target: RowSubset) -> None:
    if isinstance(source, SupportsPredict):
        target.predict = source.predict
    if isinstance(source, SupportsColumnNorms):
        target.squared_norms = source.squared_norms


def _spread(v: Array, rows: Rows, n_samples: int) -> Array:
    # A row taken twice gets both values: its sum is what X'v needs.
    spread = np.zeros(n_samples)
    np.add.at(spread, rows, v)
    return spread


def _predict_rows(design: SupportsPredict, rows: Rows, weights: Array) -> Array:
    return design.predict(weights)[rows]


def _norms_of_rows(
    design: SupportsColumnNorms, n_samples: int, rows: Rows, curvature: Array | None = None
) -> Array:
    weights = np.ones(rows.shape[0]) if curvature is None else curvature
    return design.squared_norms(_spread(weights, rows, n_samples))


class Concatenated(Design):
    """Designs of the same rows side by side: X = [X_1, X_2, ...]."""

    predict: Callable[[Array], Array]
    squared_norms: Callable[..., Array]

    def __init__(self, designs: Sequence[Design]) -> None:
        self.designs = list(designs)
        if not self.designs:
            raise ValueError("Concatenated needs at least one design, got none")
        rows = [design.shape[0] for design in self.designs]
        if len(set(rows)) > 1:
            raise ValueError(f"Concatenated needs designs of the same rows, got {rows} rows")
        sizes = [design.shape[1] for design in self.designs]
        self._starts: Columns = np.cumsum([0, *sizes], dtype=np.int64)
        self._dtype = np.result_type(*(design.dtype for design in self.designs))
        if all(isinstance(design, SupportsPredict) for design in self.designs):
            self.predict = partial(_predict_side_by_side, self.designs, self._starts)
        if all(isinstance(design, SupportsColumnNorms) for design in self.designs):
            self.squared_norms = partial(_norms_side_by_side, self.designs)

    @property
    def shape(self) -> tuple[int, int]:
        return self.designs[0].shape[0], int(self._starts[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def scores(self, v: Array) -> Scores:
        return ConcatenatedScores([design.scores(v) for design in self.designs])

    def gather(self, columns: Columns) -> Block:
        owner = np.searchsorted(self._starts, columns, side="right") - 1
        order = np.argsort(owner, kind="stable")
        block: Block | None = None
        for index in np.unique(owner):
            mine = columns[owner == index] - self._starts[index]
            part = self.designs[index].gather(mine)
            block = part if block is None else block.append(part)
        if block is None:
            return self.designs[0].gather(columns)
        return block.take(np.argsort(order, kind="stable"))

    def with_rows(self, rows: Rows) -> Design:
        """Return the design of these rows of this one."""
        return Concatenated([RowSubset(design, rows) for design in self.designs])


def _predict_side_by_side(designs: list[Design], starts: Columns, weights: Array) -> Array:
    parts = np.split(weights, starts[1:-1])
    total = np.zeros(designs[0].shape[0])
    for design, part in zip(designs, parts, strict=True):
        total += cast(SupportsPredict, design).predict(part)
    return total


def _norms_side_by_side(designs: list[Design], curvature: Array | None = None) -> Array:
    return np.concatenate(
        [cast(SupportsColumnNorms, design).squared_norms(curvature) for design in designs]
    )


@dataclass(slots=True)
class _Counts:
    """passes over all columns; calls of scores; columns gathered."""

    passes: float = 0.0
    scores_calls: int = 0
    columns_gathered: int = 0


class Counted(Design):
    """A design that counts passes: one for each scores, dense predict and squared_norms.

    A pass over a RowSubset or another wrapper of a counted design counts as one pass, whatever
    the share of rows; a pass over some of the columns counts as their share, where the others are
    not read. The last squared norms are remembered: asked for again they cost no pass.
    """

    predict: Callable[[Array], Array]
    squared_norms: Callable[..., Array]

    def __init__(self, design: Design) -> None:
        self._count(design, _Counts())

    def _count(self, design: Design, counts: _Counts, share: float = 1.0) -> None:
        self.design = design
        self._counts = counts
        self._share = share
        if isinstance(design, SupportsPredict):
            self.predict = partial(_predict_counted, design, counts, share)
        if isinstance(design, SupportsColumnNorms):
            self.squared_norms = _CountedNorms(design, counts, share)
        if isinstance(design, SupportsMatrix):
            # Spans hold factors in memory, as blocks do: their products are no passes.
            self.matrix_shape = design.matrix_shape
            self.span, self.rays = design.span, design.rays
        if isinstance(design, SupportsUnfolding):
            self.unfolded = design.unfolded
        if isinstance(design, SupportsRidgeSteps):
            self.ridge_steps = design.ridge_steps

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self._counts.passes

    @property
    def scores_calls(self) -> int:
        """Calls of ``scores`` so far."""
        return self._counts.scores_calls

    @property
    def columns_gathered(self) -> int:
        """Columns gathered so far, repeats included."""
        return self._counts.columns_gathered

    @property
    def work(self) -> PairWork:
        """What searches of implicit pairs in this design did so far, other users' included."""
        return _work_of(self.design)

    @property
    def shape(self) -> tuple[int, int]:
        return self.design.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.design.dtype

    def scores(self, v: Array) -> Scores:
        self._counts.passes += self._share
        self._counts.scores_calls += 1
        return self.design.scores(v)

    def gather(self, columns: Columns) -> Block:
        self._counts.columns_gathered += columns.shape[0]
        return self.design.gather(columns)

    def with_rows(self, rows: Rows) -> Design:
        """Return the design of these rows; it counts into this one."""
        subset = Counted.__new__(Counted)
        subset._count(RowSubset(self.design, rows), self._counts)
        return subset

    def with_columns(self, columns: Columns) -> Design | None:
        """Return the design of these columns; it counts its share of a pass into this one."""
        inner = ColumnSubset(self.design, columns)
        if inner.share == 1.0:
            return None
        subset = Counted.__new__(Counted)
        subset._count(inner, self._counts, inner.share * self._share)
        return subset


def _work_of(design: object) -> PairWork:
    """Return the work of a design that counts it, or of those it is made of."""
    work = getattr(design, "work", None)
    if isinstance(work, PairWork):
        return replace(work)
    inner = getattr(design, "_view", None) or getattr(design, "design", None)
    total = PairWork()
    for part in [inner, *getattr(design, "designs", ())]:
        if part is not None:
            total.add(_work_of(part))
    return total


class _CountedNorms:
    """squared_norms of a counted design, with the last ones remembered (read-only use)."""

    def __init__(self, design: SupportsColumnNorms, counts: _Counts, share: float) -> None:
        self.design, self.counts, self.share = design, counts, share
        self.known: tuple[Array | None, Array] | None = None

    def __call__(self, curvature: Array | None = None) -> Array:
        if self.known is None or not _same(self.known[0], curvature):
            self.counts.passes += self.share
            norms = self.design.squared_norms(curvature)
            self.known = (None if curvature is None else curvature.copy(), norms)
        return self.known[1]


def _same(first: Array | None, second: Array | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _predict_counted(
    design: SupportsPredict, counts: _Counts, share: float, weights: Array
) -> Array:
    counts.passes += share
    return design.predict(weights)
