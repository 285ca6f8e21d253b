"""ColumnSubset: some columns of a design, passed over at their share of the cost where possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces.design import (
    Array,
    Block,
    Columns,
    Design,
    Scores,
    SupportsColumnSubset,
    SupportsPredict,
)


class ColumnSubset(Design):
    """Some columns of a design, in increasing order, without copying X where it can be skipped.

    Parameters
    ----------
    design : Design
    columns : array of int64, increasing
        The columns to keep; column i of this design is ``columns[i]`` of the other.

    Attributes
    ----------
    share : float
        What a pass over these columns costs, as a fraction of a pass over all: len(columns) /
        n_features, or 1 where the design can only pass over all of them.
    """

    #: Present where the wrapped design has it.
    predict: Callable[[Array], Array]

    def __init__(self, design: Design, columns: ArrayLike) -> None:
        self.design = design
        self.columns = check_columns(columns, design.shape[1])
        view = None
        if isinstance(design, SupportsColumnSubset):
            view = design.with_columns(self.columns)
        self._view = view
        self.share = 1.0 if view is None else self.columns.size / max(design.shape[1], 1)
        if view is not None:
            if isinstance(view, SupportsPredict):
                self.predict = view.predict
        elif isinstance(design, SupportsPredict):
            self.predict = partial(_predict_spread, design, self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.design.shape[0], self.columns.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.design.dtype

    def scores(self, v: Array) -> Scores:
        if self._view is not None:
            return self._view.scores(v)
        return ArrayScores(np.ascontiguousarray(self.design.scores(v).at(self.columns)))

    def gather(self, columns: Columns) -> Block:
        if self._view is not None:
            return self._view.gather(columns)
        return self.design.gather(self.columns[columns])

    def with_columns(self, columns: Columns) -> Design | None:
        """Return the design of some of these columns."""
        if not isinstance(self.design, SupportsColumnSubset):
            return None
        return self.design.with_columns(self.columns[columns])


def check_columns(columns: ArrayLike, n_features: int) -> Columns:
    """Return increasing column numbers as int64, or say what is wrong with them."""
    given = np.asarray(columns)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            "columns must be a 1-d array of column numbers, got "
            f"{given.dtype} of shape {given.shape}; pass np.flatnonzero(mask) for a mask"
        )
    if given.size and not (int(given[0]) >= 0 and int(given[-1]) < n_features):
        raise ValueError(
            f"columns must lie between 0 and {n_features - 1}, got values from {given[0]} to "
            f"{given[-1]}"
        )
    if (given[1:] <= given[:-1]).any():
        raise ValueError("columns must increase, without repeats; pass np.unique(columns)")
    return given.astype(np.int64, copy=False)


def _predict_spread(design: Design, columns: Columns, weights: Array) -> Array:
    dense = np.zeros(design.shape[1])
    dense[columns] = weights
    return cast(SupportsPredict, design).predict(dense)
