"""MatrixCompletion against a naive twin: proximal gradients with full singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit

from atomlearn import MatrixCompletion
from atomlearn.testing.cases import each

Array = NDArray[np.float64]
N, P, RANK = 40, 18, 2
LABELS = np.arange(P) % 3 == 2


def data(seed: int, mixed: bool) -> tuple[Array, Array]:
    """Return a matrix with gaps, and the whole; every third column of 0 and 1 where ``mixed``."""
    rng = np.random.default_rng(seed)
    low = rng.standard_normal((N, RANK)) @ rng.standard_normal((RANK, P)) * 2.0
    whole = low * rng.uniform(0.5, 20.0, P) + rng.uniform(-50, 50, P)
    if mixed:
        whole[:, LABELS] = rng.random((N, LABELS.sum())) < expit(2.0 * low[:, LABELS])
    X = whole.copy()
    X[rng.random(X.shape) < 0.25] = np.nan
    return X, whole


class Twin:
    """The same problem by its definition."""

    def __init__(self, X: Array, labels: NDArray[np.bool_]) -> None:
        self.observed, self.labels = np.isfinite(X), labels
        self.mean, self.scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        counts = self.observed.sum(axis=0)
        shares = np.where(labels, (counts * self.mean + 0.5) / (counts + 1), 0.5)
        self.mean = np.where(labels, logit(shares), self.mean)
        self.scale = np.where(labels, 1.0, self.scale)
        z = np.where(labels, 2 * X - 1, (X - self.mean) / self.scale)
        self.z = np.where(self.observed, z, 0.0)

    def loss(self, L: Array, mask: Any) -> float:
        each = 0.5 * (self.z - L) ** 2
        margin = self.z * (L + np.where(self.labels, self.mean, 0.0))
        each = np.where(self.labels, np.logaddexp(0.0, -margin), each)
        return float(each[mask].sum())

    def fit(self, level: float, mask: Any, rounds: int = 4000) -> Array:
        L = np.zeros(self.z.shape)
        shift = np.where(self.labels, self.mean, 0.0)
        held, before, t = L.copy(), L.copy(), 1.0
        for _ in range(rounds):
            slope = np.where(self.labels, -self.z * expit(-self.z * (held + shift)), held - self.z)
            u, s, v = np.linalg.svd(held - np.where(mask, slope, 0.0), full_matrices=False)
            before, L = L, (u * np.maximum(s - level, 0)) @ v
            t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
            held = L + (old - 1) / t * (L - before)
        return L

    def objective(self, L: Array, level: float, mask: Any) -> float:
        return self.loss(L, mask) + level * float(np.linalg.svd(L, compute_uv=False).sum())


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_optimum_at_a_level(mixed: bool, share: float) -> None:
    X, _ = data(0, mixed)
    labels = LABELS if mixed else np.zeros(P, dtype=bool)
    twin = Twin(X, labels)
    level = share * 15.0
    model = MatrixCompletion(level, loss="auto" if mixed else "squared", tol=1e-7).fit(X)
    best = twin.fit(level, twin.observed)
    mine = model.left_ @ model.right_.T
    exact = twin.objective(best, level, twin.observed)
    assert model.objective_ == pytest.approx(exact, rel=1e-6)
    assert twin.objective(mine, level, twin.observed) == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(mine, best, atol=2e-3)
    filled = model.transform(X)
    expected = np.where(labels, expit(best + twin.mean), best * twin.scale + twin.mean)
    np.testing.assert_allclose(
        filled[~twin.observed], expected[~twin.observed], rtol=1e-2, atol=0.05
    )
    np.testing.assert_array_equal(filled[twin.observed], X[twin.observed])
    # Rows of the fit are given back by their factors, one at a time.
    np.testing.assert_allclose(model.transform(X[3:5]), model.fit_transform(X)[3:5], atol=0.05)


@pytest.mark.parametrize("mixed", [False, True])
def test_scores_are_those_of_entries_held_out(mixed: bool) -> None:
    X, _ = data(1, mixed)
    twin = Twin(X, LABELS if mixed else np.zeros(P, dtype=bool))
    model = MatrixCompletion(loss="auto" if mixed else "squared", tol=1e-6).fit(X)
    rows, cols = np.nonzero(twin.observed)
    out = np.random.default_rng(0).random(rows.size) < 0.1
    held = np.zeros(X.shape, dtype=bool)
    held[rows[out], cols[out]] = True
    for number in (1, len(model.levels_) - 1):
        fitted = twin.fit(float(model.levels_[number]), twin.observed & ~held, 3000)
        score = 2.0 * twin.loss(fitted, held) / out.sum()
        assert model.scores_[number] == pytest.approx(score, rel=1e-3)
    assert model.level_ == model.levels_[np.argmin(model.scores_)]


def test_losses_that_do_not_fit_are_refused() -> None:
    X, _ = data(0, mixed=True)
    with pytest.raises(ValueError, match="must be 'squared', 'huber', 'logistic' or 'auto'"):
        MatrixCompletion(loss="poisson").fit(X)
    with pytest.raises(ValueError, match="columns of 0 and 1, and column 0"):
        MatrixCompletion(loss="logistic").fit(X)
    with pytest.raises(ValueError, match="2 names, and X 18 columns"):
        MatrixCompletion(loss=["squared", "huber"]).fit(X)
    given = ["huber" if not label else "logistic" for label in LABELS]
    assert MatrixCompletion(loss=given).fit(X).losses_ == given


@each("seed", range(2))
def test_the_rank_is_bounded_in_the_final_fit_and_chosen_by_held_out_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((40, 5)) * [4.0, 2.0, 1.0, 0.7, 0.5] @ rng.standard_normal((5, 25))
    X = truth + 0.3 * rng.standard_normal(truth.shape)
    X[rng.random(X.shape) < 0.3] = np.nan
    bounds = [MatrixCompletion(rank=rank, random_state=seed).fit(X) for rank in (1, 2, 4)]
    assert [model.rank_ <= rank for model, rank in zip(bounds, (1, 2, 4), strict=True)] == [
        True
    ] * 3
    free = MatrixCompletion(random_state=seed).fit(X)
    assert free.level_ == free.levels_[np.argmin(free.scores_)]
    # The level that was chosen predicts unseen entries better than its neighbors far away.
    unseen = np.isnan(X)
    errors = [
        np.mean((MatrixCompletion(level=level).fit_transform(X) - truth)[unseen] ** 2)
        for level in (free.level_, 8 * free.level_, free.level_ / 8)
    ]
    assert errors[0] < min(errors[1], 1.2 * errors[2])
