"""Lifted and ordered norms against enumeration (polar, best atom, columns) and CVXPY (value)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import ArrayScores
from atomlearn.norms import LatentGroups
from atomlearn.testing import tolerances
from tests.oracles.lifted_cases import KINDS, random_scores


@pytest.mark.parametrize("kind", KINDS)
def test_polar_best_atom_and_columns(kind: str) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        case = KINDS[kind](rng)
        case.norm.on(case.n_features)
        z = random_scores(rng, case.n_features)
        scores = ArrayScores(z)
        polar = case.polar(z)
        assert_allclose(case.norm.polar(scores), polar, rtol=tolerances.SAME_FLOAT64)
        atom = case.norm.best_atom(scores)
        assert_allclose(atom.values @ z[atom.columns], polar, rtol=1e-12)
        columns = case.norm.best_columns(scores, int(rng.integers(1, 6)))
        assert np.unique(columns).size == columns.size
        there = np.zeros_like(z)
        there[columns] = z[columns]
        assert_allclose(case.polar(there), polar, rtol=1e-12)


def test_best_columns_come_best_first_each_once() -> None:
    """Features in the order of their best sets, not of their numbers."""
    norm = LatentGroups([[0, 1], [1, 5], [2, 3], [4]])
    scores = ArrayScores(np.array([0.1, 2.0, 1.0, 0.5, 0.3, 3.0]))
    assert_array_equal(norm.best_columns(scores, 2), [1, 5])
    assert_array_equal(norm.best_columns(scores, 4), [1, 5, 0])
    assert_array_equal(norm.best_columns(scores, 6), [1, 5, 0, 2, 3])
    assert_array_equal(norm.best_columns(scores, 7), [1, 5, 0, 2, 3, 4])


@pytest.mark.parametrize("kind", KINDS)
def test_value(kind: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(1000 + seed)
        case = KINDS[kind](rng)
        w = random_scores(rng, case.n_features)
        w /= np.abs(w).max()
        assert_allclose(case.norm.value(w), case.value(w), rtol=tolerances.ORACLE)
        atom = case.norm.best_atom(ArrayScores(w))
        dense = np.zeros(case.n_features)
        dense[atom.columns] = atom.values
        assert_allclose(case.norm.value(dense), 1.0, rtol=1e-7)


def test_values_are_found_however_far_the_sizes_of_entries_reach() -> None:
    """min over t of |(a, t)| + |(b - t, c)| is |(|a| + |c|, b)|, as a ray is reflected."""
    rng = np.random.default_rng(0)
    norm = LatentGroups([[0, 1], [1, 2], [3]])
    for reach in np.repeat([0.0, 4.0, 8.0, 16.0, 100.0], 12):
        w = rng.standard_normal(4) * 10.0 ** rng.uniform(-reach, reach, 4)
        right = np.hypot(abs(w[0]) + abs(w[2]), w[1]) + abs(w[3])
        assert_allclose(norm.value(w), right, rtol=1.1e-8)
