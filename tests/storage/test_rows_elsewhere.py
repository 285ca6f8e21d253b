"""Paths and cross-validations on Dask rows: sums travel, never n numbers; answers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, paths
from atomlearn.core import Array, part_of
from atomlearn.designs import Dask, Site, Sites
from atomlearn.storage.spread import chunks
from atomlearn.testing.cases import each
from tests.oracles.sums import solve_sum

da = pytest.importorskip("dask.array")

N, P = 300, 24
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, P))
LINEAR = X[:, :5] @ np.array([1.0, -0.8, 0.5, 0.7, -0.6]) + 0.4
NOISY = LINEAR + RNG.standard_normal(N)
TARGETS: dict[str, Array] = {
    "squared": NOISY + 1e3,
    "logistic": np.sign(NOISY),
    "poisson": RNG.poisson(np.exp(0.5 * LINEAR)).astype(float),
}


def rows(columns: int = P) -> Dask:
    return Dask(da.from_array(X, chunks=(75, columns)))


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The lengths of all arrays in questions to chunks, and in their answers."""
    found: set[int] = set()
    answer = chunks.answer

    def watched(held: Any, own: Any, question: Any) -> Any:
        told = answer(held, own, question)
        for part in [*question.values(), *told.values()]:
            found.update(np.shape(part))
        return told

    monkeypatch.setattr(chunks, "answer", watched)
    return found


@each("loss", list(TARGETS))
def test_a_path_sends_sums(loss: str, sizes: set[int]) -> None:
    y, of = TARGETS[loss], {"loss": loss, "fit_intercept": True, "n_alphas": 6, "tol": 1e-10}
    expected = paths.path(X, y, **of)
    for design in (rows(), rows(9)):
        found = paths.path(design, y, **of)
        assert found.converged
        assert_allclose(found.alphas, expected.alphas, rtol=1e-12)
        assert_allclose(found.objectives, expected.objectives, rtol=1e-9)
        assert all(result.sent[0] >= result.passes for result in found.results)
        assert design.sent == (0, 0)
    assert max(sizes) <= P


@each("loss", list(TARGETS))
def test_a_cross_validation_sends_sums(loss: str, sizes: set[int]) -> None:
    """Held-out losses too are sums; ends by them are the same."""
    y, kind = TARGETS[loss], AtomicClassifierCV if loss == "logistic" else AtomicRegressorCV
    of = {"norms": ["l1"], "loss": loss, "n_alphas": 6, "cv": 3, "until": paths.NoImprovement()}
    of["tol"] = 1e-9  # scores differ by about the root of the gap
    expected, design = kind(**of).fit(X, y), rows()
    found = kind(**of).fit(design, y)
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-12)
    for name in ("mean_test_score", "mean_n_selected"):
        assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-5)
    assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    assert max(sizes) <= P
    # Predictions of the rows left out, for intervals, formed where the rows are.
    assert design.sent[1] <= 8 * 3 * (N + 4 * P)


@each("loss", list(TARGETS))
def test_a_path_takes_few_rounds(loss: str) -> None:
    """Levels share scores; those of squared residuals their products, too."""
    found = paths.path(
        rows(), TARGETS[loss], loss=loss, fit_intercept=True, n_alphas=20, alpha_ratio=0.1
    )
    most = 1 if loss == "squared" else 5
    assert max(result.sent[0] for result in found.results) <= most * 20


def test_other_scores_and_refits_have_predictions() -> None:
    y = TARGETS["squared"]
    of: dict[str, Any] = {"norms": ["l1"], "n_alphas": 4, "cv": 3}
    for more in ({"scoring": "neg_median_absolute_error"}, {"relax": [0.0, 1.0]}):
        expected = AtomicRegressorCV(**of, **more).fit(X, y)
        found = AtomicRegressorCV(**of, **more).fit(rows(), y)
        assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-12)
        assert_allclose(found.coef_, expected.coef_, atol=1e-5)


def test_what_needs_more_than_sums_says_what_it_sent() -> None:
    for more in ({"loss": "quantile"}, {"unpenalized": [3]}):
        found = solve_sum(rows(), NOISY, level=9.0, **more)
        assert found.sent[1] > 8 * N * found.passes
        assert "bytes in" in str(found)


def test_products_with_some_columns_are_formed_where_the_rows_are() -> None:
    columns, W = np.array([20, 3, 17]), np.arange(6.0).reshape(3, 2)
    design, some = rows(11), np.array([2, 74, 75, 290])
    assert_allclose(design.product(W, columns), X[:, columns] @ W, rtol=1e-12, atol=1e-12)
    assert design.sent == (1, 8 * (4 * W.size + 2 * N))
    part = part_of(design, rows=some)
    assert_allclose(part.product(W, columns), X[some][:, columns] @ W, rtol=1e-12, atol=1e-12)
    assert_allclose(
        part_of(design, rows=some[::-1]).gather(columns).dense(), X[some[::-1]][:, columns]
    )


def test_a_path_over_sites_of_more_columns_than_rows() -> None:
    """A pool of likely columns would ask for products of more columns than a site answers for."""
    wide = np.random.default_rng(0).standard_normal((150, 3200))
    y = wide[:, :4].sum(axis=1) + RNG.standard_normal(150)
    of: dict[str, Any] = {"n_alphas": 4, "alpha_ratio": 0.5, "fit_intercept": False}
    expected = paths.path(wide, y, **of)
    sites = Sites([Site(wide[i : i + 75], y[i : i + 75], least_rows=1) for i in (0, 75)])
    found = paths.path(sites, None, **of)
    assert_allclose(found.objectives, expected.objectives, rtol=1e-6)
