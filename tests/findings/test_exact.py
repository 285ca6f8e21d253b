"""Intervals given what all rows selected, against other ways to the same numbers and the truth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest, norm, truncnorm
from sklearn.linear_model import Lasso

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    SubsetRegressor,
    losses,
)
from atomlearn.findings import estimates
from atomlearn.findings.carving import _log_masses, truncated
from atomlearn.findings.effects import exact_line
from atomlearn.findings.intervals import Estimates
from atomlearn.findings.one_step import FitData
from tests.oracles.sums import solve_sum


def data(n: int = 40, p: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1] += 0.7 * X[:, 0]
    return X, 0.3 * X[:, 0] - 0.4 * X[:, 3] + rng.standard_normal(n)


def test_a_truncated_normal_is_that_of_scipy_and_of_its_formula_far_out() -> None:
    none = np.zeros((0, 2))
    b, error, low, high = 1.3, 0.5, 0.4, 2.0
    known = np.array([[low - b, high - b]])
    value, *ends, p = truncated(b, error, known, none, 0.9)
    for mean, share in zip((value, *ends), (0.5, 0.95, 0.05), strict=True):
        sides = (low - mean) / error, (high - mean) / error
        assert truncnorm.cdf(b, *sides, mean, error) == pytest.approx(share, abs=1e-8)
    below = truncnorm.cdf(b, low / error, high / error, 0.0, error)
    assert p == pytest.approx(2 * min(below, 1 - below), rel=1e-10)
    # Hundreds of errors off the density is exponential: P(b < t) = (e^-mt - e^-mb) / (1 - e^-mb).
    _, low, _, _ = truncated(0.0, 1.0, np.array([[-0.01, np.inf]]), none, 0.95)
    rate = -low - 0.01
    assert 1 - np.exp(-rate * 0.01 - 0.5 * 0.01**2) == pytest.approx(0.975, rel=1e-2)
    # b at 60 errors: a p-value of 10^-800 is 0, and those of 1e-300 are exact.
    assert truncated(37.0, 1.0, np.array([[-40.0, np.inf]]), none, 0.95)[3] == pytest.approx(
        2 * 5.7255712225245e-300, rel=1e-9
    )


def test_the_mass_of_a_narrow_interval_is_the_density_times_its_width() -> None:
    for at, width in ((3.0, 1e-14), (-20.0, 1e-13), (0.5, 1e-15)):
        ends = np.array([[at, at + width]])
        expected = norm.logpdf(at) + np.log(ends[0, 1] - at)
        assert _log_masses(ends, np.zeros(1))[0] == pytest.approx(expected, abs=1e-9)


def test_what_is_open_only_makes_an_interval_longer_and_an_end_without_bound_is_infinite() -> None:
    known, none = np.array([[-1.0, 0.7]]), np.zeros((0, 2))
    left, right = np.array([[-3.0, -1.0]]), np.array([[0.7, np.inf]])
    widest = truncated(0.0, 1.0, known, np.concatenate([left, right]), 0.95)
    every = np.concatenate([known, left, right])
    for kept in (known, every, np.concatenate([known, left]), np.concatenate([known, right])):
        found = truncated(0.0, 1.0, kept, none, 0.95)
        assert widest[1] <= found[1] + 1e-9
        assert found[2] <= widest[2] + 1e-9
        assert found[3] <= widest[3] + 1e-9
    # Nothing is known to be kept on one side of what was found: any small mean is possible.
    assert truncated(0.0, 1.0, np.array([[0.0, 1.0]]), left, 0.95)[1] == -np.inf


def best_pair(X: np.ndarray, y: np.ndarray, ridge: float) -> set[int]:
    def objective(pair: tuple[int, ...]) -> float:
        Z = X[:, pair] - X[:, pair].mean(axis=0)
        scales = Z.std(axis=0)
        K, q = Z.T @ Z / len(y) + ridge * np.diag(scales**2), Z.T @ (y - y.mean()) / len(y)
        return -float(q @ np.linalg.solve(K, q))

    return set(min(combinations(range(X.shape[1]), 2), key=objective))


@pytest.mark.parametrize("kind", ["lasso", "subset"])
def test_the_targets_that_select_the_same_are_those_of_other_solvers(kind: str) -> None:
    """A grid of targets along lines; the other solvers know nothing of lines."""
    X, y = data()
    lasso = kind == "lasso"
    model = AtomicRegressor(alpha=0.15) if lasso else SubsetRegressor(2, l2=0.2, standardize=True)
    model.fit(X, y)
    selects: Callable[[np.ndarray], set[int]] = (
        (lambda v: set(np.flatnonzero(Lasso(alpha=0.15, tol=1e-10).fit(X, v).coef_).tolist()))
        if lasso
        else (lambda v: best_pair(X, v, 0.2))
    )
    line = exact_line(model, X, y, FitData.of(model, X, y, None, None), 1.0)
    columns, found = line.columns, []
    Z = X[:, columns] - X[:, columns].mean(axis=0)
    inverse = np.linalg.inv(Z.T @ Z)
    for j in range(2):
        weights = inverse[:, j] / inverse[j, j]
        known, unknown = line.same_selection(Z @ weights, 3.0)
        assert all(low >= high - 1e-6 or abs(low + high) == np.inf for low, high in unknown)
        for t in np.linspace(-2.9, 2.9, 24):
            inside = bool(((known[:, 0] < t) & (t < known[:, 1])).any())
            assert inside == (selects(y + t * Z @ weights) == set(columns.tolist()))
            found.append(inside)
    assert 0 < np.mean(found) < 1


def test_the_first_piece_is_that_of_the_polyhedral_lemma() -> None:
    X, y = data()
    model = AtomicRegressor(alpha=0.2, tol=1e-10).fit(X, y)
    E = np.flatnonzero(model.coef_)
    signs = np.sign(model.coef_[E])
    Z = X[:, E] - X[:, E].mean(axis=0)
    inverse, b = np.linalg.inv(Z.T @ Z), np.linalg.pinv(Z) @ y
    # diag(s) (b - n alpha (Z'Z)^-1 s) > 0, as A y < c along eta = Z (Z'Z)^-1 e_j.
    room = signs * (b - len(y) * 0.2 * inverse @ signs)
    line = exact_line(model, X, y, FitData.of(model, X, y, None, None), 1.0)
    for j in range(E.size):
        rate = signs * inverse[:, j] / inverse[j, j]
        ends = -room / rate
        known = line.same_selection(Z @ inverse[:, j] / inverse[j, j], 1e3)[0]
        low, high = known[known[:, 1] == 0, 0][0], known[known[:, 0] == 0, 1][0]
        assert max(low, -1e3) == pytest.approx(max([*ends[rate > 0], -1e3]), abs=1e-6)
        assert min(high, 1e3) == pytest.approx(min([*ends[rate < 0], 1e3]), abs=1e-6)


def test_p_values_are_uniform_given_the_selection() -> None:
    """Of the true value: those of 100 targets, at fixed columns, of which a lasso selects some."""
    X, _ = data()
    rng, mean = np.random.default_rng(1), 0.3 * X[:, 0] + 0.2 * X[:, 3]
    shares = []
    for _ in range(100):
        y = mean + rng.standard_normal(40)
        model = AtomicRegressor(alpha=0.2).fit(X, y)
        if not np.any(model.coef_):
            continue
        line = exact_line(model, X, y, FitData.of(model, X, y, None, None), 1.0)
        Z = X[:, line.columns] - X[:, line.columns].mean(axis=0)
        inverse, j = np.linalg.inv(Z.T @ Z), int(rng.integers(line.columns.size))
        off = float(inverse[j] @ Z.T @ (y - mean))
        error = float(np.sqrt(inverse[j, j]))
        kept = line.same_selection(Z @ inverse[:, j] / inverse[j, j], 12 * error)
        shares.append(truncated(off, error, *kept, 0.95)[3])
    assert kstest(shares, "uniform").pvalue > 0.01
    assert len(shares) > 70


def test_covariates_weights_sparse_and_counts_say_what_they_stand_for() -> None:
    X, y = data(80)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    weight = np.random.default_rng(2).integers(1, 3, 80).astype(float)
    given: dict[str, Any] = {"how": "exact", "sigma": 1.0}
    for model, target in (
        (AtomicRegressor(alpha=0.1, unpenalized=[5]), y),
        (SubsetRegressor(2, l2=0.1, unpenalized=[5], standardize=True), y),
        (AtomicClassifier(alpha=0.03, unpenalized=[5]), y > 0),
    ):
        model.fit(X, target, sample_weight=weight)
        found = estimates(model, X, target, sample_weight=weight, **given)
        assert 5 in found.columns
        other = estimates(model, sp.csc_array(X), target, sample_weight=weight, **given)
        np.testing.assert_allclose(other.intervals, found.intervals, rtol=1e-6)
    assert found.how == "quadratic"


def test_the_quadratic_has_the_solution_of_the_likelihood() -> None:
    X = data(80)[0]
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 0])).astype(float)
    model = AtomicRegressor(alpha=0.2, loss="poisson", tol=1e-4).fit(X, counts)
    line: Any = exact_line(model, X, counts, FitData.of(model, X, counts, None, None), 1.0)
    exact = solve_sum(X, counts, loss=losses.Poisson(), level=16.0, fit_intercept=True, tol=1e-12)
    at = np.argsort(line.first.active)
    assert line.first.active[at].tolist() == exact.columns.tolist()
    np.testing.assert_allclose(line.first.weights[0, at], exact.weights, atol=1e-5)
    np.testing.assert_allclose(line.prediction, exact.predict(X), atol=1e-5)


def test_at_most_so_many_signs_are_wrong() -> None:
    columns, nothing = np.arange(4), np.zeros(4)
    p = np.array([0.9, 0.011, 0.04, 1e-6])
    found = Estimates(columns, nothing, nothing, np.zeros((4, 2)), p, 0.95, "split")
    # Holm: 4 x 1e-6, then 3 x .011 is within .05, then 2 x .04 is not.
    assert found.wrong_signs == 2
    assert "at most 2 of these 4 effects" in found.sentences()[-1]
    infinite = Estimates(columns[:1], nothing[:1], nothing[:1], np.array([[-np.inf, 1]]), p[:1],
                         0.95, "exact")  # fmt: skip
    assert "no bound to that side) given that all rows select exactly" in infinite.sentences()[0]


def test_what_has_no_exact_interval_is_said() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="above 0"):
        estimates(AtomicRegressor(alpha=0.1).fit(X, y), X, y, sigma=1.0)
    for model in (AtomicRegressorCV(n_alphas=3),
                  SubsetRegressor(range(1, 3), cv=2, standardize=True),
                  SubsetRegressor(2, fit_intercept=False, standardize=True),
                  AtomicRegressor(alpha=0.1, fit_intercept=False)):  # fmt: skip
        with pytest.raises(ValueError, match="l1 at one alpha"):
            estimates(model.fit(X, y), X, y, how="exact")
    nothing = estimates(AtomicRegressor(alpha=50.0).fit(X, y), X, y, how="exact", sigma=1.0)
    assert nothing.columns.size == 0
    # A column twice: which of both is selected is not decided by the data.
    twice = np.column_stack([X[:, 3], X])
    model = AtomicRegressor(alpha=0.1).fit(twice, y)
    with pytest.raises(ValueError, match=r"columns \[0, 4\] depend on each other; leave one"):
        estimates(model, twice, y, how="exact", sigma=1.0)
