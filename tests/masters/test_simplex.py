"""Projected quasi-Newton on the simplex against CVXPY, and the projection against brute force."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn.papers.simplex import (
    SimplexQuasiNewton,
    model_minimum,
    project_simplex,
    simplex_gap,
)

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@given(v=arrays(np.float64, st.integers(1, 30), elements=numbers))
def test_projection_satisfies_its_optimality_conditions(v: Array) -> None:
    """x >= 0, sum x = 1, and v - x is the same number where x > 0 and no larger elsewhere."""
    x = project_simplex(v)
    assert (x >= 0).all()
    assert_allclose(x.sum(), 1.0, rtol=1e-12)
    rest, scale = v - x, 1.0 + np.abs(v).max()
    assert_allclose(rest[x > 0], rest[x > 0].max(), rtol=0, atol=1e-12 * scale)
    assert (rest <= rest[x > 0].max() + 1e-12 * scale).all()


def test_projection_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        project_simplex(np.zeros(0))


def quadratic(seed: int, n_atoms: int, rank: int) -> tuple[Function, Array, Array, Array]:
    """Return phi = 1/2 ||M a - y||^2 + cost'a with its parts; rank below n_atoms is singular."""
    rng = np.random.default_rng(seed)
    images, y = rng.standard_normal((rank, n_atoms)), 2.0 * rng.standard_normal(rank)
    cost = rng.uniform(0, 3, n_atoms)

    def function(alpha: Array) -> tuple[float, Array]:
        residual = images @ alpha - y
        return 0.5 * float(residual @ residual) + float(cost @ alpha), images.T @ residual + cost

    return function, images, y, cost


def optimum(images: Array, y: Array, cost: Array, logistic: bool) -> float:
    alpha = cp.Variable(cost.size, nonneg=True)
    loss = cp.sum(cp.logistic(-cp.multiply(y, images @ alpha)))
    if not logistic:
        loss = 0.5 * cp.sum_squares(images @ alpha - y)
    problem = cp.Problem(cp.Minimize(loss + cost @ alpha), [cp.sum(alpha) == 1])
    return float(problem.solve(solver="CLARABEL"))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_quadratics(seed: int, known: bool) -> None:
    """With BFGS and with the known Hessian, also where atoms are linearly dependent."""
    n_atoms, rank = (12, 20) if seed % 2 else (20, 7)
    function, images, y, cost = quadratic(seed, n_atoms, rank)
    start = np.full(n_atoms, 1.0 / n_atoms)
    curvature = (lambda alpha: images.T @ images) if known else None
    point = SimplexQuasiNewton().solve(function, start, 1e-9, curvature)
    best = optimum(images, y, cost, logistic=False)
    assert_allclose(point.value, best, rtol=1e-6)
    assert point.gap <= 1e-9
    assert_allclose(point.value, function(point.alpha)[0], rtol=1e-12)
    if known:
        assert point.steps <= 3


@pytest.mark.parametrize("seed", range(3))
def test_logistic_with_bfgs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, cost = 3.0 * rng.standard_normal((25, 9)), rng.uniform(0, 1, 9)
    y = np.where(rng.random(25) < 0.5, -1.0, 1.0)

    def function(alpha: Array) -> tuple[float, Array]:
        margin = y * (images @ alpha)
        slope = -y / (1 + np.exp(margin))
        return float(np.logaddexp(0, -margin).sum() + cost @ alpha), images.T @ slope + cost

    values = []

    def watched(alpha: Array) -> tuple[float, Array]:
        value, gradient = function(alpha)
        values.append(value)
        return value, gradient

    start = project_simplex(rng.standard_normal(9))
    point = SimplexQuasiNewton().solve(watched, start, 1e-8)
    assert point.gap <= 1e-8
    assert point.value <= values[0]
    assert_allclose(point.value, optimum(images, y, cost, logistic=True), rtol=1e-6)


def test_one_atom_and_solved_problems() -> None:
    """One atom has weight one; a solved problem comes back as it is."""
    function, _, _, _ = quadratic(0, 6, 9)
    single = SimplexQuasiNewton().solve(lambda a: (float(a[0]), np.ones(1)), np.ones(1), 0.0)
    assert single.alpha.tolist() == [1.0]
    point = SimplexQuasiNewton().solve(function, np.full(6, 1 / 6), 1e-10)
    again = SimplexQuasiNewton().solve(function, point.alpha, 1e-9)
    assert again.steps == 0
    assert_allclose(again.alpha, point.alpha, atol=1e-15)


def test_an_impossible_target_ends_and_never_rises() -> None:
    function, _, _, _ = quadratic(3, 15, 40)
    start = project_simplex(np.arange(15.0))
    point = SimplexQuasiNewton().solve(function, start, 0.0)
    assert point.value <= function(start)[0]
    assert point.gap <= 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_model_minimum_is_the_minimum(seed: int) -> None:
    """The active set ends where no vertex is lower along the gradient."""
    rng = np.random.default_rng(seed)
    size = 18
    factor = rng.standard_normal((size if seed % 2 else 5, size))
    model, gradient = factor.T @ factor, 3.0 * rng.standard_normal(size)
    alpha = project_simplex(rng.standard_normal(size))
    x = model_minimum(alpha, gradient, model, 1000)
    before = simplex_gap(alpha, gradient)
    assert simplex_gap(x, gradient + model @ (x - alpha)) <= 1e-5 * before
