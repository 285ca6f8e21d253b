"""Norms that leave k open: which candidates there are, and where the search looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from atomlearn import norms
from atomlearn.core import (
    Array,
    CrossValidation,
    Norm,
    PathResult,
    Settings,
    cross_validate,
    held_out_loss,
    level_grids,
)
from atomlearn.estimators.lattice import search_lattice
from atomlearn.result import Status
from tests.core.paths.test_l1_ratio import drawn, mean_problem


@pytest.mark.parametrize("most", [1, 2, 7, 100, 3000])
def test_candidates_go_from_one_to_all_in_small_steps(most: int) -> None:
    ks = np.array([norm.k for norm in norms.KSupport().candidates(most, 10**6)])
    assert ks[0] == 1
    assert ks[-1] == most
    steps = ks[1:] / ks[:-1]
    assert (steps > 1).all()
    assert (steps[ks[1:] > 6] < 1.75).all()


def test_what_is_given_is_no_family() -> None:
    for norm in (norms.L1(), norms.KSupport(3), norms.Scaled(norms.ElasticNetNorm(2.5), 2.0)):
        assert norm.candidates(10, 10) == [norm]
    inner = norms.Scaled(norms.KSupport(), 2.0).candidates(5, 9)
    assert [one.norm.k for one in inner] == [1, 2, 3, 5]
    grouped = norms.KSupport(groups=[[0, 1], [2, 3]]).candidates(9, 4)
    assert [one.k for one in grouped] == [1, 2]


class Made:
    """Scores of a surface with one top, and what was asked for."""

    def __init__(self, top: tuple[float, float], cut: int | None = None) -> None:
        self.top, self.cut, self.asked = top, cut, []

    def __call__(self, some: Sequence[Norm], levels: Array, _: Array) -> CrossValidation:
        self.asked += [
            (norm.k, level) for norm, row in zip(some, levels, strict=True) for level in row
        ]
        ks = np.array([norm.k for norm in some], dtype=float)[:, None]
        scores = -((ks - self.top[0]) ** 2) - (levels - self.top[1]) ** 2
        each = np.repeat(scores[..., None], 2, axis=2)
        status = Status.TIME_LIMIT if len(self.asked) == self.cut else Status.CONVERGED
        paths = tuple(tuple((path_at(row, fold),) for fold in range(2)) for row in levels)
        return CrossValidation(tuple(some), levels, each, each, each, each, 1.0, 0.0, paths, status)


def path_at(levels: Array, fold: int) -> PathResult:
    """Return a path whose results say which level and fold they are of."""
    results: Any = [(level, fold) for level in levels]
    return PathResult(levels, results, 1, passes=1.0)


@pytest.mark.parametrize("top", [(0, 0), (10, 19), (4, 7), (5, 12), (9, 3)])
def test_the_top_is_found_and_most_is_never_scored(top: tuple[int, int]) -> None:
    some, scored = [norms.KSupport(k) for k in range(11)], Made(top)
    levels = np.tile(np.arange(20.0), (11, 1))
    found = search_lattice(scored, some, levels)
    norm, level = found.choose()
    assert abs(norm - top[0]) <= 1
    assert abs(level - top[1]) <= 1
    assert len(set(scored.asked)) <= len(scored.asked) < 80
    assert np.isfinite(found.mean).sum() == len(set(scored.asked))
    for scores, row, paths in zip(found.mean, found.levels, found.paths, strict=True):
        known = row[np.isfinite(scores)].tolist()
        assert len(paths) == (2 if known else 0)
        for fold, (path,) in enumerate(paths):
            assert path.levels.tolist() == known
            assert [path.result_at(level) for level in row] == [
                (level, fold) if level in known else None for level in row
            ]


def test_a_search_that_was_cut_short_chooses_among_what_it_has() -> None:
    some, scored = [norms.KSupport(k) for k in range(11)], Made((4, 7), cut=24)
    found = search_lattice(scored, some, np.tile(np.arange(20.0), (11, 1)))
    assert found.status is Status.TIME_LIMIT
    assert len(scored.asked) == 24
    assert np.isfinite(found.mean[found.choose()])


def test_lattices_of_several_shares() -> None:
    X, y = drawn()
    problems = [mean_problem(X, y)]
    some = [norms.KSupport(k) for k in (1, 2, 4, 8)]
    ratios = [0.5, 1.0]
    levels = level_grids(problems, some * 2, 9, 0.01)
    folds = list(KFold(4).split(X))
    score = held_out_loss(problems)

    def scored(norms: Any, levels: Array, shares: Any) -> CrossValidation:
        settings = Settings(1e-7)
        return cross_validate(problems, norms, levels, folds, score, settings, l1_ratios=shares)

    found = search_lattice(scored, some, levels, ratios)
    assert found.l1_ratios == (0.5,) * 4 + (1.0,) * 4
    assert [norm.k for norm in found.norms] == [1, 2, 4, 8] * 2
    np.testing.assert_allclose(found.alphas[:4], found.levels[:4] / 0.5)
    known = np.isfinite(found.mean)
    assert known[:4].any()
    assert known[4:].any()
    whole = [scored(some, levels[:4], [ratio] * 4).scores for ratio in ratios]
    np.testing.assert_allclose(found.scores[known], np.vstack(whole)[known], rtol=1e-4)
