"""Slopes near the largest float are a point without proof, and no error."""

import numpy as np

from atomlearn.result import Status
from tests.oracles.sums import solve_sum


def test_a_ball_far_too_large_is_left_for_the_optimum() -> None:
    # Newton's first steps reach means of exp(700), and sums of them are no floats.
    x = np.array([0.05593469, 1.57313889, -1.3738703, -0.61708419, 0.03796641, -0.25143927,
                  -2.21510951, 0.64443951])  # fmt: skip
    y = np.array([728.0, 2587.0, 264.0, 203.0, 1515.0, 368.0, 132.0, 3404.0])
    result = solve_sum(x[:, None], y, loss="poisson", form="constrained", radius=198.9771345696283,
                   fit_intercept=True, tol=1e-10)  # fmt: skip
    assert result.status is Status.CONVERGED
    assert 0.0 < result.coef[0] < 2.0
