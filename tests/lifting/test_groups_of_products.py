"""Latent groups and trees over products of columns, as over the same columns stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms
from atomlearn.designs import Polynomial, as_design
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum


def random_lists(rng, n_columns: int) -> list[list[int]]:
    """Lists that overlap, and columns in none."""
    return [np.unique(rng.integers(0, n_columns, rng.integers(1, 9))).tolist() for _ in range(60)]


def random_tree(rng, n_columns: int) -> list[list[int]]:
    """Runs of runs of columns, not all of them covered."""
    order = rng.permutation(n_columns)
    tree = [order[:200].tolist(), order[200:260].tolist()]
    tree += [order[start : start + 20].tolist() for start in range(0, 260, 20)]
    tree += [order[start : start + 4].tolist() for start in range(0, 240, 4)]
    return tree


@pytest.mark.parametrize(
    ("kind", "weights", "sparse"), in_turn(["lists", "tree"], [None, "sqrt_size"], [False, True])
)
def test_products_are_columns_like_others(sparse, kind, weights):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30))
    if sparse:
        X = sp.csc_array(X * (rng.random(X.shape) < 0.3))
    design = Polynomial(X)
    n_columns = design.shape[1]
    stored = as_design(np.asarray(design.gather(np.arange(n_columns))))
    groups = random_lists(rng, n_columns) if kind == "lists" else random_tree(rng, n_columns)
    norm = (norms.LatentGroups if kind == "lists" else norms.Trees)(groups, weights)
    y = 3.0 * rng.standard_normal(50)
    for v in (y, y[::-1] * 1e-3):
        assert_allclose(norm.polar(design.scores(v)), norm.polar(stored.scores(v)), rtol=1e-10)
        for count in (1, 7, 60):
            found = norm.best_columns(design.scores(v), count)
            assert_array_equal(found, norm.best_columns(stored.scores(v), count))
    level = 0.3 * norm.polar(stored.scores(y))
    found = solve_sum(design, y, norm=norm, level=level, tol=1e-8)
    expected = solve_sum(stored, y, norm=norm, level=level, tol=1e-8)
    assert found.converged
    assert expected.converged
    assert found.columns.size
    assert_allclose(found.objective, expected.objective, rtol=1e-7)
