"""The lifted design X L and its blocks, against X L formed explicitly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from atomlearn._support import growth
from atomlearn.core import CachedBlock, DenseBlock, Expansion
from atomlearn.core.data.lifted import Lifted
from atomlearn.designs import Standardized, as_design

N, P, M = 15, 8, 20


def expansions(rng):
    members = rng.integers(0, P, size=M)
    matrix = sparse.random_array((P, M), density=0.4, rng=rng, format="csc")
    selected = np.zeros((P, M))
    selected[members, np.arange(M)] = 1.0
    return [(Expansion.repeating(members, P), selected), (Expansion(matrix), matrix.toarray())]


@pytest.mark.parametrize("storage", ["dense", "single", "sparse"])
@pytest.mark.parametrize("kind", [0, 1])
def test_scores_and_blocks(kind, storage):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, P)) * (rng.random((N, P)) < (0.3 if storage == "sparse" else 1.0))
        X = X.astype(np.float32) if storage == "single" else X
        expansion, L = expansions(rng)[kind]
        design = Lifted(as_design(sparse.csc_array(X) if storage == "sparse" else X), expansion)
        XL = X.astype(float) @ L
        v = rng.normal(size=N)
        scores = design.scores(v)
        assert_allclose(scores.full(), XL.T @ v, atol=1e-12)
        fresh = design.scores(v)
        asked = rng.integers(0, M, size=6)
        assert_allclose(fresh.at(asked), (XL.T @ v)[asked], atol=1e-12)
        columns, values = design.scores(v).top(7)
        assert_allclose(np.abs(values), np.sort(np.abs(XL.T @ v))[::-1][:7], atol=1e-12)
        assert_allclose(values, (XL.T @ v)[columns], atol=1e-12)
        u = rng.normal(size=M) * (rng.random(M) < 0.5)
        assert_allclose(design.predict(u), XL @ u, atol=1e-5 if storage == "single" else 1e-12)
        features, weights = expansion.apply(np.flatnonzero(u), u[u != 0])
        w = np.zeros(P)
        w[features] = weights
        assert_allclose(w, L @ u, atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_blocks_that_grow_and_shrink_are_those_of_repeated_columns(storage):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, P)) * (rng.random((N, P)) < 0.4)
        expansion, L = expansions(rng)[0]
        design = Lifted(as_design(sparse.csc_array(X) if storage == "sparse" else X), expansion)
        columns = rng.permutation(M)[:4]
        block = CachedBlock(design.gather(columns))
        for step in range(4):
            if step % 2:
                kept = rng.permutation(columns.size)[: max(1, columns.size // 2)]
                block, columns = block.gather(kept), columns[kept]
            else:
                new = np.setdiff1d(rng.permutation(M)[:9], columns)
                block = block.append(design.gather(new))
                columns = np.concatenate([columns, new])
            twin = DenseBlock(np.asfortranarray((X @ L)[:, columns]))
            same(block, twin, rng)


def same(block, twin, rng):
    assert block.shape == twin.shape
    size = twin.shape[1]
    w, v, curvature = rng.normal(size=size), rng.normal(size=N), rng.random(N)
    assert_allclose(block.predict(w), twin.predict(w), atol=1e-12)
    assert_allclose(block.scores(v).full(), twin.scores(v).full(), atol=1e-12)
    assert_allclose(block.squared_norms(curvature), twin.squared_norms(curvature), atol=1e-12)
    assert_array_equal(block.dense(), twin.dense())
    some = rng.permutation(size)[: size // 2 + 1]
    for positions in (None, some):
        assert_allclose(
            block.gram(curvature, positions), twin.gram(curvature, positions), atol=1e-12
        )


def test_places_a_warm_start_or_says_it_cannot():
    expansion = Expansion.repeating(np.array([1, 2, 2, 0]), 5)
    lifted, weights = expansion.place(np.array([2, 0]), np.array([3.0, 4.0]))
    features, values = expansion.apply(lifted, weights)
    assert_array_equal(features, [0, 2])
    assert_array_equal(values, [4.0, 3.0])
    assert expansion.place(np.array([4]), np.array([1.0])) is None


@pytest.mark.parametrize("kind", [0, 1])
def test_digits_that_scores_lose_are_told(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, P)) + 1e8
    expansion, L = expansions(rng)[kind]
    inner = Standardized(as_design(X))
    design, v = Lifted(inner, expansion), rng.normal(size=N)
    exact = (X.astype(np.longdouble) - inner.means) * inner.factors @ L
    off = np.abs(design.scores(v).full() - exact.T @ v)
    lengths = np.linalg.norm(exact.astype(float), axis=0)
    told = lengths + np.sqrt(N) * design.subtracted_offsets(np.arange(M))
    assert np.all(off <= 2.0 * growth(N) * np.linalg.norm(v) * told)
    assert off.max() > growth(N) * np.linalg.norm(v) * lengths.max(), "offsets cost nothing here"


def test_scores_of_features_that_cancel_are_told_of():
    X = np.random.default_rng(5).normal(size=(N, 1)) @ np.ones((1, 2))
    L = sparse.csc_array([[1.0], [-1.0]])
    design = Lifted(as_design(X), Expansion(L))
    taken = design.subtracted_offsets(np.array([0]))
    assert_allclose(taken, 2.0 * np.sqrt((X[:, 0] ** 2).mean()), rtol=1e-12)
