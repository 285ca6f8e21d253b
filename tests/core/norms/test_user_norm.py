"""UserNorm: what an oracle may return, what is refused, and what is remembered."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.core import ArrayScores
from atomlearn.core.data.scores import ShiftedScores
from atomlearn.norms import L1, KSupport, UserNorm

Array = NDArray[np.float64]


def signs(z: Array) -> Array:
    return np.where(z >= 0, 1.0, -1.0)


def largest(z: Array) -> tuple[Array, Array]:
    j = int(np.abs(z).argmax())
    return np.array([j]), np.array([np.sign(z[j])])


def top_three(z: Array) -> Array:
    a = np.zeros(z.size)
    top = np.argsort(-np.abs(z))[:3]
    a[top] = z[top] / np.linalg.norm(z[top])
    return a


def test_it_is_the_norm_of_its_oracle() -> None:
    """Polar, best atom and best columns of l1, k-support and l_infinity."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        scores = ArrayScores(rng.standard_normal(9))
        for user, known in ((UserNorm(largest), L1()), (UserNorm(top_three), KSupport(3))):
            assert_allclose(user.polar(scores), known.polar(scores), rtol=1e-14)
            mine, theirs = user.best_atom(scores), known.best_atom(scores)
            order = np.argsort(theirs.columns)
            assert_array_equal(mine.columns, theirs.columns[order])
            assert_allclose(mine.values, theirs.values[order])
            assert_array_equal(user.best_columns(scores, 1), known.best_columns(scores, 1))
        assert_allclose(UserNorm(signs).polar(scores), np.abs(scores.full()).sum())


@pytest.mark.parametrize(
    "pack",
    [
        lambda a: a,
        lambda a: a.astype(np.float32),
        lambda a: list(a),
        lambda a: (np.flatnonzero(a), a[np.flatnonzero(a)]),
        lambda a: (np.flatnonzero(a)[::-1].tolist(), a[np.flatnonzero(a)][::-1].tolist()),
        lambda a: sp.csr_array(a[None, :]),
        lambda a: sp.csc_matrix(a[:, None]),
        lambda a: sp.coo_array(a),
        lambda a: sp.coo_array((np.r_[a, a] / 2, (np.zeros(10, int), np.r_[:5, :5])), (1, 5)),
    ],
)
def test_every_form_of_answer(pack: Any) -> None:
    a = np.array([0.0, -2.0, 0.0, 0.5, 0.25])
    z = np.array([1.0, -1.0, 0.0, 2.0, 4.0])
    atom = UserNorm(lambda _: pack(a)).best_atom(ArrayScores(z))
    assert_array_equal(atom.columns, [1, 3, 4])
    assert_array_equal(atom.values, [-2.0, 0.5, 0.25])
    assert atom.columns.dtype == np.int64
    assert atom.values.dtype == np.float64


def test_one_feature() -> None:
    for pack in (lambda a: a, lambda a: sp.csr_array(a[None, :]), lambda a: ([0], a)):
        norm = UserNorm(lambda z, pack=pack: pack(np.sign(z)))
        assert norm.polar(ArrayScores(np.array([-3.0]))) == 3.0


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (np.ones(4), ValueError, r"shape \(5,\).*\(4,\)"),
        (1.0, ValueError, "shape"),
        (None, TypeError, "NoneType"),
        (np.ones(5) * 1j, TypeError, "complex"),
        (np.array([1, np.nan, 0, 0, 0]), ValueError, "nan at feature 1"),
        (([0, 7], [1.0, 1.0]), ValueError, "between 0 and 4"),
        (([-1], [1.0]), ValueError, "between 0 and 4"),
        (([0, 0], [1.0, 1.0]), ValueError, "repeat"),
        (([0], [1.0], 2), ValueError, "two vectors of one length"),
        ("abcde", TypeError, "str"),
        (([0.5], [1.0]), TypeError, "whole numbers"),
        (([0, 1], [1.0]), ValueError, "one length"),
        (([0], [np.inf]), ValueError, "inf at feature 0"),
        (sp.csr_array(np.ones((2, 5))), ValueError, r"\(2, 5\)"),
        (-np.ones(5), ValueError, "-a is better"),
    ],
)
def test_bad_answers_are_refused(answer: Any, error: type[Exception], words: str) -> None:
    norm = UserNorm(lambda z: answer, name="mine")
    with pytest.raises(error, match=words) as caught:
        norm.polar(ArrayScores(np.arange(1.0, 6.0)))
    assert "UserNorm 'mine'" in str(caught.value)


def test_the_error_names_the_oracle() -> None:
    def my_oracle(z: Array) -> Array:
        return z[:2]

    with pytest.raises(ValueError, match="my_oracle"):
        UserNorm(my_oracle).polar(ArrayScores(np.ones(3)))


