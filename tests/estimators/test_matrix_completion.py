"""MatrixCompletion against a naive twin: proximal gradients with full singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from atomlearn import MatrixCompletion
from atomlearn.testing.cases import each

Array = NDArray[np.float64]
N, P, RANK = 40, 18, 2


def data(seed: int) -> Array:
    """Return a matrix of low rank in columns of different units, with gaps."""
    rng = np.random.default_rng(seed)
    low = rng.standard_normal((N, RANK)) @ rng.standard_normal((RANK, P)) * 2.0
    X = low * rng.uniform(0.5, 20.0, P) + rng.uniform(-50, 50, P)
    X[rng.random(X.shape) < 0.25] = np.nan
    return X


class Twin:
    """The same problem by its definition."""

    def __init__(self, X: Array) -> None:
        self.observed = np.isfinite(X)
        self.mean, self.scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        self.z = np.where(self.observed, (X - self.mean) / self.scale, 0.0)

    def loss(self, L: Array, mask: Any) -> float:
        return float(0.5 * ((self.z - L)[mask] ** 2).sum())

    def fit(self, level: float, mask: Any, rounds: int) -> Array:
        L = np.zeros(self.z.shape)
        held, before, t = L.copy(), L.copy(), 1.0
        for _ in range(rounds):
            u, s, v = np.linalg.svd(held - np.where(mask, held - self.z, 0.0), full_matrices=False)
            before, L = L, (u * np.maximum(s - level, 0)) @ v
            t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
            held = L + (old - 1) / t * (L - before)
        return L

    def objective(self, L: Array, level: float, mask: Any) -> float:
        return self.loss(L, mask) + level * float(np.linalg.svd(L, compute_uv=False).sum())


@pytest.mark.parametrize("level", [1.5, 7.5])
def test_the_optimum_at_a_level(level: float) -> None:
    X = data(0)
    twin = Twin(X)
    n_entries = np.isfinite(X).sum()
    model = MatrixCompletion(level / n_entries, tol=1e-7, standardize=True).fit(X)
    best = twin.fit(level, twin.observed, 1000)
    mine = model.left_ @ model.right_.T
    exact = twin.objective(best, level, twin.observed)
    assert model.objective_ == pytest.approx(exact / n_entries, rel=1e-6)
    assert twin.objective(mine, level, twin.observed) == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(mine, best, atol=2e-3)
    filled, expected = model.transform(X), best * twin.scale + twin.mean
    np.testing.assert_allclose(
        filled[~twin.observed], expected[~twin.observed], rtol=1e-2, atol=0.05
    )
    np.testing.assert_array_equal(filled[twin.observed], X[twin.observed])
    # Rows of the fit are given back by their factors, one at a time.
    np.testing.assert_allclose(model.transform(X[3:5]), model.fit_transform(X)[3:5], atol=0.05)


def test_scores_are_those_of_entries_held_out() -> None:
    X = data(1)
    twin = Twin(X)
    model = MatrixCompletion(tol=1e-6, standardize=True).fit(X)
    rows, cols = np.nonzero(twin.observed)
    out = np.random.default_rng(0).random(rows.size) < 0.1
    held = np.zeros(X.shape, dtype=bool)
    held[rows[out], cols[out]] = True
    for number in (1, len(model.alphas_) - 1):
        level = float(model.alphas_[number]) * rows.size
        fitted = twin.fit(level, twin.observed & ~held, 1000)
        score = 2.0 * twin.loss(fitted, held) / out.sum()
        assert model.scores_[number] == pytest.approx(score, rel=1e-3)
    assert model.alpha_ == model.alphas_[np.argmin(model.scores_)]


@each("seed", range(2))
def test_the_rank_is_bounded_in_the_final_fit_and_chosen_by_held_out_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((40, 5)) * [4.0, 2.0, 1.0, 0.7, 0.5] @ rng.standard_normal((5, 25))
    X = truth + 0.3 * rng.standard_normal(truth.shape)
    X[rng.random(X.shape) < 0.3] = np.nan
    bounds = [
        MatrixCompletion(rank=rank, random_state=seed, standardize=True).fit(X)
        for rank in (1, 2, 4)
    ]
    assert [model.rank_ <= rank for model, rank in zip(bounds, (1, 2, 4), strict=True)] == [
        True
    ] * 3
    free = MatrixCompletion(random_state=seed, standardize=True).fit(X)
    assert free.alpha_ == free.alphas_[np.argmin(free.scores_)]
    # The chosen alpha predicts unseen entries better than values that are far from it.
    unseen = np.isnan(X)
    errors = [
        np.mean(
            (MatrixCompletion(alpha=alpha, standardize=True).fit_transform(X) - truth)[unseen] ** 2
        )
        for alpha in (free.alpha_, 8 * free.alpha_, free.alpha_ / 8)
    ]
    assert errors[0] < min(errors[1], 1.2 * errors[2])
