"""Blocks: sparse and centered ones against dense arrays, growth in place, changes of kind."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import LIMITS, DenseBlock, DenseDesign, SparseBlock, SparseDesign
from atomlearn.core.data import compressed
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.designs import Concatenated, Standardized
from atomlearn.interfaces import Block, Design
from atomlearn.testing.designs import DesignChecks

N_SAMPLES, N_FEATURES = 60, 30


def sparse_data(density: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES)) * (
        rng.random((N_SAMPLES, N_FEATURES)) < density
    )
    X[:, 4] = 0.0
    X[3, 4] = 2.0
    return X


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small arrays into several pieces."""
    monkeypatch.setattr(compressed, "LIMITS", replace(LIMITS, piece_entries=64))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("container", "density"), [(sp.csc_array, 0.02), (sp.csr_array, 0.11)])
class TestSparseBlocks(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, container: type, density: float) -> None:
        self.X, self.container = sparse_data(density), container

    def build(self) -> tuple[Design, np.ndarray]:
        return SparseDesign(self.container(self.X)), self.X

    def test_blocks_are_sparse(self) -> None:
        block = self.build()[0].gather(np.arange(N_FEATURES))
        assert isinstance(block, SparseBlock)
        assert isinstance(block.append(block), SparseBlock)


@pytest.mark.usefixtures("small_pieces")
class TestMixedColumns(DesignChecks):
    """Full columns among nearly empty ones: blocks change their kind as they grow."""

    def build(self) -> tuple[Design, np.ndarray]:
        X = sparse_data(0.04)
        X[:, ::7] = np.random.default_rng(1).standard_normal(X[:, ::7].shape)
        return SparseDesign(sp.csc_array(np.where(np.arange(N_FEATURES) < 2, 0.0, X))), np.where(
            np.arange(N_FEATURES) < 2, 0.0, X
        )


@pytest.mark.usefixtures("small_pieces")
class TestEveryKindSideBySide(DesignChecks):
    """Dense, sparse and standardized sparse columns appended to one another in any order."""

    gathers_exactly = False

    def parts(self) -> list[Design]:
        dense = DenseDesign(np.random.default_rng(2).standard_normal((N_SAMPLES, 4)))
        sparse = SparseDesign(sp.csr_array(sparse_data(0.05, 3)))
        standardized = Standardized(SparseDesign(sp.csc_array(sparse_data(0.05, 4))))
        return [dense, sparse, standardized]

    def build(self) -> tuple[Design, np.ndarray]:
        parts = self.parts()
        arrays = [part.gather(np.arange(part.shape[1])).dense() for part in parts]
        return Concatenated(parts), np.hstack(arrays)

    def magnitude(self) -> np.ndarray:
        _, _, standardized = self.parts()
        assert isinstance(standardized, Standardized)
        offsets = np.abs(standardized.means / standardized.scales)
        sizes = np.abs(self.build()[1])
        sizes[:, -N_FEATURES:] += 2 * offsets
        return 2 * sizes


def block_of(kind: str, array: np.ndarray) -> Block:
    if kind == "dense":
        return DenseBlock(array)
    if kind == "sparse":
        return SparseBlock.of(array)
    return CenteredBlock(SparseBlock.of(array + 1.0), np.ones(array.shape[1]))


KINDS = st.sampled_from(["dense", "sparse", "centered"])


@given(st.lists(st.tuples(KINDS, st.integers(0, 4)), min_size=1, max_size=8), st.data())
def test_any_sequence_of_appends(parts: list[tuple[str, int]], data: st.DataObject) -> None:
    """A tree of appends: every block that ever existed keeps its columns."""
    rng = np.random.default_rng(0)
    known: list[tuple[Block, np.ndarray]] = []
    for kind, size in parts:
        array = np.round(rng.standard_normal((12, size))) * (rng.random((12, size)) < 0.3)
        fresh = block_of(kind, array)
        known.append((fresh, array))
        parent, before = known[data.draw(st.integers(0, len(known) - 1))]
        known.append((parent.append(fresh), np.hstack([before, array])))
    for block, array in known:
        assert_array_equal(block.dense(), array)
        assert_allclose(block.scores(np.arange(12.0)).full(), array.T @ np.arange(12.0), atol=1e-12)


def test_appending_is_amortized() -> None:
    """1,000 appends of one column copy each column a few times, not 500 times on average."""
    fresh = DenseBlock(np.random.default_rng(1).standard_normal((2000, 1)))
    block: Block = fresh
    storages = [block._storage]  # type: ignore[attr-defined]
    for _ in range(1000):
        block = block.append(fresh)
        if block._storage is not storages[-1]:  # type: ignore[attr-defined]
            storages.append(block._storage)  # type: ignore[attr-defined]
    assert len(storages) <= 30
    assert block.shape[1] == 1001


def test_blocks_cannot_be_written_to() -> None:
    block = DenseBlock(np.ones((3, 2)))
    with pytest.raises(ValueError, match="read-only"):
        block.dense()[0, 0] = 5.0


def test_gram_of_sparse_columns_allocates_no_dense_block() -> None:
    X = sp.random_array((50_000, 100), density=0.08, format="csc", rng=np.random.default_rng(2))
    block = SparseDesign(X).gather(np.arange(100))
    assert isinstance(block, SparseBlock)
    tracemalloc.start()
    block.gram(np.ones(50_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A dense block would take 40 MB; the rows of the sparse one take 5, a piece of them 8.
    assert peak < 30e6
