"""Latent groups and trees over products of columns: searched by bounds, as if all were computed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms, solve
from atomlearn.designs import Polynomial, as_design
from atomlearn.designs import polynomial as polynomial_module
from atomlearn.norms.expansion import LiftedScores


@pytest.fixture(autouse=True)
def _no_problem_is_small(monkeypatch):
    monkeypatch.setattr(polynomial_module, "SMALL", 0.0)
    monkeypatch.setattr(polynomial_module, "BOUND_COST", 0.0)


def uneven(seed: int, n: int = 50, d: int = 30, sparse: bool = False, signed: bool = True):
    """Columns of very different size, as Zipf popularity makes them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) if signed else rng.random((n, d))
    if sparse:
        X *= rng.random((n, d)) < 2.0 / np.arange(1, d + 1)
        return sp.csc_array(X), rng
    return X * 3.0 / np.arange(1, d + 1), rng


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


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["lists", "tree"])
@pytest.mark.parametrize("weights", [None, "sqrt_size"])
def test_the_same_groups_as_with_all_scores(seed, sparse, kind, weights):
    X, rng = uneven(seed, sparse=sparse, signed=seed % 2 == 0)
    design = Polynomial(X)
    v = rng.standard_normal(50) * 10.0 ** rng.integers(-3, 3)
    n_columns = design.shape[1]
    if kind == "lists":
        norm = norms.LatentGroups(random_lists(rng, n_columns), weights)
    else:
        norm = norms.Trees(random_tree(rng, n_columns), weights)
    everything = np.asarray(design.gather(np.arange(n_columns)))
    stored = as_design(everything).scores(v)
    lazy = design.scores(v)
    assert_allclose(norm.polar(lazy), norm.polar(stored), rtol=1e-10)
    for count in (1, 7, 60):
        found = norm.best_columns(lazy, count)
        assert_array_equal(found, norm.best_columns(stored, count))
    inner = norm.lift(n_columns).norm
    assert inner.looked.features == n_columns
    norm.polar(design.scores(v))
    assert 0 < inner.looked.scored < n_columns


def test_bounds_hold_for_every_column_and_are_tight_where_one_row_matters():
    for sparse in (False, True):
        X, rng = uneven(3, sparse=sparse)
        design = Polynomial(X)
        every = np.arange(design.shape[1])
        v = rng.standard_normal(50) * 1e-6
        scores = design.scores(v)
        bounds = scores.bounds(every)
        z = np.asarray(design.gather(every)).T @ v
        assert (np.abs(z) <= bounds * (1.0 + 1e-12)).all()
        one = np.zeros(50)
        one[4] = -2.0
        z = np.asarray(design.gather(every)).T @ one
        assert_allclose(design.scores(one).bounds(every), np.abs(z), rtol=1e-5, atol=1e-300)


def test_no_bounds_once_all_scores_are_there():
    X, rng = uneven(4)
    scores = Polynomial(X).scores(rng.standard_normal(50))
    scores.full()
    assert scores.bounds(np.arange(5)) is None


@pytest.mark.parametrize("sparse", [False, True])
def test_no_bounds_where_all_scores_cost_less(monkeypatch, sparse):
    X, rng = uneven(4, sparse=sparse)
    design = Polynomial(X)
    v, every = rng.standard_normal(50), np.arange(design.shape[1])
    # All 465 sums cost as much as 22,500 multiplications, or where X is sparse fewer.
    monkeypatch.setattr(polynomial_module, "BOUND_COST", 1e5)
    assert design.scores(v).bounds(every) is None
    assert design.scores(v).bounds(every[:0]) is not None
    monkeypatch.setattr(polynomial_module, "BOUND_COST", 1e-3)
    assert design.scores(v).bounds(every) is not None
    # Scores that are never listed have bounds at any cost.
    monkeypatch.setattr(polynomial_module, "BOUND_COST", 1e9)
    monkeypatch.setattr(polynomial_module, "MAX_STORED", 100)
    assert design.scores(v).bounds(every) is not None


def test_nan_is_refused():
    X, _ = uneven(5)
    with pytest.raises(ValueError, match="NaN"):
        Polynomial(X).scores(np.full(50, np.nan)).bounds(np.arange(5))


def even_tree(n_columns: int) -> list[list[int]]:
    """Runs of 8 columns in runs of 64."""
    runs = [range(start, min(start + size, n_columns)) for size in (64, 8)
            for start in range(0, n_columns, size)]  # fmt: skip
    return [list(run) for run in runs]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_over_a_tree_of_products_is_the_stored_one_and_skips_most_scores(sparse):
    X, rng = uneven(6, n=80, d=100, sparse=sparse)
    design = Polynomial(X)
    n_columns = design.shape[1]
    tree = norms.Trees(even_tree(n_columns))
    everything = np.asarray(design.gather(np.arange(n_columns)))
    y = everything[:, [3, 140]] @ [1.0, -2.0] + 0.1 * rng.standard_normal(80)
    largest = tree.polar(as_design(everything).scores(y))
    found = solve(design, y, norm=tree, level=0.2 * largest, gap=1e-8)
    stored = solve(as_design(everything), y, norm=tree, level=0.2 * largest, gap=1e-8)
    assert found.converged
    assert stored.converged
    assert_allclose(found.objective, stored.objective, rtol=1e-7)
    tree.polar(design.scores(y))
    assert tree.lift(n_columns).norm.looked.skipped > 0.8


def test_little_inside_a_weak_set_is_computed():
    """A set that is known bounds those inside it: with equal weights none of them is needed."""
    X, rng = uneven(7, d=100)
    design = Polynomial(X)
    tree = norms.Trees(even_tree(design.shape[1]))
    lift = tree.lift(design.shape[1])
    lifted = lift.expansion.scores(design.scores(rng.standard_normal(50)))
    assert isinstance(lifted, LiftedScores)
    lift.norm.polar(lifted)
    ratings = lift.norm.bounded(lifted)
    parents = lift.norm.forest.parents
    assert parents[ratings.best(1)[0]] < 0
    inside = np.flatnonzero(parents >= 0)
    around = parents[inside]
    assert ratings.known[around].any()
    assert (ratings.norms[inside] <= ratings.norms[around]).all()
    assert ratings.known[inside].mean() < 0.05
