"""A ridge term with its share of the penalty: against scikit-learn, CVXPY and single solves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNetCV, enet_path
from sklearn.model_selection import KFold

from atomlearn import losses, norms, paths, solve, solvers
from atomlearn.core import (
    Array,
    CrossValidation,
    Problem,
    Regularizer,
    Settings,
    cross_validate,
    held_out_loss,
    level_grids,
)
from atomlearn.designs import as_design
from atomlearn.testing.problems import cvxpy_optimum

GAP = 1e-9


def drawn(n_samples: int = 80, n_features: int = 30) -> tuple[Array, Array]:
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n_samples, n_features)) + rng.standard_normal((n_samples, 1)) + 3.0
    return X, X[:, :6].sum(axis=1) + 2.0 * rng.standard_normal(n_samples)


def mean_problem(X: Array, y: Array, norm: Any = None, form: Any = "penalized") -> Problem:
    """Return the problem of the mean squared loss, with an intercept, at level 1."""
    return Problem.build(
        as_design(X),
        y,
        losses.as_loss("squared"),
        Regularizer(norm or norms.L1(), form, 1.0),
        fit_intercept=True,
        sample_weight=np.full(y.size, 1.0 / y.size),
    )


@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 0.95])
# All levels at once over a Gram matrix; re-fits over a pool; one level after the other.
@pytest.mark.parametrize(("n_features", "own_solver"), [(30, False), (2500, False), (30, True)])
def test_paths_are_those_of_scikit_learn(
    l1_ratio: float, n_features: int, own_solver: bool
) -> None:
    X, y = drawn(n_features=n_features)
    found = paths.path(
        X,
        y,
        l1_ratio=l1_ratio,
        n_alphas=8,
        alpha_ratio=0.05,
        fit_intercept=True,
        tol=GAP,
        solver=solvers.ColumnGeneration(tol=0.1 * GAP) if own_solver else None,
    )
    assert found.converged
    centered = X - X.mean(axis=0)
    alphas, expected, _ = enet_path(
        centered, y - y.mean(), l1_ratio=l1_ratio, alphas=8, eps=0.05, tol=1e-12, max_iter=10**5
    )
    np.testing.assert_allclose(found.alphas, alphas, rtol=1e-9)
    for result, coef in zip(found.results, expected.T, strict=True):
        np.testing.assert_allclose(result.coef, coef, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["penalized", "squared"])
@pytest.mark.parametrize("norm", [norms.KSupport(3), norms.Groups(np.repeat(np.arange(10), 3))])
def test_objectives_are_those_of_cvxpy(norm: Any, form: Any) -> None:
    X, y = drawn()
    problem = mean_problem(X, y, norm, form)
    grid = paths.alpha_grid(paths.largest_useful_alpha(problem) / 0.4, 6, 0.03)
    found = paths.path(X, y, norm=norm, form=form, alphas=grid, l1_ratio=0.4, tol=GAP)
    assert found.converged
    for number in (1, 3, 5):
        alpha = grid[number]
        given = replace(problem, regularizer=Regularizer(norm, form, 0.4 * alpha), tau=0.6 * alpha)
        assert found.results[number].objective == pytest.approx(cvxpy_optimum(given, X), rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("norm", ["l1", "ksupport"])
def test_levels_of_other_losses_are_those_of_single_solves(loss: str, norm: str) -> None:
    X, y = drawn(60, 2000)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    shared: Any = {"loss": loss, "norm": norms.KSupport(4) if norm == "ksupport" else norm}
    found = paths.path(X, labels, n_alphas=6, l1_ratio=0.7, tol=1e-8, **shared)
    for alpha, result in zip(found.alphas[1::2], found.results[1::2], strict=True):
        single = solve(X, labels, alpha=alpha, l1_ratio=0.7, tol=1e-8, **shared)
        assert result.objective == pytest.approx(single.objective, rel=3e-8)
        assert result.relative_gap <= 1e-8


def searched(X: Array, y: Array, ratios: list[float], n_levels: int) -> CrossValidation:
    """Return the held-out scores of l1 with several shares of the penalty."""
    problems = [mean_problem(X, y)]
    some = [norms.L1()] * len(ratios)
    levels = level_grids(problems, some, n_levels, 0.01)
    folds = list(KFold(5).split(X))
    score = held_out_loss(problems)
    return cross_validate(problems, some, levels, folds, score, Settings(GAP), l1_ratios=ratios)


@pytest.mark.parametrize("n_features", [25, 300])
def test_several_shares_are_chosen_as_scikit_learn_chooses(n_features: int) -> None:
    X, y = drawn(80, n_features)
    ratios = [0.2, 0.6, 1.0]
    found = searched(X, y, ratios, 10)
    precise: Any = {"cv": KFold(5), "tol": 1e-7, "max_iter": 10**5}
    theirs = ElasticNetCV(l1_ratio=ratios, alphas=10, eps=0.01, **precise).fit(X, y)
    np.testing.assert_allclose(found.alphas, theirs.alphas_, rtol=1e-9)
    np.testing.assert_allclose(-2.0 * found.scores, theirs.mse_path_, rtol=1e-3)
    candidate, level = found.choose()
    assert found.l1_ratios[candidate] == theirs.l1_ratio_
    assert found.alphas[candidate, level] == pytest.approx(theirs.alpha_)
    table = found.table()
    assert table["params"][np.argmin(table["rank_test_score"])]["l1_ratio"] == theirs.l1_ratio_
    # Each share scores as it does in a search of its own.
    for number, ratio in enumerate(ratios):
        np.testing.assert_allclose(
            searched(X, y, [ratio], 10).scores[0], found.scores[number], rtol=1e-6
        )


def test_each_path_of_a_search_has_its_own_share() -> None:
    X, y = drawn()
    ratios = [1.0, 0.5]
    found = searched(X, y, ratios, 4)
    for candidate, (ratio, levels) in enumerate(zip(ratios, found.levels, strict=True)):
        for (path,) in found.paths[candidate]:
            assert path.l1_ratio == ratio
            np.testing.assert_allclose(path.alphas, levels / ratio)


@pytest.mark.parametrize("l1_ratio", [0.0, -0.1, 1.5, True, "half", float("nan")])
def test_shares_that_are_none(l1_ratio: Any) -> None:
    X, y = drawn()
    with pytest.raises(ValueError, match=r"l1_ratio must be a number in \(0, 1\]"):
        paths.path(X, y, l1_ratio=l1_ratio, fit_intercept=False)


def test_a_radius_has_no_share() -> None:
    X, y = drawn()
    with pytest.raises(ValueError, match=r"form='constrained' needs l1_ratio=1.0"):
        paths.path(X, y, form="constrained", l1_ratio=0.5, fit_intercept=False)
