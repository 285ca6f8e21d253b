"""ADMM: the suite, named proxes, matrix pursuit within memory, and its ridge problem."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import norms
from atomlearn.designs import Tasks
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, L2, Groups, KSupport
from atomlearn.result import Status
from atomlearn.solvers import run, stopping
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.problems import FORMS, LOSSES, Case, optimum
from atomlearn.testing.solvers import SolverChecks
from experiments.rivals import ADMM
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
NORMS = (L1(), L2(), KSupport(2, groups=GROUPS), Groups(GROUPS))
STOP = stopping.RelativeGap(1e-7) | stopping.Iterations(1000)


class TestADMM(SolverChecks):
    solver = ADMM()


@each("seed", range(12))
def test_no_gap_is_refuted_far_from_zero(seed: int) -> None:
    pytest.importorskip("mpmath")
    from tests.certificates.test_other_solvers import assert_gap_holds_far_from_zero

    assert_gap_holds_far_from_zero(ADMM(), seed)


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_every_norm_with_a_prox(norm: Norm) -> None:
    for number, form in enumerate(FORMS):
        case = Case(LOSSES[number], form, intercept=True, seed=200 + number)
        result = run(case.problem(norm), ADMM(), STOP)
        assert result.status is Status.CONVERGED
        best = optimum(case, norm)
        assert abs(result.objective - best) <= tolerances.ORACLE * best + result.gap


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
@pytest.mark.parametrize("weight", [None, 2.5])
def test_admm_on_tasks_reaches_the_optimum(shape: tuple[int, int], weight: float | None) -> None:
    """One small system for all tasks gives the optimum of the plain way."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 4))
    settings = {"norm": norms.KSupport(5), "form": "squared", "level": 1.5, "tau": 0.3}
    if weight is not None:
        settings["sample_weight"] = np.full(Y.size, weight)
    ours = solve_sum(Tasks(X, 4), Y.ravel(), solver=ADMM(), tol=1e-9, **settings)
    plain = solve_sum(np.kron(X, np.eye(4)), Y.ravel(), tol=1e-10, **settings)
    assert ours.converged
    assert_allclose(ours.coef.ravel(), plain.coef, atol=1e-4)


def test_admm_on_matrix_pursuit_needs_no_gram_of_all_samples() -> None:
    """196 x 500 images: 98,000 samples by 250,000 columns, whose Gram would be 72 GiB."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((196, 500)) + rng.standard_normal((196, 1))
    X /= np.linalg.norm(X, axis=0)
    settings = {"norm": norms.KSupport(1000), "form": "squared", "level": 40.0, "max_iter": 2}
    result = solve_sum(Tasks(X, 500), X.reshape(-1), solver=ADMM("two_step"), **settings)
    assert np.isfinite(result.objective)
    with pytest.raises(ValueError, match="GiB"):
        solve_sum(Tasks(X, 500), np.sign(X.reshape(-1)), loss="logistic", solver=ADMM(), **settings)


# ADMM's ridge problem.
