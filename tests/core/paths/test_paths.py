"""Paths: grids, warm starts against cold ones, cross-validation against a loop written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from atomlearn import norms, paths, solve, solvers
from atomlearn.core import (
    Counted,
    CrossValidation,
    Progress,
    Settings,
    held_out_loss,
    objective_at,
    path_of,
)
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer, optimal_intercept
from atomlearn.result import Status
from atomlearn.solvers import stopping
from tests.oracles.sums import solve_sum

GAP = 1e-7


def data(loss: str, seed: int = 0, n: int = 60, p: int = 25) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, :4] @ [1.0, -1.0, 0.5, 0.5] + 0.5 * rng.standard_normal(n) + 0.3
    return X, y if loss == "squared" else np.where(y > 0, 1.0, -1.0)


def problem(loss: str, form: Any, norm: Any = None, seed: int = 0, **options: Any) -> Problem:
    X, y = data(loss, seed)
    regularizer = Regularizer(norm or norms.KSupport(k=3), form, 1.0)
    return Problem.build(as_design(X), y, as_loss(loss), regularizer, **options)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_warm_started_path_equals_cold_starts(loss: str, form: Any) -> None:
    X, y = data(loss)
    norm = norms.KSupport(k=3)
    found = paths.path(
        X, y, loss=loss, norm=norm, form=form, n_alphas=6, fit_intercept=True, tol=GAP
    )
    assert found.converged
    assert found.alphas.shape == (6,)
    name = "radius" if form == "constrained" else "alpha"
    for alpha, result in zip(found.alphas, found.results, strict=True):
        cold = solve(X, y, loss=loss, norm=norm, form=form, tol=GAP, **{name: alpha})
        assert result.objective == pytest.approx(cold.objective, rel=2 * GAP)
        np.testing.assert_allclose(result.coef, cold.coef, atol=1e-3)


def test_levels_may_come_in_any_order() -> None:
    X, y = data("squared")
    found = paths.path(X, y, alphas=[0.1, 1.0, 0.3], fit_intercept=False)
    np.testing.assert_array_equal(found.alphas, [1.0, 0.3, 0.1])
    rising = paths.path(X, y, form="constrained", alphas=[1.0, 0.1, 3.0], fit_intercept=False)
    np.testing.assert_array_equal(rising.alphas, [0.1, 1.0, 3.0])
    gauges = [np.abs(result.weights).sum() for result in rising.results]
    # At the optimum of a problem that wants more, the ball is used up.
    np.testing.assert_allclose(gauges, rising.alphas, rtol=1e-6)


def test_warm_start_outside_a_smaller_ball_is_brought_inside() -> None:
    task = problem("squared", "constrained", norms.L1())
    found = path_of(task, np.array([3.0, 0.5]), Settings(GAP))
    assert found.converged
    cold = Settings(GAP).run(replace(task, regularizer=replace(task.regularizer, amount=0.5)))
    assert found.results[1].objective == pytest.approx(cold.objective, rel=2 * GAP)


def test_path_result_reads_as_arrays() -> None:
    X, y = data("squared")
    found = paths.path(X, y, n_alphas=5, fit_intercept=True)
    dense = np.array([result.coef for result in found.results])
    np.testing.assert_array_equal(found.columns, np.flatnonzero(dense.any(axis=0)))
    np.testing.assert_array_equal(found.coefs, dense[:, found.columns])
    np.testing.assert_array_equal(found.n_selected, (dense != 0).sum(axis=1))
    expected = dense @ X.T + found.intercepts[:, None]
    np.testing.assert_allclose(found.predict(as_design(X)), expected, rtol=1e-12, atol=1e-12)
    assert 0 < found.passes < sum(result.passes for result in found.results)
    assert (np.diff(found.objectives) < 0).all()
    assert all(result.state is None for result in found.results)


def test_sparse_and_dense_paths_agree() -> None:
    X, y = data("logistic")
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense = paths.path(X, y, loss="logistic", n_alphas=4, fit_intercept=False)
    for kind in (sparse.csr_array, sparse.csc_array):
        found = paths.path(kind(X), y, loss="logistic", n_alphas=4, fit_intercept=False)
        np.testing.assert_allclose(found.objectives, dense.objectives, rtol=2e-6)


# --- levels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_penalized_level_is_where_zero_stops_being_optimal(loss: str, intercept: bool) -> None:
    task = problem(loss, "penalized", fit_intercept=intercept)
    largest = paths.largest_useful_alpha(task)
    settings = Settings(1e-9)
    at, below = path_of(task, np.array([largest * (1 + 1e-9), largest * 0.99]), settings).results
    assert at.columns.size == 0
    assert below.columns.size > 0


@pytest.mark.parametrize("form", ["squared", "constrained"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_other_levels_start_where_the_fit_gains_one_percent_at_most(loss: str, form: Any) -> None:
    task = problem(loss, form, fit_intercept=True)
    largest = paths.largest_useful_alpha(task)
    zero = np.zeros(task.design.shape[0])
    at_zero = objective_at(task, np.zeros(0), zero + optimal_intercept(task, zero), gauge=0.0)
    [result] = path_of(task, np.array([largest]), Settings(1e-8)).results
    gain = (at_zero - result.objective) / at_zero
    # The bound is never broken, and it is not idle either.
    assert 0.001 < gain <= 0.01


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_default_grid_spans_from_little_to_nearly_all(form: Any) -> None:
    task = problem("squared", form, norms.L1(), fit_intercept=True)
    grid = paths.alpha_grid(paths.largest_useful_alpha(task), 8, form=form)
    found = path_of(task, grid, Settings())
    assert found.n_selected[-1] >= 20
    fitted = [task.loss.value(task.y, z, task.weight) for z in found.predict(task.design)]
    assert fitted[-1] < 0.3 * fitted[0]


def test_levels_of_targets_that_need_no_features() -> None:
    X, _ = data("squared")
    for y in (np.full(60, 3.0), np.zeros(60)):
        task = Problem.build(
            as_design(X),
            y,
            as_loss("squared"),
            Regularizer(norms.L1(), "penalized", 1.0),
            fit_intercept=True,
        )
        assert paths.largest_useful_alpha(task) == 1.0
    empty = Problem.build(
        as_design(np.zeros((60, 3))),
        np.arange(60.0),
        as_loss("squared"),
        Regularizer(norms.L1(), "squared", 1.0),
    )
    assert paths.largest_useful_alpha(empty) == 1.0


def test_grid_is_geometric() -> None:
    falling = paths.alpha_grid(2.0, 5, 1e-2)
    assert falling[0] == pytest.approx(2.0)
    assert falling[-1] == pytest.approx(0.02)
    np.testing.assert_allclose(falling[1:] / falling[:-1], 1e-2 ** (1 / 4))
    rising = paths.alpha_grid(2.0, 5, 1e-2, "constrained")
    assert rising[-1] == pytest.approx(200.0)
    assert paths.alpha_grid(2.0, 1).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: paths.alpha_grid(1.0, 0), ValueError, "n_alphas must be at least 1"),
        (lambda: paths.alpha_grid(1.0, 2.5), TypeError, "n_alphas must be a whole number"),
        (lambda: paths.alpha_grid(1.0, 5, 0.0), ValueError, "ratio must be a number in"),
        (lambda: paths.alpha_grid(np.nan), ValueError, "largest must be positive"),
        (lambda: paths.alpha_grid(1.0, form="ridge"), ValueError, "form must be one of"),
        (
            lambda: paths.path(*data("squared"), alphas=[1.0, -1.0], fit_intercept=False),
            ValueError,
            "positive",
        ),
        (
            lambda: paths.path(*data("squared"), alphas=[1.0, 0.0], fit_intercept=False),
            ValueError,
            "must all be",
        ),
        (
            lambda: paths.path(*data("squared"), alphas=[np.nan], fit_intercept=False),
            ValueError,
            "finite",
        ),
        (
            lambda: paths.path(*data("squared"), alphas=[], fit_intercept=False),
            ValueError,
            "at least one",
        ),
        (
            lambda: paths.path(*data("squared"), alphas=1.0, fit_intercept=False),
            ValueError,
            "one-dimensional",
        ),
        (
            lambda: paths.path(*data("squared"), alphas=["a"], fit_intercept=False),
            TypeError,
            "array of positive",
        ),
    ],
)
def test_bad_levels_are_refused(call: Callable[[], Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# --- cross-validation --------------------------------------------------------------------------


def folds_of(n: int, count: int = 3) -> list[tuple[Any, Any]]:
    return list(KFold(count, shuffle=True, random_state=0).split(np.zeros((n, 1))))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_cross_validation_equals_a_loop_over_copies(loss: str) -> None:
    X, y = data(loss)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
    candidates = [norms.L1(), norms.KSupport(k=4)]
    levels = np.array([[8.0, 2.0], [5.0, 1.0]])
    task = Problem.build(
        as_design(X),
        y,
        as_loss(loss),
        Regularizer(norms.L1(), "squared", 1.0),
        fit_intercept=True,
        sample_weight=weight,
    )
    folds = folds_of(60)
    score = held_out_loss([task])
    found = paths.cross_validate([task], candidates, levels, folds, score, Settings(1e-9))
    for i, norm in enumerate(candidates):
        for j, level in enumerate(levels[i]):
            for f, (train, test) in enumerate(folds):
                scale = weight.sum() / weight[train].sum()
                fit = solve_sum(
                    X[train].copy(),
                    y[train],
                    loss=loss,
                    norm=norm,
                    form="squared",
                    level=level,
                    fit_intercept=True,
                    sample_weight=scale * weight[train],
                    tol=1e-9,
                )
                z = X[test] @ fit.coef + fit.intercept
                value = as_loss(loss).value(y[test], z, weight[test]) / weight[test].sum()
                assert found.scores[i, j, f] == pytest.approx(-value, rel=1e-4)
                assert found.n_selected[i, j, f] == fit.columns.size


def test_cross_validation_in_threads_gives_the_same_numbers() -> None:
    task = problem("squared", "penalized", norms.L1())
    levels = paths.alpha_grid(paths.largest_useful_alpha(task), 4)[None, :]
    arguments = ([task], [norms.L1()], levels, folds_of(60), held_out_loss([task]))
    alone = paths.cross_validate(*arguments, Settings())
    threads = paths.cross_validate(*arguments, Settings(), n_jobs=2)
    np.testing.assert_allclose(threads.scores, alone.scores, rtol=1e-12)
    np.testing.assert_array_equal(threads.passes, alone.passes)


def test_cross_validation_reads_the_one_design() -> None:
    task = problem("squared", "penalized", norms.L1())
    counted = Counted(task.design)
    task = replace(task, design=counted)
    levels = np.array([[5.0, 2.0]])
    found = paths.cross_validate(
        [task], [norms.L1()], levels, folds_of(60), held_out_loss([task]), Settings()
    )
    assert counted.passes == found.passes > 0
    assert (found.level_passes >= 1).all()


def scores_like(mean: Any, spread: float = 0.1) -> CrossValidation:
    mean = np.asarray(mean, dtype=float)
    scores = mean[:, :, None] + spread * np.array([-1.0, 0.0, 1.0])
    shape = scores.shape
    candidates = tuple(norms.KSupport(k=k + 1) for k in range(shape[0]))
    levels = np.tile(np.arange(shape[1], 0, -1.0), (shape[0], 1))
    zero = np.zeros(shape)
    return CrossValidation(candidates, levels, scores, zero, zero, zero, 0.0, 0.0)


def test_best_takes_the_highest_and_of_equals_the_most_regularized() -> None:
    assert scores_like([[0.1, 0.5, 0.9, 0.3], [0.2, 0.7, 0.8, 0.1]]).choose() == (0, 2)
    assert scores_like([[0.1, 0.2, 0.9, 0.9], [0.2, 0.9, 0.1, 0.9]]).choose() == (1, 1)
    assert scores_like([[np.nan, 0.2], [np.nan, np.nan]]).choose() == (0, 1)


def test_one_standard_error_takes_the_most_regularized_within_it() -> None:
    # The standard error of scores m - 0.1, m, m + 0.1 is 0.1 / sqrt 3 = 0.0577.
    scores = scores_like([[0.1, 0.2, 0.3, 0.4], [0.80, 0.845, 0.87, 0.90]])
    assert scores.choose("one_standard_error") == (1, 1)
    assert scores.choose("best") == (1, 3)
    np.testing.assert_allclose(scores.standard_error, 0.1 / np.sqrt(3))


def test_choice_refuses_rules_and_scores_it_cannot_use() -> None:
    with pytest.raises(ValueError, match="selection must be"):
        scores_like([[1.0]]).choose("median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NaN"):
        scores_like([[np.nan]]).choose()


def test_table_is_that_of_a_grid_search() -> None:
    table = scores_like([[0.1, 0.9], [0.5, np.nan]]).table()
    assert len({len(column) for column in table.values()}) == 1
    assert table["rank_test_score"].tolist() == [3, 1, 2, 4]
    assert table["param_alpha"].tolist() == [2.0, 1.0, 2.0, 1.0]
    assert table["params"][3] == {"norm": norms.KSupport(k=2), "alpha": 1.0, "l1_ratio": 1.0}
    np.testing.assert_allclose(table["split2_test_score"][:3], [0.2, 1.0, 0.6])


def test_folds_without_weight_are_refused() -> None:
    weight = np.ones(60)
    weight[:20] = 0.0
    task = problem("squared", "penalized", norms.L1(), sample_weight=weight)
    rest = np.arange(20, 60)
    arguments = ([task], [norms.L1()], np.array([[1.0]]))
    score, settings = held_out_loss([task]), Settings()
    with pytest.raises(ValueError, match="fold 0 has no test sample"):
        paths.cross_validate(*arguments, [(rest, np.arange(20))], score, settings)
    with pytest.raises(ValueError, match="fold 0 has no training sample"):
        paths.cross_validate(*arguments, [(np.arange(20), rest)], score, settings)
    with pytest.raises(ValueError, match="no folds"):
        paths.cross_validate(*arguments, [], score, settings)


# --- interrupts --------------------------------------------------------------------------------


def test_interrupted_path_keeps_what_is_solved() -> None:
    seen = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress.state.iteration)
        if len(seen) == 6:
            raise KeyboardInterrupt

    X, y = data("squared")
    found = paths.path(X, y, n_alphas=10, observers=[interrupt], fit_intercept=False)
    assert 1 <= len(found.results) < 10
    assert len(found.alphas) == len(found.results)
    assert found.results[-1].status is Status.INTERRUPTED
    assert all(result.converged for result in found.results[:-1])


def test_an_interrupted_cross_validation_has_what_it_scored() -> None:
    pairs = norms.Groups(np.arange(problem("squared", "penalized").design.shape[1]) // 2)
    task = problem("squared", "penalized", pairs)

    class Interrupted(type(task.loss)):  # type: ignore[misc]
        calls, most = 0, 10**9

        def gradient(self, *arguments: Any) -> Any:
            type(self).calls += 1
            if type(self).calls == self.most:
                raise KeyboardInterrupt
            return super().gradient(*arguments)

    task = replace(task, loss=Interrupted())
    levels = paths.alpha_grid(20.0, 5)[None, :]
    score = held_out_loss([task])
    given = [task], [pairs], levels, folds_of(60), score, Settings()
    assert paths.cross_validate(*given).status is Status.CONVERGED
    # In the last proofs of levels.
    Interrupted.calls, Interrupted.most = 0, Interrupted.calls - 2
    found = paths.cross_validate(*given)
    assert found.status is Status.INTERRUPTED
    norm, level = found.choose()
    assert np.isfinite(found.mean[norm, level])
    assert np.isnan(found.scores).any() or found.scores.shape[2] < 3


def test_a_rule_is_asked_at_every_level() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(40)
    found = paths.path(
        X,
        y,
        n_alphas=5,
        solver=solvers.AtomGeneration(),
        stop=stopping.Iterations(2),
        tol=1e-12,
        fit_intercept=False,
    )
    assert {len(each.history) for each in found.results[1:]} == {3}  # the start, and two steps
