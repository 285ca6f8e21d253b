"""The races of whole paths: all solvers minimize the objective by which they are compared."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.glm_paths.benchmark import Run
from benchmarks.glm_paths.problems import GRADIENTS, SMOKE, VALUES, PathProblem
from benchmarks.glm_paths.solvers import SOLVERS, Atomlearn, Scikit

BY_NAME = pytest.mark.parametrize("problem", SMOKE, ids=lambda problem: problem.name)


@BY_NAME
def test_ours_solves_the_race(problem: PathProblem) -> None:
    data = problem.data()
    parts = [*(data.part(rows) for rows in data.folds), data]
    found = Atomlearn(problem).paths(data, 1e-4)
    exact = Atomlearn(problem).paths(data, 1e-9)
    assert len(found) == len(parts)
    for part, path, best in zip(parts, found, exact, strict=True):
        ours, least = problem.objectives(part, path), problem.objectives(part, best)
        assert np.all(ours <= least * (1 + 2e-4))
        assert np.all(least <= ours * (1 + 1e-8))


@BY_NAME
def test_the_alphas_begin_where_the_penalty_leaves_nothing(problem: PathProblem) -> None:
    data = problem.data()
    coefs = Atomlearn(problem).path(data, 1e-9)[1]
    penalized = np.flatnonzero(data.factors)
    assert np.abs(coefs[0, penalized]).max() < 0.02 * np.abs(coefs[-1, penalized]).max()
    assert np.count_nonzero(coefs[-1]) > np.count_nonzero(coefs[0])


@pytest.mark.parametrize("loss", sorted(VALUES))
def test_gradients_by_differences(loss: str) -> None:
    problem = next(p for p in SMOKE if p.loss == loss and p.strata == max(
        q.strata for q in SMOKE if q.loss == loss))  # fmt: skip
    data = problem.data()
    rng = np.random.default_rng(3)
    z, d = rng.standard_normal((2, len(data.y), max(problem.classes, 1)))
    ahead, behind = (VALUES[loss](data.y, z + h * d, data.weight) for h in (1e-6, -1e-6))
    slope = float((GRADIENTS[loss](data.y, z, data.weight) * d).sum())
    np.testing.assert_allclose((ahead - behind) / 2e-6, slope, rtol=1e-5)


def test_scikit_learn_reaches_the_same_objectives() -> None:
    squared = [p for p in SMOKE if Scikit.takes_part(p)]
    assert squared
    for problem in squared:
        data = problem.data()
        theirs = Scikit(problem).paths(data, 1e-10)[-1]
        ours = Atomlearn(problem).paths(data, 1e-10)[-1]
        np.testing.assert_allclose(
            problem.objectives(data, theirs), problem.objectives(data, ours), rtol=1e-8
        )


def test_the_distance_is_that_of_the_worst_alpha() -> None:
    best = np.array([[2.0, 4.0], [1.0, 1.0]])
    run = Run(1e-3, 1.0, 1.0, best + np.array([[0.0, 0.4], [0.01, 0.0]]))
    assert run.distance(best) == pytest.approx(0.1)


def test_solvers_say_what_they_can_do() -> None:
    strata = next(p for p in SMOKE if p.strata > 1)
    assert [solver.name for solver in SOLVERS if solver.can(strata) and "cox" in solver.losses] == [
        "atomlearn", "glmnet", "adelie",
    ]  # fmt: skip
