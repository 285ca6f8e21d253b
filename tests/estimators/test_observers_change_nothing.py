"""Observers, rules that never fire and generous limits change no bit of any answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import (
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    norms,
    paths,
)
from atomlearn.findings import StabilitySelector
from atomlearn.solvers import stopping
from tests.oracles.sums import solve_sum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3500))  # more columns than a pool takes whole
Y = X[:, :40:4] @ RNG.uniform(1, 2, 10) + RNG.standard_normal(80)
LABELS = np.where(np.median(Y) < Y, 1, 0)


def nothing(progress: Any) -> None:
    """See a step."""


#: What should not matter.
HARMLESS: list[dict[str, Any]] = [
    {"observers": [nothing]},
    {"stop": stopping.Seconds(1e9)},
    {"max_iter": 10**6},
    {"time_limit": 1e9},
]

NORMS = ["l1", norms.KSupport(5), norms.Chains(4)]


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: str(norm)[:12])
def test_of_a_solve(norm: Any) -> None:
    form: dict[str, Any] = {"norm": norm, "level": 60.0, "tol": 1e-4}
    plain = solve_sum(X, Y, **form)
    for harmless in HARMLESS:
        watched = solve_sum(X, Y, **form, **harmless)
        assert (watched.passes, watched.gap) == (plain.passes, plain.gap), harmless
        np.testing.assert_array_equal(watched.coef, plain.coef, str(harmless))


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: str(norm)[:12])
def test_of_a_path(norm: Any) -> None:
    form: dict[str, Any] = {"norm": norm, "n_alphas": 6, "alpha_ratio": 0.2, "tol": 1e-4}
    plain = paths.path(X, Y, **form)
    for harmless in ({"observers": [nothing]}, {"max_iter": 10**6}):
        watched = paths.path(X, Y, **form, **harmless)
        assert watched.passes == plain.passes
        np.testing.assert_array_equal(watched.coefs, plain.coefs)
        np.testing.assert_array_equal(watched.relative_gaps, plain.relative_gaps)


@pytest.mark.parametrize("kind", [AtomicRegressorCV, AtomicClassifierCV])
def test_of_a_cross_validation(kind: Any) -> None:
    y = Y if kind is AtomicRegressorCV else LABELS
    how: dict[str, Any] = {"n_alphas": 8, "alpha_ratio": 0.1, "cv": 3}
    plain, scores = kind(**how).fit(X, y), "mean_test_score"
    for harmless in HARMLESS:
        watched = kind(**how, **harmless).fit(X, y)
        assert watched.n_passes_ == plain.n_passes_, harmless
        np.testing.assert_array_equal(watched.coef_, plain.coef_)
        np.testing.assert_array_equal(watched.cv_results_[scores], plain.cv_results_[scores])


def test_of_selectors() -> None:
    few = X[:, :200]
    for given in HARMLESS[:2]:
        plain = StabilitySelector(AtomicRegressor(), n_resamples=4, random_state=0).fit(few, Y)
        watched = StabilitySelector(AtomicRegressor(**given), n_resamples=4, random_state=0).fit(
            few, Y
        )
        np.testing.assert_array_equal(
            watched.selection_probabilities_, plain.selection_probabilities_
        )
        one = FeatureGenerator(10, loss="logistic", standardize=True).fit(few, LABELS)
        other = FeatureGenerator(10, loss="logistic", **given, standardize=True).fit(few, LABELS)
        np.testing.assert_array_equal(one.selected_, other.selected_)


def test_observers_see_every_level_of_a_path() -> None:
    seen: dict[float, list[float]] = {}

    def note(progress: Any) -> None:
        level = progress.problem.regularizer.amount
        seen.setdefault(level, []).append(progress.state.certificate.relative_gap)

    found = paths.path(X, Y, n_alphas=8, alpha_ratio=0.1, observers=[note], fit_intercept=False)
    assert sorted(seen, reverse=True) == found.alphas.tolist()
    assert [seen[level][-1] for level in found.alphas] == found.relative_gaps.tolist()
    assert [len(seen[level]) for level in found.alphas] == [len(r.history) for r in found.results]


def test_a_rule_ends_each_level_of_a_path_by_itself() -> None:
    five = stopping.Callback(lambda progress: progress.n_columns >= 5)
    model = AtomicRegressorCV(n_alphas=8, alpha_ratio=0.1, cv=3, stop=five)
    with pytest.warns(Warning, match="callback"):
        model.fit(X, Y)
    assert np.count_nonzero(model.coef_) > 0
