"""The linear systems inside the masters, each against its equation written out densely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn.core import TUNING, DenseBlock, SemismoothNewton
from atomlearn.core.masters import newton_system
from atomlearn.core.masters.newton import search
from atomlearn.core.masters.newton_system import NewtonSystem, resolvent
from atomlearn.core.masters.scaling_newton import _minimum, _model
from atomlearn.interfaces import ProxJacobian
from atomlearn.losses import as_loss
from atomlearn.norms import Groups
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.cases import each
from tests.oracles.covering import in_turn

Array = NDArray[np.float64]


def jacobian(rng: np.random.Generator, size: int, rank: int, signs: Array) -> ProxJacobian:
    """Return a diagonal with zeros in it, with and without a correction of low rank."""
    diagonal = rng.uniform(0.1, 0.9, size) * (rng.random(size) < 0.7)
    factors = rng.normal(size=(size, rank)) * (diagonal > 0)[:, None]
    factors = 0.3 * factors / np.maximum(np.linalg.norm(factors, axis=0), 1e-300)
    return ProxJacobian(diagonal, factors, signs[:rank] * rng.uniform(0.1, 0.3, rank))


@pytest.mark.parametrize(
    ("way", "rank", "intercept"),
    in_turn(["samples", "columns"], [0, 1, 3], [0.0, 0.7]),
)
def test_newton_direction_solves_the_whole_equation(way: str, rank: int, intercept: float) -> None:
    """(I + (sigma A J A' + sigma_q Q Q') D) dz = -r, the correction of low rank included."""
    n_samples, size = (12, 40) if way == "samples" else (40, 12)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = np.asfortranarray(rng.normal(size=(n_samples, size)))
        curvature = rng.uniform(0.5, 2.0, n_samples) * (rng.random(n_samples) < 0.9)
        J = jacobian(rng, size, rank, np.array([1.0, -1.0, 1.0]))
        residual, step = rng.normal(size=n_samples), 0.3
        free = np.column_stack([np.ones(n_samples), rng.normal(size=n_samples)])
        system = NewtonSystem(DenseBlock(A), curvature, J, step, free, intercept)
        dz = system.direction(residual)
        K = step * A @ J.dense() @ A.T + intercept * free @ free.T
        expected = np.linalg.solve(np.eye(n_samples) + K * curvature, -residual)
        assert_allclose(dz, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_systems_too_large_for_a_factor_are_left_to_gradient_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(newton_system, "TUNING", replace(TUNING, gram_entries=15))
    problem = group_problem("squared", True)
    refit = SemismoothNewton().solve(problem, np.zeros(12), 0.0, 1e-6)
    assert refit.gap <= 1e-6


@pytest.mark.parametrize("rank", [0, 2])
def test_resolvent_is_the_inverse(rank: int) -> None:
    rng = np.random.default_rng(1)
    J = jacobian(rng, 9, rank, np.array([1.0, -1.0]))
    damping = rng.uniform(1e-3, 0.1, 9)
    root = np.sqrt(1.0 + damping)
    K = J.dense() / root / root[:, None]
    inverse, gains = resolvent(J, damping)
    expected = np.linalg.inv(np.eye(9) - K)
    assert_allclose(inverse.dense(), expected, atol=1e-12)
    assert_allclose(gains.dense(), expected @ K, atol=1e-12)


def group_problem(loss: str, intercept: bool) -> Problem:
    rng = np.random.default_rng(4)
    X = np.asfortranarray(rng.normal(size=(30, 12)) + 0.5)
    y = X[:, :4].sum(axis=1) + rng.normal(size=30)
    y = y if loss == "squared" else np.sign(y)
    return Problem.build(
        DenseBlock(X),
        y,
        as_loss(loss),
        Regularizer(Groups(np.arange(12) // 3), "penalized", 2.0),
        fit_intercept=intercept,
        sample_weight=rng.uniform(0.5, 2.0, 30),
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_kernel_minimises_the_model_it_is_given(loss: str, intercept: bool) -> None:
    """At the minimum of a model, ||A_g'D(y - A u - b)|| = limit_g where u_g != 0, and <= else."""
    problem = group_problem(loss, intercept)
    rng = np.random.default_rng(5)
    z = np.zeros(30) if loss == "squared" else rng.normal(size=30)
    partition = problem.regularizer.norm.partition(12)
    model = _model(problem, problem.design, z)
    assert model is not None
    u, steps = _minimum(problem, model, np.arange(12), np.zeros(12), 1e-11)
    assert steps > 0
    A = np.asarray(problem.design)
    D = problem.loss.curvature(problem.y, z, problem.weight)
    v = D * z - problem.loss.gradient(problem.y, z, problem.weight) - D * (A @ u)
    if intercept:
        v -= D * (v.sum() / D.sum())
    lengths = partition.norms(A.T @ v)
    in_use = partition.norms(u) > 0
    assert in_use.any()
    assert_allclose(lengths[in_use], 2.0, rtol=1e-5)
    assert (lengths <= 2.0 * (1 + 1e-5)).all()
    # u_g is a multiple of A_g'v.
    assert_allclose(
        u * lengths[partition.labels], partition.norms(u)[partition.labels] * (A.T @ v), atol=1e-4
    )


@each("seed", range(3))
def test_newton_steps_are_no_shorter_where_one_count_is_a_million_times_the_others(seed) -> None:
    """Damped by the largest curvature throughout they were: 80 to 140 steps, now 30 to 50."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 10))
    y = rng.poisson(np.exp(0.5 * X[:, 0] + 1.0)).astype(np.float64)
    y[7] = 1e7
    halves = Regularizer(Groups([range(5), range(5, 10)]), "squared", 1.0)
    problem = Problem.build(DenseBlock(X), y, as_loss("poisson"), halves, fit_intercept=True)
    refit = SemismoothNewton().solve(problem, np.zeros(10), 0.0, 1e-3)
    assert refit.gap <= 1e-3
    assert refit.steps <= 70


def test_searches_begin_where_they_stand():
    """Where the slope at the start is not negative there is no way down, whatever comes after."""
    asked = []

    def slope(length):
        asked.append(length)
        return -1.0 + 2.0 * length, length

    assert search(slope) == pytest.approx(0.5, abs=0.2)
    assert asked[0] == 0.0
    assert search(lambda length: (1.0 - 2.0 * length, length)) is None
