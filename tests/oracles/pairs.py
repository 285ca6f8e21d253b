"""Products of columns as a design answers that cannot list them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from atomlearn.designs import Polynomial
from tests.oracles.settings import change

Array = NDArray[Any]


def searched(design: Polynomial, v: Array, count: int) -> tuple[Array, Array]:
    """Return the best columns and their scores by search."""
    with pytest.MonkeyPatch.context() as patch:
        change(patch, "pairs.scores", most_listed=0)
        scores = design.scores(v)
        best = scores.top(count)
        assert scores.work is not None  # else nothing was searched
        return best


def one_by_one(design: Polynomial, v: Array) -> Array:
    """Return the score of each column, summed for this column only."""
    with pytest.MonkeyPatch.context() as patch:
        change(patch, "pairs.scores", most_listed=0)
        return design.scores(v).at(np.arange(design.shape[1]))
