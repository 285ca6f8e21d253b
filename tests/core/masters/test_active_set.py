"""[V] Algorithm 2 as a master: the suites, every support enumerated, kept factors, pivots."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import nnls

from atomlearn.core import CachedBlock
from atomlearn.interfaces import DenseBlock, Norm
from atomlearn.masters import ActiveSetQP, SequentialQP
from atomlearn.norms import L1, KSupport, Nonnegative
from atomlearn.problem import Problem
from atomlearn.solvers import AtomGeneration, run, stopping
from atomlearn.testing.masters import MasterChecks
from atomlearn.testing.problems import Case, problem_on
from tests.core.masters.test_rays import RaysChecks

Array = NDArray[np.float64]


class TestActiveSetOnRays(RaysChecks):
    master = ActiveSetQP()
    losses = ("squared",)


class TestActiveSetOnSigns(MasterChecks):
    """Under l1 a column is two atoms, itself and its negative."""

    master = ActiveSetQP()
    losses = ("squared",)
    norm: Norm = L1()
    norms: ClassVar[tuple[Norm, ...]] = ()
    correlated: Norm = L1()
    awkward: Norm = L1()


def quadratic(seed: int, m: int, rank: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, m))
    return A.T @ A, A.T @ rng.standard_normal(rank) + rng.uniform(0.0, 0.5, m)


def enumerated(H: Array, b: Array) -> float:
    """Return the least 1/2 c'Hc + b'c over c >= 0 by trying every support."""
    best = 0.0
    for size in range(1, b.size + 1):
        for support in combinations(range(b.size), size):
            J = list(support)
            c = np.linalg.lstsq(H[np.ix_(J, J)], -b[J], rcond=None)[0]
            if (c >= 0).all():
                best = min(best, 0.5 * c @ H[np.ix_(J, J)] @ c + b[J] @ c)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_box_of_the_paper_against_every_support(seed: int) -> None:
    H, b = quadratic(seed, 7, 7)
    c, J, pivots = ActiveSetQP().minimize(H, b)
    assert (c >= 0).all()
    assert_allclose(0.5 * c @ H @ c + b @ c, enumerated(H, b), atol=1e-11)
    g = H @ c + b
    assert sorted(J.tolist()) == np.flatnonzero(c).tolist()
    assert_allclose(g[J], 0.0, atol=1e-10)
    assert (g >= -1e-10).all()
    assert pivots >= J.size
    # From its solution nothing is left to do.
    again = ActiveSetQP().minimize(H, b, c)
    assert_allclose(again.c, c, atol=1e-12)
    assert again.pivots <= 1


def test_the_box_is_nonnegative_least_squares() -> None:
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    found = ActiveSetQP().minimize(A.T @ A, -A.T @ y)
    assert_allclose(found.c, nnls(A, y)[0], atol=1e-10)


def test_a_limit_of_pivots_leaves_a_feasible_point() -> None:
    H, b = quadratic(1, 30, 30)
    whole = ActiveSetQP().minimize(H, b)
    values = []
    for most in range(whole.pivots + 1):
        found = ActiveSetQP(max_pivots=most).minimize(H, b)
        assert (found.c >= 0).all()
        values.append(0.5 * found.c @ H @ found.c + b @ found.c)
    assert (np.diff(values) <= 1e-12).all()
    assert_allclose(values[-1], 0.5 * whole.c @ H @ whole.c + b @ whole.c)


def test_the_factor_stays_while_atoms_come_and_go() -> None:
    """[V] 3.3: one atom in or out is an update; from zero every active atom takes a pivot."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)
    case = Case("squared", "penalized", strength=0.05)
    whole = problem_on(X, y, Nonnegative(L1()), case)
    master = ActiveSetQP()
    columns, weights = np.arange(25), np.zeros(25)
    block = CachedBlock(DenseBlock(X[:, :25]))
    begun = []
    for new in range(25, 40):
        problem: Problem = replace(whole, design=block)
        refit = master.solve(problem, weights, 0.0, 0.0)
        fresh = replace(whole, design=DenseBlock(X[:, columns]))
        expected = SequentialQP().solve(fresh, np.zeros(columns.size), 0.0, 1e-12)
        assert_allclose(refit.weights, expected.weights, atol=1e-8)
        begun.append(refit.steps)
        kept = np.flatnonzero(refit.weights)
        block, columns, weights = block.gather(kept), columns[kept], refit.weights[kept]
        held = block.growing_gram(problem.weight, False)
        factor = held.factor(0.0, 0.0, np.ones(kept.size))
        assert sorted(factor.active.tolist()) == list(range(kept.size))
        R = np.triu(factor.factor[: kept.size, : kept.size])
        H = held.matrix[np.ix_(factor.active, factor.active)]
        assert_allclose(R.T @ R, H, atol=1e-9)
        block = block.append(DenseBlock(X[:, [new]]))
        columns, weights = np.append(columns, new), np.append(weights, 0.0)
    assert np.mean(begun[1:]) < 0.25 * begun[0]


def test_generation_by_both_algorithms_of_the_paper() -> None:
    """Algorithms 1 and 2 prove the optimum of the default master, in all forms and with a ridge."""
    for form in ("penalized", "squared", "constrained"):
        for tau in (0.0, 0.3):
            case = Case("squared", form, True, tau=tau, seed=9)  # type: ignore[arg-type]
            problem = case.problem(KSupport(3))
            rule = stopping.RelativeGap(1e-9) | stopping.Iterations(3000)
            first = run(problem, AtomGeneration(tol=1e-9), rule)
            second = run(problem, AtomGeneration(master=ActiveSetQP(), tol=1e-9), rule)
            assert first.converged
            assert second.converged
            assert second.state.master_steps > 0
            assert_allclose(second.objective, first.objective, rtol=4e-9)


def test_other_losses_are_refused() -> None:
    problem = Case("logistic", "penalized").problem(L1())
    design = DenseBlock(Case("logistic").data()[0])
    with pytest.raises(TypeError, match="SequentialQP"):
        ActiveSetQP().solve(replace(problem, design=design), np.zeros(16), 0.0, 1e-6)
