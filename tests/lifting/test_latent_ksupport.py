"""Generation over groups that overlap and over trees: enumeration, CVXPY, the paper's steps."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn.core import ArrayScores
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import Chains, KSupport, LatentGroups, LatentKSupport, Trees
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result, Status
from atomlearn.solvers import FeatureGeneration, run, stopping
from atomlearn.testing.cases import each
from atomlearn.testing.norms import NormChecks
from atomlearn.testing.problems import cvxpy_optimum
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


def sets_of(seed: int, tree: bool) -> tuple[LatentKSupport, list[list[int]], int]:
    """Return a norm of random sets over 8 features, the sets, lone ones too, and k."""
    rng = np.random.default_rng(seed)
    p, k = 8, int(rng.integers(1, 4))
    if tree:
        cuts = np.sort(rng.choice(np.arange(1, p), 3, replace=False)).tolist()
        leaves = [list(range(a, b)) for a, b in zip([0, *cuts], [*cuts, p], strict=True)]
        sets = [leaves[0] + leaves[1], *leaves[:3]]
        sets += [leaves[2][:1]] if len(leaves[2]) > 1 else []
        norm = LatentKSupport(k, Trees(sets))
    else:
        sets = [rng.choice(p, int(rng.integers(1, 5)), replace=False).tolist() for _ in range(4)]
        norm = LatentKSupport(k, sets)
    lone = [[j] for j in range(p) if not any(j in one for one in sets)]
    return norm, [sorted(one) for one in sets] + lone, k


@pytest.mark.parametrize("tree", [False, True])
@each("seed", range(8))
def test_polar_by_enumeration(seed: int, tree: bool) -> None:
    norm, sets, k = sets_of(seed, tree)
    z = np.random.default_rng(1000 + seed).standard_normal(8)
    squares = [float((z[one] ** 2).sum()) for one in sets]
    best = max(sum(chosen) for chosen in combinations(squares, min(k, len(sets))))
    assert_allclose(norm.polar(z), np.sqrt(best), rtol=1e-12)
    atom = norm.best_atom(ArrayScores(z))
    assert_allclose(atom.values @ z[atom.columns], np.sqrt(best), rtol=1e-9)


def problem_of(
    norm: LatentKSupport, seed: int, loss: str = "squared_hinge"
) -> tuple[Problem, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 8)) + 0.7 * rng.standard_normal((40, 1))
    y = X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(40)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    regularizer = Regularizer(norm, "squared", 1.0)
    return Problem.build(as_design(X), y, as_loss(loss), regularizer, sample_weight=0.5), X


def generate(problem: Problem, gap: float = 1e-7, **settings: object) -> Result:
    solver = FeatureGeneration(**settings)  # type: ignore[arg-type]
    return run(problem, solver, stopping.RelativeGap(gap) | stopping.Iterations(400))


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
@each("seed", range(2))
def test_generation_reaches_the_optimum(seed: int, loss: str, tree: bool) -> None:
    problem, X = problem_of(sets_of(seed, tree)[0], seed, loss)
    result = generate(problem)
    assert result.status is Status.CONVERGED
    best = cvxpy_optimum(problem, X)
    assert_allclose(result.objective, best, rtol=2e-6)
    assert result.gap >= result.objective - best - 2e-6 * best


@pytest.mark.parametrize("tree", [False, True])
def test_the_first_block_is_the_k_best_sets(tree: bool) -> None:
    norm, sets, k = sets_of(3, tree)
    problem, X = problem_of(norm, 3)
    c = X.T @ (0.5 * problem.y)
    state = generate(problem, max_blocks=1).state
    ratings = sorted((-float((c[one] ** 2).sum()), sorted(one)) for one in sets)
    expected = sorted(feature for _, one in ratings[:k] for feature in one)
    members = norm.lift(8).expansion.matrix.indices
    assert sorted(members[state.blocks[0]].tolist()) == expected


def test_disjoint_sets_and_one_set_are_the_norms_that_are_known() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        w = rng.standard_normal(6)
        disjoint = [[0, 1], [2, 3, 4]]
        known = KSupport(2, groups=disjoint)
        assert_allclose(LatentKSupport(2, disjoint).value(w), known.value(w), rtol=1e-6)
        assert LatentKSupport(2, disjoint).polar(w) == pytest.approx(known.polar(w))
        overlapping = [[0, 1, 2], [2, 3], [4, 5]]
        latent = LatentGroups(overlapping).value(w)
        assert_allclose(LatentKSupport(1, overlapping).value(w), latent, rtol=1e-6)


def test_counts_of_sets_and_solve() -> None:
    problem, X = problem_of(LatentKSupport(2, Chains(3)), 7)
    limited = generate(problem, gap=1e-12, n_features=3)
    assert limited.status is Status.COLUMN_LIMIT
    assert limited.state.units == 3
    norm = problem.regularizer.norm
    ours = solve_sum(
        X, problem.y, loss="squared_hinge", norm=norm, form="squared", level=2.0, tol=1e-8
    )
    assert_allclose(0.5 * ours.objective, cvxpy_optimum(problem, X), rtol=1e-5)


class TestLists(NormChecks):
    norm = LatentKSupport(2, [[0, 1, 2], [2, 3], [4, 5]])
    n_features = 7
    accuracy = 1e-7  # values are an upper bound, by alternating directions
    changes = {"k": 1}


def test_bad_groups_are_refused() -> None:
    with pytest.raises(TypeError, match="LatentKSupport: k"):
        LatentKSupport(1.5, [[0, 1]]).on(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="group 0 names feature 9"):
        LatentKSupport(1, [[0, 9]]).on(3)