def test_an_oracle_that_misses_the_best_atom_is_caught() -> None:
    """An atom it returned before goes farther along z."""

    def lazy(z: Array) -> tuple[Array, Array]:
        j = int(np.abs(z[:3]).argmax()) if z[0] else int(np.abs(z).argmax())
        return np.array([j]), np.array([np.sign(z[j])])

    norm = UserNorm(lazy)
    assert norm.polar(ArrayScores(np.array([0.0, 1.0, 0.0, 5.0]))) == 5.0
    with pytest.raises(ValueError, match="returned before has 7"):
        norm.polar(ArrayScores(np.array([1.0, 0.0, 0.0, -7.0])))
    # As a gauge, -a need not be an atom.
    gauge = UserNorm(lazy, symmetric=False)
    assert gauge.polar(ArrayScores(np.array([0.0, 1.0, 0.0, 5.0]))) == 5.0
    assert gauge.polar(ArrayScores(np.array([1.0, 0.0, 0.0, -7.0]))) == 1.0


def test_a_gauge_may_have_no_atom_to_give() -> None:
    norm = UserNorm(lambda z: (np.array([z.argmax()]), np.ones(1)), symmetric=False)
    scores = ArrayScores(np.array([-1.0, -2.0]))
    assert norm.polar(scores) == 0.0
    assert norm.best_atom(scores).columns.size == 0
    assert norm.best_columns(scores, 3).size == 0
    assert UserNorm(signs).polar(ArrayScores(np.zeros(3))) == 0.0


def test_the_oracle_is_asked_once_for_one_z_and_gets_its_own_copy() -> None:
    calls = []

    def greedy(z: Array) -> Array:
        calls.append(z)
        atom = signs(z)
        z[:] = 0.0
        return atom

    norm, z = UserNorm(greedy), np.array([1.0, -2.0])
    for _ in range(3):
        assert norm.polar(ArrayScores(z)) == 3.0
        assert_array_equal(norm.best_atom(ArrayScores(z.copy())).values, [1.0, -1.0])
    assert len(calls) == 1
    assert_array_equal(z, [1.0, -2.0])
    shifted = ShiftedScores(ArrayScores(z), np.array([0]), np.array([2.0]))
    assert_array_equal(norm.best_atom(shifted).values, [-1.0, -1.0])
    assert len(calls) == 2


def test_another_oracle_begins_afresh() -> None:
    """Neither the last answer of the former oracle nor its atoms count."""
    norm, scores = UserNorm(signs), ArrayScores(np.array([1.0, -2.0]))
    assert norm.polar(scores) == 3.0
    norm.oracle = lambda z: np.where(np.abs(z) == np.abs(z).max(), np.sign(z), 0.0)
    assert norm.polar(scores) == 2.0
    norm.oracle, norm.symmetric = lambda z: np.array([1.0, 0.0]), False
    assert norm.polar(scores) == 1.0


def test_value() -> None:
    norm = UserNorm(signs, value=lambda w: np.abs(w).max())
    assert norm.value(np.array([1.0, -3.0])) == 3.0
    with pytest.raises(TypeError, match="gauge_by_generation"):
        UserNorm(signs).value(np.ones(2))
    for bad in (-1.0, np.nan, "1", None):
        with pytest.raises(ValueError, match="number >= 0"):
            UserNorm(signs, value=lambda w, bad=bad: bad).value(np.ones(2))


def test_what_cannot_be_a_norm_is_refused() -> None:
    for bad, words in (
        (UserNorm(3), "oracle must be a function"),  # type: ignore[arg-type]
        (UserNorm(signs, value=3), "value must be a function"),  # type: ignore[arg-type]
        (UserNorm(signs, symmetric="yes"), "symmetric"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=words):
            bad.on(4)


def test_parameters_copies_and_pickles() -> None:
    def value(w: Array) -> float:
        return float(np.abs(w).max())

    norm = UserNorm(signs, value, name="box")
    norm.polar(ArrayScores(np.ones(3)))
    expected = {"oracle": signs, "value": value, "symmetric": True, "name": "box"}
    assert norm.get_params() == expected
    twin = clone(norm)
    assert twin.get_params() == expected
    assert twin.value(np.array([2.0])) == 2.0
    assert twin == norm
    twin.set_params(value=None, name="other")
    assert twin != norm
    assert "box" in repr(norm)
    restored = pickle.loads(pickle.dumps(UserNorm(signs, name="box")))
    assert restored.polar(ArrayScores(np.ones(3))) == 3.0
    assert copy.deepcopy(norm).polar(ArrayScores(np.ones(2))) == 2.0


def test_other_numbers_of_features_begin_afresh() -> None:
    """Atoms of one data set are no evidence on another."""
    norm = UserNorm(signs)
    assert norm.polar(ArrayScores(np.ones(5))) == 5.0
    assert norm.polar(ArrayScores(np.ones(2))) == 2.0
    assert norm.polar(ArrayScores(np.ones(7))) == 7.0


def test_what_it_cannot_do() -> None:
    norm = UserNorm(signs)
    assert not norm.proximal
    assert norm.restrict(np.arange(2), 4) is None
    with pytest.raises(TypeError, match="no proximal map"):
        norm.prox_point(np.ones(4), 1.0, "penalized")
