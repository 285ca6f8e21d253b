"""Paths that share readings: the same optima as single solves, each proved, in few readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold
from threadpoolctl import ThreadpoolController

from atomlearn import norms, paths, solve
from atomlearn.core import (
    Counted,
    Settings,
    as_norm,
    held_out_loss,
    mean_loss,
    objective_at,
    path_of,
)
from atomlearn.designs import as_design
from atomlearn.interfaces import Deadline
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from tests.oracles.sums import solve_sum

GAP = 1e-8


def data(loss: str, n: int = 60, p: int = 4000, seed: int = 0) -> tuple[Any, Any]:
    """More columns than the pool takes whole, so that guesses can be wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1:] = 0.6 * X[:, :-1] + 0.8 * X[:, 1:]
    y = X[:, :40:4] @ rng.uniform(1, 2, 10) + rng.standard_normal(n) + 0.5
    return X, y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)


CASES: list[tuple[Any, str, str, float]] = [
    ("l1", "penalized", "squared", 0.0),
    ("l1", "penalized", "logistic", 0.0),
    ("l1", "squared", "squared", 0.0),
    ("l1", "constrained", "squared", 0.0),
    ("l1", "penalized", "squared", 0.5),
    ("l1", "penalized", "squared_hinge", 0.0),
    (norms.KSupport(k=5), "squared", "squared", 0.0),
    (norms.KSupport(k=5), "penalized", "logistic", 0.1),
    (norms.Groups(np.repeat(np.arange(1000), 4)), "penalized", "squared", 0.0),
    (norms.KSupport(3, np.repeat(np.arange(1000), 4)), "squared", "squared", 0.0),
    (norms.ElasticNetNorm(k=6.5), "penalized", "squared", 0.0),
    (norms.ElasticNetNorm(k=6.5), "squared", "logistic", 0.0),
]


@pytest.mark.parametrize(
    ("norm", "form", "loss", "ridge", "intercept"),
    [(*case, number % 2 == 0) for number, case in enumerate(CASES)],
)
def test_each_level_is_that_of_a_solve_by_itself(
    norm: Any, form: Any, loss: str, ridge: float, intercept: bool
) -> None:
    X, y = data(loss)
    weights = np.random.default_rng(1).integers(0, 3, y.size).astype(np.float64)
    shared = {"loss": loss, "norm": norm, "form": form, "fit_intercept": intercept}
    shared |= {"sample_weight": weights}
    found = paths.path(X, y, n_alphas=12, l1_ratio=1 / (1 + ridge), tol=GAP, **shared)
    assert found.converged
    perfect = [result.status is Status.PERFECT_FIT for result in found.results]
    assert ((found.relative_gaps <= GAP) | perfect).all()
    assert found.passes <= 9
    name = "radius" if form == "constrained" else "alpha"
    share = 1 / (1 + ridge)
    for number in (2, 7, 9 if form == "constrained" else 11):
        result = found.results[number]
        amount = {name: found.alphas[number]}
        alone = solve(X, y, tol=GAP, l1_ratio=share, **shared, **amount)
        assert result.objective == pytest.approx(alone.objective, rel=3 * GAP)
        residual = X @ result.coef + result.intercept
        problem = Problem.build(
            as_design(X),
            y,
            as_loss(loss),
            Regularizer(as_norm(norm), form, found.levels[number]),
            tau=ridge * found.levels[number],
            fit_intercept=intercept,
            sample_weight=weights / weights.sum(),
        )
        value = objective_at(problem, result.coef, residual)
        assert value == pytest.approx(result.objective, rel=1e-10)
        assert result.history[-1].vectors >= 1


