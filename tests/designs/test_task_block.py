"""Blocks of multi-task columns: products, rows and smaller copies against the dense array."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.designs import DenseBlock, RowSubset, SparseBlock, Tasks
from atomlearn.matrices.designs.task_block import TaskBlock

ROWS, P, Q = 40, 9, 50
PAIRS = {
    "few": np.array([3, 7, 52, 53, 3 + 2 * Q, 401, 402, 449]),
    "one task": np.arange(P) * Q + 4,
    "half": np.random.default_rng(5).permutation(P * Q)[: P * Q // 2],
    "repeated": np.array([3, 3, 53, 53, 103, 7]),
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
    assert_allclose(block.dot(w), A @ w, atol=1e-12)
    assert_allclose(block.transpose_dot(v), A.T @ v, atol=1e-12)
    assert_allclose(block.gram(c), A.T @ (c[:, None] * A), atol=1e-12)
    assert_allclose(block.squared_norms(c), c @ A**2, atol=1e-12)
    part, d = A[:, positions], rng.normal(size=positions.size)
    assert_allclose(block.gram(c, positions), part.T @ (c[:, None] * part), atol=1e-12)
    assert_allclose(block.outer(d, positions), (part * d) @ part.T, atol=1e-12)
    assert_allclose(block.explicit().dense(), A, atol=0)


@pytest.mark.parametrize("other", ["same design", "another", DenseBlock, SparseBlock.from_dense])
def test_appended_columns_follow(other: object) -> None:
    block, A = block_of("few")
    extra, B = block_of("one task")
    if other == "same design":
        extra = TaskBlock(block.Xt, extra.features, extra.tasks, Q)
    longer = block.append(other(B) if callable(other) else extra)
    assert_allclose(np.asarray(longer.dense()), np.hstack([A, B]), atol=0)
    assert isinstance(longer, TaskBlock) == (other == "same design")
    turned = SparseBlock.from_dense(B).append(block)
    assert_allclose(np.asarray(turned.dense()), np.hstack([B, A]), atol=0)


def test_columns_of_another_number_of_tasks_are_refused() -> None:
    block, _ = block_of("few")
    fewer = TaskBlock(block.Xt, block.features[:1], block.tasks[:1], Q - 1)
    with pytest.raises(ValueError, match="49 tasks to a block of 50"):
        block.append(fewer)


def test_blocks_of_one_design_stay_structured() -> None:
    design = Tasks(np.random.default_rng(0).normal(size=(ROWS, P)), Q)
    longer = CachedBlock(design.gather(np.arange(0))).append(design.gather(np.array([3, 60])))
    assert isinstance(longer.inner, TaskBlock)
    assert isinstance(longer.take(np.array([1])).inner, TaskBlock)


def test_rows_may_be_chosen() -> None:
    X = np.random.default_rng(0).normal(size=(ROWS, P))
    rows = np.array([5, 7, 5, 1999, 0])
    chosen = RowSubset(Tasks(X, Q), rows).gather(PAIRS["few"])
    assert_allclose(np.asarray(chosen.dense()), np.kron(X, np.eye(Q))[rows][:, PAIRS["few"]])


def wide(kind: str) -> np.ndarray:
    X = np.random.default_rng(2).normal(size=(ROWS, P))
    if kind == "dependent":  # of rank 2, with a column of zeros: no task has full rank
        X = X[:, :2] @ np.random.default_rng(3).normal(size=(2, P))
        X[:, 4] = 0.0
    if kind == "scaled":
        X *= 10.0 ** np.arange(-4, 5)
    return X


@pytest.mark.parametrize("kind", ["plain", "dependent", "scaled"])
@pytest.mark.parametrize("name", ["few", "one task", "half", "repeated"])
@pytest.mark.parametrize("weighted", [False, True])
def test_compression_keeps_the_squared_loss_up_to_a_constant(
    kind: str, name: str, weighted: bool
) -> None:
    block, A = block_of(name, wide(kind))
    rng = np.random.default_rng(4)
    y = rng.normal(size=A.shape[0])
    weight = rng.random(y.size) * (rng.random(y.size) < 0.8) if weighted else np.ones(y.size)
    found = block.compressed(y, weight)
    assert found is not None
    B, t = np.asarray(found[0].dense(), dtype=np.float64), found[1]
    assert B.shape == (A.shape[1], A.shape[1])
    gram = A.T @ (weight[:, None] * A)
    scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram))).max()
    assert_allclose(B.T @ B, gram, atol=1e-12 * scale)
    assert_allclose(B.T @ t, A.T @ (weight * y), atol=1e-11 * np.sqrt(scale) * np.linalg.norm(y))
    assert 0.5 * t @ t <= 0.5 * weight @ y**2 * (1 + 1e-6)


def test_compression_is_refused_where_it_would_not_be_smaller() -> None:
    X = np.random.default_rng(0).normal(size=(6, 30))
    all_pairs = Tasks(X, 300).gather(np.arange(30 * 300))
    assert isinstance(all_pairs, TaskBlock)
    assert all_pairs.compressed(np.ones(1800), np.ones(1800)) is None
    empty, _ = block_of("none")
    assert empty.compressed(np.ones(ROWS * Q), np.ones(ROWS * Q)) is None
