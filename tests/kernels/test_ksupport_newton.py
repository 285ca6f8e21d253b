"""Quadratics under the k-support norm by the kernel, against the master in Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomlearn import designs, losses, norms, problem
from atomlearn._kernels import ksupport_newton
from atomlearn.masters import KSupportNewton, SemismoothNewton
from atomlearn.paths import largest_useful_level
from atomlearn.testing.cases import each


def task(seed):
    """Return a random small problem: tall and wide, both forms, weights, intercept, ridge."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 80)), int(rng.integers(1, 120))
    X = rng.normal(size=(n, m)) * rng.uniform(0.2, 3.0, m)
    y = X[:, :5] @ rng.normal(size=min(5, m)) + rng.normal(size=n)
    form = ["penalized", "squared"][rng.integers(2)]
    made = problem.Problem.build(
        designs.as_design(X).gather(np.arange(m)),
        y,
        losses.Squared(),
        problem.Regularizer(norms.KSupport(int(rng.integers(1, m + 2))), form, 1.0),
        tau=float(rng.choice([0.0, 1.0])),
        fit_intercept=bool(rng.integers(2)),
        sample_weight=rng.uniform(0.5, 2.0, n) if rng.random() < 0.5 else None,
    )
    amount = largest_useful_level(made) * 10 ** rng.uniform(-2, 0)
    return replace(made, regularizer=replace(made.regularizer, amount=amount))


@each("seed", range(60))
def test_optima_are_those_of_the_master_in_python(seed):
    made = task(seed)
    zero = np.zeros(made.design.shape[1])
    slow = SemismoothNewton().solve(made, zero, 0.0, 1e-11 * made.loss_at_zero())
    found = KSupportNewton().solve(made, zero, 0.0, 1e-10 * made.loss_at_zero())
    assert found.gap <= 1e-10 * made.loss_at_zero()
    assert abs(found.objective - slow.objective) <= 2e-10 * made.loss_at_zero()


@each("seed", range(10))
def test_no_start_is_left_for_a_worse_point(seed):
    rng = np.random.default_rng(seed)
    A, k = rng.normal(size=(20, 30)), 4
    pull, start, norm = rng.normal(size=30) * 10, rng.normal(size=30), norms.KSupport(4)

    def value(w):
        return 0.5 * np.sum((A @ w) ** 2) - pull @ w + norm.value(w)

    values = [value(start)]
    for most in (1, 3, 10, 30, 100):
        w, _ = ksupport_newton(A, pull, start, k=k, level=1.0, squared=False, gram=False, most=most)
        values.append(value(w))
    assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()


def test_a_level_beyond_the_polar_leaves_nothing():
    pull = np.array([3.0, 4.0, 1.0])
    w, _ = ksupport_newton(np.eye(3), pull, np.zeros(3), k=2, level=5.001, squared=False, gram=True)
    assert not w.any()
    # At the polar itself the last bits decide.
    w, _ = ksupport_newton(np.eye(3), pull, np.zeros(3), k=2, level=5.0, squared=False, gram=True)
    assert np.abs(w).max() < 1e-15


def test_refuses_what_does_not_fit():
    eye, ones = np.eye(3), np.ones(3)
    options = {"k": 1, "level": 1.0, "squared": True, "gram": True}
    with pytest.raises(ValueError, match="square"):
        ksupport_newton(np.ones((2, 3)), ones, ones, **options)
    with pytest.raises(ValueError, match="pull"):
        ksupport_newton(eye, np.ones(2), ones, **options)
