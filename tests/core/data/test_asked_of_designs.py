"""What solvers ask a design or a block beside the passes: each kind against its array."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import (
    CachedBlock,
    Forwarding,
    FoundScores,
    RepeatedBlock,
    SpreadRows,
    affine_block,
    coefficient_matrix,
    coefficient_rows,
    coupled_gram,
    distinct_columns,
    nonzero_coefficients,
    part_of,
    scaled_design,
)
from atomlearn.core.data import parts
from atomlearn.core.data.cached_block import GrowingGram
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.standardized import largest_magnitudes
from atomlearn.core.masters.newton_system import _of_samples
from atomlearn.designs import Concatenated, Standardized, as_design
from atomlearn.interfaces import Block, Design
from tests.oracles.covering import in_turn

N, P = 9, 8
X = np.where(np.random.default_rng(0).random((N, P)) < 0.5, 0.0, 1.0)
X *= np.random.default_rng(1).integers(-8, 9, size=(N, P)) / 4.0
X[:, 3] = 0.0
SOME, ROWS = np.array([1, 2, 5, 7]), np.array([3, 3, 0, 8, 5])
PLACES = np.array([2, 0, 2, 1])
MEANS, SCALES = X.mean(axis=0), X.std(axis=0) + (X.std(axis=0) == 0)


class Named(Forwarding):
    names = list("abcdefgh")  # type: ignore[assignment]


DESIGNS: dict[str, tuple[Design, np.ndarray]] = {
    "float32": (as_design(X.astype(np.float32)), X),
    "csc": (as_design(sp.csc_array(X)), X),
    "side by side": (Concatenated([as_design(X), as_design(sp.csr_array(X))]), np.hstack([X, X])),
    "named": (Named(as_design(X)), X),
    "rows": (part_of(as_design(X), ROWS, None), X[ROWS]),
    "columns": (part_of(as_design(X), None, SOME), X[:, SOME]),
    "standardized": (Standardized(as_design(X)), (X - MEANS) / SCALES),
    "standardized sparse": (Standardized(as_design(sp.csr_array(X))), (X - MEANS) / SCALES),
}
KINDS = pytest.mark.parametrize("kind", DESIGNS)
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def sparse_block() -> Block:
    wide = np.zeros((200, P))
    wide[:N] = X
    return as_design(sp.csc_array(wide)).gather(np.arange(P))


BLOCKS: dict[str, tuple[Block, np.ndarray]] = {
    "dense": (as_design(X).gather(np.arange(P)), X),
    "sparse": (sparse_block(), np.vstack([X, np.zeros((200 - N, P))])),
    "centered": (CenteredBlock(as_design(sp.csc_array(X)).gather(np.arange(P)), MEANS), X - MEANS),
    "cached": (CachedBlock.of(as_design(X).gather(np.arange(P))), X),
    "repeated": (RepeatedBlock(as_design(X).gather(SOME), SOME, PLACES), X[:, SOME][:, PLACES]),
}
EVERY_BLOCK = pytest.mark.parametrize("kind", BLOCKS)


@KINDS
def test_products_with_several_vectors(kind: str) -> None:
    design, array = DESIGNS[kind]
    W = np.random.default_rng(2).normal(size=(array.shape[1], 3))
    assert_allclose(design.product(W), array @ W, **CLOSE)
    assert design.product(W[:, :0]).shape == (array.shape[0], 0)


@KINDS
def test_columns_that_are_multiplied(kind: str) -> None:
    design, array = DESIGNS[kind]
    factors = np.linspace(0.5, 3.0, array.shape[1])
    scaled = scaled_design(design, factors)
    assert_allclose(scaled.gather(np.arange(array.shape[1])).dense(), array * factors, rtol=1e-6)
    assert scaled.dtype == design.dtype
    assert_allclose(largest_magnitudes(scaled), np.abs(array * factors).max(axis=0), rtol=1e-6)


@KINDS
def test_products_of_a_few_columns(kind: str, monkeypatch) -> None:
    design, array = DESIGNS[kind]
    columns, w, rows = np.array([2, 0]), np.array([1.5, -2.0]), np.array([3, 1, 1])
    assert_allclose(design.product(w[:, None], columns)[:, 0], array[:, columns] @ w, rtol=1e-6)
    monkeypatch.setattr(parts, "LIMITS", replace(parts.LIMITS, most_dense=1))
    spread = SpreadRows(design, rows)
    assert_allclose(
        spread.product(w[:, None], columns)[:, 0], array[rows][:, columns] @ w, rtol=1e-6
    )
    for some in (columns, columns[:0]):
        assert_array_equal(spread.gather(some).dense(), design.gather(some).dense()[rows])


@KINDS
def test_parts_have_the_names_of_their_columns(kind: str) -> None:
    design, array = DESIGNS[kind]
    part = part_of(design, None, np.array([0, 2]))
    assert part.names == (None if design.names is None else [design.names[j] for j in (0, 2)])
    assert part_of(part, np.array([1]), np.array([1])).gather(
        np.array([0])
    ).dense() == pytest.approx(array[1, 2])
    assert design.traits.n_distinct is None
    stored = design.stored()
    stored = stored.toarray() if design.traits.is_sparse and stored is not None else stored
    assert stored is None or np.array_equal(stored, array)


@KINDS
def test_large_scores_are_those_of_all_vectors_and_no_others_are_told(kind: str) -> None:
    design, array = DESIGNS[kind]
    V = np.random.default_rng(3).normal(size=(array.shape[0], 2))
    Z = array.T @ V
    bounds = 0.5 * np.abs(Z).max(axis=0)
    large = np.flatnonzero((np.abs(Z) >= bounds).any(axis=1))
    for scores, z, bound in zip(design.scores_above(V, bounds), Z.T, bounds, strict=True):
        assert_allclose(scores.at(large), z[large], **CLOSE)
        order = np.argsort(-np.abs(z), kind="stable")
        most = int((np.abs(z) >= bound).sum())
        assert_array_equal(scores.top(most)[0], order[:most])
        assert_array_equal(scores.above(bound * (1 + 1e-9))[0], order[:most])


def test_found_scores_below_their_bound_are_not_told() -> None:
    """Column 2 was kept for the sake of another vector: what else is as small nobody knows."""
    z = FoundScores(np.array([2, 5, 6]), np.array([0.5, -3.0, 2.0]), 0.9, 7)
    assert z.top(2)[0].tolist() == [5, 6]
    assert z.top(2)[1].tolist() == [-3.0, 2.0]
    for count in (3, 4, 7, 9):
        with pytest.raises(LookupError, match=f"the {count} largest"):
            z.top(count)
    edge = FoundScores(np.array([2, 5]), np.array([0.9, -3.0]), 0.9, 7)
    assert edge.top(2)[0].tolist() == [5, 2]
    assert z.above(0.9)[0].tolist() == [5, 6]
    assert z.above(2.0)[0].tolist() == [5, 6]
    with pytest.raises(LookupError, match=r"all from 0\.8 on"):
        z.above(0.8)
    assert z.at(np.zeros(0, dtype=np.int64)).size == 0
    assert z.n_columns == 7
    none = FoundScores(np.zeros(0, dtype=np.int64), np.zeros(0), 0.9, 7)
    with pytest.raises(LookupError, match="each column"):
        none.at(np.array([1]))
    assert none.above(1.0)[0].size == 0
    for unknown in (1, 3, 9):
        with pytest.raises(LookupError, match="each column"):
            z.at(np.array([2, unknown]))
    assert z.at(np.array([6, 2])).tolist() == [2.0, 0.5]
    everything = FoundScores(np.arange(2), np.array([1.0, -2.0]), 0.9, 2)
    assert everything.top(9)[0].tolist() == [1, 0]


@EVERY_BLOCK
def test_blocks_with_others_and_of_some_rows(kind: str) -> None:
    block, array = BLOCKS[kind]
    rng = np.random.default_rng(4)
    c = rng.random(array.shape[0])
    K = rng.normal(size=(array.shape[0], 2))
    hessian = array.T @ (np.diag(c) - K @ K.T) @ array
    assert_allclose(coupled_gram(block, c, sp.csc_array(K)), hessian, **CLOSE)
    few = block.with_rows(ROWS)
    assert few is None or np.allclose(few.dense(), array[ROWS], atol=1e-14)
    factors = np.linspace(0.5, 3.0, array.shape[1])
    one, places = distinct_columns(block)
    assert_allclose(one.dense()[:, places], array, **CLOSE)
    means = one.dense().mean(axis=0)[places]
    for scales in (factors, factors[places]):
        moved = affine_block(block, means, scales).dense()
        assert_allclose(moved, (array - means) * scales, **CLOSE)
    assert block.predict(factors) == pytest.approx(array @ factors)
    factors[1:3] = 0.0
    assert_allclose(
        _of_samples(block, factors, np.arange(len(array))), (array * factors) @ array.T, **CLOSE
    )


def test_repeated_columns_grow_and_shrink() -> None:
    block, array = BLOCKS["repeated"]
    more = np.array([0, 5, 4])
    other = RepeatedBlock(as_design(X).gather(more), more, np.array([1, 1, 0, 2]))
    whole = np.hstack([array, X[:, [5, 5, 0, 4]]])
    both = block.append(other)
    assert distinct_columns(both)[0].shape[1] == SOME.size + 2
    assert_allclose(both.dense(), whole, **CLOSE)
    assert_allclose(both.gather(np.array([7, 6, 0])).dense(), whole[:, [7, 6, 0]], **CLOSE)
    assert distinct_columns(both.gather(np.array([4, 0, 2])))[0].shape[1] == 1
    assert distinct_columns(both.gather(np.array([4, 6, 0])))[0].shape[1] == 2
    empty = block.gather(np.zeros(0, dtype=np.int64))
    assert_allclose(empty.append(block).dense(), array, **CLOSE)
    c = np.linspace(0.1, 1.0, N)
    assert_allclose(block.gram(c), array.T @ (c[:, None] * array), **CLOSE)
    at = np.array([3, 0])
    assert_allclose(block.gram(c, at), array[:, at].T @ (c[:, None] * array[:, at]), **CLOSE)
    with pytest.raises(TypeError, match="one of its own kind"):
        block.append(BLOCKS["dense"][0])


@pytest.mark.parametrize(
    ("kind", "centered", "step"),
    in_turn(["dense", "sparse", "centered", "repeated"], [False, True], [2, 6]),
)
def test_grams_that_grow_are_those_of_all_columns(kind: str, centered: bool, step: int) -> None:
    """Few columns at a time or many, of every kind of block."""
    block, array = BLOCKS[kind]
    block, array = block.gather(np.arange(4)[::-1]), array[:, :4][:, ::-1]
    block, array = block.append(block).append(block), np.tile(array, (1, 3))
    c = np.random.default_rng(5).uniform(0.1, 1.0, size=array.shape[0])
    gram = GrowingGram(c, centered)
    for size in range(2, array.shape[1] + 1, step):
        gram.extend_to(block.gather(np.arange(size)))
    gram.extend_to(block)
    means = c @ array / c.sum() if centered else np.zeros(array.shape[1])
    expected = (array - means).T @ (c[:, None] * (array - means))
    assert_allclose(gram.matrix, expected, rtol=1e-11, atol=1e-12)
    some = np.array([5, 0, 2])
    assert_allclose(gram.take(some).matrix, expected[np.ix_(some, some)], rtol=1e-11, atol=1e-12)


def test_a_few_columns_of_an_implicit_design_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as can be walked through, however many samples there are."""

    class Implicit(Forwarding):
        listable = False

    monkeypatch.setattr(Design, "_walked_columns", 3)
    design = Implicit(as_design(X))
    for columns, listable in ((np.arange(3), True), (np.arange(4), False)):
        part = part_of(design, None, columns)
        assert part.listable == listable
        if listable:
            assert_allclose(part.squared_norms(), (X[:, columns] ** 2).sum(axis=0))
        else:
            with pytest.raises(TypeError, match="does not list its 4 columns"):
                part.squared_norms()
        assert_allclose(part.predict(np.ones(columns.size)), X[:, columns].sum(axis=1))


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


def test_factors_are_forgotten_when_the_prices_change():
    gram = GrowingGram.known(np.ones(3), 2.0 * np.eye(2))
    factor = gram.factor(1.0, 0.0, np.ones(2))
    forgotten = []
    gram._factor = SimpleNamespace(forget=lambda: forgotten.append(True))
    assert factor is not None
    gram.factor(1.0, 0.0, np.ones(2))
    assert not forgotten
    gram.factor(1.0, 0.0, np.array([1.0, 2.0]))
    assert len(forgotten) == 1
    gram.factor(0.5, 0.0, np.array([1.0, 2.0]))
    assert len(forgotten) == 2
