"""Quadratics under the k-support and elastic net norms by the kernel, against Python and CVXPY."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomlearn import designs, norms, problem
from atomlearn._kernels import pattern_newton
from atomlearn.core import PatternNewton, as_loss, loss_at_zero
from atomlearn.core.masters.master import certified
from atomlearn.masters import SemismoothNewton
from atomlearn.paths import largest_useful_alpha
from atomlearn.testing.cases import each
from atomlearn.testing.tolerances import SAME_FLOAT64


def ksupport(rng, m):
    return norms.KSupport(int(rng.integers(1, m + 2)))


def elastic_net(rng, m):
    return norms.ElasticNetNorm(1.0 if rng.random() < 0.1 else float(rng.uniform(1, m + 2)))


def as_targets(y, loss):
    """Return numbers as targets of a loss."""
    if loss == "poisson":
        return np.floor(np.exp(np.clip(y / y.std(), -3.0, 3.0)))
    return y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)


def task(seed, norm=ksupport, loss="squared"):
    """Return a random small problem: tall and wide, both forms, weights, intercept, ridge."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 80)), int(rng.integers(1, 120))
    X = rng.normal(size=(n, m)) * rng.uniform(0.2, 3.0, m)
    y = X[:, :5] @ rng.normal(size=min(5, m)) + rng.normal(size=n)
    form = ["penalized", "squared"][rng.integers(2)]
    made = problem.Problem.build(
        designs.as_design(X).gather(np.arange(m)),
        as_targets(y, loss),
        as_loss(loss),
        problem.Regularizer(norm(rng, m), form, 1.0),
        tau=float(rng.choice([0.0, 1.0])),
        fit_intercept=bool(rng.integers(2)),
        sample_weight=rng.uniform(0.5, 2.0, n) if rng.random() < 0.5 else None,
    )
    amount = largest_useful_alpha(made) * 10 ** rng.uniform(-2, 0)
    return replace(made, regularizer=replace(made.regularizer, amount=amount))


@each("norm", [ksupport, elastic_net])
@each("seed", range(60))
def test_optima_are_those_of_the_master_in_python(seed, norm):
    made = task(seed, norm)
    zero = np.zeros(made.design.shape[1])
    slow = SemismoothNewton().solve(made, zero, 0.0, 1e-11 * loss_at_zero(made))
    found = PatternNewton().solve(made, zero, 0.0, 1e-10 * loss_at_zero(made))
    assert found.gap <= 1e-10 * loss_at_zero(made)
    assert abs(found.objective - slow.objective) <= 2e-10 * loss_at_zero(made)


@each("norm", [ksupport, elastic_net])
@each("loss", ["logistic", "squared_hinge", "poisson"])
@each("seed", range(15))
def test_models_lead_to_the_optima_of_other_losses(seed, loss, norm):
    made = task(seed, norm, loss)
    zero, scale = np.zeros(made.design.shape[1]), loss_at_zero(made)
    weights, intercept, _ = PatternNewton().guess(made, zero, 0.0)
    found = certified(made, weights, None, intercept).refit
    slow = SemismoothNewton().solve(made, zero, 0.0, 1e-8 * scale)
    assert found.gap <= 1e-6 * scale
    assert abs(found.objective - slow.objective) <= 1e-6 * scale


@each("seed", range(10))
def test_no_start_is_left_for_a_worse_point(seed):
    rng = np.random.default_rng(seed)
    A, k = rng.normal(size=(20, 30)), 4
    pull, start, norm = rng.normal(size=30) * 10, rng.normal(size=30), norms.KSupport(4)

    def value(w):
        return 0.5 * np.sum((A @ w) ** 2) - pull @ w + norm.value(w)

    values = [value(start)]
    for most in (1, 3, 10, 30, 100):
        w, _ = pattern_newton(A, pull, start, k=k, level=1.0, squared=False, gram=False, most=most)
        values.append(value(w))
    assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()


def test_a_level_beyond_the_polar_leaves_nothing():
    pull = np.array([3.0, 4.0, 1.0])
    w, _ = pattern_newton(np.eye(3), pull, np.zeros(3), k=2, level=5.001, squared=False, gram=True)
    assert not w.any()
    # At the polar itself nothing but rounding is left.
    w, _ = pattern_newton(np.eye(3), pull, np.zeros(3), k=2, level=5.0, squared=False, gram=True)
    assert np.abs(w).max() < SAME_FLOAT64


def test_refuses_what_does_not_fit():
    eye, ones = np.eye(3), np.ones(3)
    options = {"k": 1, "level": 1.0, "squared": True, "gram": True}
    with pytest.raises(ValueError, match="square"):
        pattern_newton(np.ones((2, 3)), ones, ones, **options)
    with pytest.raises(ValueError, match="pull"):
        pattern_newton(eye, np.ones(2), ones, **options)


@each("seed", range(8))
def test_elastic_net_optima_are_those_of_cvxpy(seed):
    cp = pytest.importorskip("cvxpy")
    made = task(seed, elastic_net)
    found = PatternNewton().solve(made, np.zeros(made.design.shape[1]), 0.0, 0.0)
    w, b = cp.Variable(made.design.shape[1]), cp.Variable() if made.fit_intercept else 0.0
    gauge = cp.maximum(cp.norm2(w), cp.norm1(w) / np.sqrt(made.regularizer.norm.k))
    if made.regularizer.form == "squared":
        gauge = 0.5 * cp.square(gauge)
    residual = cp.multiply(np.sqrt(made.weight), made.design.dense() @ w + b - made.y)
    smooth = 0.5 * cp.sum_squares(residual) + 0.5 * made.tau * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(smooth + made.regularizer.amount * gauge)).solve("CLARABEL")
    assert abs(found.objective - best) <= 1e-7 * loss_at_zero(made)
    assert found.gap <= 1e-10 * loss_at_zero(made)
