"""The masters that [V] compares with: interior point (Clarabel), and LARS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.interfaces import Deadline
from atomlearn.norms import L1, L2, Groups, LatentGroups, Nonnegative, Scaled
from atomlearn.solvers import AtomGeneration
from atomlearn.testing.cases import each
from atomlearn.testing.masters import MasterChecks
from atomlearn.testing.problems import Case, as_block
from experiments.rivals import LARS, InteriorPoint
from tests.oracles.sums import solve_sum

RAYS = Nonnegative(L1())
GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]


# Interior point.


class TestInteriorPointOnGroups(MasterChecks):
    master = InteriorPoint()
    norm = Groups(GROUPS)
    norms = (
        L1(),
        L2(),
        RAYS,
        Scaled(Groups(GROUPS), 0.5),
        Nonnegative(Groups(GROUPS, [1.0, 2.0, 3.0, 0.5])),
    )
    correlated = Groups(GROUPS)
    awkward = L2()
    gap = 1e-6


class TestInteriorPointOnRays(MasterChecks):
    master = InteriorPoint()
    norm = RAYS
    norms = (Scaled(RAYS, 2.0), Nonnegative(Scaled(L1(), 0.3)))
    correlated = RAYS
    awkward = RAYS
    gap = 1e-6


def test_a_deadline_ends_it_with_a_certified_point() -> None:
    problem = Case("squared", "penalized", n_samples=200, n_features=300, seed=1).problem(RAYS)
    problem = replace(problem, design=as_block(problem))
    late = InteriorPoint().solve(
        replace(problem, deadline=Deadline.after(-1.0)), np.zeros(300), 0.0, 1e-12
    )
    assert late.steps == 0
    assert 0.0 <= late.gap < np.inf


# LARS.


def data(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) + 3.0
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n) + 50.0
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("intercept", [False, True])
@each("seed", range(3))
def test_lars_goes_the_whole_way_to_the_same_point(seed: int, intercept: bool) -> None:
    X, y, weight = data(seed, n=60)
    norm = LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6]])
    settings = {"norm": norm, "level": 20.0, "tol": 1e-8, "sample_weight": weight}
    settings["fit_intercept"] = intercept
    ours = solve_sum(X, y, solver=AtomGeneration(master=LARS()), **settings)
    plain = solve_sum(X, y, solver=AtomGeneration(), **settings)
    assert ours.converged
    assert_allclose(ours.objective, plain.objective, rtol=2e-8)
    # A step for each atom that enters on the way, at each level.
    assert ours.state.master_steps > 2 * ours.iterations


def test_lars_follows_a_level_and_nothing_else() -> None:
    X, y, _ = data(0, n=400)
    with pytest.raises(TypeError, match="LARS"):
        solve_sum(X, y, form="squared", level=1.0, solver=AtomGeneration(master=LARS()))
