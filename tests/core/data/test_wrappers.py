from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import (
    ArrayScores,
    ColumnSubset,
    Counted,
    DenseBlock,
    DenseDesign,
    Expansion,
    Forwarding,
    SparseDesign,
)
from atomlearn.core.data.lifted import Lifted
from atomlearn.designs import Concatenated, RowSubset, Standardized
from atomlearn.interfaces import Block, Design, Scores, Traits
from atomlearn.testing.cases import each

X = np.random.default_rng(0).standard_normal((9, 5))


class Bare(Design):
    """Scores and columns, and nothing else: what an implicit design offers."""

    @property
    def shape(self) -> tuple[int, int]:
        return 9, 5

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def scores(self, v: np.ndarray) -> Scores:
        return ArrayScores(X.T @ v)

    def gather(self, columns: np.ndarray) -> Block:
        return DenseBlock(X[:, columns])


def test_counted_counts_passes() -> None:
    design = Counted(DenseDesign(X))
    design.scores(np.ones(9)).top(2)
    assert design.passes == 1.0
    design.predict(np.ones(5))
    design.squared_norms()
    assert design.passes == 3.0
    design.gather(np.array([1, 3, 3])).predict(np.ones(3))
    assert design.passes == 3.0


def test_wrappers_of_a_counted_design_count() -> None:
    design = Counted(DenseDesign(X))
    standardized = Standardized(design)
    start = design.passes
    for wrapper in (standardized, RowSubset(design, [0, 2, 5]), RowSubset(standardized, [1, 2])):
        before = design.passes
        wrapper.scores(np.ones(wrapper.shape[0]))
        wrapper.predict(np.ones(5))
        assert design.passes == before + 2.0
    assert design.passes == start + 6.0


QUESTIONS = [name for name in vars(Design) if not name.startswith("_")]


def marked() -> Design:
    """Return a design whose answer to every question is one that no default gives."""

    def method(name: str) -> object:
        return lambda self, *given: (name, *given)

    answers: dict[str, object] = {name: method(name) for name in QUESTIONS}
    answers |= {name: name for name in QUESTIONS if not callable(vars(Design)[name])}
    answers["shape"] = (4, 3)
    answers["traits"] = Traits(reads_at_once=True, is_sparse=True)
    design: Design = type("Marked", (Design,), answers)()
    return design


@pytest.mark.parametrize("wrap", [Forwarding, Counted])
@each("name", QUESTIONS)
def test_wrappers_answer_every_question_as_their_design_does(wrap: type, name: str) -> None:
    """What a wrapper forgets would be answered by the default of Design: slower, or not at all."""
    inner = marked()
    mine, other = getattr(wrap(inner), name), getattr(inner, name)
    if not callable(other):
        assert mine == other
    elif name not in ("with_rows", "summed") or wrap is Forwarding:
        # Parts of a counted design are Counted themselves, and so are designs of sums.
        given = [np.ones((3, 3))] * (len(inspect.signature(getattr(Design, name)).parameters) - 1)
        assert repr(mine(*given)) == repr(other(*given))


def test_rows_of_rows() -> None:
    for design in (DenseDesign(X), SparseDesign(sp.csr_array(X)), Bare()):
        twice = RowSubset(RowSubset(design, [7, 5, 3, 1]), [2, 0])
        assert_array_equal(twice.gather(np.arange(5)).dense(), X[[3, 7]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 9], "between 0 and 8"),
        ([], "row numbers"),
        (np.zeros(0, dtype=int), "empty"),
        (np.ones(8, dtype=bool), "boolean mask of length 9"),
        ([[0, 1]], "1-d"),
        ([0.5], "row numbers"),
    ],
)
def test_bad_rows(rows: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowSubset(DenseDesign(X), rows)  # type: ignore[arg-type]


def test_bad_concatenations() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Concatenated([])
    with pytest.raises(ValueError, match="same rows"):
        Concatenated([DenseDesign(X), DenseDesign(X[:4])])


STORAGES = {
    "columns": lambda: DenseDesign(np.asfortranarray(WIDE)),
    "float32": lambda: DenseDesign(np.asfortranarray(WIDE.astype(np.float32))),
    "csr": lambda: SparseDesign(sp.csr_array(WIDE)),
    "some rows of rows": lambda: RowSubset(DenseDesign(np.ascontiguousarray(WIDE)), [3, 1, 1, 7]),
    "standardized": lambda: Standardized(DenseDesign(np.asfortranarray(WIDE))),
    "subset": lambda: ColumnSubset(DenseDesign(np.hstack([WIDE, WIDE])), np.arange(10, 20)),
    "lifted": lambda: Lifted(
        SparseDesign(sp.csc_array(WIDE)),
        Expansion.repeating(np.array([3, 0, 3, 9, 5, 1, 2, 8]), 10),
    ),
    "mixed": lambda: Lifted(DenseDesign(WIDE), Expansion(sp.csc_array(np.tri(10)[:, :7]))),
}
WIDE = np.random.default_rng(1).standard_normal((9, 10))


@pytest.mark.parametrize("storage", STORAGES)
def test_column_subsets_agree_with_the_whole(storage) -> None:
    whole, columns = STORAGES[storage](), np.array([0, 2, 5, 6])
    n_samples, n_features = whole.shape
    array = np.asarray(whole.gather(np.arange(n_features)).dense(), dtype=np.float64)[:, columns]
    for design in (ColumnSubset(whole, columns), ColumnSubset(Counted(whole), columns)):
        v, w = np.linspace(-1, 1, n_samples), np.linspace(1, 2, columns.size)
        assert design.shape == (n_samples, columns.size)
        assert design.dtype == whole.dtype
        assert_allclose(design.scores(v).full(), array.T @ v, rtol=1e-12, atol=1e-12)
        assert_allclose(design.predict(w), array @ w, rtol=1e-12, atol=1e-12)
        some = np.array([columns.size - 1, 0])
        assert_allclose(design.gather(some).dense(), array[:, some])
        nested = ColumnSubset(design, np.array([columns.size - 1]))
        assert_allclose(nested.scores(v).full(), array[:, -1:].T @ v, rtol=1e-12, atol=1e-12)


def test_column_subsets_refuse_what_is_not_increasing() -> None:
    design = DenseDesign(WIDE)
    for columns, message in [
        ([2, 1], "must increase"),
        ([1, 1], "must increase"),
        ([0, 10], "between 0 and 9"),
        ([0.5], "column numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            ColumnSubset(design, columns)


def test_squared_norms_of_lifted_columns_are_never_too_small() -> None:
    design = STORAGES["lifted"]()
    exact = (design.gather(np.arange(8)).dense() ** 2).sum(axis=0)
    assert_allclose(design.squared_norms(), exact)
    mixed = STORAGES["mixed"]()
    exact = (mixed.gather(np.arange(7)).dense() ** 2).sum(axis=0)
    assert (mixed.squared_norms() >= exact * (1 - 1e-12)).all()
