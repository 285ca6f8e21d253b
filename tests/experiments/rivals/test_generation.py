"""The rivals of [T]: SDCA, UFO-MKL, and MKL-FGM in the dual, against the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import norms
from atomlearn.masters import SemismoothNewton
from atomlearn.solvers import FeatureGeneration
from experiments.rivals import SDCA, UFOMKL, DualMKL
from experiments.rivals.linear_mkl import LinearMKL
from tests.oracles.sums import solve_sum


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 20))
    return X, np.where(X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        ("logistic", norms.L1()),
        ("squared_hinge", norms.Groups([[0, 1, 2, 3], [4, 5]])),
        ("squared", norms.L1()),
    ],
)
def test_sdca_reaches_the_optimum(loss: str, norm: norms.Norm) -> None:
    X, y = data()
    settings = {"loss": loss, "norm": norm, "level": 1.0, "tau": 2.0}
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    ours = solve_sum(X, y, solver=SDCA(), tol=1e-5, sample_weight=weight, **settings)
    best = solve_sum(X, y, tol=1e-10, sample_weight=weight, **settings)
    assert ours.converged
    assert_allclose(ours.objective, best.objective, rtol=2e-5)


def test_ufo_mkl_comes_near() -> None:
    X, y = data(2)
    settings = {"loss": "logistic", "norm": norms.Groups([[0, 1, 2, 3], [4, 5]]), "level": 1.0}
    ours = solve_sum(X, y, solver=UFOMKL(), tau=2.0, tol=1e-12, max_iter=20, **settings)
    best = solve_sum(X, y, tau=2.0, tol=1e-10, **settings)
    assert best.objective <= ours.objective <= 1.02 * best.objective
    assert ours.objective - best.objective <= ours.gap


def test_what_they_cannot_do_is_refused() -> None:
    X, y = data()
    for solver in (SDCA(), UFOMKL()):
        with pytest.raises(ValueError, match="tau > 0"):
            solve_sum(X, y, level=1.0, solver=solver)
    form = {"loss": "logistic", "norm": norms.KSupport(3), "form": "squared", "level": 1.0}
    with pytest.raises(TypeError, match="DualMKL"):
        solve_sum(X, y, solver=FeatureGeneration(master=DualMKL()), **form)


def test_mkl_in_the_dual_is_the_primal_subproblem() -> None:
    X, y = data(3)
    form = {"loss": "squared_hinge", "norm": norms.KSupport(4), "form": "squared", "level": 0.5}
    rounds = {"max_blocks": 3, "inner_tol": 1e-6}
    dual = solve_sum(X, y, solver=FeatureGeneration(master=DualMKL(2000), **rounds), **form)
    primal = solve_sum(X, y, solver=FeatureGeneration(master=SemismoothNewton(), **rounds), **form)
    assert_allclose(dual.state.restricted_objective, primal.state.restricted_objective, rtol=1e-5)
    assert_allclose(dual.coef, primal.coef, atol=1e-2)


def test_simple_mkl_by_liblinear_is_the_group_problem() -> None:
    X, y = data(4)
    form = {"loss": "squared_hinge", "norm": norms.Groups(np.arange(20) // 5), "form": "squared"}
    best = solve_sum(X, y, level=0.5, tol=1e-8, **form).objective
    blocks = np.stack([X[:, 5 * k : 5 * k + 5] for k in range(4)])
    found = LinearMKL(C=2.0, gap=1e-3).fit(blocks, y)
    assert_allclose(found.machine.value, 2.0 * best, rtol=3e-3)
