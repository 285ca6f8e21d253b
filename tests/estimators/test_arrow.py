"""Tables of any library: all that is asked of them is the PyCapsule interface of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn import AtomicRegressor, KnockoffSelector, StabilitySelector, datasets
from atomlearn.core import feature_names
from atomlearn.findings import held_out_verdict
from tests.oracles.sums import solve_sum

pa = pytest.importorskip("pyarrow")


class AnyTable:
    """A table of a library that nobody here knows."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((80, 6)), columns=list("abcdef"))
Y = FRAME.a - FRAME.d + 0.1 * RNG.standard_normal(80)
LASSO = AtomicRegressor(alpha=0.1)

ASKED: list[Callable[[Any], Any]] = [
    feature_names,
    lambda X: solve_sum(X, Y, level=5.0).active.tolist(),
    lambda X: list(AtomicRegressor(alpha=0.1).fit(X, Y).feature_names_in_),
    lambda X: AtomicRegressor(alpha=0.1).fit(X, Y).predict(X).tolist(),
    lambda X: KnockoffSelector(random_state=0).fit(X, Y).statistics_.tolist(),
    lambda X: (
        StabilitySelector(LASSO, n_resamples=4, random_state=0).fit(X, Y).get_support().tolist()
    ),
    lambda X: held_out_verdict(LASSO, X, Y).score,
]


@pytest.mark.parametrize("asked", ASKED)
def test_the_answers_are_those_of_the_same_pandas_table(asked: Callable[[Any], Any]) -> None:
    expected = asked(FRAME)
    for table in (AnyTable(pa.Table.from_pandas(FRAME)), AnyTable(FRAME)):
        got = asked(table)
        assert np.array_equal(got, expected) or got == pytest.approx(expected, rel=1e-9)


def test_text_categories_dates_and_gaps_are_understood_as_those_of_pandas() -> None:
    table = FRAME.assign(
        city=RNG.choice(["A", "B", "C"], 80),
        kind=pd.Categorical(RNG.choice(["x", "y"], 80)),
        day=pd.date_range("2024-01-01", periods=80),
        count=pd.array([1, 2, None, 4] * 20, dtype="Int64"),
        old=FRAME.b > 0,
    )
    asked = {"missing": "median", "dates": "elapsed"}
    expected = datasets.read(table, "a", **asked)
    for other in (pa.Table.from_pandas(table), AnyTable(pa.Table.from_pandas(table))):
        read = datasets.read(other, "a", **asked)
        assert read.feature_names == expected.feature_names
        np.testing.assert_array_equal(read.X, expected.X)
        np.testing.assert_array_equal(read.y, expected.y)
