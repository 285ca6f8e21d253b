"""Cross-validated estimators choose the k that a norm leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressor, AtomicRegressorCV, norms
from atomlearn.core import Array
from atomlearn.testing.cases import each


def drawn() -> tuple[Array, Array]:
    """Return three bunches of five like columns among 40, and a target of two of them."""
    rng = np.random.default_rng(0)
    common = np.repeat(rng.standard_normal((60, 8)), 5, axis=1)
    X = common + 0.5 * rng.standard_normal((60, 40))
    return X, X[:, :10].sum(axis=1) + 4.0 * rng.standard_normal(60)


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
    with pytest.raises(ValueError, match="has no k, so it must be the only"):
        AtomicRegressorCV(["l1", norms.KSupport()]).fit(X, y)


def test_candidates_enter_as_the_first_usually_does() -> None:
    X, y = drawn()
    squared = AtomicRegressorCV(norms.KSupport(5), n_alphas=4, cv=2).fit(X, y)
    given = AtomicRegressorCV(norms.KSupport(5), form="squared", n_alphas=4, cv=2).fit(X, y)
    assert squared.alpha_ == given.alpha_
    penalized = AtomicRegressorCV(norms.KSupport(5), form="penalized", n_alphas=4, cv=2).fit(X, y)
    assert penalized.alpha_ != squared.alpha_
