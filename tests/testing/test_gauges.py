"""The models of norms that independent optima are computed with."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.interfaces import Norm
from atomlearn.norms import L1, L2, Chains, Groups, KSupport, LatentGroups, LInf
from atomlearn.testing.gauges import gauge_model

P = 8


@pytest.mark.parametrize(
    "norm",
    [
        L1(),
        L2(),
        Groups(np.arange(P) // 2, weights=[1.0, 2.0, 0.5, 1.5]),
        KSupport(3),
        KSupport(2, np.arange(P) // 2),
        LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6], [7]], "sqrt_size"),
        Chains(3),
        LInf(),
    ],
)
def test_models_and_norms_agree_on_the_gauge(norm: Norm) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        w = np.where(rng.random(P) < 0.5, rng.normal(size=P), 0.0)
        variable = cp.Variable(P)
        gauge, constraints = gauge_model(cp, norm, variable)
        problem = cp.Problem(cp.Minimize(gauge), [*constraints, variable == w])
        problem.solve(solver="CLARABEL")
        assert_allclose(norm.value(w), problem.value, rtol=1e-6, atol=1e-7)


def test_norms_without_a_model_are_refused() -> None:
    """They were once taken for others, and compared with the wrong optimum."""

    class Unknown(L1):
        pass

    with pytest.raises(TypeError, match=r"no CVXPY model of .*add one for Unknown"):
        gauge_model(cp, Unknown(), cp.Variable(P))
