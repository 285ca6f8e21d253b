"""k-FCFW that lets atoms go, and ADMM on matrix pursuit within memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import norms, solve
from atomlearn.designs import Tasks
from atomlearn.solvers import ADMM, KFCFW


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
@pytest.mark.parametrize("weight", [None, 2.5])
def test_admm_on_tasks_reaches_the_optimum(shape: tuple[int, int], weight: float | None) -> None:
    """One small system for all tasks gives the optimum of the plain way."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 4))
    settings = {"norm": norms.KSupport(5), "form": "squared", "level": 1.5, "tau": 0.3}
    if weight is not None:
        settings["sample_weight"] = np.full(Y.size, weight)
    ours = solve(Tasks(X, 4), Y.ravel(), solver=ADMM(), gap=1e-9, **settings)
    plain = solve(np.kron(X, np.eye(4)), Y.ravel(), gap=1e-10, **settings)
    assert ours.converged
    assert_allclose(ours.coef.ravel(), plain.coef, atol=1e-4)


def test_admm_on_matrix_pursuit_needs_no_gram_of_all_samples() -> None:
    """196 x 500 images: 98,000 samples by 250,000 columns, whose Gram would be 72 GiB."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((196, 500)) + rng.standard_normal((196, 1))
    X /= np.linalg.norm(X, axis=0)
    settings = {"norm": norms.KSupport(1000), "form": "squared", "level": 40.0, "max_iter": 2}
    result = solve(Tasks(X, 500), X.reshape(-1), solver=ADMM("two_step"), **settings)
    assert np.isfinite(result.objective)
    with pytest.raises(ValueError, match="GiB"):
        solve(Tasks(X, 500), np.sign(X.reshape(-1)), loss="logistic", solver=ADMM(), **settings)


def test_atoms_without_weight_leave() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 60))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(40)
    settings = {"norm": norms.KSupport(10), "form": "squared", "level": 2.0, "gap": 1e-5}
    pruned = solve(X, y, solver=KFCFW(), **settings)
    plain = solve(X, y, solver=KFCFW(prune=False), **settings)
    assert pruned.converged
    assert plain.converged
    assert plain.state.atoms.size == plain.iterations
    assert pruned.state.atoms.size < plain.state.atoms.size
    assert (pruned.state.alpha[1:] > 0).all()
    assert_allclose(pruned.objective, plain.objective, rtol=2e-5)
