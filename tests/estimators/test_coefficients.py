"""Coefficients as estimators store them: dense, sparse, and as matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from atomlearn.estimators.coefficients import (
    coefficient_matrix,
    coefficient_rows,
    nonzero_coefficients,
)


def test_sparse_coefficients_are_told_as_dense_ones_are() -> None:
    """Stored zeros are none, and a coefficient of 1 is one; rows and columns differ in number."""
    dense = np.array([[0.0, 1.0, 0.0, 2.5, 0.0], [0.0, 0.0, 0.0, -1.0, 3.0]])
    stored = sp.coo_array(
        (np.array([1.0, 2.5, -1.0, 3.0, 0.0]), ([0, 0, 1, 1, 1], [1, 3, 3, 4, 0]))
    )
    for given in (dense, sp.csr_array(stored)):
        columns, weights = nonzero_coefficients(given)
        assert columns.tolist() == [1, 3, 4]
        assert_array_equal(weights, dense[:, columns])
    numbers = np.array([1, 3, 8, 9])
    matrix = coefficient_matrix(numbers, np.array([1.0, 2.5, -1.0, 3.0]), (2, 5))
    assert_array_equal(matrix.toarray(), dense)


def test_coefficients_of_more_columns_than_fit_are_sparse_and_in_place():
    parts = [(np.array([1, 5]), np.array([2.0, 3.0])), (np.array([7]), np.array([4.0]))]
    rows = coefficient_rows(parts, 2**40, implicit=True)
    assert rows.shape == (2, 2**40)
    assert rows[0, 1] == 2.0
    assert rows[0, 5] == 3.0
    assert rows[1, 7] == 4.0
