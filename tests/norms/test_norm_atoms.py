"""best_atom: attains the polar, has gauge one, and says where it is not known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.designs import ArrayScores
from atomlearn.interfaces import Norm, Scores
from atomlearn.norms import L1, L2, ElasticNetNorm, Groups, KSupport, Scaled

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8]]
NORMS = (
    L1(),
    L2(),
    KSupport(3),
    KSupport(2, groups=GROUPS),
    Groups(GROUPS, weights=[1.0, 2.0, 0.5]),
    ElasticNetNorm(3),
    ElasticNetNorm(2.3),
    Scaled(KSupport(2), 3.0),
)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_the_best_atom_attains_the_polar(norm: Norm) -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=11) if seed % 2 else np.round(rng.normal(size=11))
        scores = ArrayScores(z)
        atom = norm.best_atom(scores)
        w = np.zeros(11)
        w[atom.columns] = atom.values
        assert np.unique(atom.columns).size == atom.columns.size
        assert_allclose(float(w @ z), norm.polar(scores), rtol=1e-12)
        assert_allclose(norm.value(w), 1.0, rtol=1e-12)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_no_scores_no_atom(norm: Norm) -> None:
    assert norm.best_atom(ArrayScores(np.zeros(11))).columns.size == 0


def test_the_atom_of_the_two_support_norm() -> None:
    atom = KSupport(2).best_atom(ArrayScores(np.array([3.0, -2.0, 0.5, 0.1, 1.0, -1.0])))
    assert_array_equal(atom.columns, [0, 1])
    assert_allclose(atom.values, np.array([3.0, -2.0]) / np.sqrt(13))


class _Wrong(L1):
    def polar(self, scores: Scores) -> float:
        return 2.0 * super().polar(scores)


def test_an_atom_that_misses_the_polar_is_refused() -> None:
    with pytest.raises(TypeError, match="_Wrong"):
        _Wrong().best_atom(ArrayScores(np.array([1.0, -2.0])))
