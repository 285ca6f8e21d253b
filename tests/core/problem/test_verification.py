"""Both bounds of a result, from X, y and the coefficients; and starts from coefficients."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from atomlearn import losses, norms, paths, solve
from atomlearn.testing.cases import each
from tests.oracles.sums import solve_sum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 30))
Y = 100.0 + X[:, :3] @ [2.0, -1.0, 1.0] + RNG.standard_normal(60)
LABEL = np.where(X[:, 0] + RNG.standard_normal(60) > 0, 1.0, -1.0)

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "lasso": (Y, {"level": 20.0, "fit_intercept": True}),
    "ridge beside": (Y, {"level": 20.0, "tau": 3.0, "fit_intercept": True}),
    "logistic": (LABEL, {"loss": "logistic", "level": 3.0, "fit_intercept": True}),
    "squared": (Y, {"norm": norms.KSupport(4), "form": "squared", "level": 5.0}),
    "ball": (LABEL, {"loss": "squared_hinge", "form": "constrained", "radius": 0.5}),
    "free columns": (Y, {"level": 20.0, "unpenalized": [4, 7], "fit_intercept": True}),
    "offset": (Y, {"level": 20.0, "offset": np.linspace(0, 9, 60), "fit_intercept": True}),
}


@each("case", CASES)
def test_both_bounds_are_those_of_the_run(case: str) -> None:
    y, parameters = CASES[case]
    assert_verified(X, y, **parameters)


def assert_verified(X: Any, y: Any, **parameters: Any) -> None:
    result = solve_sum(X, y, tol=1e-7, **parameters)
    found = result.verify()
    objective = result.objective / len(X)
    size = abs(objective)
    assert found.upper == pytest.approx(objective, rel=1e-10)
    assert 0 <= found.gap <= 1.05e-7 * size
    assert found.lower <= objective - result.gap / len(X) + 1.2e-7 * size
    assert found.dual.shape == result.dual.shape


def test_the_dual_point_proves_the_lower_bound_by_itself() -> None:
    """The textbook dual of the lasso, written out: nothing of the package is asked."""
    n = len(Y)
    alpha = 20.0 / n
    result = solve(X, Y, alpha=alpha, fit_intercept=False)
    v = result.dual
    assert np.abs(X.T @ v).max() <= alpha * (1 + 1e-12)
    bound = 0.5 * Y @ Y / n - 0.5 * n * (Y / n - v) @ (Y / n - v)
    found = result.verify()
    assert bound <= found.upper
    assert bound == pytest.approx(found.lower, rel=2e-6)


def test_a_point_that_is_no_optimum_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    result = solve_sum(X, Y, level=20.0)
    result.weights = result.weights + 0.05
    found = result.verify()
    assert found.gap > 1e-4 * found.upper
    assert f"no coefficients have less than    {found.lower:.17g}" in capsys.readouterr().out


def test_what_cannot_be_verified_says_why() -> None:
    result = solve_sum(X, Y, level=20.0)
    with pytest.raises(ValueError, match=r"verify a result of solve\(X, y"):
        pickle.loads(pickle.dumps(result)).verify()
    with pytest.raises(ValueError, match="has kinks"):
        solve_sum(X, Y, loss=losses.Quantile(0.5), level=2.0).verify()
    with pytest.raises(ValueError, match="does not hold its data"):
        _ = paths.path(X, Y, n_alphas=2, fit_intercept=False).results[-1].dual


def test_starts_from_coefficients() -> None:
    wide = np.hstack([X, RNG.standard_normal((60, 2000))])
    cold = solve_sum(wide, Y, level=20.0, fit_intercept=True)
    warm = solve_sum(wide, Y, level=20.0, fit_intercept=True, warm_start=cold.coef)
    assert warm.history[0].relative_gap < 1e-5 < cold.history[0].relative_gap
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-3)
    with pytest.raises(TypeError, match=r"30 coefficients, got ndarray of shape \(4,\)"):
        solve_sum(X, Y, level=20.0, warm_start=np.zeros(4))


def test_an_observer_sees_the_obvious_names() -> None:
    seen: list[tuple[float, float, int, float]] = []
    result = solve(
        X, Y, alpha=0.3,
        observers=[lambda p: seen.append((p.objective, p.relative_gap, p.n_active, p.seconds))],
    )  # fmt: skip
    assert seen[-1][:3] == (result.objective, result.relative_gap, result.active.size)
    assert 0 <= seen[0][3] <= seen[-1][3]


@pytest.mark.parametrize("tau", [0.0, 3.0])
def test_the_dual_point_is_scaled_where_no_ridge_takes_up_the_rest(tau: float) -> None:
    """Without a ridge gauge°(X'v) is at most alpha; with one v is -f' itself."""
    result = solve_sum(X, Y, level=20.0, tau=tau)
    result.weights = 0.9 * result.weights
    slope, v = Y - X @ result.coef, len(Y) * result.dual
    if tau:
        np.testing.assert_allclose(v, slope, rtol=1e-10, atol=1e-10)
        assert np.abs(X.T @ v).max() > 20.0 * (1 + 1e-6)
    else:
        assert np.abs(X.T @ v).max() <= 20.0 * (1 + 1e-12)
        assert np.abs(X.T @ slope).max() > 20.0 * (1 + 1e-6)
