"""A master over fewer samples: the same minimum, proved over all samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import norms, solve
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces.norm import Form
from atomlearn.core.masters.compressed import compressed
from atomlearn.core.problem.pricing import priced
from atomlearn.designs import ArrayScores, Tasks
from atomlearn.interfaces import Master, Norm, Refit
from atomlearn.losses import Logistic, Squared
from atomlearn.masters import CompressedSamples, SemismoothNewton
from atomlearn.problem import Problem, Regularizer

ROWS, P, Q = 30, 12, 60


def problem(form: Form, norm: Norm, weighted: bool = False, tau: float = 0.0) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, P))
    Y = X @ (rng.normal(size=(P, Q)) * (rng.random((P, Q)) < 0.2)) + rng.normal(size=(ROWS, Q))
    design = Tasks(X, Q)
    chosen = np.sort(rng.permutation(P * Q)[: P * Q // 2])
    amount = 3.0 if form == "constrained" else 20.0
    weight = rng.random(Y.size) if weighted else None
    whole = Problem.build(
        design,
        Y.reshape(-1),
        Squared(),
        Regularizer(norm, form, amount),
        tau=tau,
        sample_weight=weight,
    )
    return whole.restricted_to(design.gather(chosen), chosen)


NORMS = [norms.L1(), norms.KSupport(25), norms.Groups(np.arange(P * Q) // Q)]


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_minimum_and_its_gap_are_those_over_all_samples(
    form: Form, norm: Norm, weighted: bool
) -> None:
    whole = problem(form, norm, weighted, tau=0.3 if weighted else 0.0)
    smaller = compressed(whole)
    assert smaller is not None
    assert smaller.design.shape[0] < whole.design.shape[0] // 2
    start = np.zeros(whole.design.shape[1])
    target = 1e-9 * whole.objective(start, np.zeros(whole.y.size))
    refit = CompressedSamples(SemismoothNewton()).solve(whole, start, 0.0, target)
    direct = SemismoothNewton().solve(whole, start, 0.0, target)
    assert refit.gap <= target
    assert abs(refit.objective - direct.objective) <= 2 * target
    A = np.asarray(whole.design)
    assert_allclose(refit.prediction, A @ refit.weights, atol=1e-11)
    v = whole.weight * (whole.y - A @ refit.weights)
    scores = ArrayScores(A.T @ v)
    claimed = priced(whole, None, refit.weights, refit.prediction, v, scores).certificate
    assert_allclose(refit.gap, claimed.gap, atol=1e-3 * target)


@dataclass(frozen=True)
class Careless(Master):
    """Gives the start back over few samples and claims a gap of zero there."""

    calls: list[int] = field(default_factory=list)

    def solve(self, problem: Problem, weights: np.ndarray, intercept: float, gap: float) -> Refit:
        self.calls.append(problem.design.shape[0])
        if problem.design.shape[0] < ROWS * Q:
            return Refit(weights, 0.0, np.zeros(problem.design.shape[0]), 0.0, 0.0, steps=3)
        return SemismoothNewton().solve(problem, weights, intercept, gap)


def test_a_claim_over_few_samples_is_checked_over_all() -> None:
    whole = problem("penalized", norms.L1())
    start = np.zeros(whole.design.shape[1])
    master = Careless()
    refit = CompressedSamples(master).solve(whole, start, 0.0, 1e-6)
    assert master.calls == [whole.design.shape[1], ROWS * Q]
    assert refit.gap <= 1e-6
    assert refit.steps > 3


def test_other_losses_and_an_intercept_are_left_alone() -> None:
    whole = problem("penalized", norms.L1())
    assert compressed(replace(whole, fit_intercept=True)) is None
    labels = np.where(whole.y > 0, 1.0, -1.0)
    assert compressed(replace(whole, loss=Logistic(), y=labels)) is None


def test_a_fit_of_many_tasks_is_the_fit_without_structure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 80))
    X /= np.linalg.norm(X, axis=0)
    asked = {"norm": norms.KSupport(150), "form": "squared", "level": 3.0, "gap": 1e-9}
    ours = solve(X, X, **asked)
    dense = replace(LIMITS, small_entries=2**40)
    monkeypatch.setattr("atomlearn.matrices.designs.tasks.LIMITS", dense)
    plain = solve(X, X, **asked)
    assert ours.converged
    assert plain.converged
    assert ours.passes <= plain.passes + 1
    assert_allclose(ours.objective, plain.objective, rtol=2e-9)
    W = ours.coef.reshape(80, 80)
    Z = X.T @ (X - X @ W)
    level = 3.0
    top = np.sort(np.abs(Z).ravel())[-150:]
    gauge = norms.KSupport(150).value(W.ravel())
    gap = -(Z * W).sum() + 0.5 * level * gauge**2 + 0.5 * float(top @ top) / level
    assert gap <= 1.01e-9 * ours.objective
