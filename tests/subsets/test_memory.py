"""A search for the best subset copies few columns, whatever the type of the data."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from atomlearn import SubsetRegressor
from atomlearn.core import LIMITS
from atomlearn.subsets import hunt


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_that_are_left_are_not_copied_if_they_are_most_of_them(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((10_000, 1200), dtype=np.float32), order=order)
    y = X[:, :5].sum(axis=1) + 5.0 * rng.standard_normal(10_000)
    left = []
    part = hunt.Hunt._part

    def seen(self: Any, units: Any) -> Any:
        left.append(units.size)
        return part(self, units)

    monkeypatch.setattr(hunt.Hunt, "_part", seen)
    tracemalloc.start()
    try:
        model = SubsetRegressor(5, max_nodes=0, standardize=True).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.selected_.tolist() == [0, 1, 2, 3, 4]
    assert max(left) == 1200
    # None of them is proved out at first, and all of them in float64 are 96 MB. A few pieces of
    # memory are taken: columns in use, those that are likeliest, and both while standardized.
    assert peak < 5 * 8 * LIMITS.piece_entries
