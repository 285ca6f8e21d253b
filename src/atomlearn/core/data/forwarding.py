"""Designs around one design: those that answer everything as it does, and those that change X."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atomlearn.core.interfaces import Array, Block, Columns, Design, Rows, Scores


class Forwarding(Design):
    """A design that asks ``inner`` everything; wrappers inherit it and change what they change.

    It is the one place that lists all questions to a design, so an ability that is new reaches
    through every wrapper at once.

    Parameters
    ----------
    inner : Design

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import DenseDesign, Forwarding
    >>> class Loud(Forwarding):
    ...     def scores(self, v):
    ...         print("a pass")
    ...         return self.inner.scores(v)
    >>> z = Loud(DenseDesign(np.eye(3))).scores(np.ones(3))
    a pass
    """

    inner: Design

    def __init__(self, inner: Design) -> None:
        self.inner = inner

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> Any:
        return self.inner.dtype

    @property
    def names(self) -> list[str] | None:
        return self.inner.names

    @property
    def listable(self) -> bool:
        return self.inner.listable

    @property
    def reads_at_once(self) -> bool:  # type: ignore[override]
        return self.inner.reads_at_once

    def scores(self, v: Array) -> Scores:
        return self.inner.scores(v)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        return self.inner.scores_many(V)

    def scores_above(self, V: Array, bounds: Array) -> Sequence[Scores]:
        return self.inner.scores_above(V, bounds)

    def passes_of_many(self, count: int) -> float:
        return self.inner.passes_of_many(count)

    def gather(self, columns: Columns) -> Block:
        return self.inner.gather(columns)

    def predict(self, weights: Array) -> Array:
        return self.inner.predict(weights)

    def product(self, W: Array) -> Array:
        return self.inner.product(W)

    def transposed_product(self, V: Array) -> Array:
        return self.inner.transposed_product(V)

    def stored(self) -> Any:
        return self.inner.stored()

    def stored_sparse(self) -> Any:
        return self.inner.stored_sparse()

    def predict_into(self, weights: Array, out: Array) -> Array:
        return self.inner.predict_into(weights, out)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return self.inner.squared_norms(curvature)

    def with_rows(self, rows: Rows) -> Design | None:
        return self.inner.with_rows(rows)

    def with_columns(self, columns: Columns) -> Design | None:
        return self.inner.with_columns(columns)

    @property
    def is_sparse(self) -> bool:
        return self.inner.is_sparse

    def largest_magnitudes(self) -> Array:
        return self.inner.largest_magnitudes()

    def taken_off(self, columns: Columns) -> Array:
        return self.inner.taken_off(columns)

    def rescaled(self, factors: Array) -> Design | None:
        return self.inner.rescaled(factors)

    @property
    def searched(self) -> tuple[float, float]:
        return self.inner.searched

    @property
    def repeated(self) -> tuple[Design, int] | None:
        return self.inner.repeated

    @property
    def matrix_shape(self) -> tuple[int, int] | None:
        return self.inner.matrix_shape

    def span(self, left: Array, right: Array) -> Block:
        return self.inner.span(left, right)

    def rays(self, left: Array, right: Array) -> Block:
        return self.inner.rays(left, right)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design | None:
        return self.inner.unfolded(shape, mode)

    @property
    def n_distinct(self) -> int:
        return self.inner.n_distinct

    @property
    def has_ridge_steps(self) -> bool:
        return self.inner.has_ridge_steps

    def ridge_steps(self) -> Any:
        return self.inner.ridge_steps()


class Derived(Design):
    """A design whose columns are made of those of ``design``: what is the same of both."""

    design: Design

    @property
    def dtype(self) -> Any:
        return self.design.dtype

    @property
    def listable(self) -> bool:
        return self.design.listable

    @property
    def searched(self) -> tuple[float, float]:
        return self.design.searched

    def passes_of_many(self, count: int) -> float:
        return self.design.passes_of_many(count)
