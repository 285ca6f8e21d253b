"""polar, value and best atoms of plain vectors: lists and arrays, for every norm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms
from atomlearn.core import ArrayScores
from atomlearn.interfaces import Norm

LISTS = [[0, 1, 2], [2, 3], [4, 5]]
NORMS: list[Norm] = [
    norms.L1(),
    norms.OWL(np.arange(6, 0, -1.0)),
    norms.KSupport(2),
    norms.KSupport(1, groups=[[0, 1], [2, 3, 4]]),
    norms.ElasticNetNorm(1.7),
    norms.Groups([[0, 1, 2], [3, 4]]),
    norms.LatentGroups(LISTS),
    norms.Nonnegative(norms.L1()),
    norms.Scaled(norms.KSupport(2), 2.0),
    norms.Union([norms.L1(), norms.L2()]),
    norms.Blocks([norms.L1(), norms.L2()], [[0, 1], [2, 3, 4, 5]]),
    norms.Operators([np.eye(6), np.eye(6)[:3]]),
    norms.TraceNorm(shape=(2, 3)),
    norms.RowGroups(shape=(3, 2)),
    norms.SparseRankOne(2, 1, shape=(2, 3)),
    norms.UserNorm(lambda z: np.sign(z) * (np.arange(z.size) == np.abs(z).argmax()),
                   value=lambda w: float(np.abs(w).sum())),
]  # fmt: skip


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_arrays_and_lists_are_scores(norm: Norm) -> None:
    z = np.array([3.0, -1.0, 0.5, 2.0, -2.5, 0.1])
    scores = ArrayScores(z)
    assert norm.polar(z) == norm.polar(z.tolist()) == norm.polar(scores)
    assert norm.polar_bounds(z) == norm.polar_bounds(scores)
    assert_array_equal(norm.best_columns(z, 2), norm.best_columns(scores, 2))
    atom = norm.best_atom(z)
    assert_allclose(float(atom.values @ z[atom.columns]), norm.polar(z), rtol=1e-6)
    w = np.abs(z) if isinstance(norm, norms.Nonnegative) else np.where(z > 2, z, 0.0)
    assert norm.value(w.tolist()) == norm.value(w)


@pytest.mark.parametrize("norm", [norms.TraceNorm(), norms.RowGroups(), norms.SparsePSD(2)])
def test_matrices_say_their_shape(norm: Norm) -> None:
    Z = np.diag([3.0, 2.0, 1.0])
    known = norm.on(9, (3, 3))
    assert norm.polar(Z) == known.polar(Z.ravel())
    assert norm.value(Z) == pytest.approx(known.value(Z.ravel()))


def test_a_matrix_is_no_vector() -> None:
    with pytest.raises(ValueError, match="vector of shape"):
        norms.L1().polar(np.eye(2))
    with pytest.raises(ValueError, match=r"pass w\.ravel"):
        norms.L1().value(np.ones((2, 2)))


def test_a_norm_of_ones_own_takes_them_too() -> None:
    class Own(Norm):
        def value(self, w: object) -> float:
            return float(np.abs(w).sum())

        def polar(self, scores: object) -> float:
            return float(abs(scores.top(1)[1][0]))  # type: ignore[attr-defined]

        def best_columns(self, scores: object, count: int) -> object:
            return scores.top(count)[0]  # type: ignore[attr-defined]

    assert Own().polar([1.0, -3.0]) == 3.0
    assert Own().best_columns(np.array([1.0, -3.0]), 1).tolist() == [1]
