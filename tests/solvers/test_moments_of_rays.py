"""AtomGeneration on X'X: the same answers as on X, one pass, and the variants of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import norms, solve
from atomlearn.core.solvers import atom_generation
from atomlearn.core.solvers.atom_generation import refit_on_rays
from atomlearn.masters import ActiveSetQP
from atomlearn.result import Result
from atomlearn.solvers import AtomGeneration

Array = NDArray[np.float64]
AMOUNTS = {"penalized": {"level": 60.0}, "squared": {"level": 30.0}, "constrained": {"radius": 2.0}}
NORMS = [norms.L1(), norms.LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6]]), norms.KSupport(3)]


def data(seed: int, n: int = 400, p: int = 12) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 3.0
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n) + 50.0
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", AMOUNTS)
@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_moments_give_the_point_of_the_rows(norm: norms.Norm, form: str, intercept: bool) -> None:
    X, y, weight = data(1)
    settings = {"norm": norm, "form": form, "intercept": intercept, "sample_weight": weight}
    settings |= AMOUNTS[form]
    ours = solve(X, y, solver=AtomGeneration(), gap=1e-6, **settings)
    best = solve(X, y, gap=1e-10, **settings)
    assert ours.converged
    assert ours.passes <= 2
    prediction = X @ ours.coef + ours.intercept
    smooth = 0.5 * weight @ (y - prediction) ** 2
    assert ours.objective >= smooth * (1 - 1e-12)
    assert ours.objective - best.objective <= ours.gap + 1e-9 * best.objective
    assert_allclose(ours.objective, best.objective, rtol=2e-6)
    # The run has centered y, and its state with it.
    assert_allclose(ours.state.prediction - ours.state.intercept, X @ ours.coef, rtol=1e-9)


def test_where_there_is_nothing_to_gain_every_step_is_a_pass() -> None:
    X, y, _ = data(2, n=40)
    result = solve(X, y, level=5.0, solver=AtomGeneration())
    assert result.state.moments is None
    assert result.passes == result.iterations + 1
    X, y, _ = data(2)
    off = solve(X, y, level=5.0, solver=AtomGeneration(moments=False))
    assert off.passes == off.iterations + 1


@pytest.mark.parametrize("moments", [True, False])
def test_variants_without_warm_start_and_without_pruning(
    moments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []

    def refit(problem, master, atoms, begin, *others):
        begun.append(bool(begin.any()))
        return refit_on_rays(problem, master, atoms, begin, *others)

    monkeypatch.setattr(atom_generation, "refit_on_rays", refit)
    X, y, _ = data(3)
    settings = {"norm": NORMS[1], "level": 60.0, "gap": 1e-8}
    plain = solve(X, y, solver=AtomGeneration(moments=moments), **settings)
    assert any(begun)
    begun.clear()
    cold = solve(X, y, solver=AtomGeneration(moments=moments, warm_start=False), **settings)
    assert begun
    assert not any(begun)
    kept = solve(X, y, solver=AtomGeneration(moments=moments, prune=False), **settings)
    for other in (cold, kept):
        assert_allclose(other.coef, plain.coef, atol=1e-3)
    assert kept.state.atoms.size > np.count_nonzero(kept.state.shares)


def test_algorithm_2_in_its_own_form() -> None:
    """min 1/2 c'Hc + b'c over c >= 0 from c0, against the KKT conditions."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        root = rng.standard_normal((6, 9))
        H, b = root @ root.T, rng.standard_normal(6)
        c, used = ActiveSetQP().minimize(H, b, np.maximum(rng.standard_normal(6), 0.0))
        slope = H @ c + b
        assert (c >= 0).all()
        assert (slope >= -1e-9).all()
        assert abs(c @ slope) <= 1e-9
        assert used.tolist() == np.flatnonzero(c).tolist()
    on_simplex, _ = ActiveSetQP().minimize(H, b, total=1.0)
    assert_allclose(on_simplex.sum(), 1.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_the_gap_holds_over_columns_far_from_zero(offset: float, seed: int) -> None:
    """Moments of such columns lose their digits, unless means are taken off before."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((24, 4))
    X, y = offset + noise, noise[:, 0] + 0.3 * rng.standard_normal(24)
    exact = (offset + noise).astype(np.longdouble)

    def objective(result: Result) -> np.longdouble:
        w = result.coef.astype(np.longdouble)
        residual = exact @ w + np.longdouble(result.intercept) - y
        return 0.5 * residual @ residual + 0.5 * np.abs(w).sum()

    found = solve(X, y, level=0.5, intercept=True, gap=1e-7, solver=AtomGeneration())
    best = solve(X, y, level=0.5, intercept=True, gap=1e-10)
    assert float(objective(found) - objective(best)) <= found.gap
