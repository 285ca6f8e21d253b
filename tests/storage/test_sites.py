"""Rows that stay at their sites: equal answers to pooled rows, and what a site refuses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicRegressor, losses, norms, paths, solve
from atomlearn.core import Array
from atomlearn.designs import Site, Sites
from atomlearn.testing.cases import each
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum

CUTS = [0, 130, 260, 600]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((600, 60))
LINEAR = X[:, :5] @ np.array([1.0, -0.8, 0.5, 0.7, -0.6]) + 0.4
WEIGHT = RNG.uniform(0.0, 2.0, 600) * (np.arange(600) % 7 > 0)
OFFSET = 0.1 * RNG.standard_normal(600)
NUMBERS = LINEAR + RNG.standard_normal(600)
COUNTS = RNG.poisson(np.exp(0.5 * LINEAR)).astype(float)
TARGETS: dict[str, tuple[Any, Array]] = {
    "squared": (losses.Squared(), NUMBERS + 1e4),
    "huber": (losses.Huber(0.7), NUMBERS),
    "logistic": (losses.Logistic(), np.sign(NUMBERS)),
    "squared hinge": (losses.SquaredHinge(), np.sign(NUMBERS)),
    "poisson": (losses.Poisson(), COUNTS),
    "gamma": (losses.Gamma(), np.exp(0.4 * NUMBERS)),
    "tweedie": (losses.Tweedie(1.4), COUNTS),
    "negative binomial": (losses.NegativeBinomial(0.5), COUNTS),
}
NORMS = {
    "l1": "l1",
    "k-support": norms.KSupport(4),
    "groups": norms.Groups(np.arange(60) // 4),
    "latent": norms.LatentGroups([list(range(i, i + 6)) for i in range(0, 56, 4)]),
    "sorted": norms.OWL(np.linspace(1.5, 1.0, 60)),
}


def sites_of(y: Array, wrapped: Any = lambda site: site, **given: Any) -> list[Any]:
    parts = [slice(a, b) for a, b in pairwise(CUTS)]
    own = [{name: each[at] for name, each in given.items()} for at in parts]
    return [wrapped(Site(X[at], y[at], **more)) for at, more in zip(parts, own, strict=True)]


@pytest.mark.parametrize(
    ("loss", "norm", "form"),
    in_turn(list(TARGETS), list(NORMS), ["penalized", "squared", "constrained"]),
)
def test_the_answer_of_pooled_rows(loss: str, norm: str, form: Any) -> None:
    the_loss, y = TARGETS[loss]
    amount = {"penalized": {"level": 30.0}, "squared": {"level": 9.0}, "constrained": {"radius": 1}}
    of: dict[str, Any] = {"loss": the_loss, "norm": NORMS[norm], "form": form, **amount[form]}
    tau = 0.0 if norm == "latent" else 0.5
    given: dict[str, Any] = {"sample_weight": WEIGHT, "offset": OFFSET}
    of |= {"tol": 1e-9, "tau": tau, "fit_intercept": True}
    pooled = solve_sum(X, y, **of, **given)
    sites = Sites(sites_of(y, **given))
    found = solve_sum(sites, None, **of)
    assert found.converged
    bound = max(pooled.gap, found.gap) + 1e-9 * abs(pooled.objective)
    assert abs(found.objective - pooled.objective) <= bound
    # The very objective of this point over the pooled rows, and its gap there.
    there = solve_sum(X, y, **of, **given, warm_start=found, max_iter=0)
    assert there.objective == pytest.approx(found.objective, rel=1e-9)
    assert found.passes <= 10
    assert found.sent[0] > found.passes


def test_a_path_and_a_warm_start() -> None:
    y = TARGETS["logistic"][1]
    alphas = np.array([60.0, 30.0, 15.0]) / len(X)
    found = paths.path(Sites(sites_of(y)), None, loss="logistic", alphas=alphas)
    pooled = paths.path(X, y, loss="logistic", alphas=alphas)
    np.testing.assert_allclose(found.objectives, pooled.objectives, rtol=2e-6)
    assert found.passes <= 10
    grid = paths.path(Sites(sites_of(y)), None, loss="logistic", n_alphas=3, fit_intercept=False)
    assert grid.n_selected[0] == 0
    again = solve(
        Sites(sites_of(y)), None, loss="logistic", alpha=alphas[-1], warm_start=found.results[-1]
    )
    assert again.passes == 1.0


def test_the_coordinator_proves_it_again_and_predicts_where_the_rows_are() -> None:
    y = TARGETS["squared"][1]
    found = solve_sum(Sites(sites_of(y)), None, level=40.0, fit_intercept=True)
    proved = found.verify()
    assert proved.gap <= 1e-6 * found.objective
    residual = y - found.predict(X)
    assert found.objective == pytest.approx(
        0.5 * residual @ residual + 40.0 * np.abs(found.coef).sum(), rel=1e-12
    )
    assert "bytes in" in str(found)


def test_nothing_of_the_size_of_the_rows_is_sent() -> None:
    y = TARGETS["logistic"][1]
    sizes: set[int] = set()

    def watched(site: Site) -> Any:
        def asked(question: dict[str, Any]) -> dict[str, Any]:
            answer = site(question)
            for part in [*question.values(), *answer.values()]:
                sizes.update(np.shape(part))
            return answer

        return asked

    solve_sum(Sites(sites_of(y, watched)), None, loss="logistic", level=30.0)
    assert max(sizes) <= 60


def test_secure_summation_sees_totals_alone() -> None:
    """Masks that sum to zero hide each answer; what the coordinator adds up is as it was."""
    y = TARGETS["huber"][1]
    seen: list[float] = []

    def masked(number: int, site: Site) -> Any:
        def asked(question: dict[str, Any]) -> dict[str, Any]:
            answer = site(question)
            if question["ask"] == "about":
                return answer
            # The same random numbers at all sites; the last one takes the others' off.
            rng = np.random.default_rng(len(seen))
            factor = 1.0 if number < 2 else -2.0
            return {
                name: part + factor * rng.integers(-(2**14), 2**14, np.shape(part))
                for name, part in answer.items()
            }

        return asked

    def add(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        seen.append(float(np.sum(answers[0].get("value", 0.0))))
        return {name: sum(each[name] for each in answers) for name in answers[0]}

    plain = solve_sum(Sites(sites_of(y)), None, level=40.0)
    hidden = [masked(number, site) for number, site in enumerate(sites_of(y))]
    found = solve_sum(Sites(hidden, add=add), None, level=40.0)
    np.testing.assert_allclose(found.coef, plain.coef, atol=1e-7)
    assert min(seen) < 0.0  # no value of a loss is


def test_what_is_refused() -> None:
    y = TARGETS["squared"][1]
    with pytest.raises(ValueError, match="5 rows with a weight and answers for 10"):
        Site(X[:5], y[:5])
    with pytest.raises(ValueError, match="site 1 has 59 columns"):
        Sites([Site(X, y), Site(X[:, 1:], y)])
    with pytest.raises(TypeError, match="list of callables"):
        Sites([])
    few = Sites([Site(X, y), Site(X[:40], y[:40])])
    with pytest.raises(ValueError, match="60 columns, this site of 40 rows answers for 30"):
        solve_sum(few, None, level=1.0)
    sites = Sites(sites_of(y))
    for given, words in (
        ({"loss": "quantile"}, "loss 'quantile'"),
        ({"norm": norms.UserNorm(np.abs, lambda z: (0, 1.0))}, "UserNorm"),
        ({"unpenalized": [0]}, "every column has a penalty"),
    ):
        with pytest.raises(TypeError, match=words):
            solve_sum(sites, None, level=1.0, **given)
    with pytest.raises(ValueError, match="offset="):
        solve_sum(sites, None, level=1.0, offset=OFFSET)
    for fit in (
        lambda: AtomicRegressor().fit(sites, y),
        lambda: solve_sum(sites, y, level=1.0),
        lambda: solve_sum(sites, None, level=1.0, sample_weight=WEIGHT),
    ):
        with pytest.raises((TypeError, ValueError), match="y is None"):
            fit()
    with pytest.raises(ValueError, match="labels"):
        solve_sum(sites, None, loss="logistic", level=1.0)
    with pytest.raises(ValueError, match="not 'rows'"):
        Site(X, y)({"ask": "rows", "columns": [0], "loss": "squared", "parameters": {},
                    "weights": [0.0], "shift": 0.0, "kept": [1, 1]})  # fmt: skip


@each("loss", ["huber", "poisson"])
def test_rows_without_weight_are_no_rows(loss: str) -> None:
    the_loss, y = TARGETS[loss]
    here = solve_sum(Sites([Site(X, y, sample_weight=WEIGHT)]), None, loss=the_loss, level=25.0)
    kept = WEIGHT > 0
    some = solve_sum(X[kept], y[kept], sample_weight=WEIGHT[kept], loss=the_loss, level=25.0)
    assert here.objective == pytest.approx(some.objective, rel=2e-6)


def test_steps_where_the_loss_has_no_curvature() -> None:
    """More columns than rows where Huber's loss bends: its Hessian alone says nothing of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 50))
    y = 3.0 * rng.standard_normal(60)
    of: dict[str, Any] = {"loss": "huber", "norm": norms.KSupport(3), "alpha": 0.03}
    of |= {"tol": 1e-10, "fit_intercept": False}
    expected = solve(X, y, **of)
    found = solve(Sites([Site(X, y, least_rows=1)]), None, **of)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert found.sent[0] < 100
