"""Blocks of multi-task columns: products and rows against the dense array."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from atomlearn.core import CachedBlock, DenseBlock, SparseBlock, coupled_gram
from atomlearn.designs import RowSubset, Tasks
from atomlearn.matrices.designs.tasks import TaskBlock

ROWS, P, Q = 40, 9, 50
PAIRS = {
    "few": np.array([3, 7, 52, 53, 3 + 2 * Q, 401, 402, 449]),
    "one task": np.arange(P) * Q + 4,
    "half": np.random.default_rng(5).permutation(P * Q)[: P * Q // 2],
    "repeated": np.array([3, 3, 53, 53, 103, 7]),
    "whole rows twice": np.repeat(np.arange(2 * Q), 2),
    "none": np.zeros(0, dtype=np.int64),
}


def block_of(name: str, X: np.ndarray | None = None) -> tuple[TaskBlock, np.ndarray]:
    """Return the block of these columns, and its dense array from the definition."""
    if X is None:
        X = np.random.default_rng(0).normal(size=(ROWS, P))
    columns = PAIRS[name].astype(np.int64)
    block = Tasks(X, Q).gather(columns)
    assert isinstance(block, TaskBlock)
    return block, np.kron(X, np.eye(Q))[:, columns]


@pytest.mark.parametrize("name", PAIRS)
def test_products_are_those_of_the_dense_array(name: str) -> None:
    block, A = block_of(name)
    rng = np.random.default_rng(1)
    w, v, c = rng.normal(size=A.shape[1]), rng.normal(size=A.shape[0]), rng.random(A.shape[0])
    positions = rng.permutation(A.shape[1])[: (A.shape[1] + 1) // 2]
    assert_allclose(block.predict(w), A @ w, atol=1e-12)
    assert_allclose(block.scores(v).full(), A.T @ v, atol=1e-12)
    assert_allclose(block.gram(c), A.T @ (c[:, None] * A), atol=1e-12)
    assert_allclose(block.squared_norms(c), c @ A**2, atol=1e-12)
    part = A[:, positions]
    assert_allclose(block.gram(c, positions), part.T @ (c[:, None] * part), atol=1e-12)
    assert_allclose(block.explicit().dense(), A, atol=0)
    K = sparse.random_array((A.shape[0], 7), density=0.1, rng=rng, format="csc")
    expected = A.T @ (c[:, None] * A) - A.T @ (K @ K.T).toarray() @ A
    assert_allclose(coupled_gram(block, c, K), expected, atol=1e-12)


@pytest.mark.parametrize("other", ["tasks", DenseBlock, SparseBlock.of])
def test_appended_columns_follow(other: object) -> None:
    block, A = block_of("few")
    extra, B = block_of("one task")
    longer = block.append(other(B) if callable(other) else extra)
    assert_allclose(np.asarray(longer.dense()), np.hstack([A, B]), atol=0)
    assert isinstance(longer, TaskBlock) == (other == "tasks")
    turned = SparseBlock.of(B).append(block)
    assert_allclose(np.asarray(turned.dense()), np.hstack([B, A]), atol=0)


def test_blocks_of_one_design_stay_structured() -> None:
    design = Tasks(np.random.default_rng(0).normal(size=(ROWS, P)), Q)
    longer = CachedBlock(design.gather(np.arange(0))).append(design.gather(np.array([3, 60])))
    assert isinstance(longer.inner, TaskBlock)
    assert isinstance(longer.gather(np.array([1])).inner, TaskBlock)


def test_rows_may_be_chosen() -> None:
    X = np.random.default_rng(0).normal(size=(ROWS, P))
    rows = np.array([5, 7, 5, 1999, 0])
    chosen = RowSubset(Tasks(X, Q), rows).gather(PAIRS["few"])
    assert_allclose(np.asarray(chosen.dense()), np.kron(X, np.eye(Q))[rows][:, PAIRS["few"]])
