from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import ArrayScores
from atomlearn.core.data.scores import ConcatenatedScores, ShiftedScores
from atomlearn.testing.designs import brute_force_top

#: Few distinct values, so that ties are common.
VALUES = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e300]), min_size=1, max_size=30
)


@given(VALUES, st.integers(0, 35), st.data())
def test_shifted_scores_with_ties(values: list[float], count: int, data: st.DataObject) -> None:
    z = np.array(values)
    columns = np.array(
        data.draw(st.lists(st.integers(0, z.size - 1), unique=True, max_size=z.size)),
        dtype=np.int64,
    )
    shift = np.array([data.draw(st.sampled_from([0.0, 1.0, -1.5, 2.5])) for _ in columns])
    expected = z.copy()
    expected[columns] -= shift
    scores = ShiftedScores(ArrayScores(z), columns, shift)
    top_columns, top_values = scores.top(count)
    assert_array_equal(top_columns, brute_force_top(expected, count)[0])
    assert_array_equal(top_values, brute_force_top(expected, count)[1])
    assert_array_equal(scores.full(), expected)
    asked = np.arange(z.size)[::-1]
    assert_array_equal(scores.at(asked), expected[asked])
    assert_array_equal(z, np.array(values))


@given(VALUES, VALUES, st.integers(0, 70))
def test_concatenated_scores_with_ties(left: list[float], right: list[float], count: int) -> None:
    z = np.array(left + right)
    scores = ConcatenatedScores([ArrayScores(np.array(left)), ArrayScores(np.array(right))])
    assert scores.n_columns == z.size
    assert_array_equal(scores.top(count)[0], brute_force_top(z, count)[0])
    assert_array_equal(scores.top(count)[1], brute_force_top(z, count)[1])
    assert_array_equal(scores.full(), z)


def test_shifted_group_norms_keep_their_digits() -> None:
    # Corrected sums of squares would lose everything here: 1e8 - 1e8 + 1.
    z = np.array([1e8, 3.0, 4.0])
    labels = np.array([0, 0, 1])
    scores = ShiftedScores(ArrayScores(z), np.array([0]), np.array([1e8 - 4.0]))
    assert_allclose(scores.group_norms(labels, 3), [5.0, 4.0, 0.0], rtol=1e-15)


def test_shifted_scores_work_where_scores_are_never_stored() -> None:
    class Implicit(ArrayScores):
        def full(self) -> np.ndarray:
            raise TypeError("never stored")

    z = np.arange(10.0)
    scores = ShiftedScores(Implicit(z), np.array([9, 2]), np.array([9.0, -20.0]))
    columns, values = scores.top(3)
    assert_array_equal(columns, [2, 8, 7])
    assert_array_equal(values, [22.0, 8.0, 7.0])
    with pytest.raises(TypeError, match="never stored"):
        scores.full()


def test_shifted_scores_refuse_repeated_columns() -> None:
    with pytest.raises(ValueError, match="distinct"):
        ShiftedScores(ArrayScores(np.ones(3)), np.array([1, 1]), np.ones(2))
    with pytest.raises(ValueError, match="one shift a column"):
        ShiftedScores(ArrayScores(np.ones(3)), np.array([1]), np.ones(2))


def test_scores_of_no_columns() -> None:
    columns, values = ArrayScores(np.zeros(0)).top(3)
    assert columns.dtype == np.int64
    assert columns.size == values.size == 0
