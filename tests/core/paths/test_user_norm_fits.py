"""A norm that is one function gets solve, paths, estimators and cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import solve
from atomlearn.core import default_solver
from atomlearn.norms import L1, ElasticNetNorm, Groups, KSupport, UserNorm
from atomlearn.paths import path
from atomlearn.solvers import AtomGeneration, ColumnGeneration
from tests.core.norms.test_user_norm import largest, signs
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


def drawn() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    return X, X @ np.where(np.arange(12) < 6, 0.5, -0.5) + 0.3 * rng.standard_normal(50) + 1.0


@pytest.fixture
def data() -> tuple[Array, Array]:
    return drawn()


def test_the_default_solver_depends_on_what_the_norm_can_do() -> None:
    assert isinstance(default_solver(UserNorm(signs), 12, 1e-6), AtomGeneration)
    for norm in (L1(), KSupport(2), Groups([[0, 1]]), ElasticNetNorm(2)):
        assert isinstance(default_solver(norm.on(12), 12, 1e-6), ColumnGeneration)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_solve(data: tuple[Array, Array], form: str, tau: float) -> None:
    """Without its value, proved to 1e-6, and equal to the built-in norm."""
    X, y = data
    amount = {"radius": 2.0} if form == "constrained" else {"level": 3.0}
    mine = solve_sum(X, y, norm=UserNorm(largest), form=form, tau=tau, fit_intercept=True, **amount)  # type: ignore[arg-type]
    known = solve_sum(X, y, norm="l1", form=form, tau=tau, fit_intercept=True, **amount)  # type: ignore[arg-type]
    assert mine.converged
    assert mine.relative_gap <= 1e-6
    assert_allclose(mine.objective, known.objective, rtol=2e-6)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_path(data: tuple[Array, Array], form: str) -> None:
    """Warm starts of a norm without a value; in the constrained form from ball to ball."""
    X, y = data
    found = path(X, y, norm=UserNorm(signs), form=form, n_alphas=8, fit_intercept=True)  # type: ignore[arg-type]
    assert found.converged
    for alpha, result in zip(found.alphas, found.results, strict=True):
        amount = {"radius" if form == "constrained" else "alpha": alpha}
        alone = solve(X, y, norm=UserNorm(signs), form=form, **amount)  # type: ignore[arg-type]
        assert_allclose(result.objective, alone.objective, rtol=2e-6)
    backwards = path(
        X,
        y,
        norm=UserNorm(signs),
        form=form,
        alphas=found.alphas[::-1],
        fit_intercept=True,  # type: ignore[arg-type]
    )
    assert backwards.converged


def test_column_generation_says_what_to_use(data: tuple[Array, Array]) -> None:
    X, y = data
    norm = UserNorm(signs, value=lambda w: np.abs(w).max())
    with pytest.raises(TypeError, match="solver over its atoms"):
        solve_sum(X, y, norm=norm, level=1.0, solver=ColumnGeneration())
