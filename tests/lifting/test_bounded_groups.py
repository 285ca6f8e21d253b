"""Unions of groups with weights, and weights that overlapping groups do not take."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.norms import L1, Groups, LatentGroups, Union
from tests.core.norms.test_bounded_groups import GROUPS, WEIGHTS, drawn
from tests.oracles.sums import solve_sum


def test_a_union_with_groups_left_out():
    X, y = drawn()
    most = [1.0, 1.0, np.inf, 2.0]
    found = solve_sum(X, y, norm=Union([Groups(GROUPS, most), L1(3.0)]), level=2.0, tol=1e-9)
    cp = pytest.importorskip("cvxpy")
    a, b = cp.Variable(8), cp.Variable(8)
    price = cp.norm(a[[0, 3]]) + cp.norm(a[[1, 2]]) + 2.0 * cp.norm(a[[5, 7]]) + 3.0 * cp.norm1(b)
    program = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(X @ (a + b) - y) + 2.0 * price), [a[[4, 6]] == 0]
    )
    program.solve(solver="CLARABEL")
    assert_allclose(found.objective, program.value, rtol=1e-6)


def test_weights_that_overlapping_groups_do_not_take():
    X, y = drawn()
    for weight in (0.0, np.inf):
        with pytest.raises(ValueError, match=r"weights\[0\] is .*drop a set.*unpenalized="):
            solve_sum(X, y, norm=LatentGroups([[0, 1], [1, 2]], [weight, 1.0]), level=1.0)
    with pytest.raises(ValueError, match="weight 0 is free; name it in unpenalized= instead"):
        solve_sum(X, y, norm=Union([Groups(GROUPS, WEIGHTS), L1()]), level=1.0)
