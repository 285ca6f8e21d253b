"""Paths of norms over lifted coordinates share readings: chains, trees, latent groups, unions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from atomlearn import AtomicRegressorCV, norms, paths, solve
from atomlearn.core import Settings, as_norm, objective_at
from atomlearn.core.paths.shared_levels import SharedLevels
from atomlearn.designs import Standardized, as_design
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status

GAP = 1e-7
P = 1600
TREE = [list(range(b, b + 8)) for b in range(0, P, 8)]
TREE += [list(range(b, b + 4)) for b in range(0, P, 4)]
CHAINS = [list(range(k, k + 4)) for k in range(0, P - 3, 2)]


def data(loss: str, n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    y = X[:, 100:106].sum(axis=1) - X[:, 800:804].sum(axis=1) + rng.standard_normal(n) + 0.5
    return X, y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)


CASES: list[tuple[Any, Any, str]] = [
    (norms.Chains(4), "penalized", "squared"),
    (norms.Chains(4), "constrained", "squared"),
    (norms.Trees(TREE), "squared", "squared"),
    (norms.Trees(TREE), "penalized", "logistic"),
    (norms.LatentGroups(CHAINS, weights="sqrt_size"), "penalized", "squared"),
    (norms.Union([norms.L1(), norms.Groups(np.arange(P) // 4)]), "squared", "squared"),
    (norms.LatentKSupport(3, CHAINS), "squared", "logistic"),
]  # fmt: skip


@pytest.mark.parametrize(("norm", "form", "loss"), CASES)
def test_each_level_is_that_of_a_solve_by_itself(norm: Any, form: Any, loss: str) -> None:
    X, y = data(loss)
    how = {"loss": loss, "norm": norm, "form": form, "fit_intercept": True}
    found = paths.path(X, y, n_alphas=10, alpha_ratio=0.05, tol=GAP, **how)
    perfect = [result.status is Status.PERFECT_FIT for result in found.results]
    assert found.converged
    assert ((found.relative_gaps <= GAP) | perfect).all()
    assert found.passes <= 10
    name = "radius" if form == "constrained" else "alpha"
    for number in (3, 8):
        result = found.results[number]
        alone = solve(X, y, tol=GAP, **how, **{name: found.alphas[number]})
        assert result.objective == pytest.approx(alone.objective, rel=3 * GAP)
        assert result.norm is not None
        assert [part.group for part in result.parts] == sorted(p.group for p in result.parts)
        # What the certificate says of the point over u, the norm itself says of w.
        linear = X @ result.coef + result.intercept
        whole = Regularizer(as_norm(norm), form, found.alphas[number])
        mean = np.full(y.size, 1.0 / y.size)
        problem = Problem.build(
            as_design(X), y, as_loss(loss), whole, fit_intercept=True, sample_weight=mean
        )
        if form != "constrained":
            value = objective_at(problem, result.coef, linear)
            assert value <= result.objective * (1 + 1e-7)
            assert value >= (result.objective - result.gap) * (1 - 1e-7)


def test_columns_far_from_zero_lose_nothing() -> None:
    """Lifted columns are standardized as their features are: the gap knows what that takes off."""
    X, y = data("squared")
    shifted = Standardized(as_design(X + 1e5))
    plain = Standardized(as_design(X))
    how: dict[str, Any] = {
        "norm": norms.Chains(4),
        "fit_intercept": True,
        "n_alphas": 6,
        "tol": 1e-6,
    }
    expected = paths.path(plain, y, alpha_ratio=0.1, **how)
    found = paths.path(shifted, y, alphas=expected.alphas, **how)
    allowed = np.array([result.gap for result in found.results])
    assert found.passes <= 8
    assert (np.abs(found.objectives - expected.objectives) <= allowed + 1e-6).all()


def test_folds_and_other_norms_share_their_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms over features and over lifted coordinates go over X together."""
    X, y = data("squared")
    candidates = [norms.Chains(4), norms.L1(), norms.LatentGroups(CHAINS)]
    model = AtomicRegressorCV(candidates, n_alphas=8, alpha_ratio=0.1, cv=KFold(3), tol=GAP)
    model.fit(X, y)
    assert model.n_passes_ <= 14
    monkeypatch.setattr(Settings, "shares_levels", lambda *_: False)
    alone = AtomicRegressorCV(candidates, n_alphas=8, alpha_ratio=0.1, cv=KFold(3), tol=GAP)
    alone.fit(X, y)
    assert alone.n_passes_ >= 8 * model.n_passes_
    scores = "mean_test_score"
    np.testing.assert_allclose(model.cv_results_[scores], alone.cv_results_[scores], atol=1e-4)
    assert model.alpha_ == alone.alpha_
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)


def test_a_path_ends_by_the_coefficients_of_features() -> None:
    """Its end is asked of w, of which lifted coordinates repeat each feature."""
    X, y = data("squared")
    whole = paths.path(
        X, y, norm=norms.Chains(4), n_alphas=12, alpha_ratio=0.05, fit_intercept=False
    )
    count = int(whole.n_selected[5])
    cut = paths.path(
        X,
        y,
        norm=norms.Chains(4),
        alphas=whole.alphas,
        until=paths.NumberOfFeatures(count),
        fit_intercept=False,
    )
    expected = int(np.argmax(whole.n_selected >= count)) + 1
    assert cut.alphas.size == expected < 12
    share = paths.path(
        X,
        y,
        norm=norms.Chains(4),
        alphas=whole.alphas,
        until=paths.ExplainedDeviance(0.5),
        fit_intercept=False,
    )
    left = [((y - X @ result.coef) ** 2).sum() for result in whole.results]
    explained = 1.0 - np.array(left) / (y**2).sum()
    assert share.alphas.size == int(np.argmax(explained >= 0.5)) + 1 < 12


def test_an_interrupted_path_gives_features(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("squared")
    learn, calls = SharedLevels.learn, []

    def interrupted(*arguments: Any) -> None:
        learn(*arguments)
        calls.append(1)
        if len(calls) == 2:  # the scores at zero were the first
            raise KeyboardInterrupt

    monkeypatch.setattr(SharedLevels, "learn", interrupted)
    found = paths.path(
        X, y, norm=norms.Chains(4), n_alphas=20, alpha_ratio=0.02, fit_intercept=False
    )
    assert found.interrupted
    assert 0 < len(found.results) < 20
    assert all(result.coef.shape == (P,) for result in found.results)


def test_a_kept_path_goes_on(tmp_path: Path) -> None:
    X, y = data("squared")
    how: dict[str, Any] = {"norm": norms.Chains(4), "alpha_ratio": 0.1, "n_alphas": 6}
    first = paths.path(X, y, checkpoint=tmp_path / "kept", **how)
    again = paths.path(X, y, checkpoint=tmp_path / "kept", **how)
    # The scores at zero, of which the grid is made, and one that proves all levels.
    assert again.passes == 2 < first.passes
    np.testing.assert_allclose(again.objectives, first.objectives, rtol=1e-9)