@pytest.mark.parametrize("kind", [np.asfortranarray, sparse.csc_array, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kinds_of_data_agree(kind: Any, dtype: Any) -> None:
    X, y = data("squared")
    X = np.where(np.abs(X) > 1, X, 0.0).astype(dtype)
    expected = paths.path(X.astype(np.float64), y, n_alphas=8, tol=GAP, fit_intercept=True)
    found = paths.path(kind(X), y, alphas=expected.alphas, tol=GAP, fit_intercept=True)
    np.testing.assert_allclose(found.objectives, expected.objectives, rtol=1e-7)
    assert found.converged
    assert found.passes <= 8


def test_copies_of_columns_and_targets_of_no_noise() -> None:
    X, _ = data("squared")
    X = np.hstack([X[:, :1200]] * 3)
    y = X[:, :5].sum(axis=1)
    found = paths.path(X, y, n_alphas=20, alpha_ratio=1e-3, fit_intercept=False)
    assert found.converged
    assert found.passes <= 15


def test_targets_that_need_nothing() -> None:
    X, _ = data("squared")
    for y in (np.zeros(60), np.full(60, 3.0)):
        found = paths.path(X, y, n_alphas=4, fit_intercept=True)
        assert found.converged
        assert (found.n_selected == 0).all()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_folds_share_their_readings(loss: str) -> None:
    X, y = data(loss)
    counted = Counted(as_design(X))
    task = Problem.build(
        counted, y, as_loss(loss), Regularizer(norms.L1(), "penalized", 1.0), fit_intercept=True
    )
    levels = paths.alpha_grid(paths.largest_useful_alpha(task), 20, 0.05)[None, :]
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    before = counted.passes
    score = held_out_loss([task])
    found = paths.cross_validate([task], [norms.L1()], levels, folds, score, Settings(GAP))
    assert found.passes == counted.passes - before <= 12
    assert found.relative_gaps.max() <= GAP
    train, test = folds[1]
    weights = np.full(train.size, y.size / train.size)
    for number in (5, 19):
        alone = solve_sum(
            X[train], y[train], loss=loss, level=levels[0, number], fit_intercept=True, tol=GAP,
            sample_weight=weights,
        )  # fmt: skip
        held_out = mean_loss(task.loss, y[test], alone.predict(X[test]), np.ones(test.size))
        assert found.scores[0, number, 1] == pytest.approx(-held_out, rel=1e-3)


def test_candidates_of_k_share_them_too() -> None:
    X, y = data("squared")
    counted = Counted(as_design(X))
    task = Problem.build(
        counted, y, as_loss("squared"), Regularizer(norms.KSupport(k=2), "squared", 1.0)
    )
    candidates = [norms.KSupport(k=k) for k in (2, 5, 10)]
    levels = np.tile(np.geomspace(1.0, 1e-3, 10) * 4000.0, (3, 1))
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    score = held_out_loss([task])
    found = paths.cross_validate([task], candidates, levels, folds, score, Settings())
    assert found.passes <= 20
    assert found.relative_gaps.max() <= 1e-6


def test_time_limits_give_what_there_is() -> None:
    X, y = data("squared")
    task = Problem.build(
        as_design(X), y, as_loss("squared"), Regularizer(norms.L1(), "penalized", 1.0)
    )
    levels = paths.alpha_grid(paths.largest_useful_alpha(task), 30)
    settings = Settings(1e-10, deadline=Deadline.after(0.0))
    found = path_of(task, levels, settings)
    assert len(found.results) == 30
    assert not found.converged
    assert all(np.isfinite(result.gap) for result in found.results)


@pytest.mark.parametrize("together", [True, False])
def test_a_path_chooses_its_own_end(together: bool) -> None:
    X, y = data("squared")
    # An observer has levels solved one by one.
    observers = [] if together else [lambda progress: None]
    whole = paths.path(X, y, n_alphas=15, fit_intercept=True)
    few = paths.path(
        X, y, n_alphas=15, fit_intercept=True, until=paths.NumberOfFeatures(10), observers=observers
    )
    last = int(np.flatnonzero(whole.n_selected >= 10)[0])
    assert few.alphas.tolist() == whole.alphas[: last + 1].tolist()
    end = paths.ExplainedDeviance(0.5) | paths.NumberOfFeatures(1000)
    half = paths.path(X, y, n_alphas=15, fit_intercept=True, until=end, observers=observers)
    fitted = [np.sum((y - X @ r.coef - r.intercept) ** 2) for r in whole.results]
    explained = 1.0 - np.array(fitted) / np.sum((y - y.mean()) ** 2)
    assert half.alphas.size == int(np.flatnonzero(explained >= 0.5)[0]) + 1
    others = paths.NoImprovement(*data("squared", seed=1), patience=2)
    assert (
        paths.path(
            X, y, n_alphas=15, until=others, observers=observers, fit_intercept=False
        ).alphas.size
        < 15
    )


def test_the_explained_deviance_is_beyond_that_of_unpenalized_columns() -> None:
    X, y = data("squared")
    given: dict[str, Any] = {"n_alphas": 15, "unpenalized": [3, 8], "l1_ratio": 0.8}
    whole = paths.path(X, y, **given)
    found = paths.path(X, y, until=paths.ExplainedDeviance(0.5), **given)
    fitted = [np.sum((y - X @ r.coef - r.intercept) ** 2) for r in whole.results]
    baseline = np.column_stack([np.ones(len(y)), X[:, [3, 8]]])
    null = np.sum((y - baseline @ np.linalg.lstsq(baseline, y)[0]) ** 2)
    last = int(np.flatnonzero(np.array(fitted) <= 0.5 * null)[0])
    assert 0 < last < 14
    assert found.alphas.size == last + 1


def test_an_interrupted_path_gives_what_it_has() -> None:
    X, y = data("squared")
    calls = 0

    class Interrupted(type(as_loss("squared"))):  # type: ignore[misc]
        def conjugate(self, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 60:
                raise KeyboardInterrupt
            return super().conjugate(*arguments)

    found = paths.path(X, y, loss=Interrupted(), n_alphas=40, fit_intercept=False)
    assert found.interrupted
    assert not found.converged
    assert 0 < found.alphas.size < 40
    assert all(result.converged for result in found.results[:-1])


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("norm", ["l1", norms.KSupport(k=5)])
def test_free_columns_share_them_too(loss: str, norm: Any) -> None:
    X, y = data("squared" if loss == "squared" else "logistic")
    y = np.maximum(y, 0.0) if loss == "poisson" else y
    shared = {
        "loss": loss,
        "norm": norm,
        "unpenalized": [7, 3000],
        "fit_intercept": True,
        "tol": GAP,
    }
    found = paths.path(X, y, n_alphas=8, alpha_ratio=0.1, **shared)
    assert found.converged
    assert found.passes <= 5
    for number in (3, 7):
        alone = solve(X, y, alpha=found.alphas[number], **shared)
        result = found.results[number]
        assert result.objective == pytest.approx(alone.objective, rel=3 * GAP)
        np.testing.assert_allclose(result.coef[[7, 3000]], alone.coef[[7, 3000]], atol=1e-4)
        assert result.intercept == pytest.approx(alone.intercept, abs=1e-3)


def test_side_by_side_is_the_same_as_one_after_the_other() -> None:
    X, y = data("squared", n=200)
    task = Problem.build(
        as_design(X), y, as_loss("squared"), Regularizer(norms.L1(), "penalized", 1.0)
    )
    levels = paths.alpha_grid(paths.largest_useful_alpha(task), 20, 0.05)[None, :]
    folds = list(KFold(4).split(X))
    found = []
    for threads in (1, 2):
        with ThreadpoolController().limit(limits=threads):
            found.append(
                paths.cross_validate(
                    [task], [norms.L1()], levels, folds, held_out_loss([task]),
                    Settings(GAP),
                )
            )  # fmt: skip
    one, two = found
    assert one.passes == two.passes
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-9)
