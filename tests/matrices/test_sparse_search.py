"""Local search for sparse atoms: against all supports, against one exchange, and sums of atoms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn._support import Deadline
from atomlearn.matrices.norms.sparse_search import SparseSearch
from atomlearn.matrices.scores import dense_matrix, merged
from atomlearn.norms import SparsePSD, SparseRankOne
from atomlearn.testing.cases import each


def symmetric(seed: int, n: int) -> np.ndarray:
    Z = np.random.default_rng(seed).normal(size=(n, n))
    return 0.5 * (Z + Z.T)


def top(A: np.ndarray, support: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])


@each("seed", range(12))
def test_exchanges_never_lower_the_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 12)), int(rng.integers(1, 5))
    k = min(k, n)
    search = SparseSearch.of_vectors(symmetric(seed, n), k, Deadline())
    starts = search.supports(rng.normal(size=(n, 6)))
    before = starts.copy()
    found = search.exchanged(starts)
    assert np.array_equal(starts, before)
    X, values = search.on_supports(found)
    best = max(top(search.A, support) for support in starts)
    assert (np.diff(values) <= 0).all()
    assert values.max(initial=0.0) >= best - 1e-12
    for value, x in zip(values, X.T, strict=True):
        assert_allclose(x @ search.A @ x, value, atol=1e-12)
        assert_allclose(np.linalg.norm(x), 1.0)
        assert any(set(np.flatnonzero(x)) <= set(support.tolist()) for support in found)


@pytest.mark.parametrize("pairs", [False, True])
def test_one_start_finds_what_one_exchange_away_is_best(pairs: bool) -> None:
    """A planted block with one wrong index: the exchange that mends it is found."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = 0.1 * symmetric(seed, 40)
        block = np.sort(rng.permutation(40)[:8])
        A[np.ix_(block, block)] += 1.0
        wrong = np.sort(np.append(block[1:], np.setdiff1d(np.arange(40), block)[seed]))
        if pairs:
            search = SparseSearch.of_pairs(A, 8, 8, Deadline())
            wrong, block = np.append(wrong, block + 40), np.append(block, block + 40)
        else:
            search = SparseSearch.of_vectors(A, 8, Deadline())
        assert np.array_equal(search.exchanged(wrong[None, :])[0], block)


@each("seed", range(10))
def test_near_searches_bound_the_polar(seed: int) -> None:
    """Near some supports, and everywhere: the latter finds at least as much; bounds hold."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(6, 6))
    matrix, norms = dense_matrix(Z), (SparsePSD(2, (6, 6)), SparseRankOne(2, 3, (6, 6)))
    for norm, q in zip(norms, (2, 3), strict=True):
        left, right = np.zeros((6, 2)), np.zeros((6, 2))
        for column in range(2):
            left[rng.permutation(6)[:2], column] = np.sqrt(0.5)
            right[rng.permutation(6)[:q], column] = np.sqrt(1.0 / q)
        right = left if norm is norms[0] else right
        near, best = norm.search_near(matrix, left, right), norm.search(matrix, 3, thorough=True)
        assert near.lower <= best.lower + 1e-12 <= best.upper + 2e-12
        A = 0.5 * (Z + Z.T) if norm is norms[0] else Z
        tops = [
            np.linalg.norm(A[np.ix_(np.flatnonzero(u), np.flatnonzero(v))], 2)
            for u, v in zip(left.T, right.T, strict=True)
        ]
        if norm is norms[0]:
            tops = [max(top(A, np.flatnonzero(u)), 0.0) for u in left.T]
        assert near.lower >= max(tops) - 1e-12
        values = np.einsum("ij,ik,kj->j", near.left, A, near.right)
        assert_allclose(values, near.values, atol=1e-12)
        assert (np.count_nonzero(near.left, axis=0) <= 2).all()
        assert (np.count_nonzero(near.right, axis=0) <= q).all()


@pytest.mark.parametrize("symmetric_atoms", [False, True])
def test_merged_atoms_are_the_same_sum_for_less(symmetric_atoms: bool) -> None:
    rng = np.random.default_rng(0)
    supports = [np.array([0, 2]), np.array([1, 2, 4])]
    left, right, weights = np.zeros((6, 9)), np.zeros((5, 9)), rng.uniform(0.1, 1.0, 9)
    for column, support in zip(range(9), itertools.cycle(supports)):
        left[support, column] = rng.normal(size=support.size)
        right[support, column] = rng.normal(size=support.size)
    left, right = left / np.linalg.norm(left, axis=0), right / np.linalg.norm(right, axis=0)
    if symmetric_atoms:
        right = left
    W = (left * weights) @ right.T
    U, c, V = merged(left, weights, right)
    assert_allclose((U * c) @ V.T, W, atol=1e-12)
    assert U.shape[1] == 2 + 3
    assert (c > 0).all()
    assert_allclose(np.linalg.norm(U, axis=0), 1.0)
    if symmetric_atoms:
        assert np.array_equal(U, V)
        assert_allclose(c.sum(), weights.sum())
    else:
        assert c.sum() < weights.sum()
    alone = merged(left[:, :2], weights[:2], right[:, :2])
    assert alone[0].shape[1] == 2
