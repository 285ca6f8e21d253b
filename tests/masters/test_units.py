"""Columns whose units differ by six orders of magnitude: Newton's steps move all of them."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import norms
from atomlearn.core.data.dense import DenseBlock
from atomlearn.core.losses.squared import Squared
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer

NORMS = {
    "l2": norms.L2(),
    "groups": norms.Groups([list(range(i, i + 4)) for i in range(0, 24, 4)]),
}


@pytest.mark.parametrize("name", NORMS)
def test_few_steps_whatever_the_units(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 24)) * 10.0 ** rng.uniform(-3, 3, 24)
    w = rng.normal(size=24) / np.abs(X).mean(axis=0)
    y = X @ w + rng.normal(size=200)
    regularizer = Regularizer(NORMS[name], "squared", 0.05)
    problem = Problem.build(DenseBlock(np.asfortranarray(X)), y, Squared(), regularizer)
    refit = SemismoothNewton().solve(problem, np.zeros(24), 0.0, 1e-4)
    assert refit.gap <= 1e-4 < 1e-6 * refit.objective
    # With all columns damped alike it takes thousands, as the small ones hardly move.
    assert refit.steps <= 100
