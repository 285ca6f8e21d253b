"""The synthetic problems: what their docstrings promise, measured."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from atomlearn.datasets import (
    make_correlated,
    make_feature_generation,
    make_text_like_sparse,
    make_zou_hastie,
)
from atomlearn.testing.synthetic import Synthetic, make_k_support_logistic

SMALL: dict[str, Callable[..., Synthetic]] = {
    "k_support": lambda seed: make_k_support_logistic(30, 400, 40, 4, rng=seed),
    "correlated": lambda seed: make_correlated(30, 50, 0.5, 5, rng=seed),
    "zou_hastie": make_zou_hastie,
    "dense": lambda seed: make_feature_generation(30, 60, 6, 20, rng=seed),
    "sparse": lambda seed: make_feature_generation(30, 60, 6, 20, density=0.3, rng=seed),
    "text": lambda seed: make_text_like_sparse(
        50, 900, words_per_row=9, n_true=5, n_frequent=50, rng=seed
    ),
}


def as_bytes(value: Any) -> bytes:
    return (value.toarray() if sp.issparse(value) else np.asarray(value)).tobytes()


@pytest.mark.parametrize("name", SMALL)
def test_seeds_decide_everything(name: str) -> None:
    make = SMALL[name]
    first, again, generator, other = make(3), make(3), make(np.random.default_rng(3)), make(4)
    for part in ("X", "y", "coef", "X_test", "y_test", "X_validation"):
        assert as_bytes(getattr(first, part)) == as_bytes(getattr(again, part))
        assert as_bytes(getattr(first, part)) == as_bytes(getattr(generator, part))
    assert as_bytes(first.X) != as_bytes(other.X)
    assert first.y.dtype == first.coef.dtype == np.float64
    assert first.X.shape == (first.y.size, first.coef.size)


def test_k_support_logistic_follows_its_model() -> None:
    data = make_k_support_logistic(20_000, 300, 100, 5, dtype=np.float64, rng=1)
    assert np.linalg.norm(data.X, axis=1) == pytest.approx(1.0, rel=1e-12)
    assert data.coef.tolist() == [1.0] * 100 + [0.0] * 200
    assert data.groups is not None
    assert np.bincount(data.groups).tolist() == [20] * 5 + [200]
    # The labels are calibrated: within bins of w'x the share of +1 is the sigmoid.
    signal = data.X @ data.coef
    order = np.argsort(signal).reshape(10, -1)
    expected = expit(signal)[order].mean(axis=1)
    share = (data.y[order] == 1.0).mean(axis=1)
    assert share == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 2000))
    assert np.corrcoef(data.X[:, :3].T)[0, 1] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_k_support_logistic(100, 200_000, 2000, 20),
        lambda: make_correlated(1000, 10_000, 0.9, 20),
    ],
    ids=["k_support", "correlated"],
)
def test_memory_is_that_of_x(make: Callable[[], Synthetic]) -> None:
    tracemalloc.start()
    try:
        data = make()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.X.flags.f_contiguous
    assert data.X.nbytes < peak < 1.15 * data.X.nbytes


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_correlated_columns(rho: float) -> None:
    data = make_correlated(20_000, 12, rho, 4, 3.0, rng=0)
    assert data.X.flags.f_contiguous
    distance = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    assert np.corrcoef(data.X.T) == pytest.approx(rho**distance, abs=0.03)
    assert data.X.std(axis=0) == pytest.approx(1.0, abs=0.03)
    assert sorted(np.abs(data.coef)) == [0.0] * 8 + [1.0] * 4
    signal = data.X @ data.coef
    assert np.linalg.norm(signal) == pytest.approx(3.0 * np.linalg.norm(data.y - signal))
    assert (data.y - signal).std() == pytest.approx(data.noise, rel=0.03)


def test_zou_hastie_is_drawn_from_its_covariance() -> None:
    data = make_zou_hastie(0, n=50_000)
    assert data.covariance is not None
    assert data.groups is not None
    assert data.X_validation.shape == (50, 40)
    assert data.X_test.shape == (350, 40)
    assert np.cov(data.X.T) == pytest.approx(data.covariance, abs=0.03)
    assert data.covariance[0, 4] == 1.0
    assert data.covariance[0, 5] == 0.0
    assert data.covariance[0, 0] == 1.01
    assert data.covariance[20, 20] == 1.0
    assert data.coef.tolist() == [3.0] * 15 + [0.0] * 25
    assert (data.y - data.X @ data.coef).std() == pytest.approx(1.0, abs=0.02)
    assert np.bincount(data.groups).tolist() == [5, 5, 5] + [1] * 25


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_feature_generation_labels_are_signs(density: float, shift: float) -> None:
    data = make_feature_generation(400, 1000, 300, 250, density=density, shift=shift, rng=5)
    assert data.X.dtype == np.float32
    assert data.X_test.shape == (250, 1000)
    assert sp.issparse(data.X) == (density < 1.0)
    for X, y in ((data.X, data.y), (data.X_test, data.y_test)):
        margin = X.astype(np.float64) @ data.coef - shift
        np.testing.assert_array_equal(y, np.where(margin >= 0.0, 1.0, -1.0))
    weights = data.coef[data.coef != 0.0]
    assert weights.size == 300
    assert weights.min() > 0.0
    assert weights.max() < 1.0
    assert weights.mean() == pytest.approx(0.5, abs=0.1)
    assert data.intercept == -shift


def test_sparse_feature_generation_fills_evenly() -> None:
    X = make_feature_generation(500, 400, 10, 0, density=0.1, rng=0).X
    assert isinstance(X, sp.csc_matrix)
    assert X.indices.dtype == np.int32
    X.check_format(full_check=True)
    assert X.has_canonical_format
    expected = 0.1 * 500 * 400
    assert X.nnz == pytest.approx(expected, abs=5 * np.sqrt(expected))
    # Chi-squared of the entries in each row: 499 degrees of freedom, standard deviation 31.6.
    counts = np.bincount(X.indices, minlength=500)
    assert np.sum((counts - 40.0) ** 2 / (40.0 * 0.9)) == pytest.approx(499, abs=5 * 31.6)
    assert X.data.mean() == pytest.approx(0.0, abs=0.04)
    assert X.data.std() == pytest.approx(1.0, abs=0.04)


def test_text_like_rows() -> None:
    data = make_text_like_sparse(2000, 30_000, words_per_row=40, n_true=20, n_frequent=500)
    assert isinstance(data.X, sp.csc_matrix)
    assert data.X.indices.dtype == np.int32
    assert data.X.has_canonical_format
    assert np.sqrt(data.X.multiply(data.X).sum(axis=1)) == pytest.approx(1.0)
    # Undo the scaling: every row's least entry is a word counted once.
    rows = data.X.tocsr()
    once = np.minimum.reduceat(rows.data, rows.indptr[:-1])
    counts = rows.data / np.repeat(once, np.diff(rows.indptr))
    assert counts == pytest.approx(np.rint(counts))
    assert counts.sum() == pytest.approx(2000 * 40)
    assert counts.max() > 1.5
    # Popularity: the share of the entries in the first columns is that of (rank + 50)^-0.9.
    popularity = (np.arange(30_000) + 50.0) ** -0.9
    expected = popularity[:500].sum() / popularity.sum()
    assert np.diff(data.X.indptr)[:500].sum() / data.X.nnz == pytest.approx(expected, abs=0.01)
    support = np.flatnonzero(data.coef)
    assert support.size == 20
    assert support.max() < 500
    signal = data.X @ data.coef
    assert np.linalg.norm(signal) == pytest.approx(3.0 * np.linalg.norm(data.y - signal))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_k_support_logistic(10, 50, 30, 7), "multiple of n_groups"),
        (lambda: make_k_support_logistic(10, 50, 60, 6), "at most p"),
        (lambda: make_correlated(10, 20, 1.0), r"rho must be in \[0, 1\)"),
        (lambda: make_correlated(10, 20, 0.5, 3, snr=0.0), "snr must be positive"),
        (lambda: make_feature_generation(10, 20, 3, density=0.0), "density"),
        (lambda: make_feature_generation(10, 25, 10, group_size=10), "multiples of group_size"),
    ],
)
def test_impossible_problems_are_refused(make: Callable[[], Synthetic], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
