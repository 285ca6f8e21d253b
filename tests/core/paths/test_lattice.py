"""Norms that leave k open: which candidates there are, and where the search looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressor, AtomicRegressorCV, norms
from atomlearn.core.interfaces import Array, Norm
from atomlearn.core.paths.cross_validation import CrossValidation
from atomlearn.core.paths.lattice import search_lattice
from atomlearn.core.paths.path import PathResult
from atomlearn.result import Status
from atomlearn.testing.cases import each


def drawn() -> tuple[Array, Array]:
    """Return three bunches of five like columns among 40, and a target of two of them."""
    rng = np.random.default_rng(0)
    common = np.repeat(rng.standard_normal((60, 8)), 5, axis=1)
    X = common + 0.5 * rng.standard_normal((60, 40))
    return X, X[:, :10].sum(axis=1) + 4.0 * rng.standard_normal(60)


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

    def __call__(self, some: Sequence[Norm], levels: Array) -> CrossValidation:
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
            assert [path.at(level) for level in row] == [
                (level, fold) if level in known else None for level in row
            ]


def test_a_search_that_was_cut_short_chooses_among_what_it_has() -> None:
    some, scored = [norms.KSupport(k) for k in range(11)], Made((4, 7), cut=24)
    found = search_lattice(scored, some, np.tile(np.arange(20.0), (11, 1)))
    assert found.status is Status.TIME_LIMIT
    assert len(scored.asked) == 24
    assert np.isfinite(found.mean[found.choose()])


@pytest.mark.parametrize("norm", ["ksupport", norms.Scaled(norms.ElasticNetNorm(), 2.0)])
def test_estimators_choose_k(norm: Any) -> None:
    X, y = drawn()
    model = AtomicRegressorCV(norm, n_alphas=6, cv=3).fit(X, y)
    chosen = model.norm_ if norm == "ksupport" else model.norm_.norm
    assert 1 <= chosen.k <= 40
    assert model.status_.is_converged
    fixed = AtomicRegressor(model.norm_, model.alpha_, form=model.norm_.usual_form).fit(X, y)
    np.testing.assert_allclose(model.coef_, fixed.coef_, atol=1e-3 * np.abs(fixed.coef_).max())
    tried = np.isfinite(model.cv_results_["mean_test_score"])
    assert 0 < tried.sum() < tried.size
    best = np.nanargmax(model.cv_results_["mean_test_score"])
    assert np.isfinite(model.cv_results_["param_alpha"][best])


@pytest.mark.parametrize("n_alphas", [1, 2, 3, 4, 5])
def test_grids_of_few_levels_are_searched(n_alphas: int) -> None:
    X, y = drawn()
    model = AtomicRegressorCV("ksupport", n_alphas=n_alphas, cv=2).fit(X, y)
    assert model.alpha_ in model.alphas_


def test_classes_and_refits_too() -> None:
    X, y = drawn()
    model = AtomicClassifierCV("ksupport", n_alphas=4, cv=2, tol=1e-3).fit(X, y > 0)
    assert model.norm_.k >= 1
    whole = AtomicRegressorCV("ksupport", n_alphas=3, cv=2, relax=(0.0, 1.0)).fit(X, y)
    assert np.isfinite(whole.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("norm", [norms.KSupport(), norms.ElasticNetNorm()])
@pytest.mark.parametrize("signal", [0.0, 3.0])
@each("seed", range(4))
def test_intervals_are_those_of_the_fits_at_the_chosen_norm_and_level(
    norm: Any, signal: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((45, 30))
    y = signal * X[:, :3].sum(axis=1) + rng.standard_normal(45)
    searched = AtomicRegressorCV(norm, n_alphas=10, tol=1e-9).fit(X, y)
    alone = AtomicRegressorCV(searched.norm_, [searched.alpha_], tol=1e-9).fit(X, y)
    ends = zip(searched.predict(X, interval=0.9), alone.predict(X, interval=0.9), strict=True)
    for found, expected in ends:
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_an_open_k_is_refused_where_nothing_chooses_it() -> None:
    X, y = drawn()
    with pytest.raises(ValueError, match="has no k: a cross-validated estimator"):
        AtomicRegressor("ksupport").fit(X, y)
    with pytest.raises(ValueError, match="is searched by itself"):
        AtomicRegressorCV(["l1", norms.KSupport()]).fit(X, y)


def test_candidates_enter_as_the_first_usually_does() -> None:
    X, y = drawn()
    squared = AtomicRegressorCV(norms.KSupport(5), n_alphas=4, cv=2).fit(X, y)
    given = AtomicRegressorCV(norms.KSupport(5), form="squared", n_alphas=4, cv=2).fit(X, y)
    assert squared.alpha_ == given.alpha_
    penalized = AtomicRegressorCV(norms.KSupport(5), form="penalized", n_alphas=4, cv=2).fit(X, y)
    assert penalized.alpha_ != squared.alpha_
