"""Cold fits far below the largest level: as good as paths that end there, in as many steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from atomlearn import norms, paths, solve
from atomlearn._support import Deadline
from atomlearn.core.solvers import run
from atomlearn.interfaces import Norm
from atomlearn.losses import Quantile, as_loss
from tests.oracles.sums import solve_sum


def program(X: Any, y: Any, weight: Any, q: float, level: float) -> float:
    """Return min sum_i s_i pinball_q(y_i - x_i'w - b) + level ||w||_1, by HiGHS."""
    n, p = X.shape
    cost = np.concatenate([np.full(2 * p, level), [0.0], q * weight, (1.0 - q) * weight])
    A = np.hstack([X, -X, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * (2 * n)
    return float(linprog(cost, A_eq=A, b_eq=y, bounds=bounds, method="highs").fun)


@pytest.mark.parametrize(("n", "p", "share"), [(60, 180, 1e-5), (1000, 5, 1e-7)])
def test_quantiles_at_tiny_levels_are_those_of_linear_programs(
    n: int, p: int, share: float
) -> None:
    rng = np.random.default_rng(13)
    X, weight = rng.normal(size=(n, p)), np.ones(n)
    y = X[:, 0] + rng.normal(size=n)
    if n > p:
        weight[y > y.mean()] = 100.0
    weight /= weight.sum()
    found = solve_sum(
        X, y, loss=Quantile(0.5), level=share, fit_intercept=True, sample_weight=weight, tol=1e-6
    )
    assert found.converged
    best = program(X, y, weight, 0.5, share)
    assert abs(found.objective - best) <= found.gap + 1e-9 * best


def test_a_cold_fit_proves_what_a_path_proves() -> None:
    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((10, 34)), np.where(rng.random(10) > 0.5, 1.0, -1.0)
    for form in ("penalized", "squared"):
        kept: dict[str, Any] = {"norm": norms.KSupport(5), "loss": "squared_hinge", "form": form}
        kept["fit_intercept"] = False
        alphas = 10.0 ** np.arange(0.0, -9.5, -1.0)
        path = paths.path(X, signs, alphas=alphas, **kept).results[-1]
        found = solve(X, signs, alpha=1e-9, **kept)
        assert found.converged
        assert found.objective == pytest.approx(path.objective, rel=2e-6)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("form", ["penalized", "squared"])
def test_tiny_problems_end_after_a_number_of_steps(
    loss: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = np.sort(np.random.default_rng(2).random(20) + 0.1)[::-1]
    assert_ends_after_a_number_of_steps(norms.OWL(ordered), loss, form, monkeypatch)


def assert_ends_after_a_number_of_steps(
    norm: Norm, loss: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proximal maps take most of the time: each is a step, those of line searches too."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((11, 20)) @ (np.eye(20) + 0.5 * rng.standard_normal((20, 20)))
    y = X @ (rng.standard_normal(20) * (rng.random(20) < 0.5))
    maps = {"made": 0}
    use_step = Deadline.use_step

    def counted(self: Deadline) -> bool:
        maps["made"] += 1
        return use_step(self)

    monkeypatch.setattr(Deadline, "use_step", counted)
    monkeypatch.setattr(run, "MOST_WORK", 300)
    slope = as_loss(loss).gradient(y, np.zeros(11), np.ones(11))
    level = 1e-10 * float(np.abs(X.T @ slope).max())
    found = solve_sum(X, y, norm=norm, loss=loss, form=form, level=level, tol=1e-12)
    # A search that began within the bound ends.
    assert maps["made"] <= 300 + 2 * found.iterations + 50
    assert found.converged == (found.relative_gap <= 1e-12)
