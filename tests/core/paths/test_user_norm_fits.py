"""A norm that is one function gets solve, paths, estimators and cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, solve
from atomlearn.norms import L1, ElasticNetNorm, Groups, KSupport, UserNorm
from atomlearn.paths import path
from atomlearn.solvers import AtomGeneration, ColumnGeneration, default_solver

Array = NDArray[np.float64]


def signs(z: Array) -> Array:
    return np.where(z >= 0, 1.0, -1.0)


def largest(z: Array) -> tuple[Array, Array]:
    j = int(np.abs(z).argmax())
    return np.array([j]), np.array([np.sign(z[j])])


@pytest.fixture
def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    return X, X @ np.where(np.arange(12) < 6, 0.5, -0.5) + 0.3 * rng.standard_normal(50) + 1.0


def test_the_default_solver_depends_on_what_the_norm_can_do() -> None:
    assert isinstance(default_solver(UserNorm(signs), 1e-6), AtomGeneration)
    for norm in (L1(), KSupport(2), Groups([[0, 1]]), ElasticNetNorm(2)):
        assert isinstance(default_solver(norm, 1e-6), ColumnGeneration)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_solve(data: tuple[Array, Array], form: str, tau: float) -> None:
    """Without its value, proved to 1e-6, and equal to the built-in norm."""
    X, y = data
    amount = {"radius": 2.0} if form == "constrained" else {"level": 3.0}
    mine = solve(X, y, norm=UserNorm(largest), form=form, tau=tau, intercept=True, **amount)  # type: ignore[arg-type]
    known = solve(X, y, norm="l1", form=form, tau=tau, intercept=True, **amount)  # type: ignore[arg-type]
    assert mine.converged
    assert mine.relative_gap <= 1e-6
    assert_allclose(mine.objective, known.objective, rtol=2e-6)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_path(data: tuple[Array, Array], form: str) -> None:
    """Warm starts of a norm without a value; in the constrained form from ball to ball."""
    X, y = data
    found = path(X, y, norm=UserNorm(signs), form=form, n_levels=8, intercept=True)  # type: ignore[arg-type]
    assert found.converged
    for level, result in zip(found.levels, found.results, strict=True):
        amount = {"radius": level} if form == "constrained" else {"level": level}
        alone = solve(X, y, norm=UserNorm(signs), form=form, intercept=True, **amount)  # type: ignore[arg-type]
        assert_allclose(result.objective, alone.objective, rtol=2e-6)
    backwards = path(
        X,
        y,
        norm=UserNorm(signs),
        form=form,
        levels=found.levels[::-1],
        intercept=True,  # type: ignore[arg-type]
    )
    assert backwards.converged


def test_estimators(data: tuple[Array, Array]) -> None:
    X, y = data
    mine = AtomicRegressor(norm=UserNorm(largest), alpha=0.1).fit(X, y)
    known = AtomicRegressor(norm="l1", alpha=0.1).fit(X, y)
    assert_allclose(mine.coef_, known.coef_, atol=1e-3)
    again = AtomicRegressor(norm=UserNorm(largest), alpha=0.1, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 2
    labels = np.digitize(y, [0.5, 1.5])
    classes = AtomicClassifier(norm=UserNorm(signs), alpha=0.05).fit(X, labels)
    assert classes.coef_.shape == (3, 12)
    for result in classes.results_:
        assert result.converged
    cv = AtomicRegressorCV(norms=[UserNorm(signs), "l1"], cv=3).fit(X, y)
    # The coefficients have one magnitude, which is what the ball of l_infinity is for.
    assert cv.norm_ == UserNorm(signs)
    assert_allclose(np.abs(cv.coef_), np.abs(cv.coef_).max(), rtol=0.5)


@pytest.mark.parametrize("solver", ["atom_generation", "frank_wolfe", "column_generation"])
def test_solvers_by_name(data: tuple[Array, Array], solver: str) -> None:
    X, y = data
    tol = 1e-3 if solver == "frank_wolfe" else 1e-6
    model = AtomicRegressor(norm="l1", alpha=0.1, solver=solver, tol=tol, max_iter=5000).fit(X, y)
    assert model.status_.is_converged
    assert_allclose(model.objective_, AtomicRegressor(alpha=0.1).fit(X, y).objective_, rtol=2 * tol)


def test_column_generation_says_what_to_use(data: tuple[Array, Array]) -> None:
    X, y = data
    norm = UserNorm(signs, value=lambda w: np.abs(w).max())
    with pytest.raises(TypeError, match="solver over its atoms"):
        solve(X, y, norm=norm, level=1.0, solver=ColumnGeneration())
