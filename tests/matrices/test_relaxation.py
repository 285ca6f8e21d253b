"""The semidefinite relaxation of sparse atoms: against all supports, and against cone programs."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn._support import Deadline
from atomlearn.designs import Identity
from atomlearn.matrices.norms.relaxation import RankOneRelaxation
from atomlearn.matrices.norms.sparse_search import SparseSearch
from atomlearn.norms import SparsePSD, SparseRankOne
from atomlearn.testing.cases import each
from tests.oracles.sums import solve_sum

KINDS = pytest.mark.parametrize("symmetric", [False, True])


def drawn(seed: int, symmetric: bool, side: int = 7) -> tuple[np.ndarray, int, int]:
    """Return scores of any scale with a planted block, k and q."""
    rng = np.random.default_rng(seed)
    k, q = (int(size) for size in rng.integers(1, 4, size=2))
    Z = rng.standard_normal((side, side if symmetric else side - 1))
    Z[:k, :q] += 2.0
    Z *= 10.0 ** rng.integers(-6, 7)
    return (0.5 * (Z + Z.T), k, k) if symmetric else (Z, k, q)


def exact(Z: np.ndarray, k: int, q: int, symmetric: bool) -> float:
    """Return the polar by enumeration of all supports."""
    rows = [list(i) for i in itertools.combinations(range(Z.shape[0]), k)]
    if symmetric:
        return max(0.0, *(float(np.linalg.eigvalsh(Z[np.ix_(i, i)])[-1]) for i in rows))
    columns = [list(j) for j in itertools.combinations(range(Z.shape[1]), q)]
    return max(float(np.linalg.norm(Z[np.ix_(i, j)], 2)) for i in rows for j in columns)


@KINDS
@each("seed", range(5))
def test_every_split_bounds_the_polar_and_the_best_is_that_of_a_cone_program(
    seed: int, symmetric: bool
) -> None:
    Z, k, q = drawn(seed, symmetric)
    relaxation = RankOneRelaxation(symmetric, float(np.sqrt(k * q)))
    polar = exact(Z, k, q, symmetric)
    rng = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 1.0):
        U = scale * np.abs(Z).max() * rng.standard_normal(Z.shape)
        U = 0.5 * (U + U.T) if symmetric else U
        assert relaxation.bound(Z - U, U) >= polar
    bound, U = relaxation.lowest(Z, Deadline())
    assert bound >= polar
    assert_allclose(relaxation.bound(Z - U, U), bound)
    size = np.abs(Z).max()
    X = cp.Variable(Z.shape, PSD=symmetric)
    sums = [cp.sum(cp.abs(X)) <= relaxation.size]
    sums += [cp.trace(X) == 1] if symmetric else [cp.normNuc(X) <= 1]
    best = cp.Problem(cp.Maximize(cp.sum(cp.multiply(Z / size, X))), sums).solve(cp.CLARABEL)
    assert_allclose(bound / size, best, rtol=3e-3)


@KINDS
@each("seed", range(4))
def test_nearest_scores_have_the_polar_and_prove_the_relaxed_optimum(
    seed: int, symmetric: bool
) -> None:
    T, k, q = drawn(seed, symmetric)
    relaxation = RankOneRelaxation(symmetric, float(np.sqrt(k * q)))
    radius = 0.5 * exact(T, k, q, symmetric)
    V, bound = relaxation.nearest(T, radius, 1e-7, Deadline())
    assert exact(V, k, q, symmetric) <= bound
    assert_allclose(bound, radius)
    size = np.abs(T).max()
    W = cp.Variable(T.shape, PSD=symmetric)
    trace = cp.trace(W) if symmetric else cp.normNuc(W)
    norm = cp.maximum(trace, cp.sum(cp.abs(W)) / relaxation.size)
    objective = 0.5 * cp.sum_squares(T / size - W) + radius / size * norm
    best = cp.Problem(cp.Minimize(objective)).solve(cp.CLARABEL)
    reached = 0.5 * (np.sum(T * T) - np.sum((T - V) ** 2)) / size**2
    assert (1 - 1e-3) * best <= reached <= (1 + 1e-6) * best


@KINDS
@each("seed", range(4))
def test_branch_and_bound_from_the_relaxation_is_exact(seed: int, symmetric: bool) -> None:
    Z, k, q = drawn(seed + 20, symmetric)
    if symmetric:
        search = SparseSearch.of_vectors(Z, k, Deadline())
    else:
        search = SparseSearch.of_pairs(Z, k, q, Deadline())
    _, values, upper = search.best(np.zeros((sum(Z.shape), 0))[: search.labels.size], np.inf, True)
    assert_allclose([values[0], upper], exact(Z, k, q, symmetric))


@KINDS
@pytest.mark.parametrize("side", [60, 150])
def test_large_fits_are_proved(side: int, symmetric: bool) -> None:
    """Blocks under noise: without the relaxation the gaps are above a tenth."""
    rng = np.random.default_rng(0)
    k, C = 5, 0.3 * rng.standard_normal((side, side))
    C = 0.5 * (C + C.T) if symmetric else C
    for first in (0, k - 2, 3 * k):
        C[first : first + k, first : first + k] += 1.0
    shape = (side, side)
    norm = SparsePSD(k, shape) if symmetric else SparseRankOne(k, k, shape)
    fit = solve_sum(Identity(shape), C.ravel(), norm=norm, level=4.0, tol=5e-3, time_limit=60)
    assert fit.status.is_converged
    assert fit.gap <= 5e-3 * fit.objective
